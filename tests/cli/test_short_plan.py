"""The plan in short says what is asked and when it stops."""

from __future__ import annotations

import pyarrow as pa
import pytest

import almanaq
from almanaq.cli.terminal import short_plan
from almanaq.testing import FunctionModel

NOTES = [f"Table {n} was set with candles, and a pianist took requests until long after ten." for n in range(20)]
TABLE = pa.table({"id": range(20), "city": ["St. Louis", "Rome"] * 10, "rating": [4.5] * 20, "notes": NOTES})
CALM = "answer(notes, 'is it calm?') = 'Yes'"


@pytest.fixture
def plan():
    with almanaq.connect({"places": TABLE}, model=FunctionModel(lambda text, question: "Yes"), cache=False) as opened:
        yield lambda suql: short_plan(opened.explain(suql))


def test_what_is_asked_and_when_it_stops(plan):
    suql = f"SELECT id FROM places WHERE city = 'St. Louis' AND {CALM} ORDER BY rating DESC LIMIT 3"
    assert plan(suql)[:2] == [f"keep: {CALM}", "stop after 3 rows in that order"]
    assert plan(suql)[-1].startswith("expected: about ")


def test_a_query_without_text_is_the_databases(plan):
    assert plan("SELECT count(*) FROM places") == ["the database runs the whole query"]
