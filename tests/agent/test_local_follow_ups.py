"""Follow-ups without a model: a turn gives what the whole question gives that it stands for; whole questions give in a
chat what they give alone.
"""

from __future__ import annotations

import contextlib
import itertools
from datetime import date

import pytest
from tests.agent.test_local_questions import TABLES

import almanaq


@pytest.fixture(scope="module")
def con():
    with almanaq.connect(TABLES, model="local") as connection:
        yield connection


def last_of(con, *turns):
    chat = con.chat()
    return [chat.ask(turn) for turn in turns][-1]


WHOLE = [
    "how many growers are there?",
    "total kilos by fruit",
    "average age of growers in Vik",
    "how many deliveries of pear are there?",
    "who is the oldest grower?",
    "towns with more than 1 grower",
    "growers older than 40",
    "which towns have more than 1 grower, and how many each",
]


@pytest.mark.parametrize(
    ("turns", "whole"),
    [
        (["average age of growers in Moss", "which is the oldest grower"], "which is the oldest grower"),
        (["total kilos by fruit", "only in 2023"], "total kilos by fruit in 2023"),
        (["total kilos by town", "only in 2023"], "total kilos by town in 2023"),
        (["total kilos by fruit in 2022", "what about 2023?"], "total kilos by fruit in 2023"),
        (["total kilos by fruit", "and the average?"], "average kilos by fruit"),
        (["total kilos by fruit", "by town instead"], "total kilos by town"),
        (["how many growers are in Vik?", "what about Oslo?"], "how many growers are in Oslo?"),
        (["how many deliveries of pear are there?", "and plum?"], "how many deliveries of plum are there?"),
        (["how many pear deliveries in 2023?", "what about plum deliveries?"], "how many plum deliveries in 2023?"),
        (["average age of growers in Vik", "what about Vik and Oslo?"], "average age of growers in Vik or Oslo"),
        (["growers in Vik", "how many are there?"], "how many growers are in Vik?"),
        (["how many growers are in Vik?", "what is the average age of them?"], "average age of growers in Vik"),
        (["growers in Vik", "which of them is the oldest?"], "oldest grower in Vik"),
        (["growers in Vik", "what is their total kilos?"], "total kilos of growers in Vik"),
        (["total kilos in 2022", "forget the year"], "total kilos"),
        (["deliveries of pear", "number of different fruits"], "how many different fruits are there?"),
        (["growers in Vik", "how many did you find?"], "how many growers are in Vik?"),
        (["growers in Vik", "show the oldest one"], "oldest grower in Vik"),
        (["total kilos by town", "which has the least?"], "town with the lowest total kilos"),
        (["average age by town", "which is the oldest?"], "town with the highest average age"),
        (["growers in Vik", "not Vik, Oslo"], "growers in Oslo"),
        (["growers in Vik", "no, not Vik. Moss"], "growers in Moss"),
        (["how many growers are in Vik?", "not in Vik but in Oslo"], "how many growers are in Oslo?"),
        (
            ["how many deliveries were delivered in 2023?", "since October"],
            "how many deliveries between October 2023 and December 2023",
        ),
        (["total kilos since May 2023", "before October 2023"], "total kilos between May and September 2023"),
        (["total kilos in 2023", "before October"], "total kilos between January and September 2023"),
        (["total kilos in 2023", "in October"], "total kilos in October 2023"),
        (["total kilos in 2023", "after September", "until October"], "total kilos in October 2023"),
        (
            ["growers in Vik", "total kilos by fruit? Which is the highest?"],
            "total kilos by fruit? Which is the highest?",
        ),
    ],
)
def test_a_turn_gives_what_the_whole_question_gives(con, turns, whole):
    wanted, found = con.ask(whole), last_of(con, *turns)
    assert wanted.status == found.status == "answered", (wanted.answer, found.answer)
    assert sorted(map(str, (row[-1] for row in found.rows))) == sorted(map(str, (row[-1] for row in wanted.rows))) or {
        row[0] for row in found.rows
    } == {row[0] for row in wanted.rows}


