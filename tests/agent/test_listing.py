"""Turns that want the rows of the last search once more: listed, sorted, written to a file."""

from __future__ import annotations

import pytest

import almanaq
from almanaq.agent.conversation import Agent
from almanaq.agent.local.listing import Listing, listing
from almanaq.agent.parser import Parsed
from almanaq.cli.chat import export_wanted
from almanaq.models.model_names import open_models
from almanaq.suql.catalog.relations import Catalog

PEOPLE = {
    "id": list(range(250)),
    "name": [f"Person {i}" for i in range(250)],
    "age": [20 + i * 7 % 61 for i in range(250)],
    "city": [("Paris", "Lyon")[i % 2] for i in range(250)],
}


LOCAL = open_models("local", embedder="lexical")


class Cut:
    """A parser whose list is cut at a hundred rows."""

    name = "cut"

    def parse(self, question: str, catalog: Catalog, history: object = (), failures: object = ()) -> Parsed:
        return Parsed("query", "SELECT name, city, age FROM people LIMIT 100")


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("list them", Listing()),
        ("List them all!", Listing(every=True)),
        ("show me all of them", Listing(every=True)),
        ("please print the full list", Listing(every=True)),
        ("sort them by age", Listing("age")),
        ("Sort by their rating, highest first.", Listing("rating", down=True)),
        ("order these by price descending", Listing("price", down=True)),
        ("sort the list by name from low to high", Listing("name")),
        ("list", None),
        ("show me restaurants in Lyon", None),
        ("list all movies", None),
        ("show me the cheapest of them", None),
        ("in what order were they built?", None),
    ],
)
def test_which_turns_want_the_rows_again(said: str, wanted: Listing | None) -> None:
    assert listing(said) == wanted


@pytest.mark.parametrize(
    ("said", "file"),
    [
        ("export to rows.csv", "rows.csv"),
        ("Please save them as out/rows.parquet", "out/rows.parquet"),
        ('write the results to "a.json".', "a.json"),
        ("export", None),
        ("which films export well to France?", None),
        ("save money on St. Marks", None),
    ],
)
def test_which_lines_export(said: str, file: str | None) -> None:
    assert export_wanted(said) == file


def test_a_list_that_was_cut_says_of_how_many_and_can_be_had_whole() -> None:
    with almanaq.connect({"people": PEOPLE}, model="local", embedder="lexical") as con:
        first = Agent(con.engine, LOCAL, parser=Cut()).respond("Which people are there?")
        assert len(first.rows) == 100
        assert "100 of 250" in first.answer
        whole = con.ask("list them", [first.turn()])
        assert len(whole.rows) == 250
        assert "of 250" not in whole.answer
        ordered = con.ask("sort them by age", [first.turn()])
        assert [row[2] for row in ordered.rows] == sorted(PEOPLE["age"])[:100]
        assert "100 of 250" in ordered.answer


def test_rows_are_sorted_with_the_conditions_they_were_found_by() -> None:
    with almanaq.connect({"people": PEOPLE}, model="local", embedder="lexical") as con:
        chat = con.chat()
        found = chat.ask("Which people live in Paris?")
        ages = dict(zip(PEOPLE["name"], PEOPLE["age"], strict=True))
        for said, down in (("sort them by age", False), ("sort them by age, highest first", True)):
            reply = chat.ask(said)
            names = [row[0] for row in reply.rows]
            assert set(names) == {row[0] for row in found.rows}
            assert [ages[name] for name in names] == sorted((ages[name] for name in names), reverse=down)
        unknown = chat.ask("sort them by shoe size")
        assert (unknown.status, "age" in unknown.answer) == ("clarify", True)
        assert len(chat.ask("how many are there?").rows) == 1
