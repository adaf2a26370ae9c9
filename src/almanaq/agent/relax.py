"""Which condition of a query that found nothing to leave out, and the query without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import sqlglot
from sqlglot import exp

from almanaq.agent.describe import condition_words
from almanaq.agent.keyed import main_relation
from almanaq.agent.linking.columns import LinkedColumn, link_column, name_column
from almanaq.agent.loosened_words import believed
from almanaq.agent.prompting import complete
from almanaq.agent.reply_reading import json_object
from almanaq.errors import ModelCallError
from almanaq.models.prompts.schemas import task_prompt
from almanaq.models.protocols import LanguageModel
from almanaq.suql.catalog.relations import Catalog, Relation

TRIES = 2
"""How many conditions are left out in turn, each alone, before the reply says that there is nothing."""


@dataclass(frozen=True, slots=True)
class Loosened:
    """A query with one condition left out or loosened, and what that was, in words.

    `sentence` is what the model says of it to the asker, where that may be believed; "" where not.
    """

    suql: str
    said: str
    sentence: str = ""


class Relaxer(Protocol):
    """Chooses a condition to loosen."""

    def relax(self, question: str, query: Query, open_: Sequence[int]) -> tuple[int, Loosened] | None:
        """Return the index of the chosen condition, which is one of `open_`, and the query without it.

        None for none.
        """


class Query:
    """A query that found nothing, taken apart.

    Attributes:
        conditions: what its WHERE asks for, all of which must hold.
        free: indexes of those that may be left out: neither the entity asked for, nor rows that were shown, nor joins.
            Empty when there is but one condition, for without it nothing is asked.
        told: what is known of why it found nothing; before: the requests of earlier turns, the oldest first.
        tried: the loosened queries that found nothing either.
    """

    def __init__(self, suql: str, catalog: Catalog, keep: Sequence[str] = ()) -> None:
        self.suql = suql
        self.told: tuple[str, ...] = ()
        self.before: tuple[str, ...] = ()
        self.tried: tuple[str, ...] = ()
        self._tree = sqlglot.parse_one(suql, read="postgres")
        where = self._tree.args.get("where")
        self._parts = list(where.this.flatten()) if where and isinstance(where.this, exp.And) else []
        self.conditions = tuple(map(_text, self._parts))
        relation = main_relation(self._tree, catalog)
        kept = {_text(sqlglot.parse_one(text, read="postgres")) for text in keep}
        self.free: tuple[int, ...] = ()
        if relation is not None:
            self._relation = relation
            self.free = tuple(
                i
                for i, part in enumerate(self._parts)
                if self.conditions[i] not in kept and not _identifies(part, relation)
            )

    def words(self, i: int) -> str:
        """Return a condition in words."""
        return condition_words(self._parts[i])

    def reads_text(self, i: int) -> bool:
        """Return whether a condition calls a text function."""
        return self._parts[i].find(exp.Anonymous) is not None

    def places(self, i: int) -> list[LinkedColumn]:
        """Return the columns of the main relation that a condition speaks of."""
        names = dict.fromkeys(column.name for column in self._parts[i].find_all(exp.Column))
        columns = [self._relation.column(name) for name in names]
        return [link_column(self._relation, column) for column in columns if column is not None]

    def without(self, i: int, replacement: str | None = None) -> str:
        """Return the query without a condition, or with another in its place."""
        loosened = [part.copy() for k, part in enumerate(self._parts) if k != i]
        if replacement is not None:
            loosened.insert(i, sqlglot.parse_one(replacement, read="postgres"))
        tree = self._tree.copy()
        tree.set("where", exp.Where(this=exp.and_(*loosened)) if loosened else None)
        return _text(tree)

    def probe(self) -> str | None:
        """Return a query that tells which conditions may help: a column for each of `free`, 1 where rows pass the
        others.

        Text conditions are taken to hold, so that it costs no model call. None when no condition is free.
        """
        if not self.free:
            return None
        tree = self._tree.copy()
        for part in ("order", "offset", "limit", "where"):
            tree.set(part, None)
        tree.set("expressions", [self._tells(i) for i in self.free])
        return _text(tree)

    def _tells(self, i: int) -> exp.Expr:
        kept = [part.copy() for k, part in enumerate(self._parts) if k != i and not self.reads_text(k)]
        holds = exp.and_(*kept) if kept else exp.true()
        return exp.alias_(exp.Max(this=exp.Case().when(holds, "1").else_("0")), f"without_{i}")


def _text(tree: exp.Expr) -> str:
    return tree.sql("postgres", normalize_functions=False)


def _identifies(part: exp.Expr, relation: Relation) -> bool:
    """Return whether a condition names the entity, leaves out rows by their key, or joins."""
    named = name_column([link_column(relation, column) for column in relation.columns]).column.name
    columns = {column.name for column in part.find_all(exp.Column)}
    if part.find(exp.Subquery, exp.Select):
        return False
    joins = isinstance(part, exp.EQ) and isinstance(part.left, exp.Column) and isinstance(part.right, exp.Column)
    identified = bool(columns) and columns <= {named, *relation.key}
    return joins or identified


class LocalRelaxer:
    """Leaves out the condition that a person would give up first."""

    def relax(self, question: str, query: Query, open_: Sequence[int]) -> tuple[int, Loosened]:
        """Return the first in the order: numbers and prices, texts from the last to the first, values, places."""
        del question
        chosen = min(open_, key=lambda i: (_firmness(query, i), -i))
        return chosen, Loosened(query.without(chosen), query.words(chosen))


def _firmness(query: Query, i: int) -> int:
    if query.reads_text(i):
        return 1
    places = query.places(i)
    if any(p.kind == "number" or "price" in p.roles for p in places):
        return 0
    return 3 if any("address" in p.roles for p in places) else 2


class PromptedRelaxer:
    """Asks a language model which condition to loosen; what cannot be used of its reply falls to the local order."""

    def __init__(self, model: LanguageModel) -> None:
        self._model, self._local = model, LocalRelaxer()

    def relax(self, question: str, query: Query, open_: Sequence[int]) -> tuple[int, Loosened] | None:
        """Return the model's choice; a replacement that is no condition is taken as leaving it out."""
        values: dict[str, object] = {"question": question[:2000], "suql": query.suql}
        values |= {"conditions": [query.conditions[i] for i in open_], "history": query.before}
        prompt = task_prompt("relax", values | {"told": query.told, "tried": query.tried})
        try:
            reply = json_object(complete(self._model, prompt).text) or {}
        except ModelCallError:
            reply = {}
        number = reply.get("condition", 0)
        if number is None:
            return None
        if not isinstance(number, int) or not 1 <= number <= len(open_):
            return self._local.relax(question, query, open_)
        chosen, replacement = open_[number - 1], reply.get("replacement")
        return chosen, _loosened(query, chosen, replacement, (reply.get("said"), question))


def _loosened(query: Query, chosen: int, replacement: object, told: tuple[object, str]) -> Loosened:
    """Return the query with the replacement where that is a condition, described by what it asks for.

    `told` is what the model says of it, and the question: said where it speaks of that condition and of nothing else.
    """
    phrase, (sentence, question) = query.words(chosen), told
    if isinstance(replacement, str) and replacement.strip():
        try:
            other = sqlglot.parse_one(f"SELECT 1 WHERE {replacement}", read="postgres").args["where"].this
            now = condition_words(other)
            told_now = believed(sentence, phrase, now, question)
            return Loosened(query.without(chosen, _text(other)), f"{phrase} (now: {now})", told_now)
        except (sqlglot.errors.SqlglotError, KeyError):
            pass
    return Loosened(query.without(chosen), phrase, believed(sentence, phrase, "", question))