def test_rows_that_only_lack_a_value_are_not_left_out_of_the_next_question():
    kilns = {"kilns": {"kiln": ["A", "B", "C"], "glaze": ["ash", None, "ash"], "degrees": [1200, 1300, 1250]}}
    with almanaq.connect(kilns, model="local") as con:
        reply = last_of(con, "which glaze is the most common", "average degrees")
        assert reply.rows == ((1250.0,),)


@pytest.mark.parametrize(
    ("both", "first", "second"),
    [
        ("How many growers are there? How many deliveries are there?", WHOLE[0], "how many deliveries are there?"),
        ("growers in Vik? Which is the oldest?", "growers in Vik", "oldest grower in Vik"),
    ],
)
def test_of_two_questions_the_first_is_answered_and_the_second_offered(con, both, first, second):
    chat = con.chat()
    reply = chat.ask(both)
    assert (reply.rows, reply.answer.startswith("This answers “")) == (con.ask(first).rows, True)
    rows = chat.ask("1").rows
    assert [row[0] for row in rows] == [row[0] for row in con.ask(second).rows]
    assert rows == tuple(map(tuple, reply.readings[0].run().rows))


def test_it_is_the_row_that_was_shown(con):
    reply = last_of(con, "who is the oldest grower?", "what is its town?")
    assert "Vik" in reply.rows[0]


def test_which_of_them_after_a_number_are_rows_and_its_is_of_the_one_shown(con):
    turns = ["how many growers are in Vik?", "which of them is the oldest?", "what is its age?"]
    assert last_of(con, *turns[:2]).rows[0][0] == "Ann Holt"
    assert last_of(con, *turns).rows == (("Ann Holt", 61),)


def test_a_key_is_not_shown_beside_what_is_asked_of_a_row(con):
    assert last_of(con, "which delivery has the highest kilos?", "what is its fruit?").rows == (("pear",),)


def test_the_noun_after_a_verb_is_the_row_that_was_shown(con):
    reply = last_of(con, "who is the oldest grower?", "is the grower organic?")
    assert "Ann Holt" in str(reply.rows), reply.suql


def test_the_second_is_the_second_row(con):
    shown = last_of(con, "growers older than 40").rows
    reply = last_of(con, "growers older than 40", "what is the town of the second one?")
    assert reply.rows[0][0] == shown[1][0]


def test_lowest_first_is_the_order_of_the_figures(con):
    figures = [kilos for _, kilos in last_of(con, "total kilos by fruit", "lowest first").rows]
    assert figures
    assert figures == sorted(figures)


def test_the_top_two_are_the_first_two(con):
    reply = last_of(con, "growers older than 40", "the top two only")
    assert reply.rows == last_of(con, "growers older than 40").rows[:2]


def test_it_is_the_row_that_was_shown_also_after_a_turn_that_failed(con):
    reply = last_of(con, "who is the oldest grower?", "do trolls like zorbing?", "what is its town?")
    assert "Vik" in reply.rows[0]


def test_others_are_none_of_those_shown(con):
    first = last_of(con, "the 2 youngest growers").rows
    others = last_of(con, "the 2 youngest growers", "any others?").rows
    assert {row[0] for row in first}.isdisjoint({row[0] for row in others})


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("before", "question"), [*itertools.permutations(WHOLE, 2)])
def test_a_whole_question_gives_in_a_chat_what_it_gives_alone(con, before, question):
    alone, after = con.ask(question), last_of(con, before, question)
    assert (after.status, sorted(map(str, after.rows))) == (alone.status, sorted(map(str, alone.rows)))


