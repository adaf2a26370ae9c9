"""A PostgreSQL server's relations, and the same in DuckDB."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

import duckdb
import psycopg
import pyarrow as pa

import almanaq
from almanaq.errors import AlmanaqError

_STRINGS = ("AAAAxx", "HHHHxx", "OOOOxx", "VVVVxx")
_COLUMNS = "unique1 unique2 two four ten twenty hundred thousand twothousand fivethous tenthous odd even".split()
_PEOPLE = """
create table person (name text, age int4, location point);
create table emp (salary int4, manager name) inherits (person);
create table student (gpa float8) inherits (person);
create table stud_emp (percent int4) inherits (emp, student);
insert into person values ('ann', 40, '(3,6)'), ('bob', 20, '(5,2)'), ('cid', 34, '(3,45)');
insert into emp values ('dan', 25, '(15,12)', 1000, 'eve'), ('eve', 30, '(10,5)', 2000, 'fay');
insert into student values ('gil', 28, '(3,-1)', 3.7), ('hal', 60, '(21,7)', 3.1);
insert into stud_emp values ('ida', 23, '(8,7)', 600, 'dan', 3.5, null);
"""
_RELATIONS = """
SELECT c.relname, c.relkind IN ('v', 'm') FROM pg_class c
WHERE c.relkind IN ('r', 'v', 'm', 'p') AND c.relnamespace = 'public'::regnamespace
"""


def new_database(server: str, name: str) -> psycopg.Connection:
    """Make a database anew on a server, with the tables whose data the files read from elsewhere; give a connection."""
    with psycopg.connect(server + "postgres", autocommit=True) as admin:
        admin.execute(f"drop database if exists {name} with (force)".encode())
        admin.execute(f"create database {name} template template0 lc_collate 'C' lc_ctype 'C'".encode())
    made = psycopg.connect(server + name, autocommit=True)
    for setting in ("statement_timeout = '20s'", "timezone = 'UTC'", "datestyle = 'ISO'"):
        made.execute(f"set {setting}".encode())
    columns = ", ".join(f"{column} int4" for column in _COLUMNS)
    made.execute(f"create table onek ({columns}, stringu1 name, stringu2 name, string4 name)".encode())
    made.execute("create table tenk1 (like onek)")
    for table, rows in (("onek", 1_000), ("tenk1", 10_000)):
        with made.cursor() as cursor, cursor.copy(f"copy {table} from stdin".encode()) as copy:
            for row in _wisconsin(rows):
                copy.write_row(row)
    made.execute("create table onek2 as table onek")
    made.execute("create table tenk2 as table tenk1")
    made.execute(_PEOPLE.encode())
    return made


def _wisconsin(rows: int) -> Iterator[tuple[Any, ...]]:
    """Yield rows of the Wisconsin benchmark's table in an order that a fixed seed gives."""
    numbers = list(range(rows))
    random.Random(1).shuffle(numbers)
    for second, first in enumerate(numbers):
        moduli = (2, 4, 10, 20, 100, 1_000, 2_000, 5_000, 10_000)
        odd = first % 100 * 2
        yield (
            first,
            second,
            *(first % m for m in moduli),
            odd,
            odd + 1,
            _word(first),
            _word(second),
            _STRINGS[second % 4],
        )


def _word(number: int) -> str:
    letters = ""
    for _ in range(4):
        number, rest = divmod(number, 26)
        letters = chr(65 + rest) + letters
    return letters + "AA"


class Copies:
    """DuckDB's copies of a PostgreSQL database's relations, made when a query first names them."""

    def __init__(self, url: str, server: psycopg.Connection) -> None:
        self._url, self._server = url, server
        self._base = duckdb.connect()
        self._held: set[str] = set()
        self._con: almanaq.Connection | None = None

    def forget(self, statement: str) -> None:
        """Take note of a statement that may have changed what it names, and any view."""
        names = _words(statement)
        views = {name for name, view in self._relations() if view}
        for name in list(self._held):
            if name in names or name in views:
                self._run(f'DROP TABLE IF EXISTS "{name}"')
                self._held.discard(name)
                self._close()

    def connection(self, query: str) -> almanaq.Connection:
        """Return a connection to DuckDB with the relations that a query names."""
        wanted = {name for name, _ in self._relations()} & _words(query)
        for name in sorted(wanted - self._held):
            self._copy(name)
        if self._con is None:
            self._con = almanaq.connect(self._base, cache=False, deadline=20)
        return self._con

    def _relations(self) -> list[tuple[str, bool]]:
        return [(str(name), bool(view)) for name, view in self._server.execute(_RELATIONS).fetchall()]

    def _copy(self, name: str) -> None:
        with almanaq.connect(self._url, cache=False, deadline=20) as source:
            try:
                table = source.sql(f'SELECT * FROM "{name}"').arrow()
            except AlmanaqError:
                return  # it cannot be read: a query that names it is refused
        if not table.num_columns:
            return  # DuckDB has no such tables
        self._run(f'CREATE TABLE "{name}" AS FROM _rows', table)
        self._held.add(name)
        self._close()

    def _run(self, statement: str, rows: pa.Table | None = None) -> None:
        cursor = self._base.cursor()
        if rows is not None:
            cursor.register("_rows", rows)
        cursor.execute(statement).fetchall()
        cursor.close()

    def _close(self) -> None:
        if self._con is not None:
            self._con.close()
        self._con = None


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z_]\w*", text.lower()))
