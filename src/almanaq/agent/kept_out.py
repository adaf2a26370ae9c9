"""Why a query found nothing: what each condition of its WHERE kept out, by one look at the structured ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from almanaq.agent.describe import condition_words
from almanaq.errors import AlmanaqError
from almanaq.suql.text_functions import is_text_call

if TYPE_CHECKING:
    from almanaq.suql.result import Result

_VALUES = 5
_LENGTH = 40

RunQuery = Callable[[str], "Result"]


@dataclass(frozen=True, slots=True)
class KeptOut:
    """What one condition keeps out.

    Attributes:
        condition: as the query writes it; `words` as people say it.
        passing: rows that fulfil it, of `rows`; for a condition on texts, None, and `rows` are those that were read.
        values: some that its column holds, where no row passes.
    """

    condition: str
    words: str
    rows: int
    passing: int | None = None
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.passing is None:
            return f"the texts of {_rows(self.rows)} that fulfil the other conditions were asked: {self.words}"
        held = f"; the column holds {', '.join(self.values)}" if self.values else ""
        return f"{self.passing:,} of {_rows(self.rows)} fulfil: {self.words}{held}"


def kept_out(
    suql: str, run: RunQuery, shows_private: Callable[[str], bool] = lambda _: False, *, dialect: str = "duckdb"
) -> tuple[KeptOut, ...]:
    """Return what each condition of a query without rows keeps out; no text is read for it, and () where none is known.

    Args:
        run: runs a query of no text.
        shows_private: tells of a query whether its rows may show private values, which are not told.
        dialect: in which queries are written.
    """
    try:
        tree = sqlglot.parse_one(suql, read=dialect)
    except SqlglotError:
        return ()
    where = tree.args.get("where")
    if not isinstance(tree, exp.Select) or where is None or tree.args.get("from_") is None:
        return ()

    def text(node: exp.Expr) -> str:
        return node.sql(dialect, normalize_functions=False)

    def held(part: exp.Expr) -> tuple[str, ...]:
        query = _values_of(tree, part)
        return () if query is None or shows_private(text(query)) else _shown(run(text(query)).rows)

    parts = list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]
    structured = [part for part in parts if not _reads(part)]
    try:
        every, both, *each = run(text(_counting(tree, structured))).rows[0]
        found = [
            KeptOut(text(part), condition_words(part), int(every), int(passing), () if int(passing) else held(part))
            for part, passing in zip(structured, each, strict=True)
        ]
    except AlmanaqError:
        return ()
    by_part = dict(zip(map(id, structured), found, strict=True))
    counted = [by_part[id(p)] if id(p) in by_part else KeptOut(text(p), condition_words(p), int(both)) for p in parts]
    return tuple(each for each in counted if each.passing is not None or each.rows)


def _counting(tree: exp.Select, structured: Sequence[exp.Expr]) -> exp.Select:
    made = tree.copy()
    for part in ("order", "offset", "limit", "where", "group", "having", "distinct"):
        made.set(part, None)
    every: list[exp.Expr] = [exp.Count(this=exp.Star())]
    counted = [exp.and_(*structured) if structured else exp.true(), *structured]
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
    for name in ("order", "offset", "where", "group", "having"):
        made.set(name, None)
    made.set("expressions", [next(iter(columns.values())).copy()])
    made.set("distinct", exp.Distinct())
    return made.order_by("1").limit(_VALUES)


def _shown(rows: Sequence[Sequence[object]]) -> tuple[str, ...]:
    return tuple(" ".join(str(row[0]).split())[:_LENGTH] for row in rows if row[0] is not None)


def _reads(part: exp.Expr) -> bool:
    return any(is_text_call(call) for call in part.find_all(exp.Anonymous))


def _rows(number: int) -> str:
    return f"{number:,} row{'' if number == 1 else 's'}"
