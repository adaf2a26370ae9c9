"""Columns and values by the words that people have for them, which are seldom the names of the table."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
import pytest
from tests.agent.reading import assert_read

import almanaq

ROWS = 24
CATCHES = pa.table(
    {
        "skipper": ["Olsen", "Berg", "Dahl", "Vik"] * 6,
        "skippershare": [float(i) for i in range(ROWS)],
        "totalshare": [float(3 * i) for i in range(ROWS)],
        "country_of_registry": ["NO", "DE", "IS", "FO", "DK", "SE"] * 4,
        "in_country_agent": ["Havn AS", "Kai GmbH"] * 12,
        "number_of_crates": list(range(ROWS)),
        "crate_weight": [20 + i % 3 for i in range(ROWS)],
        "landing_date": [date(2023 + i % 2, 5, 1 + i) for i in range(ROWS)],
        "expiry_date": [date(2025, 5, 1 + i) for i in range(ROWS)],
        "allowed_by": ["Coastal Permit", "Deep Sea Permit", "River Permit"] * 8,
        "state": ["Inspection", "Auction", "Storage"] * 8,
        "grade": ["A", "B", None] * 8,
    }
)
ANSWERED = {
    "catches from Norway": "WHERE country_of_registry = 'NO'",
    "which countries are there": "SELECT DISTINCT country_of_registry FROM catches",
    "how many crates came from Iceland": "SELECT SUM(number_of_crates) FROM catches WHERE country_of_registry = 'IS'",
    "number of catches per permit": "SELECT allowed_by, COUNT(*) FROM catches GROUP BY allowed_by",
    "how many catches were inspected": "SELECT COUNT(*) FROM catches WHERE state = 'Inspection'",
    "how many catches were recorded": "SELECT COUNT(*) FROM catches",
    "number of catches landed per year": "GROUP BY EXTRACT(year FROM landing_date)",
    "how many catches went to the fish hall (Auction)": "SELECT COUNT(*) FROM catches WHERE state = 'Auction'",
    "how many catches are in storrage": "SELECT COUNT(*) FROM catches WHERE state = 'Storage'",
    "which grades are there in Germany": "WHERE country_of_registry = 'DE' AND grade IS NOT NULL",
    "average number of crates for each of Olsen and Berg": "WHERE skipper IN ('Olsen', 'Berg') GROUP BY skipper",
    "highest share of skipper Vik": "SELECT MAX(skippershare) FROM catches WHERE skipper = 'Vik'",
}
DECLINED = (
    "sum of the shares",
    "average number of crates for each Olsen",
    "which skipper had the most crates per crate weight",
    "which countries have no river permit",
)


@pytest.fixture(scope="module")
def connection():
    with almanaq.connect({"catches": CATCHES}, model="local", confidence=0.01) as opened:
        yield opened


@pytest.mark.parametrize("question", ANSWERED)
def test_words_are_read_as_they_are_meant(connection, question):
    assert_read(connection, question, ANSWERED[question])


@pytest.mark.parametrize("question", DECLINED)
def test_what_may_mean_two_things_is_declined(connection, question):
    reply = connection.ask(question)
    assert reply.status == "no_query", reply.suql
