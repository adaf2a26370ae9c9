"""What a question asks for: the seam to semantic parsers, and the one that asks a model."""

from __future__ import annotations

import datetime
import locale
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from almanaq.agent.dialects import dialect_notes
from almanaq.agent.facts import Facts
from almanaq.agent.history import Turn, TurnKind
from almanaq.agent.prompting import complete, json_object, make_prompt
from almanaq.agent.response import Reading
from almanaq.agent.schema_text import Examples, choose_examples, generate_examples, schema_text
from almanaq.agent.tables import ShowRows
from almanaq.agent.terms import write_terms
from almanaq.agent.unanswerable import say_missing, say_unanswerable
from almanaq.agent.value_links import FindLinks
from almanaq.errors import ModelCallError
from almanaq.models.protocols import Completion, LanguageModel, Prompt, forget_reply
from almanaq.suql.catalog.relations import Catalog

ParseStatus = Literal["query", "no_query", "clarify"]


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a parser made of a question.

    Attributes:
        status: `query` with `suql`; `no_query` when the question needs no data; `clarify` asks back with `reply`.
        why: the condition that finds the rows of which the asker wants to know why they are, or are not, among those of
            an earlier query; "" where that is not asked.
        reply: what to say when there is no query, and with one, the sentence that its rows fill (`Found.sentence`); ""
            leaves it to the responder.
        unused: words of the question that the query leaves out.
        kind: what the asker does, where the parser knows more than the classifier.
        remarks: sentences on how unusual words were understood; they come before the rows.
        readings: the queries to choose from where none is sure, the likeliest first.
        notes: sentences on how references to earlier turns were understood.
        asked, of: as in Turn; with `why`, `of` is the query that is explained, "" for the last one.
    """

    status: ParseStatus
    suql: str | None = None
    reply: str = ""
    unused: tuple[str, ...] = ()
    kind: TurnKind = "new"
    remarks: tuple[str, ...] = ()
    readings: tuple[Reading, ...] = ()
    notes: tuple[str, ...] = ()
    asked: str = ""
    of: str = ""
    why: str = ""


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
        "reply": {"type": ["string", "null"]},
        "why_not": {"type": ["string", "null"]},
        "why_turn": {"type": ["integer", "null"]},
        "left_out": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["reasoning", "suql", "needs_data", "clarify", "reply", "why_not", "why_turn", "left_out"],
    "additionalProperties": False,
}
_TURNS_SHOWN = 6
_ANSWER_LENGTH = 400
_QUESTION_LENGTH, _CUT = 4000, "Only the first 4,000 characters of the request were read."
_ATTEMPTS = 2
_LEFT_OUT, _WORDS = 5, 80
_OTHERS, _OTHER_COLUMNS, _OTHERS_LENGTH = 40, 12, 800


class PromptedParser:
    """A SemanticParser that asks a language model, and asks again when the reply cannot be read.

    Args:
        model: completes the prompt `parse`.
        today: returns the date that "this year" refers to.
        language: the asker's locale, as `de_CH`, by which dates and numbers are read; by default the process's.
        show_rows: reads the small tables, which the prompt shows whole.
        find_links: finds the values of columns that words of a question spell.
        find_facts: counts missing cells and references that nobody declared.
        source: returns the whole catalog, of which a turn sees a part: the prompt names the other tables.
        find_near: finds the checked questions that are nearest to one.
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
        find_near: Callable[[str], Examples] = lambda _: (),
        show_rows: ShowRows = lambda _: {},
        find_links: FindLinks = lambda *_: (),
        find_facts: Callable[[Catalog], Facts] = lambda _: Facts(),
        source: Callable[[], Catalog] = lambda: Catalog(()),
    ) -> None:
        self._find_near = find_near
        self._source, self._find_facts = source, find_facts
        self._show_rows, self._find_links = show_rows, find_links
        self._model, self._today, self._shots = model, today, shots
        self._language = language or locale.getlocale()[0] or "en_US"

    def parse(
        self, question: str, catalog: Catalog, history: Sequence[Turn] = (), failures: Sequence[Failure] = ()
    ) -> Parsed:
        """Return the model's query; raises ModelCallError when two replies in a row cannot be read."""
        prompt = self.prompt(question, catalog, history, failures)
        for _ in range(_ATTEMPTS):
            completion: Completion = complete(self._model, prompt)
            reply = read_reply(completion.text)
            if reply is not None:
                parsed = _make_parsed(reply, catalog, _recent(history))
                return replace(parsed, notes=parsed.notes + (_CUT,) * (len(question) > _QUESTION_LENGTH))
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
            "schema": schema_text(catalog, self._show_rows(catalog), self._find_facts(catalog)),
            "examples": (
                *choose_examples(self._find_near(question), catalog),
                *(choose_examples(self._shots, catalog) or generate_examples(catalog)),
            ),
            "terms": write_terms(question[:_QUESTION_LENGTH], catalog),
            "others": self._others(catalog),
            "today": self._today().strftime("%A, %d %B %Y"),
            "locale": self._language,
            "history": [{"turn": i, **_turn(turn)} for i, turn in enumerate(_recent(history), start=1)],
            "question": question[:_QUESTION_LENGTH],
            "links": self._find_links(question[:_QUESTION_LENGTH], catalog),
            "failures": failures,
        }
        return make_prompt("parse", values, REPLY_SCHEMA)

    def _others(self, catalog: Catalog) -> list[str]:
        """Return the tables that the prompt does not show, with their columns where there is room.

        Of many, the first, and how many more there are.
        """
        hidden = [relation for relation in self._source().relations if catalog.find(relation.name) is None]
        left, said = _OTHERS_LENGTH, []
        for relation in hidden[:_OTHERS]:
            cut = ", …" if len(relation.columns) > _OTHER_COLUMNS else ""
            columns = f" ({', '.join(column.name for column in relation.columns[:_OTHER_COLUMNS])}{cut})"
            columns = columns if len(columns) <= left else ""
            left -= len(columns)
            said.append(relation.name + columns)
        more = [f"and {len(hidden) - _OTHERS:,} more"] if len(hidden) > _OTHERS else []
        return [*said, *more]


