"""The engines under attack, and what would show that an attack came through."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import duckdb

from almanaq import connect
from almanaq.connection import Connection
from almanaq.errors import AlmanaqError
from almanaq.testing import FunctionModel

from .attacks import LARGE_OBJECT, LOCK, SECRET, SLEEP, Attack

_TABLE = "CREATE TABLE t (x text, d date, js json)"
_ROW = """INSERT INTO t VALUES ('abc', '2024-01-31', '{"a": {"b": 1}}')"""


@contextlib.contextmanager
def user_duckdb(folder: Path) -> Iterator[Connection]:
    """Open a user's own DuckDB connection, which may read files: the compiler alone stands before them."""
    with duckdb.connect() as connection:
        connection.execute(_TABLE)
        connection.execute(_ROW)
        assert connection.execute("SELECT content FROM read_text(?)", [str(folder / "canary")]).fetchone() == (SECRET,)
        with connect(connection, model=_model(), cache=False, deadline=10) as con:
            yield con


@contextlib.contextmanager
def postgres(url: str, settings: str = "") -> Iterator[Connection]:
    """Open a PostgreSQL database as its superuser, who may do anything; `settings` are those of the database."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as admin:
        for statement in (_TABLE, _ROW, "CREATE SEQUENCE numbers", settings):
            if statement:
                admin.execute(statement)
    with connect(url, model=_model(), cache=False, deadline=10) as con:
        yield con
    with psycopg.connect(url, autocommit=True) as admin:
        assert admin.execute("SELECT count(*) FROM t").fetchone() == (1,)
        assert admin.execute("SELECT is_called FROM numbers").fetchone() == (False,)
        assert admin.execute(f"SELECT count(*) FROM pg_locks WHERE objid = {LOCK}").fetchone() == (0,)
        found = admin.execute(f"SELECT count(*) FROM pg_largeobject_metadata WHERE oid = {LARGE_OBJECT}")
        assert found.fetchone() == (0,)


def attack(con: Connection, attempts: Iterable[Attack]) -> Counter[str]:
    """Run attacks; give how they ended, by the kind of the error.

    Raises:
        AssertionError: one read the canary, took as long as its sleep, or ended in an error that is none of ours.
    """
    ended: Counter[str] = Counter()
    for attempt in attempts:
        started = time.monotonic()
        found: Any = ""
        try:
            found = con.sql(attempt.query, attempt.parameters).rows
            ended["ran"] += 1
        except AlmanaqError as error:
            found = error
            ended[type(error).__name__] += 1
        except Exception as error:
            raise AssertionError(f"{attempt} ended in {error!r}") from error
        assert SECRET not in str(found), attempt
        assert time.monotonic() - started < SLEEP, attempt
    return ended


def _model() -> FunctionModel:
    return FunctionModel(lambda document, question: "Yes")