@pytest.mark.parametrize(
    "turns",
    [
        ["total kilos by fruit", "and for martians?"],
        ["total kilos by fruit", "by wingspan"],
        ["growers in Vik", "what did they shout?"],
        ["growers in Vik", "all organic from Oslo please"],  # more than a part of a question, and it names no turn
    ],
)
def test_nothing_runs_for_what_is_not_understood(con, turns):
    reply = last_of(con, *turns)
    assert (reply.rows, reply.suql) == ((), None)


DELAYS = {
    "delays": {
        "line": ["N1", "N2", "N1", "N3", "N2", "N1"],
        "day": [date(2025, 3, d) for d in (1, 2, 3, 4, 5, 6)],
        "minutes": [10, 20, 30, 40, 60, 60],
        "towed": [1, 0, 1, 0, 0, 1],
    }
}
NUMBERED = {"delays": {**DELAYS["delays"], "slip": [91, 92, 93, 94, 95, 96]}}
MANY = {
    "delays": {"line": [f"N{i % 7}" for i in range(60)], "slip": list(range(60)), "minutes": [2 * i for i in range(60)]}
}


@pytest.fixture(scope="module")
def sources():
    tables = {"unnumbered": DELAYS, "numbered": NUMBERED, "many": MANY, "growers": TABLES}
    with contextlib.ExitStack() as stack:
        yield {name: stack.enter_context(almanaq.connect(each, model="local")) for name, each in tables.items()}


@pytest.mark.parametrize(
    ("source", "turns", "sql"),
    [
        ("numbered", ["the last 3 delays", "how many of them were towed?"], "SELECT 1"),
        ("numbered", ["delays longer than 30 minutes", "the second one", "what is its line?"], "SELECT 'N2'"),
        ("numbered", ["the last 2 delays", "what is their total minutes?"], "SELECT 120"),
        ("numbered", ["the last 2 delays", "any others?"], "SELECT * FROM (VALUES (93), (94))"),
        ("unnumbered", ["delays longer than 30 minutes", "what is their total minutes?"], "SELECT 160"),
        (
            "many",
            ["the 30 longest delays", "what is their total minutes?"],
            "SELECT SUM(minutes) FROM delays WHERE slip > 29",
        ),
        ("many", ["delays longer than 9 minutes", "the last one"], "SELECT 59 FROM delays LIMIT 1"),
        ("numbered", ["the last 2 delays", "list them"], "SELECT slip FROM delays WHERE slip > 94"),
        ("numbered", ["delays longer than 30 minutes", "how many were there?"], "SELECT 3"),
        ("numbered", ["average minutes by line", "only the top 2"], "SELECT * FROM (VALUES ('N2'), ('N3'))"),
        ("numbered", ["the shortest delay", "the longest instead"], "SELECT slip FROM delays WHERE minutes = 60"),
        ("growers", ["which towns do the growers live in?", "how many are there?"], "SELECT 3"),
    ],
)
def test_rows_of_a_conversation_are_found_again_by_what_tells_them_apart(sources, source, turns, sql):
    """No column whose values repeat finds them again, and no more and no fewer are meant than were found."""
    reply = last_of(sources[source], *turns)
    wanted = [row[0] for row in sources[source].sql(sql).rows]
    assert any(sorted(column) == sorted(wanted) for column in map(list, zip(*reply.rows, strict=True))), reply.answer


@pytest.mark.parametrize(
    ("turns", "offered"),
    [
        (["growers in Vik", "Oslo too"], "town is Vik or town is Oslo"),
        (["how many growers are in Vik?", "and Oslo as well"], "town is Vik or town is Oslo"),
        (["growers in Vik", "or Oslo"], "town is Vik or town is Oslo"),
        (
            ["total kilos in 2022", "also 2024"],
            "(delivered is at least 2022-01-01 and delivered is below 2023-01-01) or",
        ),
        (["growers in Vik", "not Moss, Oslo"], "town is none of Moss, Oslo"),
        (["total kilos since 2023", "until October"], "at least 2023-01-01"),  # of which year?
        (["growers with deliveries of pear", "but not of plum"], "fruit is not plum"),  # never, or also others
        (["growers without deliveries", "and of pear?"], "fruit is pear"),
        (["growers in Vik", "with and without deliveries"], ""),
    ],
)
def test_what_a_turn_leaves_open_is_offered(con, turns, offered):
    reply = last_of(con, *turns)
    assert reply.status == "clarify", reply.answer
    assert offered in reply.readings[0].words


