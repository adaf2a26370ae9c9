"""What goes wrong with a server: each is an error that says what, prints no password, and leaves nothing behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import psycopg
import pytest

import almanaq
from almanaq.cli import main
from almanaq.engines.postgres.driver import check_version
from almanaq.engines.postgres.engine import PostgresDatabase
from almanaq.errors import AlmanaqError, DatabaseError, DeadlineExceeded, SourceError
from almanaq.testing import FunctionModel
from engines import PostgresServer
from postgres_server import LOCKED

SUQL = "SELECT id FROM t WHERE answer(body, 'calm?') = 'Yes'"


@pytest.fixture
def url(postgres_server: PostgresServer) -> str:
    url = postgres_server.new_database()
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE t AS SELECT i AS id, 'text ' || i AS body FROM generate_series(1, 200) i")
    return url


def on_call(number: int, act: Callable[[], object]) -> FunctionModel:
    """Return a model that acts at its n-th call."""
    calls = []

    def reply(text: str, question: str) -> str:
        calls.append(text)
        if len(calls) == number:
            act()
        return "Yes"

    return FunctionModel(reply)


def run(url: str, sql: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(sql)  # type: ignore[arg-type]
        return cursor.fetchall() if cursor.description else []


def connect(url: str | PostgresDatabase, model: FunctionModel, **options: object) -> almanaq.Connection:
    return almanaq.connect(url, model=model, order="table", cache=False, **options)  # type: ignore[arg-type]


def temporary_tables(url: str) -> list[tuple[object, ...]]:
    return run(url, "SELECT relname FROM pg_class WHERE relpersistence = 't'")


@pytest.mark.parametrize(
    "written",
    [
        "postgresql://someone:hunter22@127.0.0.1:1/x",
        "postgresql://someone:hunter22@127.0.0.1:99999/x",
        "postgresql://someone:hunt/er22@127.0.0.1:1/x",
        "postgresql://someone:h%40unter22@127.0.0.1:1/x",
        "postgresql://127.0.0.1:1/x?user=someone&password=hunter22",
        "postgresql://someone:hunter22@/x?nonsense=hunter22",
    ],
)
def test_a_password_is_never_printed(written: str) -> None:
    with pytest.raises(SourceError) as caught:
        almanaq.connect(written)
    shown = f"{caught.value!r} {caught.value.__cause__!r}"
    assert "unter22" not in shown
    assert "er22" not in shown


def test_an_unknown_database_is_named(postgres_server: PostgresServer) -> None:
    with pytest.raises(SourceError, match="nothing_here"):
        almanaq.connect(postgres_server.url.rsplit("/", 1)[0] + "/nothing_here")


def test_a_wrong_password_is_refused_and_not_printed(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(url, f"DROP ROLE IF EXISTS {LOCKED}")
    run(url, f"CREATE ROLE {LOCKED} LOGIN PASSWORD 'right%word'")
    known = url.replace("postgres@", f"{LOCKED}:right%25word@")
    with almanaq.connect(known) as con:
        assert con.sql("SELECT 1").rows == [(1,)]
    for wrong in ("hunter22", "hunt%40er22"):
        with pytest.raises(SourceError, match='password authentication failed for user "locked"') as caught:
            almanaq.connect(url.replace("postgres@", f"{LOCKED}:{wrong}@"))
        assert "er22" not in f"{caught.value!r} {caught.value.__cause__!r}"
        refused = url.replace("postgres@", f"{LOCKED}:{wrong}@")
        monkeypatch.setattr("sys.argv", ["almanaq", "sql", "SELECT 1", "--db", refused])
        assert main() == 1
        printed = capsys.readouterr()
        assert "password authentication failed" in printed.err
        assert "er22" not in printed.err + printed.out


def test_without_the_right_to_temporary_tables_the_error_says_so(url: str) -> None:
    name = url.rsplit("/", 1)[1]
    run(url, "DROP ROLE IF EXISTS bare")
    run(url, "CREATE ROLE bare LOGIN")
    run(url, "GRANT SELECT ON t TO bare")
    run(url, f"REVOKE TEMPORARY ON DATABASE {name} FROM PUBLIC")
    with connect(url.replace("postgres@", "bare@"), FunctionModel(lambda t, q: "Yes")) as con:
        assert con.sql("SELECT count(*) FROM t").rows == [(200,)]
        assert len(con.sql(SUQL).rows) == 200  # it needs none
        with pytest.raises(DatabaseError, match="GRANT TEMPORARY"):
            con.sql("SELECT count(*) FROM t WHERE answer(body, 'calm?') = 'Yes'")


def test_a_standby_answers_what_needs_no_table(url: str) -> None:
    """A session in a transaction that may not write is what a standby gives; a real one was tried by hand."""
    database = PostgresDatabase(url)
    database._standby = True
    with connect(database, FunctionModel(lambda t, q: "Yes")) as con:
        assert len(con.sql(f"{SUQL} AND id > 3 LIMIT 2").rows) == 2
        assert con.sql("SELECT count(*) FROM t").rows == [(200,)]
        with pytest.raises(DatabaseError, match="read-only standby makes no temporary tables"):
            con.sql("SELECT count(*) FROM t WHERE answer(body, 'calm?') = 'Yes'")


def test_rights_taken_away_while_a_query_runs_are_an_error(url: str) -> None:
    run(url, "DROP ROLE IF EXISTS passing")
    run(url, "CREATE ROLE passing LOGIN")
    run(url, "GRANT SELECT ON t TO passing")
    model = on_call(5, lambda: run(url, "REVOKE SELECT ON t FROM passing"))
    as_passing = url.replace("postgres@", "passing@")
    with connect(as_passing, model) as con, pytest.raises(DatabaseError, match="permission denied for table t"):
        con.sql("SELECT id, body FROM t WHERE answer(body, 'calm?') = 'Yes' ORDER BY answer(body, 'who?')")
    assert temporary_tables(url) == []


@pytest.mark.parametrize("change", ["DROP TABLE t", "ALTER TABLE t DROP COLUMN body", "TRUNCATE t"])
def test_a_table_stays_as_it_is_while_a_query_reads_it(url: str, change: str) -> None:
    refused: list[str] = []

    def interfere() -> None:
        with pytest.raises(psycopg.errors.LockNotAvailable) as caught:
            run(f"{url}?options=-c%20lock_timeout%3D100", change)
        refused.append(str(caught.value))

    with connect(url, on_call(5, interfere)) as con:
        assert len(con.sql(SUQL).rows) == 200
    assert len(refused) == 1


def test_a_stream_that_is_cut_off_does_not_look_whole(url: str) -> None:
    kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'almanaq'"
    seen: list[object] = []

    async def read(con: almanaq.Connection) -> None:
        async for row in con.stream(SUQL):
            seen.append(row)

    cut_off = on_call(150, lambda: run(url, kill))
    with connect(url, cut_off, concurrency=4) as con, pytest.raises(DatabaseError, match="lost"):
        asyncio.run(read(con))
    assert 0 < len(seen) < 200
    assert temporary_tables(url) == []


def test_an_old_server_is_refused() -> None:
    check_version(150003)
    with pytest.raises(SourceError, match="PostgreSQL 11; version 13"):
        check_version(110022)


def test_only_what_may_be_read_is_shown(postgres_server: PostgresServer, url: str) -> None:
    run(url, "DROP ROLE IF EXISTS reader")
    run(url, "CREATE ROLE reader LOGIN")
    run(url, "CREATE TABLE open (a int)")
    run(url, "GRANT SELECT ON open TO reader")
    as_reader = url.replace("postgres@", "reader@")
    with almanaq.connect(as_reader) as con:
        assert [r.name for r in con.engine.catalog.relations] == ["open"]
        with pytest.raises(AlmanaqError, match="no relation named 't'"):
            con.sql("SELECT id FROM t")
        run(url, "REVOKE SELECT ON open FROM reader")
        with pytest.raises(DatabaseError, match="permission denied"):
            con.sql("SELECT a FROM open")


def test_a_table_dropped_or_altered_since_it_was_read_is_an_error(url: str) -> None:
    with connect(url, FunctionModel(lambda t, q: "Yes")) as con:
        assert len(con.sql(SUQL).rows) == 200
        run(url, "ALTER TABLE t RENAME COLUMN body TO words")
        with pytest.raises(DatabaseError, match="body"):
            con.sql(SUQL)
        run(url, "DROP TABLE t")
        with pytest.raises(DatabaseError, match="does not exist"):
            con.sql(SUQL)
    assert temporary_tables(url) == []


def test_rows_written_while_a_query_runs_are_not_seen(url: str) -> None:
    model = on_call(3, lambda: run(url, "INSERT INTO t VALUES (1000, 'late'); DELETE FROM t WHERE id = 200"))
    with connect(url, model, speculation=1) as con:
        rows = con.sql(SUQL).rows
    assert sorted(i for (i,) in rows) == list(range(1, 201))


def test_a_connection_lost_in_the_middle_is_an_error_and_not_fewer_rows(url: str) -> None:
    kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'almanaq'"
    with connect(url, on_call(5, lambda: run(url, kill))) as con:
        with pytest.raises(DatabaseError, match="lost"):
            con.sql(SUQL)
        assert len(con.sql(SUQL).rows) == 200  # the next query takes a new connection
    assert temporary_tables(url) == []


def test_the_deadline_ends_the_server_s_work(url: str) -> None:
    with connect(url, FunctionModel(lambda t, q: "Yes"), deadline=0.5) as con, pytest.raises(DeadlineExceeded):
        con.sql("SELECT count(*) FROM t a, t b, t c, t d, t e WHERE a.id + b.id + c.id + d.id + e.id = -1")
    assert run(url, "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND application_name = 'almanaq'") == []


@pytest.mark.parametrize("deadline", [None, 60.0])
def test_a_limit_on_statements_that_the_server_has_holds(url: str, deadline: float | None) -> None:
    with connect(
        f"{url}?options=-c%20statement_timeout%3D100", FunctionModel(lambda t, q: "Yes", 0.2), deadline=deadline
    ) as con:
        assert len(con.sql(f"{SUQL} AND id < 3").rows) == 2  # a model may take longer
        with pytest.raises(DatabaseError, match="statement_timeout is 100 ms"):
            con.sql("SELECT count(*) FROM t a, t b, t c, t d WHERE a.id + b.id + c.id + d.id = -1")


def test_types_without_an_arrow_type_come_as_text(url: str) -> None:
    run(url, "CREATE TABLE odd AS SELECT '[1,5)'::int4range AS r, '(1,2)'::point AS p, '<a/>'::xml AS x, body FROM t")
    with connect(url, FunctionModel(lambda t, q: "Yes")) as con:
        sql = "SELECT r, p, x FROM odd WHERE answer(body, 'calm?') = 'Yes' LIMIT 1"
        assert list(con.sql(sql).rows) == [("[1,5)", "(1,2)", "<a/>")]


def test_a_model_may_think_longer_than_the_server_lets_transactions_idle(url: str) -> None:
    patient = FunctionModel(lambda text, question: "Yes", latency=0.3)
    with connect(f"{url}?options=-c%20idle_in_transaction_session_timeout%3D100", patient) as con:
        assert len(con.sql(f"{SUQL} LIMIT 2").rows) == 2


def test_the_server_looks_whether_the_client_is_still_there(url: str) -> None:
    with PostgresDatabase(url).session() as session:
        shown = session.fetch("SELECT current_setting('client_connection_check_interval', true) AS v").to_pylist()
        version = session.fetch("SELECT current_setting('server_version_num')::int AS v").to_pylist()
    assert shown == [{"v": "1s" if version[0]["v"] >= 140_000 else None}]


def test_a_lost_connection_is_told_with_the_server_s_reason(url: str) -> None:
    kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'almanaq'"
    # The server's last words are lost where the next message was on its way already.
    told = "(terminating connection|.*closed the connection unexpectedly)"
    reason = pytest.raises(DatabaseError, match=f"lost while the query ran: {told}")
    with connect(url, on_call(5, lambda: run(url, kill))) as con, reason:
        con.sql(SUQL)
