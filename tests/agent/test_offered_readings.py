"""Readings: where no query is sure, up to three are offered, and one can be chosen."""

from __future__ import annotations

import pytest

import almanaq
from almanaq.agent.local import LocalDialogue
from almanaq.agent.response import Reading
from almanaq.encode import response_record
from almanaq.errors import UsageError

TABLE = {
    "shop": ["North", "South", "North", "South"],
    "sales": [9, 4, 2, 8],
    "first_name": ["Lee", "Ida", "Tom", "Eva"],
    "last_name": ["Berg", "Lee", "Dahl", "Moe"],
}


@pytest.fixture
def con():
    with almanaq.connect({"receipts": TABLE}, model="local") as connection:
        yield connection


UNSURE = "which shop has the highest sales?"


def test_at_most_three_are_offered_the_likeliest_first(con):
    reply = con.ask(UNSURE)
    assert reply.status == "clarify"
    assert 1 < len(reply.readings) <= 3
    said = [reading.probability for reading in reply.readings]
    assert said == sorted(said, reverse=True)
    assert all(reading.words and reading.words in reply.answer for reading in reply.readings)


def test_a_reading_without_words_is_offered_only_where_no_other_is_there(con):
    dialogue = LocalDialogue(con.engine)
    world = dialogue.world(con.catalog)
    said = Reading("receipts", "SELECT shop FROM receipts", 0.5)
    unsaid = Reading("SELECT a % 2 FROM receipts", "SELECT a % 2 FROM receipts", 0.5)
    assert dialogue.offer("shops?", [unsaid, said, said], world).readings == (said,)
    assert dialogue.offer("shops?", [unsaid], world).readings == (unsaid,)


def test_a_reading_runs(con):
    rows = [reading.run().rows for reading in con.ask(UNSURE).readings]
    assert [("South", 12)] in [list(map(tuple, found)) for found in rows]


@pytest.mark.parametrize(("said", "place"), [("1", 0), ("yes", 0), ("the second", 1), ("2", 1), ("the first one", 0)])
def test_one_is_chosen_by_the_next_turn(con, said, place):
    chat = con.chat()
    offered = chat.ask(UNSURE).readings
    assert chat.ask(said).suql == offered[place].suql


def test_a_value_in_two_columns_is_asked_about(con):
    reply = con.ask("how many receipts are of Lee?")
    assert reply.status == "clarify"
    assert {"first_name", "last_name"} <= {
        name for r in reply.readings for name in ("first_name", "last_name") if name in r.suql
    }


def test_readings_are_in_json(con):
    record = response_record(con.ask(UNSURE))
    assert all(set(reading) == {"words", "suql", "probability"} for reading in record["readings"])
    assert con.ask("total sales").as_dict()["readings"] == []


def test_a_reading_without_a_connection_says_what_to_do():
    from almanaq.agent.response import Reading

    with pytest.raises(UsageError, match=r"con\.sql"):
        Reading("words", "SELECT 1", 0.5).run()


def test_confidence_decides_what_is_answered(con):
    assert con.ask(UNSURE, options=almanaq.Options(confidence=0.05)).status == "answered"
    assert con.ask("total sales", options=almanaq.Options(confidence=1.0)).status in ("answered", "clarify")
