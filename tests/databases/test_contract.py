"""What every implementation of Database keeps to."""

from __future__ import annotations

import datetime
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from sqlglot import exp, parse_one

from almanaq.engines.ibis.engine import IbisDatabase
from almanaq.engines.protocols import Database
from almanaq.errors import DatabaseError, DeadlineExceeded
from almanaq.suql.catalog.relations import ColumnKind


def numbers(database: Database, rows: int, alias: str) -> str:
    """Return a relation of the numbers from 0, one each row, made by the engine itself as it goes."""
    if database.dialect == "duckdb":
        return f"range({rows}) {alias}"
    if database.dialect == "mysql":
        name, _, column = alias.rstrip(")").partition("(")
        return f"(SELECT seq AS {column} FROM seq_0_to_{rows - 1}) {name}"
    if database.dialect == "spark":
        name, _, column = alias.rstrip(")").partition("(")
        return f"(SELECT id AS {column} FROM range(0, {rows}, 1, {max(1, rows // 40_000)})) {name}"
    return f"(SELECT generate_series(0::bigint, {rows - 1})) {alias}"


def many(database: Database) -> int:
    """Return more rows than a stream can bring at once; through ibis they are copied first, and are fewer here."""
    return 100_000 if isinstance(database, IbisDatabase) else 4_000_000 if _counts_nothing(database) else 1_000_000_000


def _counts_nothing(database: Database) -> bool:
    """Spark tells nobody how many rows a table has, and gives those of a part of a table at once."""
    return database.dialect == "spark"


def endless(database: Database) -> str:
    if database.dialect == "spark":  # short tasks: it stops between two; a job that it begins too late it may forget
        return "SELECT count(*) AS n FROM range(0, 20000000000, 1, 1000) WHERE id % 7 = 8"
    a, b = numbers(database, 10_000_000, "a(x)"), numbers(database, 10_000_000, "b(y)")
    return f"SELECT count(*) FROM {a}, {b} WHERE a.x + b.y = -1"


def quoted(database: Database, location: tuple[str, ...]) -> str:
    return ".".join(exp.to_identifier(name, quoted=True).sql(database.dialect) for name in location)


def places(database: Database) -> str:
    return quoted(database, database.catalog().relation("places").location)


def test_rows_come_whole_and_typed(database: Database) -> None:
    with database.session() as session:
        rows = session.fetch(f"SELECT * FROM {places(database)} ORDER BY id").to_pylist()
    assert [row["name"] for row in rows] == ["Café Ölé", 'O\'Hara "quoted", with comma', "日本料理 🍣", None]
    assert [row["rating"] for row in rows] == [4.5, None, 3.0, -1.25]
    assert rows[0]["opened"] == datetime.date(2020, 2, 29)
    assert rows[2]["opened"] is None


def test_catalog_names_columns_and_rows(database: Database) -> None:
    relation = database.catalog().relation("PLACES")
    assert [(c.name, c.type, c.array) for c in relation.columns] == [
        ("id", "bigint", False),
        ("name", "text", False),
        ("rating", "double precision", False),
        ("opened", "date", False),
    ]
    assert relation.rows == 4 or isinstance(database, IbisDatabase) or _counts_nothing(database)
    assert all(c.kind is ColumnKind.STRUCTURED for c in relation.columns)
    assert relation.columns[2].samples[:1] == ("4.5",)


def test_row_id_tells_rows_apart_and_is_stable(database: Database) -> None:
    relation = database.catalog().relation("places")
    row_id = parse_one(str(relation.row_id), read="postgres").sql(database.dialect)
    query = f"SELECT {row_id} AS k, id FROM {places(database)} ORDER BY id"
    with database.session() as first, database.session() as second:
        keys = first.fetch(query).to_pylist()
        assert keys == second.fetch(query).to_pylist()
    assert len({row["k"] for row in keys}) == 4


def test_a_stream_is_lazy_and_stops_at_once_when_closed(database: Database) -> None:
    started = time.monotonic()
    with database.session() as session:
        for _ in range(5):
            with closing(
                session.stream(
                    f"SELECT x, concat('text ', x) AS t FROM {numbers(database, many(database), 'r(x)')}", 2048
                )
            ) as stream:
                batch = next(stream)
                assert 0 < batch.num_rows <= 10_000
                assert batch.column(0)[0].as_py() == 0
    assert time.monotonic() - started < 60  # five times all rows would take minutes


def test_a_stream_gives_every_row_once(database: Database) -> None:
    with database.session() as session:
        values = [
            v
            for b in session.stream(f"SELECT x FROM {numbers(database, 10000, 'r(x)')}", 512)
            for v in b.column(0).to_pylist()
        ]
    assert sorted(values) == list(range(10_000))


def test_streams_and_other_calls_do_not_disturb_each_other(database: Database) -> None:
    with database.session() as session:
        first, second = (session.stream(f"SELECT x FROM {numbers(database, 20000, 'r(x)')}", 2048) for _ in range(2))
        seen = [next(first).num_rows, next(second).num_rows]
        assert session.create("kept", f"SELECT * FROM {places(database)} WHERE id <= 2") == 2
        session.store("extra", pa.table({"k": [1, 3], "v": ["a", None]}))
        joined = session.fetch(
            f"SELECT k.id, e.v FROM {quoted(database, session.locate('kept'))} k "
            f"JOIN {quoted(database, session.locate('extra'))} e "
            "ON k.id = e.k"
        )
        assert joined.to_pylist() == [{"id": 1, "v": "a"}]
        seen += [batch.num_rows for stream in (first, second) for batch in stream]
    assert sum(seen) == 40_000


