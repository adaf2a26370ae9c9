"""What a question asks for: the seams to semantic parsers and classifiers of turns, and those that ask a model."""

from __future__ import annotations

import datetime
import locale
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from almanaq.agent.dialects import dialect_notes
from almanaq.agent.history import Turn, TurnKind
from almanaq.agent.prompting import complete, json_object, make_prompt
from almanaq.agent.response import Reading
from almanaq.agent.schema_text import Examples, choose_examples, generate_examples, schema_text
from almanaq.agent.small_talk import small_talk
from almanaq.agent.tables import ShowRows
from almanaq.agent.value_links import FindLinks
from almanaq.errors import ModelCallError
from almanaq.models.prompts.schemas import task_prompt
from almanaq.models.protocols import Completion, LanguageModel, Prompt, Usage, forget_reply
from almanaq.suql.catalog.relations import Catalog

ParseStatus = Literal["query", "no_query", "clarify", "no_result"]


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a parser made of a question.

    Attributes:
        status: `query` with `suql`; `no_query` when the question needs no data; `clarify` asks back with `reply`;
            `no_result` says with `reply` why no row can be what was asked for.
        reply: what to say when there is no query; "" leaves it to the responder.
        unused: words of the question that the query leaves out.
        corrections: (as written, as understood) for misspelt names and values.
        usage: what the model calls cost.
        kind: what the asker does, where the parser knows more than the classifier.
        remarks: sentences on how unusual words were understood; they come before the rows.
        readings: the queries to choose from where none is sure, the likeliest first.
        notes: sentences on how references to earlier turns were understood.
        keep: conditions of the query that must not be relaxed, in addition to those on keys and names.
        asked, of: as in Turn.
    """

    status: ParseStatus
    suql: str | None = None
    reply: str = ""
    unused: tuple[str, ...] = ()
    corrections: tuple[tuple[str, str], ...] = ()
    usage: Usage = field(default_factory=Usage)
    kind: TurnKind = "new"
    remarks: tuple[str, ...] = ()
    readings: tuple[Reading, ...] = ()
    notes: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    asked: str = ""
    of: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """A query that was refused, and the compiler's message."""

    suql: str
    message: str


class SemanticParser(Protocol):
    """Turns questions into SUQL. Raises ModelError when its model fails."""

    def parse(
        self, question: str, catalog: Catalog, history: Sequence[Turn] = (), failures: Sequence[Failure] = ()
    ) -> Parsed:
        """Return a query over `catalog`; `failures` are earlier attempts at the same question that did not bind."""


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
    """A SemanticParser that asks a language model, and asks again when the reply cannot be read.

    Args:
        model: completes the prompt `parse`.
        today: returns the date that "this year" refers to.
        language: the asker's locale, as `de_CH`, by which dates and numbers are read; by default the process's.
        show_rows: reads the small tables, which the prompt shows whole; None shows no rows.
        find_links: finds the values of columns that words of a question spell; None shows none.
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
        find_links: FindLinks | None = None,
    ) -> None:
        self._show_rows, self._find_links = show_rows, find_links
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
                return _make_parsed(reply, usage)
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
            "dialect": dialect_notes(catalog.dialect),
            "schema": schema_text(catalog, self._show_rows(catalog) if self._show_rows else None),
            "examples": choose_examples(self._shots, catalog) or generate_examples(catalog),
            "today": self._today().strftime("%A, %d %B %Y"),
            "locale": self._language,
            "history": [_turn(turn) for turn in history[-_TURNS_SHOWN:]],
            "question": question[:_QUESTION_LENGTH],
            "links": self._find_links(question[:_QUESTION_LENGTH], catalog) if self._find_links else (),
            "failures": failures,
        }
        return make_prompt("parse", values, REPLY_SCHEMA)


def _turn(turn: Turn) -> dict[str, object]:
    if turn.private:
        return {"request": turn.question, "suql": turn.suql, "reply": "(its rows are private)", "shown": []}
    shown = [f"{column} = {value}{_key(turn, i)}{_values(turn, i)}" for i, (column, value) in enumerate(turn.entities)]
    return {"request": turn.question, "suql": turn.suql, "reply": turn.answer[:_ANSWER_LENGTH], "shown": shown}


def _key(turn: Turn, i: int) -> str:
    """Return the key of a row that was shown, unless its name is the key."""
    if turn.shown is None or i >= len(turn.shown.keys) or turn.shown.columns == (turn.entities[i][0],):
        return ""
    pairs = zip(turn.shown.columns, turn.shown.keys[i], strict=True)
    return "".join(f"; {column} = {value}" for column, value in pairs)


def _values(turn: Turn, i: int) -> str:
    """Return the values by which a shown row was compared, sorted or described."""
    values = turn.shown.values if turn.shown is not None else ()
    return "".join(f"; {column} = {value}" for column, value in values[i]) if i < len(values) else ""


def read_reply(text: str) -> dict[str, Any] | None:
    """Return the fields of a reply; None when it is unreadable or decides nothing."""
    value = json_object(text)
    if value is None or not {"suql", "needs_data", "clarify"} & set(value):
        return None
    suql, clarify = value.get("suql"), value.get("clarify")
    return value if isinstance(suql, str | None) and isinstance(clarify, str | None) and _decides(value) else None


def _decides(value: dict[str, Any]) -> bool:
    """Return whether a reply has a query, a question back, or says that no data is needed."""
    return bool(value.get("suql") or value.get("clarify")) or value.get("needs_data") is False


def _left_out(reply: dict[str, Any]) -> tuple[str, ...]:
    """Return the words of the request that the query leaves out, by the model's reply; () where it lists none."""
    listed = reply.get("left_out")
    words = (
        [" ".join(each.split())[:_WORDS] for each in listed if isinstance(each, str)]
        if isinstance(listed, list)
        else []
    )
    return tuple(each for each in words if each)[:_LEFT_OUT]


