"""The pipeline's steps by a language model: PromptedProposer writes and mends queries, PromptedShortener cuts rows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from almanaq.agent.prompting import complete, forget
from almanaq.agent.schema_text import schema_text
from almanaq.errors import ModelCallError
from almanaq.models.protocols import LanguageModel, Prompt
from almanaq_bench.hybridqa.best_rows import FoundRow
from almanaq_bench.hybridqa.pipeline import Asked, Proposal, Tried
from almanaq_bench.hybridqa.shown_rows import spellings, whole_table
from almanaq_bench.prompts import bench_prompt, bench_prompt_version

_ATTEMPTS = 2
_LONGEST = 2000
_SHORT_WORDS = 6
_SENTENCE = re.compile(
    r"[.;!?]\s|\b(?:is|was|were|are|which|who|that|about|over|nearly|approximately)\b", re.IGNORECASE
)
"""What a value has that is no name, number or date as the document writes it."""


def prompt_versions() -> Mapping[str, str]:
    """Return the hashes of the prompt files, by name."""
    return {name: bench_prompt_version(name) for name in ("write", "short_answer")}


class PromptedProposer:
    """Writes each query anew, shown what became of the ones before (no-result recovery).

    Args:
        model: completes the prompt `write`.
    """

    name = "prompted"

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    def propose(self, question: str, asked: Asked, tried: Sequence[Tried]) -> Proposal | None:
        """Return the model's query, None when it gives one that was tried before."""
        reply = _ask(self._model, self.prompt(question, asked, tried), lambda value: isinstance(value.get("suql"), str))
        suql = str(reply["suql"]).strip().rstrip(";").strip()
        return Proposal(suql) if suql and suql not in {each.suql for each in tried} else None

    def prompt(self, question: str, asked: Asked, tried: Sequence[Tried]) -> Prompt:
        """Return the request that `propose` sends."""
        values = {
            "schema": schema_text(asked.catalog),
            "question": question[:_LONGEST],
            "tried": tried,
            "rows": whole_table(asked.relation),
            "written": spellings(asked.relation),
        }
        return bench_prompt("write", values)


class PromptedShortener:
    """Cuts the value of one of the rows to a short answer; a single short value is one already, and costs no call.

    Args:
        model: completes the prompt `short_answer`.
    """

    name = "prompted"

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    def shorten(self, question: str, rows: Sequence[FoundRow], asked: Asked) -> str:  # noqa: ARG002
        """Return the short answer, "" where the model finds none in the rows."""
        values = {row.value for row in rows}
        if len(values) == 1 and is_short(rows[0].value):
            return rows[0].value
        prompt = shorten_prompt(question, rows)
        reply = _ask(self._model, prompt, lambda value: isinstance(value.get("answer", 0), str | None))
        return (reply["answer"] or "").strip()


def is_short(value: str) -> bool:
    """Return whether a value needs no shortening: a name, a number or a date rather than a sentence."""
    return len(value.split()) <= _SHORT_WORDS and _SENTENCE.search(value) is None


def shorten_prompt(question: str, rows: Sequence[FoundRow]) -> Prompt:
    """Return the request that chooses among rows, and cuts the value of one to a short answer."""
    shown: list[Mapping[str, object]] = []
    for row in rows:
        inputs: dict[str, object] = {"value": row.value[:_LONGEST]}
        inputs |= {"cells": row.cells} if row.cells else {}
        shown.append(inputs | ({"quotes": row.quotes} if row.quotes else {}))
    return bench_prompt("short_answer", {"question": question[:_LONGEST], "rows": shown})


def _ask(model: LanguageModel, prompt: Prompt, is_good: Callable[[Mapping[str, Any]], bool]) -> Mapping[str, Any]:
    """Return the JSON object that a model replies, asked once more when it cannot be read."""
    text = ""
    for _ in range(_ATTEMPTS):
        text = complete(model, prompt).text
        match = re.search(r"\{.*\}", text, re.DOTALL)
        try:
            value = json.loads(match[0]) if match else None
        except ValueError:
            value = None
        if isinstance(value, dict) and is_good(value):
            return value
        forget(model, prompt)
    raise ModelCallError(
        f"{model.name} gave no readable reply to the prompt {prompt.name!r} in {_ATTEMPTS} tries "
        f"(the last began {text[:60]!r})"
    )
