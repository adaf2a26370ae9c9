"""A column that a model fills, as a table: killed it goes on, the next day it asks of what changed, and it is kept."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from almanaq.cli.app import app
from almanaq.cli.sql import check_place
from almanaq.cli.terminal import describe_course
from almanaq.errors import UsageError
from almanaq.models.protocols import Usage
from almanaq.suql.execution.forecast import Forecast
from almanaq_bench.testing import Faults, StandInServer

ROWS, CONCURRENCY = 240, 8
QUERY = "SELECT id, answer(body, 'which number?') AS number FROM reports"


def reply(request):
    text = next(message["content"] for message in request["messages"] if message["role"] == "user")
    number = text.partition("report number ")[2].split()[0]
    return json.dumps({"value": number, "quotes": [{"passage": 1, "quote": f"report number {number}"}]})


def write(folder, changed=0):
    body = [f"This is report number {i + (1000 if i < changed else 0)} of the year." for i in range(ROWS)]
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table({"id": list(range(ROWS)), "body": body}), folder / "reports.parquet")
    schema = folder.parent / f"{folder.name}.almanaq.toml"
    schema.write_text('[reports]\nkey = ["id"]\n[reports.columns.body]\nkind = "free_text"\n')
    return str(folder)


@pytest.fixture
def server():
    with StandInServer(reply, faults=Faults(latency=0.01), keep_requests=False) as running:
        yield running


@pytest.fixture
def environment(server, tmp_path):
    return {
        "OPENAI_BASE_URL": server.url,
        "OPENAI_API_KEY": "k",
        "ALMANAQ_CACHE_DIR": str(tmp_path / "cache"),
        "ALMANAQ_CONCURRENCY": str(CONCURRENCY),
    }


def command(source, *more):
    return ["sql", QUERY, "--db", source, "--model", "openai:m", *more]


def run(environment, *arguments):
    found = CliRunner().invoke(app, list(arguments), env=environment, catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return found.stderr


def test_what_a_killed_run_was_told_is_not_asked_again(server, environment, tmp_path):
    source, out = write(tmp_path / "data"), tmp_path / "t.parquet"
    started = [sys.executable, "-m", "almanaq", *command(source, "--out", str(out), "--resume")]
    process = subprocess.Popen(started, env={**os.environ, **environment}, stderr=subprocess.DEVNULL)
    while server.ledger.answered < ROWS // 3 and process.poll() is None:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not out.exists()
    said = run(environment, *command(source, "--out", str(out), "--resume"))
    table = pq.read_table(out).sort_by("id")
    assert table.column("number").to_pylist() == [str(i) for i in range(ROWS)]
    assert ROWS <= server.ledger.calls <= ROWS + CONCURRENCY
    assert "from earlier runs" in said
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".t.parquet")] == []


def test_the_next_day_only_rows_that_changed_are_asked(server, environment, tmp_path):
    source, out = write(tmp_path / "data"), tmp_path / "t.parquet"
    run(environment, *command(source, "--out", str(out)))
    assert server.ledger.calls == ROWS
    write(tmp_path / "data", changed=3)
    said = run(environment, *command(source, "--out", str(out), "--resume"))
    assert server.ledger.calls == ROWS + 3
    assert f"3 replies requested; {ROWS - 3} from earlier runs" in said
    table = pq.read_table(out).sort_by("id")
    assert table.column("number").to_pylist()[:4] == ["1000", "1001", "1002", "3"]


def test_a_kept_table_has_its_quotes_and_is_refreshed(server, environment, tmp_path):
    source, kept = write(tmp_path / "data"), tmp_path / "numbers.duckdb"
    run(environment, *command(source, "--materialize", str(kept)))
    write(tmp_path / "data", changed=2)
    run(environment, *command(source, "--materialize", str(kept)))
    assert server.ledger.calls == ROWS + 2
    with duckdb.connect(str(kept), read_only=True) as database:
        joined = "SELECT id, number, quote, key FROM numbers JOIN numbers_evidence USING (row) ORDER BY id"
        rows = database.execute(joined).fetchall()
        (made,) = database.execute("SELECT suql, trace FROM almanaq_made").fetchall()
    assert len(rows) == ROWS
    assert rows[1] == (1, "1001", "report number 1001", "1")
    assert rows[5] == (5, "5", "report number 5", "5")
    assert made[0] == QUERY
    assert json.loads(made[1])["cached_calls"] == ROWS - 2


def test_a_kept_table_is_a_source_like_any_other(environment, tmp_path):
    kept = str(tmp_path / "numbers.duckdb")
    run(environment, *command(write(tmp_path / "data"), "--materialize", kept))
    found = CliRunner().invoke(app, ["sql", "SELECT count(*) AS n FROM numbers", "--db", kept, "--format", "csv"])
    assert found.stdout.split() == ["n", str(ROWS)]


def test_a_file_that_is_somebody_elses_is_left_alone(tmp_path):
    place = tmp_path / "theirs.duckdb"
    with duckdb.connect(str(place)) as database:
        database.execute("CREATE TABLE t (a INTEGER)")
    for name, said in (("theirs.duckdb", "not made by"), ("t.db", "ends in"), ("no/t.duckdb", "no folder")):
        with pytest.raises(UsageError, match=said):
            check_place(str(tmp_path / name))
    (tmp_path / "link.duckdb").symlink_to(place)
    with pytest.raises(UsageError, match="regular"):
        check_place(str(tmp_path / "link.duckdb"))


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--resume"], "--out"),
        (["--out", "t.parquet", "--resume", "--no-cache"], "--no-cache"),
        (["--materialize", "t.duckdb", "--no-cache"], "--no-cache"),
        (["--materialize", "t.duckdb", "--out", "t.csv"], "--out"),
        (["--materialize", "t.duckdb", "--explain"], "--explain"),
    ],
)
def test_flags_that_do_not_go_together_are_wrong_usage(flags, said):
    with pytest.raises(UsageError, match=said):
        CliRunner().invoke(app, ["sql", "SELECT 1", "--db", "sample:restaurants", *flags], catch_exceptions=False)


def test_columns_that_a_table_cannot_have_are_refused(environment, tmp_path):
    for columns, said in (("1 AS row", "row"), ("1 AS a, 2 AS a", "AS")):
        arguments = ["sql", f"SELECT {columns}", "--db", "sample:restaurants", "--materialize"]
        with pytest.raises(UsageError, match=said):
            CliRunner().invoke(app, [*arguments, str(tmp_path / "t.duckdb")], env=environment, catch_exceptions=False)
    assert list(tmp_path.glob("*t.duckdb*")) == []


def test_progress_says_rows_calls_and_money():
    assert describe_course(5, None, 2, Usage()) == "5 rows read, 2 found"
    spent = Usage(calls=500, input_tokens=1, output_tokens=1, money=1.5)
    forecast = Forecast(2000, 2000, 8, 6.0)
    assert describe_course(500, 2000, 500, spent, forecast) == (
        "500 of 2,000 rows read, 500 found, 500 of about 2,000 calls, $1.50 of about $6.00"
    )