@pytest.mark.parametrize(
    ("source", "turns"),
    [
        ("unnumbered", ["the last 3 delays", "how many of them were towed?"]),  # nothing tells delays apart
        ("unnumbered", ["the last 3 delays", "the second one"]),
        ("unnumbered", ["the last 3 delays", "any others?"]),
        ("numbered", ["the last 2 delays", "how many are there?"]),  # these, or all
        ("growers", ["growers in Vik", "how many deliveries did it have?"]),  # one of several
        ("growers", ["growers in Vik", "only the grumpy ones", "what is their average age?"]),  # of whom?
    ],
)
def test_rows_that_nothing_tells_are_not_guessed(sources, source, turns):
    assert last_of(sources[source], *turns).status in ("clarify", "no_query")


BOATS = {
    "boats": {
        "boat": ["Alk", "Brise", "Cora", "Dorsch", "Elfe", "Fink", "Gull", "Hai"],
        "harbour": ["Kiel", "Kiel", "Genua", "Genua", "Brest", "Kiel", "Genua", "Brest"],
        "rig": ["sloop", "ketch", "sloop", "yawl", "ketch", "sloop", "sloop", "yawl"],
        "price": [31, 52, 21, 73, 54, 95, 36, 67],
        "launched": [date(2001 + i, 1 + i, 3) for i in (4, 1, 6, 2, 7, 0, 5, 3)],
        "cabins": [3, 4, 0, 6, 2, 8, 1, 5],
        "skipper": ["Ida", "Bo", "Ida", "Cem", "Bo", "Ida", "Dan", "Eve"],
        "length": [9, 12, 7, 15, 11, 19, 8, 14],
        "fee_month": [5, 6, 5, 6, 7, 5, 6, 7],
    }
}
KIEL, COUNT = "which boats are in Kiel?", "how many boats are in Kiel?"
PER_HARBOUR, AT_KIEL = "how many boats are there per harbour?", "FROM boats WHERE harbour = 'Kiel'"
HARBOURS = "SELECT harbour FROM boats GROUP BY harbour HAVING"
IDA = "FROM boats WHERE skipper = 'Ida'"


@pytest.fixture(scope="module")
def boats():
    with almanaq.connect(BOATS, model="local") as connection:
        yield connection


def column_of(rows, wanted):
    return any(list(column) == [row[0] for row in wanted] for column in zip(*rows, strict=True))


@pytest.mark.parametrize(
    ("turns", "sql"),
    [
        ([KIEL, "average price"], f"SELECT AVG(price) {AT_KIEL}"),
        ([COUNT, "what is the average price?"], f"SELECT AVG(price) {AT_KIEL}"),
        ([KIEL, "how many are sloop?"], f"SELECT COUNT(*) {AT_KIEL} AND rig = 'sloop'"),
        ([KIEL, "which skippers?"], f"SELECT skipper {AT_KIEL}"),
        ([COUNT, "the skippers"], f"SELECT skipper {AT_KIEL}"),
        ([COUNT, "the cheapest"], f"SELECT boat {AT_KIEL} ORDER BY price LIMIT 1"),
        ([KIEL, "all harbours"], "SELECT boat FROM boats"),
        (["average price per harbour", "above 50"], f"{HARBOURS} AVG(price) > 50"),
        ([KIEL, "the others"], "SELECT boat FROM boats WHERE harbour <> 'Kiel'"),
        (["what is the price of Alk?", "and the price of all boats in Kiel?"], f"SELECT price {AT_KIEL}"),
        ([KIEL, "more expensive ones"], f"SELECT boat {AT_KIEL} ORDER BY price DESC"),
        ([KIEL, "which skippers have paid late?", "how many are they?"], f"SELECT COUNT(*) {AT_KIEL}"),
        (["average price in Kiel", "which is the most expensive?"], "SELECT 'Fink'"),
    ],
)
def test_what_may_be_of_the_rows_found_or_of_all_is_offered_for_these_first(boats, turns, sql):
    reply = last_of(boats, *turns)
    assert reply.status == "clarify", reply.suql
    assert column_of(list(reply.readings[0].run()), boats.sql(sql).rows), reply.answer


