"""Words in other forms than a table's own: derived words, codes, countries and states, two columns of one name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import almanaq

GAMES = """day,season,home,country,visitors,weakness,first_name,last_name,age
2024-01-08,REG,Oslo,NO,120,ice,Ann,Lee,31
2024-01-09,POST,Bergen,NO,80,rain,Bo,Lee,25
2024-01-15,REG,Paris,FR,300,ice,Cy,Orr,19
2024-01-16,PRE,Lyon,FR,50,rain,Di,Roe,42
2024-01-22,REG,Rome,IT,90,ice,Ed,Sun,37
2024-01-23,REG,Oslo,NO,70,ice,Flo,Tan,28
2024-01-29,REG,Oslo,NO,10,ice,Gus,Und,33
"""


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory) -> Iterator[almanaq.Connection]:
    folder: Path = tmp_path_factory.mktemp("forms")
    (folder / "games.csv").write_text(GAMES + "".join(GAMES.splitlines(keepends=True)[1:]) * 2)
    with almanaq.connect(str(folder), model="local") as connection:
        yield connection


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ("how many regular games were there?", [(15,)]),  # a code that begins the word
        ("how many games were in Norway?", [(12,)]),  # a country by its code
        ("how many French games were there?", [(6,)]),
        ("how many games were weak to rain?", [(6,)]),  # a word of another part of speech
        ("how many games are between 20 and 30 years old?", [(6,)]),
        ("games by season", [("REG", 15), ("POST", 3), ("PRE", 3)]),
    ],
)
def test_they_are_understood(games: almanaq.Connection, question: str, rows: list[tuple[object, ...]]) -> None:
    found = games.ask(question)
    assert sorted(map(tuple, found.rows)) == sorted(rows), found.answer


def test_names_are_both_of_their_columns(tmp_path: Path) -> None:
    (tmp_path / "games.csv").write_text(GAMES)
    with almanaq.connect(str(tmp_path), model="local") as connection:
        found = connection.ask("names and ages of the 2 oldest")
    assert [tuple(row)[:3] for row in found.rows] == [("Di", "Roe", 42), ("Ed", "Sun", 37)]


@pytest.mark.parametrize("question", ["how many friendly games were there?", "how many German games were there?"])
def test_what_no_value_says_is_declined(games: almanaq.Connection, question: str) -> None:
    assert games.ask(question).status == "no_query"


SALES = """city,year,month,sales,median
Austin,2011,5,10,200
Austin,2012,5,30,300
Waco,2012,5,7,100
Waco,2012,6,9,120
"""


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ("total sales in 2012", [(46,)]),  # rows called as a column of numbers
        ("how many sales in Waco in May 2012", [(7,)]),  # a year and a month in two columns
        ("which city has the highest average median", [("Austin", 250)]),  # a column called as what computes
        ("median in Waco in june 2012", [(120,)]),
    ],
)
def test_rows_and_figures_of_one_name_are_told_apart(
    tmp_path: Path, question: str, rows: list[tuple[object, ...]]
) -> None:
    (tmp_path / "sales.csv").write_text(SALES)
    with almanaq.connect(str(tmp_path), model="local") as connection:
        found = connection.ask(question)
        assert list(map(tuple, found.rows)) == rows, found.answer


COUNTRIES = """name,iso,continentcode,areakm2,population,tld
Brazil,BR,SA,8515767,212000000,.br
France,FR,EU,551500,67000000,.fr
Belarus,BY,EU,207600,9400000,.by
Kenya,KE,AF,580367,51000000,.ke
"""
CITIES = """name,countrycode,population
Lyon,FR,500000
London,FR,90
London,BR,9000000
Nice,FR,340000
Minsk,BY,1900000
"""


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ("how many cities are in France", [(3,)]),  # a key that is called otherwise: iso, countrycode
        ("how many european countries are there", [(2,)]),
        ("which countries are larger than France", [("Brazil",), ("Kenya",)]),  # areakm2 is an area
        ("population by continent", [("AF", 51000000), ("EU", 76400000), ("SA", 212000000)]),  # and not of .by
        ("countries with between 50 and 70 million people", [("France",), ("Kenya",)]),
        ("countries with more than two hundred million people", [("Brazil",)]),
    ],
)
def test_countries_and_cities(tmp_path: Path, question: str, rows: list[tuple[object, ...]]) -> None:
    (tmp_path / "countries.csv").write_text(COUNTRIES)
    (tmp_path / "cities.csv").write_text(CITIES)
    with almanaq.connect(str(tmp_path), model="local") as connection:
        found = connection.ask(question)
        assert sorted(tuple(row)[: len(rows[0])] for row in found.rows) == rows, found.answer
        assert connection.ask("cities with more people than London").status == "no_query"  # which of two?


def test_a_value_is_meant_in_all_its_spellings(tmp_path: Path) -> None:
    (tmp_path / "cards.csv").write_text("name,element\nA,fire\nB,Fire\nC,Fire \nD,water\n")
    with almanaq.connect(str(tmp_path), model="local") as connection:
        assert connection.ask("how many cards are fire").rows[0][0] == 3
        assert connection.ask("how many cards are not fire").rows[0][0] == 1


def test_rows_are_no_part_of_a_value(tmp_path: Path) -> None:
    rows = "".join(f"{n},{'Coffee Quality Institute' if n % 3 else 'Farmers'},Kenya\n" for n in range(9))
    (tmp_path / "coffee_ratings.csv").write_text("id,body,country\n" + rows)
    with almanaq.connect(str(tmp_path), model="local") as connection:
        assert connection.ask("how many coffees come from Kenya?").rows[0][0] == 9
