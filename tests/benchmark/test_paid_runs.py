"""Runs of the paper's experiments with a model behind a real HTTP server: foretold, counted, stopped and gone on."""

from __future__ import annotations

import io
import itertools
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from small_datasets import files
from small_hybrid import write_hybrid
from small_restaurants import PIZZA, THAI, lines, write_restaurants

from almanaq.cli import main
from almanaq_bench.testing import Faults, StandInServer, replies_from

QUERIES = {
    "Thai please": f"SELECT name FROM restaurants WHERE {THAI} LIMIT 3",
    "with candles": f"SELECT name FROM restaurants WHERE {THAI} AND "
    "answer(reviews, 'are there candles?') = 'Yes' LIMIT 3",
    "pizza instead": f"SELECT name FROM restaurants WHERE {PIZZA} LIMIT 3",
}
TURNS = [
    {"say": "Hi!", "kind": "talk"},
    {"say": "Thai please", "where": THAI},
    {"say": "with candles", "kind": "narrow", "where": THAI, "attributes": {"candles": True}},
    {"say": "pizza instead", "kind": "replace", "where": PIZZA},
]


BAKER = """SELECT "Time" FROM race_0 WHERE answer("Athlete_Info", 'is this a baker?') = 'Yes'"""


def reply(sent: Mapping[str, Any]) -> Mapping[str, Any] | str:
    """A model that writes the query of the words that it is asked, and reads and words by rule."""
    text = sent["messages"][-1]["content"]
    name = sent.get("response_format", {}).get("json_schema", {}).get("name", "")
    if name == "linearize":
        return {"text": text.partition("Message: ")[2]}
    if name == "parse":
        asked = text[text.rindex("Request: ") :]
        suql = next((suql for words, suql in QUERIES.items() if words in asked), None)
        return {"reasoning": "", "suql": suql, "needs_data": suql is not None, "clarify": None}
    if name == "write":
        return {"reasoning": "", "suql": BAKER}
    if name == "short_answer":
        return {"answer": "2:15.90"}
    return _read(sent) if name.startswith("answer") else "Here you are."


_read = replies_from(lambda text, _: "Yes" if "Candles" in text or "baker" in text else "No")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Four conversations, and two questions over a table with passages."""
    folder = write_restaurants(tmp_path / "data" / "yelp")
    talks = [{"name": f"d {n}", "turns": [{**turn, "say": f"{turn['say']} {n}"} for turn in TURNS]} for n in range(4)]
    (folder / "conversations.jsonl").write_text(lines(*talks))
    write_hybrid(tmp_path / "data" / "small")
    return tmp_path / "data"


@pytest.fixture
def settings(data: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[StandInServer], None]:
    """What points the client at a server, with a price for its model and a cache that holds nothing yet."""
    prices = data / "prices.toml"
    prices.write_text('["any"]\ninput = 1.0\noutput = 2.0\n')

    numbers = itertools.count()

    def point(server: StandInServer) -> None:
        cache = data / f"cache {next(numbers)}"
        own = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "key", "ALMANAQ_PRICES": str(prices)}
        for name, value in (own | {"ALMANAQ_CACHE_DIR": str(cache)}).items():
            monkeypatch.setenv(name, value)

    return point


def bench(data: Path, out: str, *more: str) -> list[str]:
    where = ["--data-dir", str(data), "--retriever", "oracle", "--embedder", "lexical"]
    return ["bench", "run", *where, "--out", str(data / out), "--json", *more]


def talks(generator: str, *more: str) -> list[str]:
    what = ["--task", "restaurants", "--dataset", "yelp", "--split", "conversations"]
    return [*what, "--generator", generator, *more]


@dataclass(frozen=True)
class Done:
    exit_code: int
    stdout: str
    stderr: str


def call(*arguments: str) -> Done:
    """Run the command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["almanaq", *arguments])
        try:
            code = main()
        except SystemExit as ended:
            code = int(ended.code or 0)
    return Done(code, out.getvalue(), err.getvalue())