def _recent(history: Sequence[Turn]) -> Sequence[Turn]:
    return history[-_TURNS_SHOWN:]


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
    values = turn.shown.values if turn.shown is not None else turn.values
    return "".join(f"; {column} = {value}" for column, value in values[i]) if i < len(values) else ""


def read_reply(text: str) -> dict[str, Any] | None:
    """Return the fields of a reply; None when it is unreadable or decides nothing."""
    value = json_object(text)
    if value is None or not {"suql", "needs_data", "clarify"} & set(value):
        return None
    texts = [value.get(name) for name in ("suql", "clarify", "reply", "why_not")]
    # That the tables cannot tell is a decision too, where it says why.
    decides = any(texts) or _reasoning(value) or _left_out(value) or value.get("needs_data") is False
    return value if decides and all(isinstance(text, str | None) for text in texts) else None


def _reasoning(reply: dict[str, Any]) -> str:
    said = reply.get("reasoning")
    return " ".join(said.split())[:_ANSWER_LENGTH] if isinstance(said, str) else ""


def _left_out(reply: dict[str, Any]) -> tuple[str, ...]:
    """Return the words of the request that the query leaves out, by the model's reply; () where it lists none."""
    listed = reply.get("left_out") if isinstance(reply.get("left_out"), list) else []
    words = (" ".join(each.split())[:_WORDS] for each in listed or () if isinstance(each, str))
    return tuple(filter(None, words))[:_LEFT_OUT]


def _make_parsed(reply: dict[str, Any], catalog: Catalog, recent: Sequence[Turn]) -> Parsed:
    suql = (reply.get("suql") or "").strip().removeprefix("```sql").removesuffix("```").strip().rstrip(";").strip()
    suql = "" if suql.casefold() in ("null", "none") else suql
    if suql:
        sentence = " ".join((reply.get("reply") or "").split())[:_ANSWER_LENGTH]
        return Parsed("query", suql, sentence, notes=say_missing(_left_out(reply)))
    if (reply.get("why_not") or "").strip():
        # The query of the earlier turn that a why-question names; "" where it names none, or one without.
        named = [turn for i, turn in enumerate(recent, start=1) if i == reply.get("why_turn")]
        of = next((turn.of or turn.suql or "" for turn in named), "")
        return Parsed("no_query", kind="detail", why=reply["why_not"].strip(), of=of)
    if reply.get("clarify"):
        return Parsed("clarify", reply=str(reply["clarify"]).strip())
    said = (reply.get("reply") or "").strip() or _reasoning(reply)
    if reply.get("needs_data") is False:
        return Parsed("no_query", reply=said, kind="talk")
    return Parsed("no_query", reply=say_unanswerable(said, _left_out(reply), catalog), kind="world")
