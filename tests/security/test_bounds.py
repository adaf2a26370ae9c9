"""Results are bounded in rows, memory and time, whatever a query asks for."""

from __future__ import annotations

import csv
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from typer.testing import CliRunner

import almanaq
from almanaq.cli.app import app
from almanaq.engines import interruption
from almanaq.engines.duckdb.session import MOST_SPILLED
from almanaq.engines.open_source import open_database
from almanaq.errors import BudgetExceeded, DeadlineExceeded, UsageError
from almanaq.models.private_files import private_temporary_folder
from almanaq.models.protocols import Prompt
from almanaq.options import AGENT_DEADLINE, AGENT_ROWS
from almanaq.testing import FunctionModel, ScriptedModel

TABLES = {"t": {"n": [1, 2, 3], "s": ["a", "b", "c"]}}
MANY = "SELECT i, repeat('x', 100) AS s FROM generate_series(1, 40000) AS g(i)"  # about 4 MB


def test_a_result_beyond_its_memory_is_an_error_that_says_the_limit_and_what_to_do() -> None:
    with almanaq.connect(TABLES, max_result_mb=1) as connection:
        with pytest.raises(BudgetExceeded, match=r"1 MB.*--out FILE.csv.*--max-result-mb"):
            connection.sql(MANY)
        assert len(connection.sql(f"{MANY} LIMIT 10")) == 10
    with almanaq.connect(TABLES) as connection:
        assert len(connection.sql(MANY)) == 40_000
    with pytest.raises(UsageError, match="max_result_mb"):
        almanaq.connect(TABLES, max_result_mb=0)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_is_written_as_the_rows_come_however_many(tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"out.{suffix}"
    (tmp_path / "t.csv").write_text("n\n1\n")
    arguments = ["sql", MANY, "--db", str(tmp_path / "t.csv"), "--max-result-mb", "1"]
    assert CliRunner().invoke(app, [*arguments, "--out", str(out)], catch_exceptions=False).exit_code == 0
    if suffix == "csv":
        rows = list(csv.reader(out.read_text().splitlines()))[1:]
    else:
        import pyarrow.parquet

        rows = list(pyarrow.parquet.read_table(out).to_pylist())
    assert len(rows) == 40_000
    with pytest.raises(BudgetExceeded):
        CliRunner().invoke(app, [*arguments, "--format", "json"], catch_exceptions=False)


@pytest.mark.parametrize(
    "suql",
    [
        "SELECT n FROM t WHERE n > 1",
        "SELECT n FROM t WHERE false",
        "SELECT n, answer(s, 'q') FROM t ORDER BY n",
        "SELECT n FROM t WHERE answer(s, 'q') = 'a' OR n = 3",
        "SELECT answer(s, 'q') AS a, count(*) FROM t GROUP BY 1 ORDER BY 1",
    ],
)
def test_what_is_written_as_it_comes_is_what_a_query_gives(suql: str) -> None:
    with almanaq.connect(TABLES, model=FunctionModel(lambda text, _: text)) as connection:
        pieces: list[almanaq.suql.result.pa.Table] = []
        connection.engine.write(suql, to=pieces.append)
        rows = [tuple(row.values()) for piece in pieces for row in piece.to_pylist()]
        whole = connection.sql(suql)
        assert sorted(rows, key=str) == sorted(whole.rows, key=str)
        assert pieces[0].column_names == list(whole.columns)


@pytest.mark.parametrize(
    "suql",
    [
        "SELECT n FROM t",
        "SELECT n FROM t LIMIT 3",
        "SELECT n FROM t UNION ALL SELECT n FROM t",
        "SELECT n FROM t ORDER BY n",
        "SELECT n FROM t GROUP BY n, answer(s, 'q') LIMIT 3.0",
    ],
)
def test_no_more_rows_are_read_than_are_wanted(suql: str) -> None:
    with almanaq.connect(TABLES, model=FunctionModel(lambda text, _: text), max_rows=2) as connection:
        cut = connection.sql(suql)
        assert (len(cut), cut.trace.partial) == (2, True)
        assert "only the first 2" in cut.trace.warnings[0]
        whole = connection.sql(f"SELECT n FROM ({suql}) AS q LIMIT 2")
        assert (len(whole), whole.trace.partial, whole.trace.warnings) == (2, False, ())


def test_the_agent_has_a_deadline_and_reads_so_many_rows() -> None:
    def reply(prompt: Prompt) -> object:
        suql = "SELECT i FROM generate_series(1, 1000000000000) AS g(i)"
        return (
            {"reasoning": "", "suql": suql, "needs_data": True, "clarify": None} if prompt.name == "parse" else "Yes."
        )

    with almanaq.connect(TABLES, model=ScriptedModel(reply), cache=False) as connection:
        assert connection.engine.options.deadline is None
        assert connection.engine.options.for_agent().deadline == AGENT_DEADLINE
        response = connection.ask("how many numbers are there?")
    assert len(response.rows) == AGENT_ROWS
    assert response.trace is not None
    assert response.trace.partial
    assert "there are more rows" in response.trace.warnings[0]


@pytest.mark.parametrize(
    "suql",
    [
        "SELECT count(*) FROM generate_series(1, 1000000000000) AS g(i)",
        "SELECT i FROM generate_series(1, 1000000000000) AS g(i) ORDER BY i DESC",
        "SELECT count(*) FROM generate_series(1, 1000000) AS a(i), generate_series(1, 1000000) AS b(j)",
        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c",
        "SELECT max(length(lpad('x', 5000000, n::text || i))) FROM t, generate_series(1, 6) AS g(i)",
        "SELECT length(lpad('x', 30000000, 'ab'))",  # a call of seconds that looks at no interruption
        "SELECT n FROM t WHERE answer(s, 'q') = 'a' AND length(lpad(s, 40000000 + n::int, 'ab')) > 0",
    ],
)
def test_control_comes_back_at_the_deadline_whatever_the_engine_does(suql: str) -> None:
    with almanaq.connect(TABLES, deadline=0.3, model=FunctionModel(lambda text, _: text)) as connection:
        connection.sql("SELECT 1")
        started = time.monotonic()
        with pytest.raises(DeadlineExceeded):
            connection.sql(suql)
        took = time.monotonic() - started
        assert connection.sql("SELECT n FROM t WHERE n = 2").rows == [(2,)], "the connection goes on"
    until = time.monotonic() + 120
    while interruption.has_detached_work() and time.monotonic() < until:
        time.sleep(0.05)
    assert not interruption.has_detached_work(), "what was left ends when the engine next looks"
    assert took < 8


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("query", "ending"), [("none", "leave"), ("long", "close"), ("long", "leave")])
def test_no_exit_of_the_interpreter_waits_for_what_was_given_up(query: str, ending: str) -> None:
    program = Path(__file__).with_name("exits.py")
    done = subprocess.run([sys.executable, program, query, ending], capture_output=True, text=True, timeout=300)
    ended = time.time()
    # DuckDB's binding lists what is still there where the interpreter ends before a thread of it has: no error of ours.
    said = [line for line in done.stderr.splitlines() if not line.startswith(("nanobind: ", " - ", "See https://nano"))]
    assert (done.returncode, said) == (0, [])
    outcome, left = done.stdout.split()
    assert outcome == ("rows" if query == "none" else "deadline")
    assert ended - float(left) < 15


def test_what_an_instance_of_ours_spills_has_a_limit(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("n\n1\n")
    with duckdb.connect(tmp_path / "t.duckdb") as made:
        made.execute("CREATE TABLE t (n int)")
    with closing(sqlite3.connect(tmp_path / "t.sqlite")) as made_too:
        made_too.execute("CREATE TABLE t (n int)")
    for source in (TABLES, *(tmp_path / f"t.{kind}" for kind in ("csv", "duckdb", "sqlite"))):
        database = open_database(source)
        with database.session() as session:
            said = (
                "SELECT current_setting('max_temp_directory_size') AS most, current_setting('temp_directory') AS place"
            )
            (row,) = session.fetch(said).to_pylist()
        database.close()
        assert row["most"] == duckdb.sql(f"SELECT format_bytes({MOST_SPILLED[:-2]}000000000) AS s").fetchall()[0][0]
        assert row["place"].startswith(str(private_temporary_folder()))
