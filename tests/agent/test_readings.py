"""Readings of `local` that strangers' questions asked for: each of a small club's tables, with a query or a refusal."""

from __future__ import annotations

from datetime import date, datetime

import pyarrow as pa
import pytest
from tests.agent.reading import assert_read

import almanaq

BOATS = pa.table(
    {
        "boat_id": ["b/1", "b/2", "b/3", "b/4"],
        "boat": ["Heron", "Teal", "Tern", "Swift"],
        "twin": ["b/2", "b/1", None, None],
        "cabins": [0, 2, 4, 0],
        "length_m": [7.5, 9.0, 12.25, 6.0],
        "built": [1895, 1950, 1990, 2004],
        "builders": ["Lund & Vik", "Lund", "Berg", "Vik"],
        "uses": ["Day trips on the lake with a cold lunch." * 3, "Races." * 20, "Long tours." * 20, "Lessons." * 20],
        "kind": ["sloop", "ketch", "ketch", "sloop"],
        "language": ["da", "sv", "de", "fr"],
        "NO_trips": [10, 20, 30, 40],
        "SE_trips": [4, 3, 2, 1],
        "fittings": ["stove; radio", "radio", "stove; radio; heater", "heater; stove"],
        "hull_kinddesc": ["Wood", "Steel", "Steel", "Wood"],
        "hull_kind": ["W", "S", "S", "W"],
    }
)
_DAYS = [date(2024, 1 + i % 12, 1 + i % 28) for i in range(120)]
SAILS = pa.table(
    {
        "sail_id": list(range(1, 121)),
        "boat_id": [f"b/{1 + i % 3}" for i in range(120)],
        "skipper_id": [100 + i % 7 for i in range(120)],
        "harbour": [["Oslo", "Bergen", "Moss"][i % 3] for i in range(120)],
        "season": [f"S{1 + i % 9:02d}" for i in range(120)],
        "sail_day": _DAYS,
        "begun": [datetime(2024, 1 + i % 12, 1 + i % 28, i % 24) for i in range(120)],
        "guests": [i % 9 for i in range(120)],
        "fare": [100.0 + i for i in range(120)],
        "rated": [["good", "fair", "poor"][i % 3] for i in range(120)],
    }
)
SIGHTINGS = pa.table(
    {
        "name": [["Otter", "Seal", "Orca"][i % 3] for i in range(90)],
        "year": [2020 + i % 3 for i in range(90)],
        "depth": [i % 30 for i in range(90)],
    }
)
ANSWERED = {
    "how many sails are there?": "SELECT COUNT(*) FROM sails",
    "how many skippers are there": "SELECT COUNT(DISTINCT skipper_id) FROM sails",
    "how many sails were made by skipper 103": "WHERE skipper_id = 103",
    "top 3 skippers by number of sails": "GROUP BY skipper_id ORDER BY COUNT(*) DESC LIMIT 3",
    "how many boats have cabins": "WHERE cabins > 0",
    "boats without cabins": "WHERE cabins = 0",
    "boats built in the 19th century": "WHERE built BETWEEN 1801 AND 1900",
    "boats built in the 90s": "WHERE built BETWEEN 1990 AND 1999",
    "the longest and the shortest boat": "IN ((SELECT MAX(length_m) FROM boats), (SELECT MIN(length_m) FROM boats))",
    "highest and lowest fare": "SELECT MAX(fare), MIN(fare) FROM sails",
    "which is longer, Heron or Teal?": "ORDER BY length_m DESC",
    "are there more sails from Oslo or from Bergen": "GROUP BY harbour ORDER BY COUNT(*) DESC",
    "is the average fare higher in Oslo or in Moss": "SELECT harbour, AVG(fare)",
    "average fare and guests": "SELECT AVG(fare), AVG(guests)",
    "average fare, Oslo vs Bergen": "WHERE harbour IN ('Oslo', 'Bergen') GROUP BY harbour",
    "breakdown of rated": "SELECT rated, COUNT(*) FROM sails GROUP BY rated",
    "boats with a radio": "|| fittings ||",
    "how many boats are in Danish": "WHERE language = 'da'",
    "total trips in Sweden": 'SUM("SE_trips")',
    "what is Teal used for?": "SELECT uses FROM boats WHERE boat = 'Teal'",
    "what is the length of b/1": "WHERE boat_id = 'b/1'",
    "sails in season 7": "WHERE season = 'S07'",
    "sails per weekday": "to_char(",
    "sails per hour of day": "EXTRACT(hour FROM begun)",
    "number of sails per harbour, most first": "ORDER BY COUNT(*) DESC",
    "harbours with more than 5 different skippers": "HAVING COUNT(DISTINCT skipper_id) > 5",
    "what is the hull kind of Tern": "hull_kinddesc",
    "most recent sail": "ORDER BY sail_day DESC",
}
DECLINED = (
    "how many sightings are there with a depth over 5000000",
    "how many animals were seen in 2021",
    "average fare in hours",
    "list the stove boats with radio heater",
    "how many sightings were there in 2021",  # of each animal there are many rows
)


@pytest.fixture(scope="module")
def connection():
    tables = {"boats": BOATS, "sails": SAILS, "sightings": SIGHTINGS}
    with almanaq.connect(tables, model="local", confidence=0.01) as opened:
        yield opened


@pytest.mark.parametrize("question", ANSWERED)
def test_a_question_is_read_as_it_is_meant(connection, question):
    assert_read(connection, question, ANSWERED[question])


@pytest.mark.parametrize("question", DECLINED)
def test_what_may_mean_something_else_is_declined(connection, question):
    reply = connection.ask(question)
    assert reply.status in ("no_query", "clarify"), reply.suql