def _make_parsed(reply: dict[str, Any], usage: Usage) -> Parsed:
    suql = (reply.get("suql") or "").strip().rstrip(";").strip()
    if suql:
        return Parsed("query", suql, unused=_left_out(reply), usage=usage)
    if reply.get("clarify"):
        return Parsed("clarify", reply=str(reply["clarify"]).strip(), usage=usage)
    return Parsed("no_query", usage=usage)


# Kinds of turns: asked before the parser where a source has more tables than fit its prompt.

_TURNS_CLASSIFIED = 3
_EXCERPT_LENGTH = 300
_TABLES_SHOWN = 40
_KINDS: dict[str, TurnKind] = {"talk": "talk", "outside": "world"}


class TurnClassifier(Protocol):
    """Classifies turns. Raises ModelError when its model cannot be used at all."""

    def classify(self, question: str, catalog: Catalog, history: Sequence[Turn]) -> TurnKind:
        """Return the kind of a turn; `new` also where only the parser can tell the kinds of follow-ups apart."""


class PromptedClassifier:
    """A TurnClassifier that asks a language model, except for messages that are nothing but small talk.

    In doubt, or when the model's reply cannot be read, the turn goes to the parser, which may still decline it.
    """

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    def classify(self, question: str, catalog: Catalog, history: Sequence[Turn]) -> TurnKind:
        """Return talk, world (for what no table can hold) or new; the parser tells follow-ups apart."""
        asked_back = bool(history) and history[-1].status == "clarify"
        if small_talk(question) is not None and not asked_back:
            return "talk"
        earlier = [
            {"question": t.question[:_EXCERPT_LENGTH], "answer": "" if t.private else t.answer[:_EXCERPT_LENGTH]}
            for t in history
        ]
        tables = [f"{r.name} ({', '.join(c.name for c in r.columns[:12])})" for r in catalog.relations[:_TABLES_SHOWN]]
        values = {"tables": tables, "history": earlier[-_TURNS_CLASSIFIED:], "question": question[:2000]}
        try:
            reply = json_object(complete(self._model, task_prompt("classify_turn", values)).text) or {}
        except ModelCallError:
            return "new"
        return _KINDS.get(str(reply.get("kind")), "new")
