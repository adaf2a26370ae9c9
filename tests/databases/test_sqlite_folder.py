"""A folder of SQLite files is one source, each file a database of its own."""

from __future__ import annotations

import sqlite3
import time

import pytest

import almanaq
from almanaq.engines.table_corpus import read_corpus
from almanaq.errors import SourceError, UnknownNameError


def database(path, *statements):
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


SINGERS = (
    "CREATE TABLE singer (id INTEGER PRIMARY KEY, name TEXT)",
    "INSERT INTO singer VALUES (1, 'Ada'), (2, 'Ben')",
)
SONGS = (
    "CREATE TABLE song (id INTEGER PRIMARY KEY, title TEXT, singer INTEGER REFERENCES singer (id))",
    "INSERT INTO song VALUES (7, 'Northern Light', 1)",
)


def test_an_unknown_table_of_a_file_that_has_changed_is_said_to_need_another_opening(tmp_path):
    database(tmp_path / "choir.sqlite", *SINGERS)
    for source in (tmp_path, tmp_path / "choir.sqlite"):
        with almanaq.connect(source) as connection:
            with pytest.raises(UnknownNameError) as before:
                connection.sql("SELECT title FROM song")
            time.sleep(0.02)  # file systems know moments to some milliseconds
            database(tmp_path / "choir.sqlite", "DROP TABLE IF EXISTS song", *SONGS)
            (tmp_path / "more.csv").touch()
            with pytest.raises(UnknownNameError) as after:
                connection.sql("SELECT title FROM song")
            again = "; the source has changed since it was opened: open it again"
            assert after.value.message == before.value.message + again
        (tmp_path / "more.csv").unlink()
        database(tmp_path / "choir.sqlite", "DROP TABLE song")


def test_tables_of_all_files_are_there_and_keep_their_keys(tmp_path):
    database(tmp_path / "opera" / "opera.sqlite", *SINGERS, *SONGS)
    database(tmp_path / "choir.sqlite", *SINGERS, "CREATE TABLE room (number INTEGER)")
    with almanaq.connect(tmp_path) as connection:
        catalog = connection.catalog
        assert {r.name for r in catalog.relations} == {"choir.singer", "opera.singer", "room", "song"}
        assert catalog.relation("song").foreign_keys == ((("singer",), "opera.singer", ("id",)),)
        assert catalog.relation("choir.singer").key == ("id",)
        rows = connection.sql("SELECT title, name FROM song JOIN opera.singer AS s ON song.singer = s.id").rows
        assert rows == [("Northern Light", "Ada")]


def test_files_of_rows_stand_beside(tmp_path):
    database(tmp_path / "choir.sqlite", *SINGERS)
    (tmp_path / "singer.csv").write_text("id,name\n7,Cleo\n")
    (tmp_path / "broken.sqlite").write_text("no database")
    database(tmp_path / "empty.db")
    with almanaq.connect(tmp_path) as connection:
        names = {r.name: r.key for r in connection.catalog.relations}
        assert names == {"choir.singer": ("id",), f"{tmp_path.name}.singer": ("id",)}
        assert connection.sql("SELECT name FROM choir.singer ORDER BY id").rows == [("Ada",), ("Ben",)]
        told = [message for message in connection.warnings if "not opened" in message]
        assert [message.split(":")[0] for message in told] == ["broken.sqlite", "empty.db"]
    assert {t.id.table for t in read_corpus(tmp_path)} == {"singer"}
    assert {t.id.database for t in read_corpus(tmp_path)} == {"choir", tmp_path.name}


def test_files_named_one_by_one_may_be_sqlite(tmp_path):
    database(tmp_path / "choir.sqlite", *SINGERS)
    (tmp_path / "rooms.csv").write_text("number\n7\n")
    with almanaq.connect([tmp_path / "choir.sqlite", tmp_path / "rooms.csv"]) as connection:
        assert {r.name for r in connection.catalog.relations} == {"singer", "rooms"}


def test_files_of_data_that_cannot_be_read_are_reported(tmp_path):
    (tmp_path / "rooms.csv").write_text("number\n7\n")
    for name in ("more.zip", "more.duckdb", "notes.md"):
        (tmp_path / name).write_text("x")
    with almanaq.connect(tmp_path) as connection:
        assert [message.split(":")[0] for message in connection.warnings] == ["more.duckdb", "more.zip"]


def test_of_two_files_of_one_name_the_second_is_named_after_its_ending(tmp_path):
    database(tmp_path / "a" / "choir.sqlite", *SINGERS)
    database(tmp_path / "b" / "choir.sqlite", *SINGERS)
    with almanaq.connect(tmp_path) as connection:
        assert {r.name for r in connection.catalog.relations} == {"choir.singer", "choir_sqlite.singer"}
        assert "its tables lie in 'choir_sqlite', since 'choir' is taken; rename one file" in connection.warnings[0]


def test_files_without_a_table_are_no_source(tmp_path):
    database(tmp_path / "choir.sqlite")
    with pytest.raises(SourceError, match="holds no table"):
        almanaq.connect(tmp_path)


def test_a_question_finds_its_database_among_many(tmp_path):
    for i in range(8):
        database(
            tmp_path / f"misc{i}.sqlite",
            f"CREATE TABLE payload{i} (id INTEGER PRIMARY KEY, amount INTEGER)",
            f"CREATE TABLE batch{i} (id INTEGER PRIMARY KEY, label TEXT)",
        )
    database(tmp_path / "opera.sqlite", *SINGERS, *SONGS)
    with almanaq.connect(tmp_path) as connection:
        chat = connection.chat()
        reply = chat.ask("How many songs are there?")
        assert (reply.status, reply.tables, reply.rows) == ("answered", ("song",), ((1,),))
        nothing = chat.ask("what about zeppelins?")
        assert nothing.status in ("no_query", "no_result", "clarify")
