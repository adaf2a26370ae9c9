"""The rows that a short answer is chosen among: rows without an answer are passed over.

A query that asks for one row reads as few texts as that takes. Rows that cost no call are handed on in small number,
with their cells: the first that passes need not be the one that was meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from almanaq.connection import Connection
from almanaq.errors import QueryError
from almanaq.suql.result import Result
from almanaq_bench.hybridqa.relation import INFO, TEXT, HybridRelation, spell_value

MOST = 5
"""Rows that an answer is chosen among."""

_CELLS, _CELL, _QUOTE = 12, 80, 240
_ALIAS = "cell_of_row_"


@dataclass(frozen=True, slots=True)
class FoundRow:
    """A row that a query found: its first value as the table writes it, its other cells, and the quotes it rests on."""

    value: str
    cells: Mapping[str, str]
    quotes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FoundRows:
    """The rows of a query that have a value, the best first, and the results that they were read from."""

    rows: tuple[FoundRow, ...]
    results: tuple[Result, ...]


class RowFinder(Protocol):
    """Runs a query for its rows."""

    def find(self, connection: Connection, suql: str, question: str, relation: HybridRelation) -> FoundRows: ...


class AllRows:
    """The RowFinder that runs a query as it is."""

    def find(self, connection: Connection, suql: str, question: str, relation: HybridRelation) -> FoundRows:  # noqa: ARG002
        """Return the first rows in the query's order."""
        result = connection.sql(suql)
        return FoundRows(_rows(result, relation), (result,))


class BestRows:
    """The RowFinder that passes over rows without an answer, and hands on a few where that costs no call.

    Args:
        at_once: texts whose verdicts share a request.
    """

    def __init__(self, at_once: int = 1) -> None:
        self._at_once = at_once

    def find(self, connection: Connection, suql: str, question: str, relation: HybridRelation) -> FoundRows:
        """Return the rows; those of a query without text conditions as far as MOST."""
        tree = _of_one_row(suql)
        if tree is None:
            return AllRows().find(connection, suql, question, relation)
        try:
            return self._find_one(connection, tree, relation)
        except QueryError:
            # The error is to quote the query as it was written.
            return AllRows().find(connection, suql, question, relation)

    def _find_one(self, connection: Connection, tree: exp.Select, relation: HybridRelation) -> FoundRows:
        made, ordered, at_once = _with_cells(tree, relation), tree.args.get("order") is not None, 1
        if not ordered and not _reads_text(tree):
            made = made.limit(MOST)
        if not ordered and _reads_text(tree.args.get("where")):
            at_once = self._at_once  # verdicts share a request; what is selected is read only for the row that passes
        elif not _reads_text(tree.args.get("order")):
            # One row at a time: reads under way when the row is found are paid for, and the next row is seldom needed.
            # An order by answers reads every row already: what is selected is read for the first row alone.
            made = _leave_out_unknown(made)
        options = replace(connection.engine.options, speculation=float(at_once))
        result = connection.sql(_text(made), options=options)
        return FoundRows(_rows(result, relation), (result,))


def _of_one_row(suql: str) -> exp.Select | None:
    """Return a query of one relation that asks for one row of it; None for one that counts, groups, lists or joins."""
    try:
        tree = sqlglot.parse_one(suql, read="duckdb")
    except SqlglotError:
        return None
    if not isinstance(tree, exp.Select) or any(tree.args.get(p) for p in ("group", "distinct", "with_", "joins")):
        return None
    source, limit = tree.args.get("from_"), tree.args.get("limit")
    if source is None or not isinstance(source.this, exp.Table) or limit is None or limit.expression.name != "1":
        return None
    sums = any(item.find(exp.AggFunc, exp.Window) for item in tree.expressions)
    return None if sums or tree.args.get("offset") is not None or len(tree.expressions) != 1 else tree


def _leave_out_unknown(tree: exp.Select) -> exp.Select:
    """Return the query without the rows whose selected answer is no information: what it reads anyway is asked once."""
    shown = tree.expressions[0].unalias()
    if not _reads_text(shown):
        return tree.copy()
    return tree.where(exp.Not(this=exp.Is(this=shown.copy(), expression=exp.Null())))


def _with_cells(tree: exp.Select, relation: HybridRelation) -> exp.Select:
    """Return the query with the other cells of each row beside its value."""
    shown = {column.name for column in tree.expressions[0].find_all(exp.Column)}
    names = [n for n in relation.arrow.column_names if not n.endswith((INFO, TEXT)) and n not in shown][:_CELLS]
    cells = [exp.alias_(exp.column(exp.to_identifier(n, quoted=True)), _ALIAS + str(i)) for i, n in enumerate(names)]
    made = tree.copy()
    made.set("expressions", [*made.expressions, *cells])
    return made


def _text(tree: exp.Select) -> str:
    return tree.sql("duckdb", normalize_functions=False)


def _reads_text(tree: exp.Expr | None) -> bool:
    return tree is not None and any(call.name.lower() in ("answer", "summary") for call in tree.find_all(exp.Anonymous))


def _rows(result: Result, relation: HybridRelation) -> tuple[FoundRow, ...]:
    """Return the first rows of a result that have a value."""
    own = [name for name in result.columns if not name.startswith(_ALIAS)]
    beside = _beside(result)
    rows = []
    for row, evidence in zip(result.rows, result.evidence, strict=True):
        values = dict(zip(result.columns, row, strict=True))
        shown = next((text for name in own if (text := spell_value(name, values[name], relation))), "")
        if shown:
            cells = {
                n: text[:_CELL] for alias, n in beside.items() if (text := spell_value(n, values[alias], relation))
            }
            rows.append(FoundRow(shown, cells, tuple(e.quote[:_QUOTE] for e in evidence)))
        if len(rows) == MOST:
            break
    return tuple(rows)


def _beside(result: Result) -> dict[str, str]:
    """Return the names of the cells that were added, by their aliases."""
    added = [name for name in result.columns if name.startswith(_ALIAS)]
    if not added:
        return {}
    tree = sqlglot.parse_one(result.suql, read="duckdb")
    return {item.alias: item.this.name for item in tree.expressions if item.alias in added}
