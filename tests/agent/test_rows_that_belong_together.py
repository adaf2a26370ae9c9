# ruff: noqa: E501 - one case per line reads best
"""What `local` understands of rows that belong together: verbs that only link them, several rows of one, none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import almanaq

TABLES = """
CREATE TABLE keepers (keeper_id INTEGER PRIMARY KEY, name TEXT, age INTEGER, home_town TEXT);
CREATE TABLE animals (animal_id INTEGER PRIMARY KEY, species TEXT, age INTEGER, weight DOUBLE);
CREATE TABLE duties (keeper_id INTEGER REFERENCES keepers, animal_id INTEGER REFERENCES animals);
CREATE TABLE shows (show_id INTEGER PRIMARY KEY, title TEXT, host INTEGER, year INTEGER);
CREATE TABLE hosts (uid INTEGER PRIMARY KEY, host TEXT, alias TEXT, city TEXT, fee INTEGER);
CREATE TABLE stars (star_id INTEGER PRIMARY KEY, animal_id INTEGER UNIQUE REFERENCES animals, earnings INTEGER);
INSERT INTO keepers VALUES (1, 'Ann Holt', 30, 'Vik'), (2, 'Bo Rask', 41, 'Moss'), (3, 'Cy Lund', 55, 'Vik'), (4, 'Di Berg', 62, 'Moss');
INSERT INTO animals VALUES (1, 'seal', 3, 90), (2, 'otter', 5, 11), (3, 'seal', 9, 120), (4, 'lynx', 2, 20);
INSERT INTO duties VALUES (1, 1), (1, 2), (2, 3), (3, 4), (3, 2);
INSERT INTO shows VALUES (1, 'Fins', 7, 2019), (2, 'Paws', 8, 2020), (3, 'Tails', 7, 2020);
INSERT INTO hosts VALUES (7, 'Ivo', 'Ivo', 'Vik', 50), (8, 'Una', 'Una', 'Moss', 80);
INSERT INTO stars VALUES (1, 3, 400), (2, 4, 900);
"""

ANSWERED = (
    ("which keepers raise an otter", {"Ann Holt", "Cy Lund"}),
    ("names of keepers that keep seals", {"Ann Holt", "Bo Rask"}),
    ("which keepers have both seals and otters", {"Ann Holt"}),
    ("names of keepers who have an otter but no seal", {"Cy Lund"}),
    ("names of keepers who have a seal but not an otter", {"Bo Rask"}),
    ("names of keepers who do not keep any animals", {"Di Berg"}),
    ("average age of keepers who do not have any animals", {62.0}),
    ("how many shows does Ivo host", {2}),
    ("how many shows does the host Ivo have", {2}),
    ("Show the titles of shows in 2020", {"Paws", "Tails"}),
    ("the city of Una", {"Moss"}),
    ("earnings of the heaviest star", {400}),
    ("title and year of each show", {"Fins", "Paws", "Tails"}),
    ("name of the keeper whose age is the highest", {"Di Berg"}),
    ("number of animals kept by keepers who are older than 50", {2}),
    ("the city of hosts and the shows they make", {"Fins", "Paws", "Tails"}),
    ("how many keepers have more than 1 animal", {2}),
    ("how many keepers have fewer than 2 animals", {2}),
    ("average age of keepers who have at least 2 animals", {42.5}),
    ("how many keepers have more than 1 animal younger than 4", {0}),
    ("how many shows has the host with the highest fee", {1}),
    ("home towns and the number of keepers", {"Vik", "Moss"}),
    ("different home towns and the number of keepers", {"Vik", "Moss"}),
    ("home towns shared by keepers younger than 35 and older than 50", {"Vik"}),
    ("which keepers have both an animal younger than 4 and an animal older than 4", {"Ann Holt", "Cy Lund"}),
    ("names of the keepers who have an animal that is 9 years old", {"Bo Rask"}),
    ("names of keepers aged 41", {"Bo Rask"}),
    ("cities of hosts that made shows in both 2019 and 2020", {"Vik"}),
    ("how many animals have a greater weight than 50", {2}),
    ("species of the animals that weigh more than 100 or have age 2", {"seal", "lynx"}),
    ("age of the keeper who has an otter that is age 5", {30, 55}),
    ("for each keeper, list his name and how many animals he has", {"Ann Holt", "Bo Rask", "Cy Lund"}),
)
"""A question, and what stands in one column of the answer."""

DECLINED = (
    "names of keepers who dread an otter",  # a verb that nobody knows
    "shows in 2020 or with more than 3 stars",
    "home towns that do not keep seals",
    "keepers who do not have both seals and otters",  # neither, or not both
    "keepers without seals and otters",
    "keepers who keep an animal that is not a seal",
    "keepers with both a seal and an animal older than 4",  # one row, or two
    "keepers who have at least 2 seals",  # no age of keepers
    "home towns of keepers younger than 35 and older than 50",  # of either, or of both
    "home towns and the number of keepers ordered by age",
)


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    file: Path = tmp_path_factory.mktemp("zoo") / "zoo.duckdb"
    with duckdb.connect(str(file)) as database:
        database.execute(TABLES)
    with almanaq.connect(str(file), model="local", cache=False) as connection:
        yield connection


@pytest.mark.parametrize(("question", "expected"), ANSWERED)
def test_rows_that_belong_together_are_found(zoo: Any, question: str, expected: set[Any]) -> None:
    reply = zoo.ask(question)
    assert any({row[i] for row in reply.rows} == expected for i in range(len(reply.columns))), reply.suql


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("from low to high", ["Ann Holt", "Bo Rask", "Cy Lund", "Di Berg"]),
        ("from lowest to highest", ["Ann Holt", "Bo Rask", "Cy Lund", "Di Berg"]),
        ("from high to low", ["Di Berg", "Cy Lund", "Bo Rask", "Ann Holt"]),
        ("from old to young", ["Di Berg", "Cy Lund", "Bo Rask", "Ann Holt"]),
    ],
)
def test_a_verb_of_order_puts_rows_in_order(zoo: Any, order: str, expected: list[str]) -> None:
    assert [row[0] for row in zoo.ask(f"sort the names of keepers by their age {order}").rows] == expected


@pytest.mark.parametrize("question", DECLINED)
def test_what_leaves_open_how_they_belong_together_is_declined(zoo: Any, question: str) -> None:
    assert zoo.ask(question).suql is None