HYBRID = ["--task", "hybrid-qa", "--dataset", "small", "--split", "test", "--generator", "openai:any"]
TOLD = re.compile(r"with (?:openai:)?any: ([\d,]+) calls, about ([\d,]+) tokens, about ([\d.]+) dollars")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "what", [talks("openai:any"), talks("linearize@3:openai:any"), HYBRID], ids=["agent", "baseline", "hybrid-qa"]
)
def test_what_a_run_will_cost_is_told_before_it_and_what_it_cost_after_it(
    data: Path, settings: Callable[[StandInServer], None], what: list[str]
) -> None:
    with StandInServer(reply) as server:
        settings(server)
        refused = call(*bench(data, "run", *what, "--max-calls", "3"))
        assert (refused.exit_code, server.ledger.calls) == (3, 0)
        assert "above the budget of 3" in refused.stderr
        done = call(*bench(data, "run", *what, "--resume"))
        again = call(*bench(data, "run", *what, "--resume"))
    told, spent = TOLD.search(done.stderr), json.loads(done.stdout)["metrics"]
    assert told is not None
    assert not TOLD.search(again.stderr)  # nothing is left to ask for
    calls, tokens, money = (float(figure.replace(",", "")) for figure in told.groups())
    assert spent["calls"] == server.ledger.calls
    assert spent["input_tokens"] + spent["output_tokens"] == server.ledger.input_tokens + server.ledger.output_tokens
    assert spent["calls"] <= calls <= 4 * spent["calls"]
    assert tokens > 2 * calls
    assert money > 0


IN_SMALL_BATCHES = "from almanaq_bench.generation import run; run.BATCH = 2; from almanaq.cli import main; main()"


def test_conversations_that_were_killed_go_on_to_the_same_end(
    data: Path, settings: Callable[[StandInServer], None]
) -> None:
    whole = bench(data, "whole", *talks("openai:any"))
    killed = bench(data, "killed", *talks("openai:any"))
    with StandInServer(reply) as server:
        settings(server)
        assert call(*whole).exit_code == 0
    some = data / "killed" / "replies.jsonl"
    with StandInServer(reply, faults=Faults(latency=lambda: 3600 if some.exists() else 0.02)) as server:
        settings(server)  # once some replies are kept, it gives no further one: the run cannot end before it is killed
        process = subprocess.Popen([sys.executable, "-c", IN_SMALL_BATCHES, *killed], stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not some.exists() and time.monotonic() < deadline:
            time.sleep(0.005)
        process.kill()
        process.wait()
    assert some.exists()
    assert not (data / "killed" / "metrics.json").exists()
    with StandInServer(reply) as server:
        settings(server)
        gone_on = call(*killed, "--resume")
    assert gone_on.exit_code == 0
    assert files(data / "killed") == files(data / "whole")
    metrics = json.loads(gone_on.stdout)["metrics"]
    assert json.loads(call("bench", "score", str(data / "killed"), "--json").stdout)["metrics"] == metrics
    page = data / "report.md"
    assert call("bench", "report", str(data / "killed"), "--data-dir", str(data), "--out", str(page)).exit_code == 0
    assert "### Where questions are lost\n\n| system | right |" in page.read_text()
    assert (metrics["turn_accuracy"], metrics["false_negatives"], metrics["failed_turns"]) == (1.0, 0.0, 0)
    assert (metrics["turns"], metrics["search_turns"]) == (4 * 4, 3 * 4)


def test_vectors_of_a_server_are_foretold_as_well(data: Path, settings: Callable[[StandInServer], None]) -> None:
    what = talks("linearize@1", "--embedder", "openai:any")
    with StandInServer(reply) as server:
        settings(server)
        refused = call(*bench(data, "run", *what, "--max-calls", "0"))
        assert (refused.exit_code, server.ledger.calls) == (3, 0)
        done = call(*bench(data, "run", *what, "--resume"))
    assert done.exit_code == 0
    assert "embedding 4 texts with openai:any: 1 calls, about " in done.stderr
