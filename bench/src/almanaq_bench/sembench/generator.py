"""The ten queries behind the benchmark's seam to generators: a reply is the rows of one, and how good they are."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from almanaq.agent.turn import run_in_thread
from almanaq.connection import connect
from almanaq.encode import plain
from almanaq.errors import UsageError, suggest
from almanaq.models.embedders.base import LexicalEmbedder
from almanaq.models.model_names import make_models, open_models
from almanaq.models.protocols import Embedder, LanguageModel, Models, TextCall, TextReply, Usage
from almanaq.options import Options
from almanaq.values import canonical
from almanaq_bench.generation.protocols import GenerationRequest, Reply
from almanaq_bench.sembench.dataset import QUERIES, SCORE, SembenchData, SembenchQuery, measure_query

NAMES = ("labels", "local", "openai:MODEL")
_MOST_CALLS = 10_000
_CALL_TOKENS, _REPLY_TOKENS = 300, 20


class LabelReader:
    """A Reader that answers by the labels, as a model that is always right; SCORE by the reviewer's own score."""

    name, remote, paid = "labels", False, True

    def __init__(self, labels: Mapping[str, tuple[str, str | None]]) -> None:
        self._labels = labels

    async def read(self, call: TextCall) -> TextReply:
        """Return the label of a text."""
        value = self.said(call)
        verdicts = {literal: canonical(literal) == canonical(value) for literal in call.compared}
        return TextReply(value, verdicts, usage=Usage(calls=1))

    def said(self, call: TextCall) -> str:
        """Return what is said of a text."""
        sentiment, own = self._labels[call.passages[0]]
        if call.question == SCORE:
            return _of_five(own, sentiment)
        if call.options:
            return sentiment
        return "Yes" if sentiment == "POSITIVE" else "No"


class SembenchGenerator:
    """A Generator whose replies are JSON: the rows, the calls and tokens, and the measures."""

    def __init__(self, name: str, data: SembenchData, models: Models, *, prompts: Mapping[str, str]) -> None:
        self.name, self.prompts = name, dict(prompts)
        self.model = models.name if models.language is None else models.language.name
        self._data, self._models = data, models
        self._queries = {query.id: query for query in QUERIES}

    def expected(self, asked: Sequence[GenerationRequest]) -> Usage:
        """Return what the queries are expected to take."""
        if self._models.language is None:
            return Usage()
        with self._connect() as connection:
            plans = [connection.explain(self._queries[each.id].suql) for each in asked]
        calls = sum(stage.predicted.get("calls", 0) for plan in plans for stage in plan.stages)
        return Usage(calls=calls, input_tokens=_CALL_TOKENS * calls, output_tokens=_REPLY_TOKENS * calls)

    async def reply(self, asked: GenerationRequest) -> Reply:
        """Return what a query gave."""
        return await run_in_thread(self._run, self._queries[asked.id])

    def _run(self, query: SembenchQuery) -> Reply:
        with self._connect() as connection:
            result = connection.sql(query.suql)
        trace = result.trace
        reply: dict[str, Any] = {
            "rows": plain(result.rows),
            "calls": trace.text_calls + trace.cached_calls,
            "tokens": trace.input_tokens + trace.output_tokens,
            "seconds": round(trace.seconds, 3),
            "measures": measure_query(query, result.rows, self._data.gold(query)),
        }
        usage = Usage(trace.physical_calls, trace.cached_calls, trace.input_tokens, trace.output_tokens, trace.money)
        return Reply(json.dumps(reply), usage=usage)

    def _connect(self) -> Any:
        # Nothing is kept between queries: each has to pay for what it asks.
        return connect(self._data.tables, model=self._models, cache=False, options=Options(max_calls=_MOST_CALLS))


def open_sembench_generator(
    name: str,
    data: SembenchData,
    *,
    language: Callable[[str], LanguageModel] | None,
    embedder: Callable[[], Embedder],
) -> SembenchGenerator:
    """Return the generator of a name.

    Args:
        language: opens language models by name, within a budget that all calls of the run share.
        embedder: opens what `local` reads with.

    Raises:
        UsageError: there is no such generator for this task.
    """
    if name == "labels":
        local = open_models("local", embedder="lexical")
        models = Models("labels", LabelReader(data.labels), local.linker, LexicalEmbedder())
        return SembenchGenerator(name, data, models, prompts={})
    if name == "local":
        return SembenchGenerator(name, data, open_models("local", embedder=embedder()), prompts={})
    if not name.startswith("openai:"):
        raise UsageError(f"the sembench-movie task has no generator {name!r}{suggest(name, NAMES)}")
    if language is None:
        return SembenchGenerator(name, data, open_models(name, embedder="lexical"), prompts=_prompts())
    return SembenchGenerator(name, data, make_models(language(name)), prompts=_prompts())


def _prompts() -> dict[str, str]:
    from almanaq.models.prompts import prompt_file

    return {"answer": prompt_file("answer").version}


def _of_five(own: str | None, sentiment: str) -> str:
    """Return a reviewer's score of the form 7/10 in fifths; where there is none, 4 or 2 by the sentiment."""
    scored, _, of = (own or "").partition("/")
    try:
        return f"{5 * float(scored) / float(of):.2f}"
    except (ValueError, ZeroDivisionError):
        return "4" if sentiment == "POSITIVE" else "2"
