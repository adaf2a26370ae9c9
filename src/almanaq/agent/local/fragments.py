"""What a follow-up adds to an earlier query: its own words, read over that query's main relation."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from sqlglot import exp

from almanaq.agent.local import sql, trees
from almanaq.agent.local.lexicon import cue
from almanaq.agent.local.recognize.vocabulary import Vocabulary
from almanaq.agent.local.schema_index import Place
from almanaq.agent.local.search.said import said
from almanaq.agent.local.search.wishes import Wishes
from almanaq.suql.catalog.relations import Relation

_NEGATED_WISH = re.compile(r"\b(?:i|we) (?:do not|don't) want(?: to| an?)?\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Fragment:
    """A follow-up's own words, read.

    Attributes:
        text: the words that were read: cues like "what about" are left out.
        conditions: what it asks of a row of the main relation.
        unused, corrections: as in Parsed.
    """

    text: str
    conditions: tuple[exp.Expr, ...] = ()
    unused: tuple[str, ...] = ()
    corrections: tuple[tuple[str, str], ...] = ()


def remainder(question: str) -> str:
    """Return a follow-up's words without those that only say that it is one."""
    plain = question.replace("\u2019", "'").strip()
    plain = _NEGATED_WISH.sub("without", plain)
    for _ in range(3):
        plain = cue("said_only").sub(" ", plain).strip(" ,.;")
    return " ".join(plain.split())


def fragment(text: str, vocabulary: Vocabulary, main: Relation) -> Fragment:
    """Return what some words ask of the rows of a relation."""
    wishes = Wishes(said(text, vocabulary), vocabulary, main)
    tree = trees.read(wishes.suql())
    found = trees.conditions(tree) if tree is not None else []
    if tree is not None and tree.args.get("joins") and found:
        found = [_within(tree, main)]
    return Fragment(text, tuple(found), wishes.unused, wishes.corrections)


def _within(tree: exp.Select, main: Relation) -> exp.Expr:
    """Return conditions that need joins as one on the key of the main relation."""
    own = sql.name(main.key[0]) if len(main.key) == 1 else ""
    if not own:
        return exp.true()
    inner = trees.showing(tree, [f"{sql.name(main.name)}.{own}"])
    for part in ("order", "limit"):
        inner.set(part, None)
    return exp.In(this=exp.column(exp.to_identifier(own)), query=exp.Subquery(this=inner))


def compared(condition: exp.Expr) -> frozenset[str]:
    """Return the columns that a condition compares with literals."""
    found = set()
    for node in condition.find_all(exp.Binary, exp.In, exp.Between):
        parts = [*node.args.values(), *node.expressions]
        if any(isinstance(p, exp.Literal) for p in parts if isinstance(p, exp.Expr)):
            for part in parts:
                inner = part.this.unnest() if isinstance(part, exp.Any) else part
                found |= {inner.name} if isinstance(inner, exp.Column) else set()
                if isinstance(inner, exp.Anonymous):
                    found.add(_call(inner))
    return frozenset(found) or (
        frozenset({condition.name}) if isinstance(condition, exp.Column) else trees.columns(condition)
    )


def _call(node: exp.Anonymous) -> str:
    return node.sql("postgres", normalize_functions=False)


def single_valued(condition: exp.Expr, main: Relation) -> bool:
    """Return whether a condition asks a column, which holds one value, to be that: a second one contradicts it."""
    if not isinstance(condition, exp.EQ | exp.In) or not isinstance(condition.this, exp.Column):
        return False
    column = main.column(condition.this.name)
    return column is not None and not column.array


def excludes(one: exp.Expr, other: exp.Expr) -> bool:
    """Return whether no value can fulfil both of two comparisons: `age > 5` and `age < 5`."""
    first, second = _bounds(one), _bounds(other)
    if first is None or second is None or first.column != second.column:
        return False
    low, high = max(first.low, second.low), min(first.high, second.high)
    touching = low == high and not (first.holds(low) and second.holds(low))
    return low > high or touching


@dataclass(frozen=True, slots=True)
class _Bounds:
    """The numbers that a comparison lets through; `closed`: the bound is one of them."""

    column: str
    low: float
    high: float
    closed: bool

    def holds(self, number: float) -> bool:
        return self.low < number < self.high or (self.closed and number in (self.low, self.high))


def _bounds(condition: exp.Expr) -> _Bounds | None:
    left, right = condition.args.get("this"), condition.args.get("expression")
    if not (isinstance(left, exp.Column) and isinstance(right, exp.Literal) and not right.is_string):
        return None
    number = float(right.name)
    closed = isinstance(condition, exp.GTE | exp.LTE | exp.EQ)
    if isinstance(condition, exp.GT | exp.GTE):
        return _Bounds(left.name, number, math.inf, closed)
    if isinstance(condition, exp.LT | exp.LTE):
        return _Bounds(left.name, -math.inf, number, closed)
    return _Bounds(left.name, number, number, closed) if isinstance(condition, exp.EQ) else None


def place_of(name: str, vocabulary: Vocabulary, main: Relation) -> Place | None:
    """Return a column of the main relation by name."""
    return next((p for p in vocabulary.index.places[main.name] if p.column.name == name), None)
