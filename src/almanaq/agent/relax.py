"""A query that found nothing: what each condition keeps out, which one to loosen, and the query without it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from almanaq.agent.describe import condition_words
from almanaq.agent.linking.columns import LinkedColumn, link_column, name_column
from almanaq.agent.prompting import complete, json_object
from almanaq.agent.queries import main_relation, query_tree, to_sql
from almanaq.errors import AlmanaqError, ModelCallError
from almanaq.models.prompts import prompt_file, strict_object
from almanaq.models.protocols import LanguageModel, Prompt
from almanaq.suql.catalog.relations import Catalog, Relation
from almanaq.suql.text_functions import has_text, is_text_call

if TYPE_CHECKING:
    from almanaq.suql.result import Result

TRIES = 2
"""How many relaxed queries are tried, each without one condition, before the reply says that nothing was found."""


@dataclass(frozen=True, slots=True)
class RelaxedQuery:
    """A query with one condition left out or loosened, and what that was, in words."""

    suql: str
    words: str


class EmptyQuery:
    """A query that found nothing, taken apart.

    Args:
        counts: what each condition keeps out; () where that could not be told.
        before: the requests of earlier turns, the oldest first.

    Attributes:
        conditions: what its WHERE asks for, all of which must hold.
        free: indexes of those that may be left out: neither the entity asked for, nor rows that were shown, nor joins.
            Empty when there is only one condition: without it, the query would ask for everything.
        tried: the loosened queries that found nothing either.
    """

    def __init__(
        self, suql: str, catalog: Catalog, counts: Sequence[ConditionCount] = (), before: Sequence[str] = ()
    ) -> None:
        self.suql, self.counts, self.before = suql, counts, before
        self.tried: tuple[str, ...] = ()
        self.dialect = catalog.dialect
        self._tree = query_tree(suql, self.dialect)
        where = self._tree.args.get("where")
        self._parts = list(where.this.flatten()) if where and isinstance(where.this, exp.And) else []
        self.conditions = tuple(to_sql(part, self.dialect) for part in self._parts)
        relation = main_relation(self._tree, catalog)
        self.free: tuple[int, ...] = ()
        if relation is not None:
            self._relation = relation
            self.free = tuple(i for i, part in enumerate(self._parts) if not _identifies(part, relation))

    def words(self, i: int) -> str:
        """Return a condition in words."""
        return condition_words(self._parts[i], self.dialect)

    def reads_text(self, i: int) -> bool:
        """Return whether a condition calls a text function."""
        return has_text(self._parts[i])

    def places(self, i: int) -> list[LinkedColumn]:
        """Return the columns of the main relation that a condition speaks of."""
        names = dict.fromkeys(column.name for column in self._parts[i].find_all(exp.Column))
        columns = [self._relation.column(name) for name in names]
        return [link_column(self._relation, column) for column in columns if column is not None]

    def helpful(self) -> list[int]:
        """Return those of `free` without which rows may be found, as far as no text is read; all without counts."""
        found = {each.condition: each.rows if each.others is None else each.others for each in self.counts}
        return [i for i in self.free if not self.counts or found.get(self.conditions[i])]

    def without(self, i: int, replacement: str | None = None) -> str:
        """Return the query without a condition, or with another in its place."""
        loosened = [part.copy() for k, part in enumerate(self._parts) if k != i]
        if replacement is not None:
            loosened.insert(i, sqlglot.parse_one(replacement, read=self.dialect))
        tree = self._tree.copy()
        tree.set("where", exp.Where(this=exp.and_(*loosened)) if loosened else None)
        return to_sql(tree, self.dialect)


def _identifies(part: exp.Expr, relation: Relation) -> bool:
    """Return whether a condition names the entity, leaves out rows by their key, or joins."""
    named = name_column([link_column(relation, column) for column in relation.columns]).column.name
    columns = {column.name for column in part.find_all(exp.Column)}
    if part.find(exp.Subquery, exp.Select):
        return False
    joins = isinstance(part, exp.EQ) and isinstance(part.left, exp.Column) and isinstance(part.right, exp.Column)
    identified = bool(columns) and columns <= {named, *relation.key}
    return joins or identified


def relax(
    question: str, query: EmptyQuery, open_: Sequence[int], model: LanguageModel | None
) -> tuple[int, RelaxedQuery] | None:
    """Return which condition of `open_` to loosen, and the query after that; None where a model would loosen none.

    Without a model, or where its reply cannot be used, the condition goes that a person would give up first: a number
    or a price, a text (the last first), a place, a kind.
    """
    chosen, replacement = min(open_, key=lambda i: (_firmness(query, i), -i)), None
    if model is not None:
        values: dict[str, object] = {"question": question[:2000], "suql": query.suql}
        values |= {"conditions": [query.conditions[i] for i in open_], "history": query.before}
        told = tuple(each.in_full() for each in query.counts)
        prompt = relax_prompt(values | {"told": told, "tried": query.tried})
        try:
            reply = json_object(complete(model, prompt).text) or {}
        except ModelCallError:
            reply = {}
        number = reply.get("condition", 0)
        if number is None:
            return None
        if isinstance(number, int) and 1 <= number <= len(open_):
            chosen, replacement = open_[number - 1], reply.get("replacement")
    return chosen, _replace_condition(query, chosen, replacement)


def _firmness(query: EmptyQuery, i: int) -> int:
    if query.reads_text(i):
        return 1
    places = query.places(i)
    if any(p.kind == "number" or "price" in p.roles for p in places):
        return 0
    return 2 if any("address" in p.roles for p in places) else 3


def relax_prompt(values: Mapping[str, object]) -> Prompt:
    """Return the request for a condition to loosen, filled with the values that its file names."""
    schema = strict_object({"condition": {"type": ["integer", "null"]}, "replacement": {"type": ["string", "null"]}})
    return prompt_file("relax").prompt(values, schema=schema)


def _replace_condition(query: EmptyQuery, chosen: int, replacement: object) -> RelaxedQuery:
    """Return the query with the replacement where that is a condition, else without the condition."""
    phrase = query.words(chosen)
    if isinstance(replacement, str) and replacement.strip():
        try:
            other = sqlglot.parse_one(f"SELECT 1 WHERE {replacement}", read=query.dialect).args["where"].this
            now, places = condition_words(other, query.dialect), [place.column.name for place in query.places(chosen)]
            if not {column.name for column in other.find_all(exp.Column)} & set(places):
                return RelaxedQuery(query.without(chosen), phrase)  # another condition is no looser one
            return RelaxedQuery(query.without(chosen, to_sql(other, query.dialect)), f"{phrase} (now: {now})")
        except (SqlglotError, KeyError):
            pass
    return RelaxedQuery(query.without(chosen), phrase)


# What each condition of the WHERE keeps out, by one look at the structured ones.

VALUES_SHOWN, _VALUE_LENGTH = 5, 40
_CHOOSING = ("joins", "with_", "laterals", "sample")

RunQuery = Callable[[str], "Result"]


@dataclass(frozen=True, slots=True)
class ConditionCount:
    """How many rows pass one condition.

    Attributes:
        condition: as the query writes it; `words` as people say it.
        passing: rows that fulfil it, of `rows`; None for a condition on texts, where `rows` were read.
        values: what its column holds, where no row passes; of many values the first, one more than are shown.
        failing: rows that do not; of the others it is not known.
        others: rows that fulfil all other conditions but those on texts, with or without this one.
        said: for a condition on texts, how many said what.
        whole_table: whether `rows` are those of one table, all of them: neither joined nor chosen.
    """

    condition: str
    words: str
    rows: int
    passing: int | None = None
    values: tuple[str, ...] = ()
    failing: int | None = None
    others: int | None = None
    said: tuple[tuple[str, int], ...] = ()
    whole_table: bool = False

    def in_full(self) -> str:
        """Return the same for a model that mends the query: also what is not known, and what the rest would find."""
        unknown = self.rows - (self.passing or 0) - (self.failing or 0)
        parts = [str(self)]
        if self.passing is not None and self.failing is not None and unknown:
            parts.append(f"{unknown:,} have no value")
        if self.others is not None:
            parts.append(f"without it, the other conditions on columns find {_rows(self.others)}")
        return "; ".join(parts)

    def __str__(self) -> str:
        if self.passing is None:
            said = ", ".join(f"{count:,} said {value or 'nothing'}" for value, count in self.said)
            asked = f"the texts of {_rows(self.rows)} that fulfil the other conditions were asked: {self.words}"
            return f"{asked}; of those read, {said}" if said else asked
        shown = (*self.values[:VALUES_SHOWN], "…") if len(self.values) > VALUES_SHOWN else self.values
        held = f"; the column holds {', '.join(shown)}" if self.values else ""
        return f"{self.passing:,} of {_rows(self.rows)} fulfil: {self.words}{held}"


def count_conditions(
    suql: str,
    run: RunQuery,
    private_columns: Callable[[str], object] = lambda _: (),
    *,
    dialect: str = "duckdb",
    said: Mapping[str, Counter[str]] = MappingProxyType({}),
) -> tuple[ConditionCount, ...]:
    """Return what each condition of a query without rows keeps out; () where that cannot be counted. Reads no text.

    Args:
        run: runs a query without text functions.
        private_columns: returns those whose values the rows of a query may show; such values are left out.
        dialect: sqlglot's name of the SQL that the query is written in.
        said: what the texts that were read said to each question.
    """
    try:
        tree = query_tree(suql, dialect)
    except SqlglotError:
        return ()
    where = tree.args.get("where")
    if not isinstance(tree, exp.Select) or where is None or tree.args.get("from_") is None:
        return ()

    def text(node: exp.Expr) -> str:
        return to_sql(node, dialect)

    def held(part: exp.Expr) -> tuple[str, ...]:
        query = _values_of(tree, part)
        rows = () if query is None or private_columns(text(query)) else run(text(query)).rows
        return tuple(" ".join(str(value).split())[:_VALUE_LENGTH] for value, *_ in rows if value is not None)

    parts = list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]
    structured = [part for part in parts if not has_text(part)]
    whole_table = isinstance(tree.args["from_"].this, exp.Table) and not any(map(tree.args.get, _CHOOSING))
    try:
        every, both, *each = map(int, run(text(_counting(tree, structured))).rows[0])
        found = [
            ConditionCount(
                *(text(part), condition_words(part, dialect), every, passing, () if passing else held(part)),
                failing=failing,
                others=others,
                whole_table=whole_table,
            )
            for part, passing, failing, others in zip(structured, each[::3], each[1::3], each[2::3], strict=True)
        ]
    except AlmanaqError:
        return ()
    by_part = dict(zip(map(id, structured), found, strict=True))
    counted = [
        by_part[id(p)]
        if id(p) in by_part
        else ConditionCount(text(p), condition_words(p, dialect), both, said=_count_said(p, said))
        for p in parts
    ]
    return tuple(each for each in counted if each.passing is not None or each.rows)


def _count_said(part: exp.Expr, said: Mapping[str, Counter[str]]) -> tuple[tuple[str, int], ...]:
    """Return how many texts said what to the one question of a condition, the most frequent first."""
    calls = [call for call in part.find_all(exp.Anonymous) if is_text_call(call) and len(call.expressions) > 1]
    return tuple(said.get(calls[0].expressions[1].name, Counter()).most_common(VALUES_SHOWN)) if len(calls) == 1 else ()


def _counting(tree: exp.Select, structured: Sequence[exp.Expr]) -> exp.Select:
    made = tree.copy()
    for part in ("order", "offset", "limit", "where", "group", "having", "distinct", "qualify", "sample"):
        made.set(part, None)
    every: list[exp.Expr] = [exp.Count(this=exp.Star())]
    counted: list[exp.Expr] = [exp.and_(*structured) if structured else exp.true()]
    for one in structured:
        others = [other for other in structured if other is not one]
        counted += [one, exp.not_(exp.paren(one.copy())), exp.and_(*others) if others else exp.true()]
    for condition in counted:
        held = exp.Case().when(condition.copy(), "1").else_("0")
        every.append(exp.func("coalesce", exp.Sum(this=held), exp.Literal.number(0)))
    made.set("expressions", [exp.alias_(item, f"n{i}") for i, item in enumerate(every)])
    return made


def _values_of(tree: exp.Select, part: exp.Expr) -> exp.Select | None:
    """Return the query of some values of the column that a condition speaks of; None where it speaks of several."""
    columns = {column.sql(): column for column in part.find_all(exp.Column)}
    if len(columns) != 1 or part.find(exp.Subquery, exp.Select) is not None:
        return None
    made = tree.copy()
    for name in ("order", "offset", "where", "group", "having", "qualify", "sample"):
        made.set(name, None)
    made.set("expressions", [next(iter(columns.values())).copy()])
    made.set("distinct", exp.Distinct())
    return made.order_by("1").limit(VALUES_SHOWN + 1)


def _rows(number: int) -> str:
    return f"{number:,} row{'' if number == 1 else 's'}"
