"""The pipeline's steps by a language model: PromptedProposer writes and mends queries, PromptedShortener cuts rows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from almanaq.agent.prompting import complete, forget
from almanaq.agent.schema_text import schema_text
from almanaq.benchmark.hybridqa.pipeline import Asked, Proposal, Tried
from almanaq.benchmark.hybridqa.short_answer import short_answer
from almanaq.errors import ModelCallError
from almanaq.models.prompts import prompt_file
from almanaq.models.prompts.schemas import task_prompt
from almanaq.models.protocols import LanguageModel, Prompt
from almanaq.suql.result import Result

QUERY_SCHEMA = {
    "type": "object",
    "properties": {"reasoning": {"type": "string"}, "suql": {"type": "string"}},
    "required": ["reasoning", "suql"],
    "additionalProperties": False,
}
_PACKAGE = "almanaq.benchmark.hybridqa.prompts"
_ATTEMPTS = 2
_LONGEST = 2000


def prompt_versions() -> Mapping[str, str]:
    """Give the hashes of the prompt files, by name."""
    return {"write": prompt_file("write", _PACKAGE).version, "short_answer": prompt_file("short_answer").version}


class PromptedProposer:
    """Writes each query anew, shown what became of the ones before (no-result recovery).

    Args:
        model: completes the prompt `write`.
    """

    name = "prompted"

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    def propose(self, question: str, asked: Asked, tried: Sequence[Tried]) -> Proposal | None:
        """Give the model's query, None when it gives one that was tried before."""
        reply = _ask(self._model, self.prompt(question, asked, tried), lambda value: isinstance(value.get("suql"), str))
        suql = str(reply["suql"]).strip().rstrip(";").strip()
        return Proposal(suql) if suql and suql not in {each.suql for each in tried} else None

    def prompt(self, question: str, asked: Asked, tried: Sequence[Tried]) -> Prompt:
        """Give the request that `propose` sends."""
        values = {
            "title": asked.relation.title,
            "schema": schema_text(asked.catalog),
            "question": question[:_LONGEST],
            "tried": tried,
        }
        return prompt_file("write", _PACKAGE).prompt(values, schema=QUERY_SCHEMA)


class PromptedShortener:
    """Cuts the first value of the rows to a short answer.

    Args:
        model: completes the prompt `short_answer`.
    """

    name = "prompted"

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    def shorten(self, question: str, rows: Result, asked: Asked) -> str:
        """Give the short answer, "" where the model finds none in the first value."""
        found = short_answer(rows.rows, rows.columns, asked.relation)
        if not found:
            return ""
        prompt = shorten_prompt(question, found)
        reply = _ask(self._model, prompt, lambda value: isinstance(value.get("answer", 0), str | None))
        return (reply["answer"] or "").strip()


def shorten_prompt(question: str, value: str) -> Prompt:
    """Give the request that cuts a value to a short answer."""
    return task_prompt("short_answer", {"question": question[:_LONGEST], "rows": [value[:_LONGEST]]})


def _ask(model: LanguageModel, prompt: Prompt, is_good: Callable[[Mapping[str, Any]], bool]) -> Mapping[str, Any]:
    """Give the JSON object that a model replies, asked once more when it cannot be read."""
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
