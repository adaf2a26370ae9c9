"""--batch-api: texts go out as one batch at half the price, which outlives the query that made it."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

import almanaq
from almanaq.errors import DeadlineExceeded, UsageError
from almanaq.models import batch_api
from almanaq.models.protocols import Price
from almanaq_bench.testing import StandInServer, replies_from
from almanaq_bench.testing.faults import Faults
from almanaq_bench.testing.outcome import Outcome

ROWS = {"n": list(range(300)), "text": [f"Dog {n} is {'shy' if n % 3 else 'friendly'}." for n in range(300)]}
QUERY = "SELECT n FROM dogs WHERE answer(text, 'is the dog friendly?') = 'Yes'"
FRIENDLY = sorted((n,) for n in range(0, 300, 3))
PRICE = Price(10.0, 20.0)
SCRIPT = f"import almanaq, json, sys; con = almanaq.connect({{'dogs': json.load(sys.stdin)}}, model='openai:any', batch=1, batch_api=True); print(con.sql({QUERY!r}).trace.physical_calls)"  # noqa: E501
reads = replies_from(lambda text, _: "Yes" if "friendly" in text else "No")


@pytest.fixture
def serve(monkeypatch, tmp_path):
    """Give a function that starts a server which the environment names."""
    prices = tmp_path / "prices.toml"
    prices.write_text(f"[any]\ninput = {PRICE.input}\noutput = {PRICE.output}\n")
    monkeypatch.setenv("ALMANAQ_PRICES", str(prices))
    monkeypatch.setattr(batch_api, "_GATHER_SECONDS", 0.1)
    with ExitStack() as servers:

        def start(**options):
            server = servers.enter_context(StandInServer(reads, **options))
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            return server

        yield start


def connect(rows=ROWS, **options):
    return almanaq.connect({"dogs": rows}, model="openai:any", **{"batch": 1, "batch_api": True, **options})


def test_all_texts_go_out_as_one_batch_at_half_the_price(serve):
    server = serve()
    with connect() as con:
        forecast = con.explain(QUERY).stages[0].predicted["money"]
        result = con.sql(QUERY, options=almanaq.Options(max_money=100))
        assert sorted(result.rows) == FRIENDLY
        assert len(server.batches.made) == 1
        assert {path for path, _ in server.ledger.heads if "chat" in path} == set()
        assert result.trace.money == pytest.approx(server.ledger.money(PRICE) / 2)
        plain = connect(batch_api=False).explain(QUERY).stages[0].predicted["money"]
        assert forecast == pytest.approx(plain / 2)
        assert len(connect().sql(QUERY).rows) == 100
        assert len(server.batches.made) == 1  # the reply cache has them
        assert set(server.batches.files) == {"file-1"}  # the results; the texts are deleted


def test_a_feature_that_the_server_refuses_is_left_out_of_a_second_batch(serve):
    server = serve(refuses=("response_format",))
    with connect() as con:
        assert sorted(con.sql(QUERY).rows) == FRIENDLY
        assert len(server.batches.made) == 2


@pytest.mark.slow
def test_a_query_that_is_killed_resumes_its_batch(serve, tmp_path):
    server = serve(batch_seconds=3600)
    first = subprocess.Popen([sys.executable, "-c", SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    first.stdin.write(json.dumps(ROWS).encode())
    first.stdin.close()
    while not server.batches.made and first.poll() is None:
        time.sleep(0.02)
    first.kill()
    first.wait()
    first.stdout.close()
    for deadline in (1, 10, 100):  # a slow machine gets no further in one second
        with pytest.raises(DeadlineExceeded) as late:
            connect(deadline=deadline).sql(QUERY)
        if "go on" in str(late.value):
            break
    assert "300 requests go on in a batch" in str(late.value)
    with contextlib.closing(sqlite3.connect(tmp_path / "batches.sqlite")) as store, store:
        store.execute("UPDATE request SET batch = NULL")  # it is found by its file, on the server's second page
    (batch,) = server.batches.made.items()
    server.batches.made = {"newer": {"id": "newer", "input_file_id": "another"}, batch[0]: batch[1]}
    server.batches.seconds = 0
    result = connect().sql(QUERY)
    assert sorted(result.rows) == FRIENDLY
    assert (len(server.batches.made), server.ledger.calls) == (2, 300)
    assert result.trace.money == pytest.approx(server.ledger.money(PRICE) / 2)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda state: {"status": "expired"}, id="expired"),
        pytest.param(lambda state: {"status": "cancelled"}, id="cancelled"),
        pytest.param(
            lambda state: {"status": "failed", "output_file_id": None, "errors": {"data": [{"message": "bad line"}]}},
            id="failed",
        ),
    ],
)
def test_what_a_batch_leaves_out_is_unknown_and_asked_again_the_next_time(serve, change):
    ends = [True]

    def twist(path: str, _: object, right: Outcome) -> Outcome:
        if not ends:
            return right
        if path.startswith("/v1/batches/"):
            return Outcome.of(json.loads(right.body) | change(path))
        return replace(right, body=b"\n".join([*right.body.splitlines()[:2], b"{"])) if "content" in path else right

    server = serve(twist=twist)
    rows = {name: values[:6] for name, values in ROWS.items()}
    if change(None)["status"] == "failed":
        with pytest.raises(almanaq.errors.ModelError, match="failed in its batch"):
            connect(rows).sql(QUERY)
    else:
        result = connect(rows).sql(QUERY)
        assert {each.reason.split()[-1] for each in result.unknown} == {"batch"}
        assert len(result.unknown) == 4
    ends.clear()
    assert sorted(connect(rows).sql(QUERY).rows) == [(0,), (3,)]
    assert len(server.batches.made) == 2


def test_a_line_that_fails_is_unknown_and_not_tried_again(serve):
    rows = {name: values[:6] for name, values in ROWS.items()}
    server = serve(faults=Faults(["error", "too_many"]))
    result = connect(rows).sql(QUERY)
    assert [each.reason for each in result.unknown] == ["failed in its batch"] * 2
    assert (len(server.batches.made), server.ledger.calls) == (1, 6)


def test_other_models_and_servers_have_no_batch_api(serve):
    for model in ("local", "ollama:any", "gguf:any", "azure:any", object()):
        with pytest.raises(UsageError, match="only models of openai: have a batch API"):
            almanaq.connect({"dogs": ROWS}, model=model, batch_api=True)
    serve(twist=lambda path, _, right: Outcome.error(404, "none") if "files" in path else right)
    with pytest.raises(almanaq.errors.ModelError, match="leave out --batch-api"):
        connect().sql(QUERY)


def test_only_its_owner_reads_the_record_of_batches(serve, tmp_path):
    serve()
    with connect() as con:
        con.sql(QUERY)
    assert Path(tmp_path, "batches.sqlite").stat().st_mode & 0o077 == 0