@pytest.mark.parametrize(
    ("turns", "sql"),
    [
        ([KIEL, "how many boats is that?"], "SELECT 3"),
        ([COUNT, "in all harbours"], "SELECT 8"),
        ([COUNT, "in each harbour"], "SELECT COUNT(*) AS n FROM boats GROUP BY harbour ORDER BY n DESC"),
        ([PER_HARBOUR, "only harbours with more than 2"], f"{HARBOURS} COUNT(*) > 2"),
        ([PER_HARBOUR, "with fewer than 3 boats"], f"{HARBOURS} COUNT(*) < 3"),
        (["boats with more than 2 cabins", "more than 5"], "SELECT boat FROM boats WHERE cabins > 5"),
        ([KIEL, "the first one", "and in Genua?"], "SELECT boat FROM boats WHERE harbour = 'Genua'"),
        (["which skipper has the fewest boats?", "and in Kiel?"], "SELECT 'Bo'"),
        (["the 3 cheapest boats", "sort by cabins"], "SELECT * FROM (VALUES ('Cora'), ('Gull'), ('Alk'))"),
        ([KIEL, "sort by rig and launched"], f"SELECT boat {AT_KIEL} ORDER BY rig, launched"),
        ([KIEL, "newest first"], f"SELECT boat {AT_KIEL} ORDER BY launched DESC"),
        (["which skipper has the most boats?", "how many cabins does she have?"], f"SELECT SUM(cabins) {IDA}"),
        (["which skipper has the most boats?", "what is their total price?"], f"SELECT SUM(price) {IDA}"),
        (["which skipper has the most boats?", "and the fewest?"], "SELECT UNNEST([1, 1, 1])"),
        ([PER_HARBOUR, "per month"], "SELECT COUNT(*) FROM boats GROUP BY month(launched) ORDER BY month(launched)"),
        (["average price per harbour", "how many boats each?"], "SELECT UNNEST([3, 3, 2])"),
        (["which boat is the most expensive?", "in the same harbour"], f"SELECT boat {AT_KIEL}"),
        (["which boat is the most expensive?", "anything cheaper?"], "SELECT boat FROM boats WHERE price < 95"),
        (
            ["average price per harbour", "the other way round"],
            "SELECT AVG(price) FROM boats GROUP BY harbour ORDER BY 1",
        ),
        ([KIEL, "start over", "how many boats?"], "SELECT 8"),
    ],
)
def test_a_turn_gives_what_is_meant_after_those_before_it(boats, turns, sql):
    reply = last_of(boats, *turns)
    wanted = boats.sql(sql).rows
    in_order = "ORDER BY" in sql or "VALUES" in sql
    rows, wanted = (reply.rows, wanted) if in_order else (sorted(reply.rows), sorted(wanted))
    assert any(sorted(c) == sorted(r[0] for r in wanted) for c in zip(*rows, strict=True)), reply.answer
    assert not in_order or column_of(rows, wanted), reply.rows


def test_a_kind_that_is_said_to_rank_is_one_or_has_one_that_does(boats):
    reply = boats.ask("which rig is the longest?")
    assert {len(list(reading.run())) for reading in reply.readings} == {1}
    assert any("AVG(length)" in reading.suql for reading in reply.readings)
