"""PromptedParser: question → SUQL by a language model."""

from __future__ import annotations

import datetime
import locale
from collections.abc import Callable, Sequence
from typing import Any

from almanaq.agent.history import Turn
from almanaq.agent.parser import Failure, Parsed
from almanaq.agent.prompting import complete, make
from almanaq.agent.reply_reading import json_object
from almanaq.agent.schema_text import examples, schema_text
from almanaq.agent.shots import Examples, fitting
from almanaq.agent.small_tables import ShowRows
from almanaq.errors import ModelCallError
from almanaq.models.protocols import Completion, LanguageModel, Prompt, Usage, forget_reply
from almanaq.suql.catalog.relations import Catalog

REPLY_SCHEMA = {
    "type": "object",
    "properties": {
        "reasoning": {"type": "string"},
        "suql": {"type": ["string", "null"]},
        "needs_data": {"type": "boolean"},
        "clarify": {"type": ["string", "null"]},
        "left_out": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["reasoning", "suql", "needs_data", "clarify", "left_out"],
    "additionalProperties": False,
}
_TURNS_SHOWN = 6
_ANSWER_LENGTH = 400
_QUESTION_LENGTH = 4000
_ATTEMPTS = 2
_LEFT_OUT, _WORDS = 5, 80


class PromptedParser:
    """A SemanticParser that asks a language model, once more when its reply cannot be read.

    Args:
        model: completes the prompt `parse`.
        today: gives the date that "this year" refers to.
        language: the asker's locale, as `de_CH`: how dates, numbers and money are meant; None: that of the process.
        show_rows: gives the rows of small tables, which the prompt shows whole; None: of none.
        shots: examples of questions with their SUQL; those that fit no relation shown are left out. Where none is
            given, some are generated from the schema.
    """

    name = "prompted"

    def __init__(
        self,
        model: LanguageModel,
        *,
        today: Callable[[], datetime.date] = datetime.date.today,
        language: str | None = None,
        shots: Examples = (),
        show_rows: ShowRows | None = None,
    ) -> None:
        self._show_rows = show_rows
        self._model, self._today, self._shots = model, today, shots
        self._language = language or locale.getlocale()[0] or "en_US"

    def parse(
        self, question: str, catalog: Catalog, history: Sequence[Turn] = (), failures: Sequence[Failure] = ()
    ) -> Parsed:
        """Return the model's query; raises ModelCallError when two replies in a row cannot be read."""
        prompt = self.prompt(question, catalog, history, failures)
        usage = Usage()
        for _ in range(_ATTEMPTS):
            completion: Completion = complete(self._model, prompt)
            usage = usage + completion.usage
            reply = read_reply(completion.text)
            if reply is not None:
                return _parsed(reply, usage)
            forget_reply(self._model, prompt)
        raise ModelCallError(
            f"{self._model.name} gave no readable query in {_ATTEMPTS} replies "
            f"(the last began {completion.text[:60]!r}); ask again, or choose another model with --model"
        )

    def prompt(
        self, question: str, catalog: Catalog, history: Sequence[Turn] = (), failures: Sequence[Failure] = ()
    ) -> Prompt:
        """Return the request that `parse` sends."""
        values = {
            "schema": schema_text(catalog, self._show_rows(catalog) if self._show_rows else None),
            "examples": fitting(self._shots, catalog) or examples(catalog),
            "today": self._today().strftime("%A, %d %B %Y"),
            "locale": self._language,
            "history": [_turn(turn) for turn in history[-_TURNS_SHOWN:]],
            "question": question[:_QUESTION_LENGTH],
            "failures": failures,
        }
        return make("parse", values, REPLY_SCHEMA)


def _turn(turn: Turn) -> dict[str, object]:
    if turn.private:
        return {"request": turn.question, "suql": turn.suql, "reply": "(its rows are private)", "shown": []}
    shown = [f"{column} = {value}{_key(turn, i)}{_values(turn, i)}" for i, (column, value) in enumerate(turn.entities)]
    return {"request": turn.question, "suql": turn.suql, "reply": turn.answer[:_ANSWER_LENGTH], "shown": shown}


def _key(turn: Turn, i: int) -> str:
    """Return the key of a row that was shown, where it is not its name."""
    if turn.shown is None or i >= len(turn.shown.keys) or turn.shown.columns == (turn.entities[i][0],):
        return ""
    pairs = zip(turn.shown.columns, turn.shown.keys[i], strict=True)
    return "".join(f"; {column} = {value}" for column, value in pairs)


def _values(turn: Turn, i: int) -> str:
    """Return what a row that was shown was compared, sorted or described by."""
    values = turn.shown.values if turn.shown is not None else ()
    return "".join(f"; {column} = {value}" for column, value in values[i]) if i < len(values) else ""


def read_reply(text: str) -> dict[str, Any] | None:
    """Return the fields of a reply; None when there are none to read, or they decide nothing."""
    value = json_object(text)
    if value is None or not {"suql", "needs_data", "clarify"} & set(value):
        return None
    suql, clarify = value.get("suql"), value.get("clarify")
    return value if isinstance(suql, str | None) and isinstance(clarify, str | None) and _decides(value) else None


def _decides(value: dict[str, Any]) -> bool:
    """Return whether a reply has a query, a question back, or says that no data is needed."""
    return bool(value.get("suql") or value.get("clarify")) or value.get("needs_data") is False


def _left_out(reply: dict[str, Any]) -> tuple[str, ...]:
    """Return the words of the request that the query leaves out, as the model says.

    () where it says nothing readable.
    """
    listed = reply.get("left_out")
    words = (
        [" ".join(each.split())[:_WORDS] for each in listed if isinstance(each, str)]
        if isinstance(listed, list)
        else []
    )
    return tuple(each for each in words if each)[:_LEFT_OUT]


def _parsed(reply: dict[str, Any], usage: Usage) -> Parsed:
    suql = (reply.get("suql") or "").strip().rstrip(";").strip()
    if suql:
        return Parsed("query", suql, unused=_left_out(reply), usage=usage)
    if reply.get("clarify"):
        return Parsed("clarify", reply=str(reply["clarify"]).strip(), usage=usage)
    return Parsed("no_query", usage=usage)
