"""A small model: asked after `local`, with a short prompt; what it writes is mended by rule, or offered, or dropped."""

from __future__ import annotations

import asyncio
import csv
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest

import almanaq
from almanaq.agent.small.parser import SmallModelParser
from almanaq.errors import ModelCallError, UsageError
from almanaq.models.openai import OpenAIModel
from almanaq.models.protocols import Completion, Message, Prompt, Usage
from almanaq.models.providers import is_small
from almanaq.models.retrying import FailedCall, RetryingModel

GOLDEN = Path(__file__).parents[1] / "golden" / "prompts" / "agent"
FLIGHTS = [
    ("Flight No", "Carrier", "Dep Delay", "Day Flown", "Seats"),
    *((i, ("DL", "UA", "AA")[i % 3], i - 5, f"{2012 + i % 3}-03-0{1 + i % 9}", 100 + i) for i in range(30)),
]
CARRIERS = [("Carrier", "Full Name", "Phone"), ("DL", "Delta", "1"), ("UA", "United", "2"), ("AA", "American", "3")]
VAGUE = "Ponder flights of Delta muchly"
"""`local` does not know what this asks for."""


class SmallModel:
    """Replies with one text, as sure of it as it is told to be."""

    name = "gguf:scripted-0.5b"
    persistent = False

    def __init__(self, text: str | Exception, likelihood: float | None = 0.0, wait: float = 0.0) -> None:
        self.text, self.likelihood, self.wait = text, likelihood, wait
        self.prompts: list[Prompt] = []

    async def complete(self, prompt: Prompt) -> Completion:
        self.prompts.append(prompt)
        await asyncio.sleep(self.wait)
        if isinstance(self.text, Exception):
            raise self.text
        return Completion(self.text, Usage(calls=1, input_tokens=9), likelihood=self.likelihood)