def test_temporary_tables_are_private_and_gone_afterwards(database: Database) -> None:
    with database.session() as mine, database.session() as other:
        mine.create("kept", "SELECT 1 AS a")
        other.create("kept", "SELECT 2 AS a")
        assert mine.fetch(f"SELECT a FROM {quoted(database, mine.locate('kept'))}").to_pylist() == [{"a": 1}]
        assert other.fetch(f"SELECT a FROM {quoted(database, other.locate('kept'))}").to_pylist() == [{"a": 2}]
    with database.session() as later, pytest.raises(DatabaseError):
        later.fetch(f"SELECT a FROM {quoted(database, mine.locate('kept'))}")
    assert [r.name for r in database.catalog().relations] == ["places"]


def test_a_repeated_temporary_name_is_refused_by_its_own_name(database: Database) -> None:
    with database.session() as session:
        session.create("kept", "SELECT 1 AS a")
        with pytest.raises(DatabaseError, match='"kept"'):
            session.create("kept", "SELECT 2 AS a")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE {r}_2 AS SELECT 1 AS a",
        "INSERT INTO {r} VALUES (9, 'x', 1, NULL)",
        "DELETE FROM {r}",
        "DROP TABLE {r}",
        "COPY {r} TO '{folder}/out.csv'",
        "ATTACH '{folder}/other.duckdb' AS other",
        "SET enable_external_access = true",
        "SELECT 1; DROP TABLE {r}",
        "PRAGMA database_size",
    ],
)
def test_only_a_select_is_run(database: Database, tmp_path: Path, statement: str) -> None:
    sql = statement.format(r=places(database), folder=tmp_path)
    with database.session() as session:
        for run in (session.fetch, lambda text: list(session.stream(text)), lambda text: session.create("t", text)):
            with pytest.raises(DatabaseError):
                run(sql)
        assert session.fetch(f"SELECT count(*) AS n FROM {places(database)}").to_pylist() == [{"n": 4}]
    assert not (tmp_path / "out.csv").exists()
    assert not (tmp_path / "other.duckdb").exists()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("call", ["fetch", "stream", "create"])
def test_the_deadline_ends_the_work(database: Database, call: str) -> None:
    started = time.monotonic()
    with database.session(deadline=0.2) as session:
        with pytest.raises(DeadlineExceeded, match="deadline"):
            {
                "fetch": session.fetch,
                "stream": lambda sql: list(session.stream(sql)),
                "create": lambda sql: session.create("t", sql),
            }[call](endless(database))
        with pytest.raises(DeadlineExceeded):
            session.fetch("SELECT 1 AS a")
    assert time.monotonic() - started < 60  # the query has no end


def test_the_deadline_ends_a_stream_between_batches(database: Database) -> None:
    for deadline in (0.5, 2.0, 8.0, 32.0):
        with database.session(deadline=deadline) as session:
            try:
                stream = session.stream(f"SELECT x FROM {numbers(database, many(database), 'r(x)')}")
                next(stream)
            except DeadlineExceeded:
                continue  # the machine is so busy that the first rows took longer
            time.sleep(deadline + 0.1)
            with pytest.raises(DeadlineExceeded):
                next(stream)
            return
    pytest.fail("no rows came within 32 s")


def test_interrupt_stops_what_runs_and_nothing_else(database: Database) -> None:
    with database.session() as session:
        session.interrupt()
        ended = threading.Event()

        def interrupt() -> None:
            while not ended.wait(0.2):  # of a busy machine the statement may not have begun yet
                session.interrupt()

        interrupting = threading.Thread(target=interrupt)
        interrupting.start()
        with pytest.raises(DatabaseError, match="interrupted") as caught:
            session.fetch(endless(database))
        ended.set()
        interrupting.join()
        assert not isinstance(caught.value, DeadlineExceeded)
        assert session.fetch("SELECT 1 AS a").to_pylist() == [{"a": 1}]


def test_sessions_and_threads_work_at_once(database: Database) -> None:
    relation = places(database)

    def work(number: int) -> int:
        with database.session() as session:
            session.create("mine", f"SELECT id + {number} AS id FROM {relation}")
            rows = [
                b.to_pylist()
                for b in session.stream(f"SELECT sum(id) AS s FROM {quoted(database, session.locate('mine'))}")
            ]
        return int(rows[0][0]["s"])

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(40))) == [10 + 4 * n for n in range(40)]


def test_leaving_a_session_ends_its_streams(database: Database) -> None:
    with database.session() as session:
        stream = session.stream(f"SELECT x FROM {numbers(database, many(database), 'r(x)')}")
        next(stream)
    with pytest.raises(DatabaseError):
        next(stream)
    with pytest.raises(DatabaseError, match="closed"):
        session.fetch("SELECT 1 AS a")


def test_an_error_is_one_line_that_says_what(database: Database) -> None:
    with database.session() as session:
        with pytest.raises(DatabaseError, match="nothing_here") as caught:
            session.fetch(f"SELECT nothing_here FROM {places(database)}")
        assert "\n" not in str(caught.value)
        with pytest.raises(DatabaseError, match=r"convert|invalid input|Truncated incorrect|cannot be cast"):
            list(session.stream(f"SELECT CAST('x' || x AS INTEGER) AS i FROM {numbers(database, 3, 'r(x)')}"))
