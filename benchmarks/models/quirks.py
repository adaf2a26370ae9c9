"""Servers with ways of their own, one by one and mixed: what became of the rows, the calls and the money.

`python -m benchmarks.models.quirks` runs each quirk alone over 40 texts, then 50 random mixtures over 200, all over
HTTP, and writes `results/quirks.json`. A row is lost where it lacks an answer that the server would have given.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import almanaq
from almanaq.errors import BudgetExceeded
from almanaq.models.batching import Batching
from almanaq.models.model_names import ModelSettings, open_models
from almanaq.models.protocols import Price
from almanaq.suql.result import Result
from almanaq_bench.testing import StandInServer, replies_from
from almanaq_bench.testing.outcome import Outcome

PRICE = Price(2.0, 8.0)
QUERY = "SELECT id FROM stays WHERE answer(note, 'is it calm?') = 'Yes'"
REFUSED = "unspeakable"
"""A word that servers with a filter answer with a refusal."""
Change = Callable[[Mapping[str, Any], Outcome], Outcome]


def is_calm(text: str, _: str) -> str | None:
    """Return the truth about a text."""
    return "Yes" if "calm" in text else "No" if "loud" in text else None


def make_rows(count: int, draw: random.Random) -> dict[str, list[Any]]:
    """Return texts, some of them long with the truth at their end, some of them refused by filters."""
    notes = []
    for number in range(count):
        words = f"Stay {number}: {draw.choice(['calm', 'loud', 'nothing said'])}"
        words = f"{'word ' * 2_500}{words}" if number % 20 == 13 else words
        notes.append(f"{words} {REFUSED}" if number % 20 == 7 else words)
    return {"id": list(range(count)), "note": notes}


@dataclass(frozen=True, slots=True)
class Quirk:
    """One way of a server.

    Attributes:
        seen: servers that have it.
        kind: of "words" and "place" forms of right replies, one at a time; "limit", one at a time; "lacks" a feature;
            "filter" refuses some texts for good; "passing": another try may succeed.
        most: how often the same text meets it, of a passing one.
    """

    name: str
    seen: str
    kind: str
    change: Change
    most: int = 2


def _failing(status: int, message: str, headers: Mapping[str, str] | None = None) -> Change:
    return lambda _, right: Outcome.error(status, message, headers)


def _lacking(name: str, message: str) -> Change:
    def change(request: Mapping[str, Any], right: Outcome) -> Outcome:
        roles = [message["role"] for message in request["messages"]]
        return Outcome.error(400, message) if name in request or name in roles else right

    return change


def _wording(change: Callable[[str], str]) -> Change:
    return _placing(lambda text: {"content": change(text)})


def _placing(place: Callable[[str], Mapping[str, object]]) -> Change:
    def change(_: Mapping[str, Any], right: Outcome) -> Outcome:
        content = json.loads(right.body)
        message = content["choices"][0]["message"]
        message |= place(message["content"])
        return Outcome.of(content)

    return change


def _reading(change: Callable[[dict[str, Any]], object]) -> Change:
    """Change the JSON of a reply, whether it answers one text or several."""

    def reworded(text: str) -> str:
        reply = json.loads(text)
        items = [each for each in reply.values() if isinstance(each, dict) and "value" in each]
        for item in items or [reply]:
            item |= change(item)  # type: ignore[operator]
        return json.dumps(reply)

    return _wording(reworded)


def _length(request: Mapping[str, Any]) -> int:
    return sum(len(message["content"].split()) for message in request["messages"])


def _too_long(status: int, message: str) -> Change:
    return lambda request, right: Outcome.error(status, message) if _length(request) > 1_500 else right


def _cut_silently(request: Mapping[str, Any], right: Outcome) -> Outcome:
    if _length(request) <= 1_024:
        return right
    content = json.loads(right.body)
    content["usage"]["prompt_tokens"] = 1_024
    content["choices"][0]["message"]["content"] = '{"value": "No", "verdicts": {"Yes": "no"}, "quotes": []}'
    return Outcome.of(content)


def _asked_at_most(request: Mapping[str, Any]) -> int:
    return int(request.get("max_completion_tokens") or request.get("max_tokens") or 0)


def _think(most: int) -> Change:
    def change(request: Mapping[str, Any], right: Outcome) -> Outcome:
        content, asked = json.loads(right.body), _asked_at_most(request)
        content["choices"][0]["message"]["reasoning"] = "is it?"
        if asked <= most:
            content["choices"][0] |= {"finish_reason": "length", "message": {"role": "assistant", "content": ""}}
        content["usage"]["completion_tokens"] = min(asked, most)
        return Outcome.of(content)

    return change


def _limit_output(message: str) -> Change:
    def change(request: Mapping[str, Any], right: Outcome) -> Outcome:
        asked = _asked_at_most(request)
        return right if asked <= 512 else Outcome.error(400, message.replace("{asked}", str(asked)))

    return change


def _refuse(status: int, message: str) -> Change:
    def change(request: Mapping[str, Any], right: Outcome) -> Outcome:
        named = any(REFUSED in message["content"] for message in request["messages"])
        return Outcome.error(status, message) if named else right

    return change


def _decline(request: Mapping[str, Any], right: Outcome) -> Outcome:
    if not any(REFUSED in message["content"] for message in request["messages"]):
        return right
    content = json.loads(right.body)
    content["choices"][0] |= {"finish_reason": "content_filter", "message": {"role": "assistant", "content": ""}}
    return Outcome.of(content)


def _renumber(text: str) -> str:
    reply = json.loads(text)
    items = [name for name in reply if name.startswith("item")]
    return json.dumps({f"item{int(name[4:]) - 1}": reply[name] for name in items}) if items else text


def _events(_: Mapping[str, Any], right: Outcome) -> Outcome:
    content = json.loads(right.body)
    choice, usage = content["choices"][0], content["usage"]
    events = [
        {"choices": [{"delta": {"content": choice["message"]["content"]}}]},
        {"choices": [{"delta": {}, "finish_reason": choice["finish_reason"]}], "usage": usage},
    ]
    return replace(right, body=b"".join(b"data: %s\n\n" % json.dumps(e).encode() for e in events) + b"data: [DONE]\n")


def _called(text: str) -> dict[str, object]:
    return {"content": None, "tool_calls": [{"type": "function", "function": {"name": "reply", "arguments": text}}]}


def _called_with(text: str) -> dict[str, object]:
    return {"content": None, "tool_calls": [{"function": {"name": "reply", "arguments": json.loads(text)}}]}


def _double(text: str) -> str:
    items = [name for name in json.loads(text) if name.startswith("item")]
    other = '{"value": "No", "verdicts": {"Yes": "no"}, "quotes": []}'
    return f'{text[:-1]}, "item1": {other}}}' if items and '"Yes"' in text else text


def _say_cut(_: Mapping[str, Any], right: Outcome) -> Outcome:
    content = json.loads(right.body)
    content["choices"][0]["finish_reason"] = "length"
    return Outcome.of(content)


QUIRKS = (
    Quirk(
        "words around the JSON", "Ollama, llama.cpp", "words", _wording(lambda text: f"Sure:\n{text}\nAnything else?")
    ),
    Quirk("a fence around it", "most small models", "words", _wording(lambda text: f"```json\n{text}\n```")),
    Quirk("reasoning before it", "vLLM, DeepSeek", "words", _wording(lambda text: f'{{"value": "No"}}?</think>{text}')),
    Quirk("end marks after it", "llama.cpp, MLX", "words", _wording(lambda text: f"\ufeff{text}<|im_end|>")),
    Quirk("a brace too many", "Qwen", "words", _wording(lambda text: text + "}")),
    Quirk(
        "reasoning after it",
        "small models",
        "words",
        _wording(lambda text: f'{text}\n<think>{{"value": "No"}}</think>'),
    ),
    Quirk(
        "quotes that are no texts", "small models", "words", _reading(lambda _: {"quotes": [None, {"text": "calm"}]})
    ),
    Quirk("quotes: null, further keys", "Mistral", "words", _reading(lambda item: {"quotes": None, "note": "calm"})),
    Quirk(
        "the content in parts",
        "Mistral, OpenRouter",
        "place",
        _placing(lambda t: {"content": [{"type": "text", "text": t}]}),
    ),
    Quirk("the reply in a tool call", "LiteLLM", "place", _placing(_called)),
    Quirk("an object in a tool call", "Ollama", "place", _placing(_called_with)),
    Quirk(
        "the reply in a function call",
        "older servers",
        "place",
        _placing(lambda text: {"content": None, "function_call": {"name": "reply", "arguments": text}}),
    ),
    Quirk("the content as an object", "proxies", "place", _placing(lambda text: {"content": json.loads(text)})),
    Quirk("whole replies said to be cut", "proxies", "place", _say_cut),
    Quirk("status 201", "gateways", "place", lambda _, right: replace(right, status=201)),
    Quirk("the reply as reasoning", "vLLM", "place", _placing(lambda text: {"content": "", "reasoning_content": text})),
    Quirk("events that nobody asked for", "proxies", "place", _events),
    Quirk("no system role", "Gemma, Mistral", "lacks", _lacking("system", "System role not supported")),
    Quirk(
        "roles that must alternate",
        "Mistral, vLLM",
        "lacks",
        _lacking("system", "Conversation roles must alternate user/assistant/user/assistant/..."),
    ),
    Quirk(
        "no developer instruction",
        "Gemma at Google",
        "lacks",
        _lacking("system", "Developer instruction is not enabled for models/gemma"),
    ),
    Quirk(
        "no $defs in a JSON schema",
        "Gemini",
        "lacks",
        _lacking("response_format", "Unknown name \"$defs\" at 'generation_config.response_schema'"),
    ),
    Quirk("no JSON schema", "older vLLM", "lacks", _lacking("response_format", "'json_schema' is not supported")),
    Quirk("no temperature", "OpenAI o-series", "lacks", _lacking("temperature", "Unsupported value: 'temperature'")),
    Quirk(
        "no max_completion_tokens",
        "most servers",
        "lacks",
        _lacking("max_completion_tokens", "Unrecognized: max_completion_tokens"),
    ),
    Quirk("too long, 400", "vLLM", "limit", _too_long(400, "This model's maximum context length is 1500 tokens.")),
    Quirk("too long, 500", "llama.cpp", "limit", _too_long(500, "Context size has been exceeded.")),
    Quirk("too long, 413", "TGI, proxies", "limit", _too_long(413, "Payload Too Large")),
    Quirk(
        "too long, 422",
        "TGI",
        "limit",
        _too_long(422, "`inputs` tokens + `max_new_tokens` must be <= 1500. Given: 2600 `inputs` tokens"),
    ),
    Quirk("too long, reduce it", "Groq", "limit", _too_long(400, "Please reduce the length of the messages.")),
    Quirk(
        "too long, 429",
        "OpenAI",
        "limit",
        _too_long(429, "Request too large on tokens per min (TPM): Limit 1500, Requested 2600"),
    ),
    Quirk("a prompt cut in silence", "Ollama", "limit", _cut_silently),
    Quirk("2,000 tokens of reasoning", "vLLM", "limit", _think(2_000)),
    Quirk("10,000 tokens of reasoning", "vLLM", "limit", _think(10_000)),
    Quirk(
        "at most 512 tokens of output",
        "Groq, Anthropic",
        "limit",
        _limit_output("max_tokens is too large: {asked}. This model supports at most 512 completion tokens."),
    ),
    Quirk("at most 512, but unsaid", "DeepSeek", "limit", _limit_output("Invalid max_tokens value")),
    Quirk("one text refused, 403", "gateways", "filter", _refuse(403, "Request blocked")),
    Quirk("one text refused, 400", "Azure", "filter", _refuse(400, "The response was filtered (content_filter)")),
    Quirk("one text declined", "OpenAI", "filter", _decline),
    Quirk("429, the wait in the body", "OpenAI, Groq", "passing", _failing(429, "Please try again in 20ms.")),
    Quirk(
        "429, the wait in a header", "OpenAI", "passing", _failing(429, "slow", {"x-ratelimit-reset-requests": "20ms"})
    ),
    Quirk("503", "all", "passing", _failing(503, "Service Unavailable")),
    Quirk("an empty reply", "Ollama, Gemini", "passing", _wording(lambda _: "")),
    Quirk("no JSON at all", "small models", "passing", _wording(lambda _: "I would say yes."), most=1),
    Quirk("batches numbered from 0", "small models", "passing", _wording(_renumber)),
    Quirk("batches with a key twice", "small models", "passing", _wording(_double)),
)
_BARE = (
    *("the reply in a tool call", "an object in a tool call", "the reply in a function call"),
    *("the reply as reasoning", "the content as an object", "whole replies said to be cut"),
)
"""Quirks of servers in whose replies nothing but JSON is a reply."""
_NO_SCHEMA = ("no JSON schema", "no $defs in a JSON schema")


class QuirkyServer:
    """Sends what a server with quirks would, and keeps its bill: what it charges is what its replies say.

    Args:
        rate: of requests that meet a quirk which passes.
    """

    def __init__(self, quirks: Sequence[Quirk], draw: random.Random, rate: float = 0.25) -> None:
        order = ("lacks", "filter", "limit", "passing", "words", "place")
        self._quirks = sorted(quirks, key=lambda quirk: order.index(quirk.kind))
        self._draw, self._rate = draw, rate
        self._met: Counter[tuple[str, str]] = Counter()
        self.money = 0.0
        self.met: Counter[str] = Counter()

    def twist(self, path: str, request: Mapping[str, Any], right: Outcome) -> Outcome:
        """Return what is sent in place of the right reply."""
        if path != "/v1/chat/completions":
            return right
        sent = right
        for quirk in self._quirks:
            if quirk.kind == "passing" and not self._is_met(quirk, request):
                continue
            made = quirk.change(request, sent)
            self.met[quirk.name] += made != sent
            sent = made
            if sent.status >= 300 or quirk.kind == "passing" or not _is_right(sent):
                break
        if sent.status < 300:
            usage = json.loads(right.body if sent.body.startswith(b"data:") else sent.body)["usage"]
            self.money += PRICE.of(usage["prompt_tokens"], usage["completion_tokens"])
        return sent

    def _is_met(self, quirk: Quirk, request: Mapping[str, Any]) -> bool:
        # What is asked again begins with what was asked.
        text = next(message["content"] for message in request["messages"] if message["role"] == "user")
        place = quirk.kind if quirk.most > 1 else quirk.name, text
        met = max(self._met["passing", text], self._met[place])
        if met >= quirk.most or self._draw.random() > self._rate:
            return False
        self._met[place] += 1
        self._met["passing", text] += place[0] != "passing"
        return True


def _is_right(sent: Outcome) -> bool:
    """Return whether a form may still be changed: the reply is a whole one."""
    choice = json.loads(sent.body)["choices"][0] if not sent.body.startswith(b"data:") else {}
    return choice.get("finish_reason") == "stop" and isinstance(choice["message"].get("content"), str)


@dataclass(frozen=True, slots=True)
class Run:
    """What became of a query over a quirky server; `result` None where its budget ended it."""

    rows: Mapping[str, list[Any]]
    result: Result | None
    calls: int
    server: QuirkyServer

    @property
    def refused(self) -> list[int]:
        """The rows that no retry can have: a filter refuses their texts."""
        filters = any(quirk.kind == "filter" for quirk in self.server._quirks)
        return [n for n, note in enumerate(self.rows["note"]) if filters and REFUSED in note]

    @property
    def right(self) -> list[tuple[int]]:
        """The rows that the query is to give."""
        return [(n,) for n, note in enumerate(self.rows["note"]) if "calm" in note and n not in self.refused]

    @property
    def wrong(self) -> int:
        """How many rows are in the result that are not to be."""
        calm = {(n,) for n, note in enumerate(self.rows["note"]) if "calm" in note}
        return 0 if self.result is None else len(set(self.result.rows) - calm)

    @property
    def lost(self) -> int:
        """How many rows lack an answer, or are missing, that no filter refuses."""
        if self.result is None:
            return 0
        unknown = {int(each.row) for each in self.result.unknown} - set(self.refused)
        return len(unknown | ({n for (n,) in self.right} - {n for (n,) in self.result.rows}))


def run(quirks: Sequence[Quirk], seed: int, count: int, *, batch: int = 1, rate: float = 0.25, **limits: Any) -> Run:
    """Run the query over texts and a server with quirks; `limits` are options that may end it."""
    draw = random.Random(f"quirks {seed}")
    rows, server = make_rows(count, draw), QuirkyServer(quirks, draw, rate)
    with StandInServer(replies_from(is_calm), twist=server.twist, keep_requests=False) as stand_in:
        batching = Batching(questions=batch, texts=batch) if batch > 1 else None
        settings = ModelSettings(base_url=stand_in.url, api_key="k", price=PRICE, batching=batching)
        models = open_models("openai:any", embedder="lexical", cache=False, settings=settings)
        with almanaq.connect({"stays": rows}, model=models, cache=False, **limits) as connection:
            try:
                result = connection.sql(QUERY)
            except BudgetExceeded:
                result = None
    return Run(rows, result, stand_in.ledger.calls, server)


def mixture(seed: int) -> tuple[list[Quirk], int]:
    """Return the quirks of a random server, and how many texts share a request.

    Where nothing but JSON is a reply, in the arguments of a tool or as reasoning, there are no words around it; and
    without a schema the stand-in does not know a batch.
    """
    draw = random.Random(f"mixture {seed}")
    kinds = [kind for kind in ("words", "place", "limit", "filter") if draw.random() < 0.6]
    chosen = [draw.choice(_of(kind)) for kind in kinds]
    for kind in ("lacks", "passing"):
        chosen += draw.sample(_of(kind), draw.randint(0, 3))
    names = {quirk.name for quirk in chosen}
    if names & set(_BARE):
        chosen = [quirk for quirk in chosen if quirk.kind != "words"]
    return chosen, 1 if names & set(_NO_SCHEMA) else draw.choice([1, 8])


def _of(kind: str) -> list[Quirk]:
    return [quirk for quirk in QUIRKS if quirk.kind == kind]


def measure(quirks: Sequence[Quirk], seed: int, count: int, batch: int, rate: float = 0.25) -> dict[str, Any]:
    """Return what became of rows, calls and money."""
    began = time.perf_counter()
    found = run(quirks, seed, count, batch=batch, rate=rate)
    assert found.result is not None
    trace = found.result.trace
    return {
        "quirks": [quirk.name for quirk in quirks],
        "seen": quirks[0].seen if len(quirks) == 1 else "",
        "texts": count,
        "batch": batch,
        "met": sum(found.server.met.values()),
        "answered": count - trace.unknown_answers,
        "refused": len(found.refused),
        "lost": found.lost,
        "wrong": found.wrong,
        "calls": found.calls,
        "counted": trace.physical_calls,
        "money": round(found.server.money, 6),
        "reported": round(trace.money or 0.0, 6),
        "seconds": round(time.perf_counter() - began, 2),
    }


def main() -> None:
    """Run everything and write the record."""
    alone = [measure([quirk], 0, 40, 8 if "batches" in quirk.name else 1, rate=0.5) for quirk in QUIRKS]
    mixed = []
    for seed in range(50):
        quirks, batch = mixture(seed)
        mixed.append(measure(quirks, seed, 200, batch) | {"seed": seed})
        print(mixed[-1], flush=True)
    file = Path(__file__).with_name("results") / "quirks.json"
    file.write_text(write_record("python -m benchmarks.models.quirks", alone=alone, mixed=mixed))


def write_record(command: str, **runs: Sequence[Mapping[str, Any]]) -> str:
    """Return a record as JSON, a line for each run."""
    lines = {name: ",\n  ".join(map(json.dumps, each)) for name, each in runs.items()}
    parts = [f'"command": {json.dumps(command)}', *(f'"{name}": [\n  {text}\n ]' for name, text in lines.items())]
    return "{\n " + ",\n ".join(parts) + "\n}\n"


if __name__ == "__main__":
    main()