@pytest.fixture
def source(tmp_path: Path) -> str:
    for name, rows in (("Flights Flown", FLIGHTS), ("carriers", CARRIERS)):
        with (tmp_path / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows(rows)
    return str(tmp_path)


def ask(source: str, model: SmallModel, question: str = VAGUE, confidence: float | None = 0.6) -> almanaq.Response:
    with almanaq.connect(source, model=model, cache=False, confidence=confidence) as con:
        return con.ask(question)


def test_local_goes_first(source: str) -> None:
    model = SmallModel("SELECT 1")
    response = ask(source, model, "How many carriers are there?")
    assert (response.status, response.rows, model.prompts) == ("answered", ((3,),), [])


def test_at_a_lower_confidence_its_query_is_run_over_the_real_names(source: str) -> None:
    model = SmallModel("SELECT COUNT(*) FROM flights_flown WHERE carrier = 'DL' AND dep_delay > 0")
    response = ask(source, model)
    assert (response.status, response.rows) == ("answered", ((8,),))
    assert '"Flights Flown"' in response.suql
    assert '"Dep Delay"' in response.suql


def test_what_it_is_sure_of_is_offered_first_unless_the_confidence_is_lowered(source: str) -> None:
    model = SmallModel("SELECT COUNT(*) FROM flights_flown WHERE carrier = 'DL'")
    with almanaq.connect(source, model=model, cache=False) as con:
        response = con.ask(VAGUE)
        assert (response.status, response.readings[0].probability) == ("clarify", 0.62)
        assert response.readings[0].run().rows == [(10,)]


@pytest.mark.parametrize("likelihood", [-0.5, None])
def test_what_it_is_not_sure_of_is_offered_and_not_run(source: str, likelihood: float | None) -> None:
    with almanaq.connect(source, model=SmallModel("SELECT MAX(seats) FROM flights_flown", likelihood)) as con:
        response = con.ask(VAGUE)
        assert (response.status, response.rows) == ("clarify", ())
        assert response.readings[0].run().rows == [(129,)]
        assert con.ask("1", [response.turn()]).rows == ((129,),)


def test_no_two_options_have_the_same_words() -> None:
    table = {"shop": ["North", "South", "North", "South"], "sales": [9, 4, 2, 8]}
    model = SmallModel("SELECT * FROM receipts ORDER BY sales DESC LIMIT 1", -0.5)
    with almanaq.connect({"receipts": table}, model=model, cache=False) as con:
        words = [each.words for each in con.ask("which shop has the highest sales?").readings]
    assert len(set(words)) == len(words) == 2


MENDED = {
    "a fence and words around it": ("Here:\n```sql\nSELECT MAX(seats) FROM flights_flown;\n```", [(129,)]),
    "a table almost so called": ("SELECT MAX(seats) FROM flight_flown", [(129,)]),
    "a column almost so called": ("SELECT MAX(seat) FROM flights_flown", [(129,)]),
    "the source's own names": ('SELECT MAX("Seats") FROM "Flights Flown"', [(129,)]),
    "aliases": ("SELECT MAX(f.seats) FROM flights_flown f", [(129,)]),
    "no GROUP BY": (
        "SELECT carrier, COUNT(*) FROM flights_flown ORDER BY carrier",
        [("AA", 10), ("DL", 10), ("UA", 10)],
    ),
    "a year for a date": ("SELECT COUNT(*) FROM flights_flown WHERE day_flown = 2013", [(10,)]),
    "a year as a pattern": ("SELECT COUNT(*) FROM flights_flown WHERE day_flown LIKE '2013%'", [(10,)]),
    "a value in other letters": ("SELECT COUNT(*) FROM flights_flown WHERE carrier = 'dl'", [(10,)]),
    "a table that is not joined": (
        "SELECT COUNT(*) FROM flights_flown WHERE full_name = 'Delta' AND seats > 0",
        [(10,)],
    ),
    "a subquery of several rows": (
        "SELECT MAX(seats) FROM flights_flown WHERE seats < (SELECT seats FROM flights_flown)",
        [(128,)],
    ),
    "a subquery with its own scope": (
        "SELECT COUNT(*) FROM flights_flown WHERE carrier IN (SELECT carrier FROM carriers WHERE phone = 2)",
        [(10,)],
    ),
    "a common table": (
        "WITH c AS (SELECT carrier AS k, COUNT(*) AS n FROM flights_flown GROUP BY carrier) SELECT MAX(n) FROM c",
        [(10,)],
    ),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", MENDED)
def test_what_a_rule_can_mend_is_mended(source: str, case: str) -> None:
    written, rows = MENDED[case]
    response = ask(
        source, SmallModel(written), "Ponder flights flown of United with full name and phone by seats muchly"
    )
    assert (response.status, sorted(response.rows)) == ("answered", sorted(rows)), response.answer


@pytest.mark.parametrize(
    "written",
    [
        "I cannot do that.",
        "SELECT FROM WHERE",
        "DROP TABLE carriers",
        "SELECT colour FROM flights_flown",
        "SELECT CAST(carrier AS INT) FROM flights_flown",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT getenv('HOME')",
    ],
)
def test_what_no_rule_mends_is_dropped_and_no_database_speaks(source: str, written: str) -> None:
    model, alone = SmallModel(written), ask(source, SmallModel("SELECT 1"), VAGUE)
    response = ask(source, model)
    assert (response.status in ("clarify", "no_query"), len(model.prompts)) == (True, 1)
    assert alone.status != "failed"
    assert not any(word in response.answer for word in ("Error", "error", "passwd", "colour"))


def test_a_call_that_fails_is_made_once_and_said(source: str) -> None:
    model = SmallModel(FailedCall("late", retryable=False, cause="no reply in time"))
    response = ask(source, model)
    assert response.status in ("clarify", "no_query")
    assert "gguf:scripted-0.5b wrote no query (no reply in time)" in response.answer
    assert len(model.prompts) == 1


def test_the_deadline_of_the_turn_ends_its_call(source: str) -> None:
    with almanaq.connect(source, model=SmallModel("SELECT 1", wait=600), cache=False) as con:
        response = con.ask(VAGUE, options=almanaq.Options(deadline=2))
    assert (response.status, type(response.error).__name__) == ("failed", "DeadlineExceeded")


def test_a_turn_that_goes_on_from_another_is_not_for_it(source: str) -> None:
    model = SmallModel("SELECT 1")
    with almanaq.connect(source, model=model, cache=False) as con:
        first = con.ask("How many carriers are there?")
        con.ask("and the muchly one of them?", [first.turn()])
    assert model.prompts == []


def prompt_of(source: str, question: str) -> Prompt:
    with almanaq.connect(source, model=SmallModel(""), cache=False) as con:
        made = con.agent._parser
        assert isinstance(made, SmallModelParser)
        return made.prompt(question, made._local.world(con.engine.catalog))[0]


def test_golden_prompt(source: str) -> None:
    prompt = prompt_of(source, "How many flights did Delta fly in 2013?")
    text = "\n\n".join(f"## {m.role}\n{m.content}" for m in prompt.messages) + "\n"
    if os.environ.get("ALMANAQ_WRITE_GOLDEN"):
        (GOLDEN / "small.txt").write_text(text, encoding="utf-8")
    assert text == (GOLDEN / "small.txt").read_text("utf-8")
    # A value of a table that only explains a key stands for the key.
    assert "carrier = 'DL'" in prompt.messages[-1].content
    assert "carriers(" not in prompt.messages[-1].content


def test_a_wide_source_and_a_long_question_make_no_long_prompt(tmp_path: Path) -> None:
    for table in range(8):
        names = ["Carrier", *(f"Measured Quantity Number {table} {i}" for i in range(60))]
        with (tmp_path / f"wide_{table}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([names, ["x", *range(60)], ["y", *range(60)]])
    asked = "the measured quantity number of each carrier in wide " + "and muchly " * 500
    sent = prompt_of(str(tmp_path), asked).messages
    assert sum(len(message.content) for message in sent) < 2300


def test_private_columns_are_not_in_it(source: str) -> None:
    Path(source, "schema.toml").write_text('[carriers.columns."Full Name"]\nprivate = true\n')
    with almanaq.connect(source, model=SmallModel(""), schema=f"{source}/schema.toml", cache=False) as con:
        made = con.agent._parser
        assert isinstance(made, SmallModelParser)
        world = made._local.world(con.engine.catalog)
        shown = made.prompt("full name and phone of the carriers called Delta", world)[0].messages[-1].content
    assert "phone" in shown
    assert "full_name" not in shown
    assert "'" not in shown


# Which model is small.


@contextmanager
def server(listed: dict[str, object], wait: float = 0.0) -> Iterator[tuple[str, list[str]]]:
    """A server that lists a model, and takes its time for a chat; give its address and what was asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._reply({"data": [{"id": "mine", **listed}]})

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            asked.append(self.path)
            if self.path.endswith("/api/show"):
                self._reply({"details": {"parameter_size": "494.03M"}})
                return
            over.wait(wait)

        def _reply(self, content: object) -> None:
            body = json.dumps(content).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    over = Event()
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as made:
        Thread(target=made.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{made.server_port}/v1", asked
        over.set()
        made.shutdown()


@pytest.mark.parametrize(
    ("name", "listed", "small"),
    [
        ("ollama:qwen2.5-coder:0.5b", {}, True),
        ("ollama:qwen2.5-coder:7b", {}, False),
        ("llamacpp:SmolLM2-135M", {}, True),
        ("llamacpp:mine", {"meta": {"n_params": 630_167_424, "n_ctx": 32_768}}, True),
        ("llamacpp:mine", {"meta": {"n_params": 7e9, "n_ctx": 32_768}}, False),
        ("llamacpp:mine", {"meta": {"n_params": 7e9, "n_ctx": 4096}}, True),
        ("vllm:mine", {"max_model_len": 131_072}, False),
        ("vllm:mine", {"max_model_len": 4096}, True),
        ("ollama:mine", {}, True),
        ("openai:gpt-0.5b", {}, False),
    ],
)
def test_its_name_or_its_server_tells(
    name: str, listed: dict[str, object], small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with server(listed) as (address, _):
        provider = name.partition(":")[0]
        if provider != "openai":
            monkeypatch.setenv("ALMANAQ_LOCAL_SERVERS", f"{provider}={address}")
        model = SmallModel("")
        model.name = name
        assert is_small(model) is small
        monkeypatch.setenv("ALMANAQ_PROFILE", "full" if small else "small")
        assert is_small(model) is not small
        monkeypatch.setenv("ALMANAQ_PROFILE", "tiny")
        with pytest.raises(UsageError, match="ALMANAQ_PROFILE"):
            is_small(model)


@pytest.mark.parametrize(("provider", "calls"), [("ollama", 1), ("openai", 2)])
def test_a_request_that_took_too_long_here_is_not_made_again(provider: str, calls: int) -> None:
    with server({}, wait=30) as (address, asked):
        model = OpenAIModel("mine", address, "none", timeout=0.2, provider=provider)
        with pytest.raises(ModelCallError):
            asyncio.run(RetryingModel(model, attempts=2, base=0).complete(Prompt("t", "1", (Message("user", "x"),))))
    assert len(asked) == calls
