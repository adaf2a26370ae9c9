"""Exit code 1: the request failed; the message says what, where and what to do."""

from __future__ import annotations

import os

import pytest

ALL = "SELECT * FROM places"


def test_no_such_file(almanaq, refused):
    refused(almanaq("sql", ALL, "--db", "nowhere/places.duckdb"), 1, "nowhere/places.duckdb")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no such files")
def test_what_is_no_file_is_said_and_not_waited_for(almanaq, refused, tmp_path):
    (tmp_path / "lost.csv").symlink_to("nowhere.csv")
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    os.mkfifo(tmp_path / "pipe")
    for name, said in (("lost.csv", "a link to 'nowhere.csv'"), ("loop.csv", "a link to"), ("pipe", "a pipe")):
        for command in (["schema"], ["find", "dogs", "--db"]):
            refused(almanaq(*command, name), 1, name, said)
    (tmp_path / "dogs.csv").write_text("name\nRex\n")
    run = almanaq("schema", ".")
    assert (run.returncode, "[dogs]" in run.stdout) == (0, True), run.stderr


def test_an_empty_folder(almanaq, refused, tmp_path):
    (tmp_path / "empty").mkdir()
    refused(almanaq("sql", ALL, "--db", "empty"), 1, "empty", "csv")


def test_a_file_that_is_no_database(almanaq, refused, tmp_path):
    for name in ("notes.duckdb", "notes.sqlite"):
        (tmp_path / name).write_text("not a database, whatever its name says\n" * 50)
        refused(almanaq("sql", ALL, "--db", name), 1, name)


def test_an_unknown_suffix(almanaq, refused, tmp_path):
    (tmp_path / "places.xyz").write_text("name\nAlba\n")
    refused(almanaq("sql", ALL, "--db", "places.xyz"), 1, "places.xyz")


def test_an_unknown_sample(almanaq, refused):
    refused(almanaq("sql", ALL, "--db", "sample:restaurant"), 2, "restaurants")


def test_a_ragged_csv_is_mended_and_said_so(almanaq, tmp_path):
    (tmp_path / "places.csv").write_text("name,city\nAlba,Paris\nBrio,Lyon,3.5\nCoda\n")
    run = almanaq("sql", ALL, "--db", "places.csv", "--format", "csv")
    assert (run.returncode, run.stdout.split()) == (0, ["name,city", "Alba,Paris", "Brio,Lyon", "Coda,"])
    assert "places.csv, first in line 3: 2 of 3 rows do not have 2 fields" in run.stderr


@pytest.mark.parametrize(
    ("header", "names", "word"),
    [
        ("name,city,name", "name,city,name_2", "name_2"),
        ("name,,city", "name,column_2,city", "column_2"),
        ("name,Name,city", "name,Name_2,city", "Name_2"),
    ],
)
def test_headers_that_name_no_column_or_two_are_mended_and_reported(almanaq, tmp_path, header, names, word):
    (tmp_path / "places.csv").write_text(f"{header}\nAlba,Paris,France\n")
    run = almanaq("sql", ALL, "--db", "places.csv", "--format", "csv")
    assert (run.returncode, run.stdout) == (0, f"{names}\nAlba,Paris,France\n"), run.stderr
    assert "places.csv" in run.stderr
    assert word in run.stderr


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("suql", "parts"),
    [
        ("SELECT nmae FROM places", ['"nmae"', "'name'", "line 1, column 8", "^^^^"]),
        ("SELECT name FROM place", ["'place'", "'places'"]),
        ("SELECT name FROM places WHERE anser(notes, 'quiet?') = 'Yes'", ["anser", "answer"]),
        ("SELECT name FROM places WHERE", ["line 1"]),
        ("SELECT answer(rating, 'quiet?') FROM places", ["rating", "answer"]),
        ("SELECT answer(notes) FROM places", ["answer"]),
        ("", ["empty"]),
        ("SELECT 1; SELECT 2", ["one"]),
        ("DROP TABLE places", ["SELECT"]),
        ("INSERT INTO places SELECT * FROM places", ["SELECT"]),
        ("WITH gone AS (DELETE FROM places RETURNING *) SELECT * FROM gone", ["reads", "DELETE"]),
        ("COPY places TO 'stolen.csv'", ["SELECT"]),
        ("ATTACH 'other.duckdb' AS other", ["SELECT"]),
        ("PRAGMA database_list", ["SELECT"]),
        ("SET memory_limit = '1GB'", ["SELECT"]),
        ("SELECT * FROM read_csv('/etc/passwd')", ["read_csv"]),
        ("SELECT * FROM '/etc/passwd'", ["/etc/passwd"]),
        ("SELECT pg_read_file('/etc/passwd')", ["pg_read_file"]),
        ("SELECT getenv('HOME')", ["getenv"]),
    ],
)
def test_queries_that_are_refused(almanaq, refused, places, suql, parts):
    refused(almanaq("sql", suql, "--db", places, "--format", "json"), 1, *parts)


def test_a_refused_query_writes_nothing(almanaq, refused, places, tmp_path):
    before = sorted(p.name for p in tmp_path.rglob("*"))
    refused(almanaq("sql", "COPY places TO 'stolen.csv'", "--db", places), 1)
    assert sorted(p.name for p in tmp_path.rglob("*")) == before


def test_a_damaged_schema_file(almanaq, refused, places, tmp_path):
    (tmp_path / "places.toml").write_text("[places\n")
    refused(almanaq("sql", ALL, "--db", places, "--schema", "places.toml"), 1, "places.toml")
    refused(almanaq("sql", ALL, "--db", places, "--schema", "nowhere.toml"), 1, "nowhere.toml")


def test_the_traceback_is_there_for_who_asks(almanaq, refused):
    refused(almanaq("sql", ALL, "--db", "nowhere.duckdb"), 1)
    loud = almanaq("sql", ALL, "--db", "nowhere.duckdb", env={"ALMANAQ_DEBUG": "1"})
    assert loud.returncode == 1
    assert "Traceback" in loud.stderr
    assert "SourceError" in loud.stderr
