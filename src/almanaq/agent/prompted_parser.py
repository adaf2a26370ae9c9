"""PromptedParser: question → SUQL by a language model."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from almanaq.agent.history import Turn
from almanaq.agent.parser import Failure, Parsed
from almanaq.agent.prompting import complete, forget, make
from almanaq.agent.schema_text import examples, schema_text
from almanaq.errors import ModelCallError
from almanaq.models.protocols import Completion, LanguageModel, Prompt, Usage
from almanaq.suql.catalog.relations import Catalog

REPLY_SCHEMA = {
    "type": "object",
    "properties": {
        "reasoning": {"type": "string"},
        "suql": {"type": ["string", "null"]},
        "needs_data": {"type": "boolean"},
        "clarify": {"type": ["string", "null"]},
    },
    "required": ["reasoning", "suql", "needs_data", "clarify"],
    "additionalProperties": False,
}
_TURNS_SHOWN = 6
_ANSWER_LENGTH = 400
_QUESTION_LENGTH = 4000
_ATTEMPTS = 2


class PromptedParser:
    """A SemanticParser that asks a language model, once more when its reply cannot be read.

    Args:
        model: completes the prompt `parse`.
        today: gives the date that "this year" refers to.
    """

    name = "prompted"

    def __init__(self, model: LanguageModel, *, today: Callable[[], datetime.date] = datetime.date.today) -> None:
        self._model, self._today = model, today

    def parse(
        self, question: str, catalog: Catalog, history: Sequence[Turn] = (), failures: Sequence[Failure] = ()
    ) -> Parsed:
        """Give the model's query; raises ModelCallError when two replies in a row cannot be read."""
        prompt = self.prompt(question, catalog, history, failures)
        usage = Usage()
        for _ in range(_ATTEMPTS):
            completion: Completion = complete(self._model, prompt)
            usage = usage + completion.usage
            reply = read_reply(completion.text)
            if reply is not None:
                return _parsed(reply, usage)
            forget(self._model, prompt)
        raise ModelCallError(
            f"{self._model.name} gave no readable query in {_ATTEMPTS} replies "
            f"(the last began {completion.text[:60]!r}); ask again, or choose another model with --model"
        )

    def prompt(
        self, question: str, catalog: Catalog, history: Sequence[Turn] = (), failures: Sequence[Failure] = ()
    ) -> Prompt:
        """Give the request that `parse` sends."""
        values = {
            "schema": schema_text(catalog),
            "examples": examples(catalog),
            "today": self._today().strftime("%A, %d %B %Y"),
            "history": [_turn(turn) for turn in history[-_TURNS_SHOWN:]],
            "question": question[:_QUESTION_LENGTH],
            "failures": failures,
        }
        return make("parse", values, REPLY_SCHEMA)


def _turn(turn: Turn) -> dict[str, object]:
    shown = [f"{column} = {value}" for column, value in turn.entities]
    return {"request": turn.question, "suql": turn.suql, "reply": turn.answer[:_ANSWER_LENGTH], "shown": shown}


def read_reply(text: str) -> dict[str, Any] | None:
    """Give the JSON object of a reply, prose and code fences around it forgiven; None when there is none to read."""
    match = re.search(r"\{.*\}", text, re.DOTALL)
    try:
        value = json.loads(match.group()) if match else None
    except ValueError:
        return None
    if not isinstance(value, dict) or not {"suql", "needs_data", "clarify"} & set(value):
        return None
    suql, clarify = value.get("suql"), value.get("clarify")
    return value if isinstance(suql, str | None) and isinstance(clarify, str | None) and _decides(value) else None


def _decides(value: dict[str, Any]) -> bool:
    """Say whether a reply has a query, a question back, or says that no data is needed."""
    return bool(value.get("suql") or value.get("clarify")) or value.get("needs_data") is False


def _parsed(reply: dict[str, Any], usage: Usage) -> Parsed:
    suql = (reply.get("suql") or "").strip().rstrip(";").strip()
    if suql:
        return Parsed("query", suql, usage=usage)
    if reply.get("clarify"):
        return Parsed("clarify", reply=str(reply["clarify"]).strip(), usage=usage)
    return Parsed("no_query", usage=usage)
