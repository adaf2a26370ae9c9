"""A reference that holds for nearly all rows is proposed, and joins along it keep every row."""

from __future__ import annotations

import csv

import pytest

import almanaq
from almanaq.agent.terms import say_cautions
from almanaq.users import User

STRAYS, FLIGHTS = 3, 100


@pytest.fixture
def folder(tmp_path):
    codes = [f"{chr(65 + at)}QX" for at in range(20)]
    airports = [[code, f"{code} Field", ["Bern", "Chur"][at % 2]] for at, code in enumerate(codes)]
    flights = [[at, "ZZZ" if at < STRAYS else codes[at % 20], at] for at in range(FLIGHTS)]
    tables = {"airports": [["faa", "name", "city"], *airports], "flights": [["number", "faa", "delay"], *flights]}
    for name, rows in tables.items():
        with (tmp_path / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows(rows)
    return tmp_path


@pytest.mark.parametrize("cached", [False, True])
def test_groups_and_counts_keep_the_rows_without_a_partner(folder, cached, monkeypatch, tmp_path):
    monkeypatch.setattr("almanaq.engines.files.table_cache.TableCache.LEAST_BYTES", 1)
    monkeypatch.setenv("ALMANAQ_CACHE_DIR", str(tmp_path / "cache"))
    for _ in range(1 + cached):
        with almanaq.connect(folder, model="local", cache=cached) as connection:
            chat = connection.chat()
            groups = chat.ask("how many flights are there for each city?")
    assert dict(groups.rows)[None] == STRAYS, groups.suql
    assert sum(count for _, count in groups.rows) == FLIGHTS
    assert "airports lacks" not in groups.answer


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ("JOIN airports AS a ON f.faa = a.faa", True),
        ("JOIN airports AS a USING (faa)", True),
        ("JOIN airports AS a ON f.faa = a.faa WHERE f.delay > 2", True),
        ("LEFT JOIN airports AS a ON f.faa = a.faa", False),
        ("JOIN airports AS a ON f.number = a.name", False),
        ("JOIN airports AS a ON f.faa = a.faa WHERE a.city = 'Bern'", False),
        ("WHERE f.faa IN (SELECT faa FROM airports)", False),
    ],
)
def test_rows_without_a_partner_are_spoken_of_where_a_join_loses_them_unasked(folder, rest, said):
    with almanaq.connect(folder, cache=False) as connection:
        cautions = say_cautions(f"SELECT count(*) FROM flights AS f {rest}", connection.catalog)
    assert cautions == (("3 of 100 flights have a faa that airports lacks.",) if said else ())


def test_a_near_reference_is_proposed_in_the_schema_file_and_declaring_it_ends_the_proposal(folder):
    from almanaq.suql.catalog.schema_file import describe

    proposal = '# foreign_keys = [{columns = ["faa"], table = "airports", references = ["faa"]}]'
    with almanaq.connect(folder) as connection:
        text = describe(connection.catalog)
    assert f"{proposal}  # 97.0% of its values" in text
    path = folder.parent / f"{folder.name}.almanaq.toml"
    path.write_text(text.replace("# foreign_keys", "foreign_keys").replace("# 97.0%", "# "), encoding="utf-8")
    try:
        with almanaq.connect(folder) as connection:
            (flights,) = [each for each in connection.catalog.relations if each.name == "flights"]
    finally:
        path.unlink()
    assert flights.foreign_keys
    assert not flights.near_references


@pytest.mark.parametrize(("rows", "known"), [("", True), ('rows = "number > 5"', False)])
def test_users_who_see_some_rows_are_not_told_what_is_known_of_all(folder, rows, known):
    with (folder / "flights.csv").open("a") as file:
        file.write("100,AQX,4 (est.)\n")
    (folder / "roles.toml").write_text(f"[airports.roles.crew]\n[flights.roles.crew]\n{rows}\n")
    with almanaq.connect(folder, schema=str(folder / "roles.toml"), model="local", cache=False) as connection:
        flights = connection.for_user(User("Ada", roles=("crew",))).catalog.relation("flights")
        assert bool(flights.near_references) is known
        assert bool(flights.column("delay").caution) is known
