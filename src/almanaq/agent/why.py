"""Why rows are, or are not, among those that a query found: each of its conditions, with what it comes to for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from almanaq.agent.describe import condition_words, describe_order, group_keys, resolve_output, words
from almanaq.agent.linking.columns import link_column, name_column
from almanaq.agent.queries import query_tree, to_sql
from almanaq.agent.responder import cell, format_quote
from almanaq.errors import QueryError
from almanaq.suql.catalog.relations import Catalog, ColumnKind
from almanaq.suql.text_functions import has_text

if TYPE_CHECKING:
    from almanaq.suql.result import Evidence, Result

_MOST_ROWS, _MOST_READ = 200, 3
"""Rows that are explained, and where texts are read for them, which costs calls."""
_LEFT_OUT = ("order", "limit", "offset", "group", "having", "distinct", "qualify", "where", "sample")
_READ = {True: "yes", False: "no", None: "the texts do not say"}
_HELD = {True: "yes", False: "no", None: "not known"}


@dataclass(frozen=True, slots=True)
class WhyQuery:
    """A query that gives, for the rows asked about, their name, the truth of each condition, and the values compared.

    Rows that fulfil every condition come first.

    Attributes:
        conditions: the conjuncts of the WHERE that is explained, in words; `read` says which of them read texts.
        compared: for each condition, the places among the outputs of the values that it compares, with their names.
        cut: which of the rows that fulfil every condition are given, in words; "" for all.
        placed: the places and names of the values by which such rows are grouped and sorted.
    """

    suql: str
    conditions: tuple[str, ...]
    read: tuple[bool, ...]
    compared: tuple[tuple[tuple[str, int], ...], ...]
    cut: str = ""
    placed: tuple[tuple[str, int], ...] = ()


def why_query(suql: str, condition: str, catalog: Catalog) -> WhyQuery:
    """Return the query that explains another one for the rows that fulfil a condition.

    Raises:
        QueryError: the condition is none, or the query filters no rows of a table.
    """
    tree = query_tree(suql, catalog.dialect)
    source, where = tree.args.get("from_"), tree.args.get("where")
    if not isinstance(tree, exp.Select) or source is None or not isinstance(source.this, exp.Table) or where is None:
        raise QueryError("the last query filters no rows of a table; write a query that answers the question")
    try:
        found = sqlglot.parse_one(f"SELECT 1 WHERE {condition}", read=catalog.dialect).args["where"].this
    except (SqlglotError, KeyError) as error:
        raise QueryError(f"why_not is no condition that SQL can read: {condition}") from error
    parts = list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]
    outputs = [_name_of(source.this, found, catalog), *(part.copy() for part in parts)]
    compared = []
    for part in parts:
        columns = {} if has_text(part) else {column.sql(): column for column in _own_columns(part, catalog)}
        compared.append(tuple((column.name, len(outputs) + i) for i, column in enumerate(columns.values())))
        outputs += [column.copy() for column in columns.values()]
    placing = _placing_columns(tree)
    placed = tuple((column.name, len(outputs) + i) for i, column in enumerate(placing))
    outputs += [column.copy() for column in placing]
    made = tree.copy()
    for clause in _LEFT_OUT:
        made.set(clause, None)
    made.set("expressions", [exp.alias_(output, f"c{i}") for i, output in enumerate(outputs)])
    read = tuple(map(has_text, parts))
    if not any(read):
        fulfils = exp.Case().when(exp.and_(*parts), "0").else_("1")
        made = made.order_by(fulfils)
    made = made.where(found).limit(_MOST_READ if any(read) else _MOST_ROWS)
    said = tuple(condition_words(part, catalog.dialect) for part in parts)
    return WhyQuery(to_sql(made, catalog.dialect), said, read, tuple(compared), _cut(tree, catalog.dialect), placed)


def _placing_columns(tree: exp.Select) -> list[exp.Column]:
    """Return the columns by which a query groups its rows, or, where it gives the first of them, sorts them."""
    group, order = tree.args.get("group"), tree.args.get("order")
    keys: list[exp.Expr] = []
    if group is not None:
        keys = group_keys(tree, group)
    elif order is not None and tree.args.get("limit"):
        keys = [resolve_output(tree, key.this) for key in order.expressions]
    return [key for key in keys if isinstance(key, exp.Column)]


def _own_columns(part: exp.Expr, catalog: Catalog) -> list[exp.Column]:
    """Return the columns of a condition outside nested queries, prose aside."""
    kinds = {c.name.casefold(): c.kind for relation in catalog.relations for c in relation.columns}
    return [
        column
        for column in part.find_all(exp.Column)
        if column.find_ancestor(exp.Subquery, exp.Select) is part.find_ancestor(exp.Subquery, exp.Select)
        and kinds.get(column.name.casefold()) is not ColumnKind.FREE_TEXT
    ]


def _name_of(table: exp.Table, found: exp.Expr, catalog: Catalog) -> exp.Expr:
    """Return the column by which rows are called: the one that finds them, else the one that names the table's rows."""
    by = next(
        (node.this for node in found.find_all(exp.EQ, exp.ILike, exp.Like) if isinstance(node.this, exp.Column)), None
    )
    if by is not None:
        return by.copy()
    relation = catalog.find(".".join(part.name for part in table.parts)) or catalog.find(table.name)
    if relation is None:
        raise QueryError("the last query reads no table of this source; write a query that answers the question")
    name = name_column([link_column(relation, column) for column in relation.columns]).column.name
    return exp.column(exp.to_identifier(name, quoted=True), exp.to_identifier(table.alias_or_name, quoted=True))


def _cut(tree: exp.Select, dialect: str) -> str:
    """Return which rows of those that fulfil all conditions a query gives; "" for all."""
    limit = tree.args.get("limit")
    if limit is None or limit.expression is None or tree.args.get("group") is not None:
        return ""
    order = describe_order(tree, dialect)
    first = "one is" if limit.expression.name == "1" else f"{limit.expression.name} are"
    return f"only the first {first} given" + (f", {order}" if order else "")


def say_why(asked: WhyQuery, result: Result, condition: str, earlier: str) -> str:
    """Return why the rows are, or are not, among those that a query found: by name, since a name may have many rows.

    Args:
        condition: what finds the rows, in words.
        earlier: what the query that is explained searched, in words; "" where it has none.
    """
    if not result.rows:
        return f"There is no row whose {condition}."
    named: dict[str, list[tuple[Sequence[Any], Sequence[Evidence]]]] = {}
    for row, quotes in zip(result.rows, [*result.evidence, *[()] * len(result.rows)], strict=False):
        named.setdefault(str(row[0]), []).append((row, quotes))
    cut = len(result.rows) == (_MOST_READ if any(asked.read) else _MOST_ROWS)
    lines = [line for rows in named.values() for line in _say_name(asked, rows, 0 if cut else len(rows))]
    return "\n".join([*lines, *([f"I searched for {earlier}."] if earlier else [])])


def _say_name(asked: WhyQuery, rows: Sequence[tuple[Sequence[Any], Sequence[Evidence]]], of: int) -> list[str]:
    """Return that some row of a name fulfils every condition, or what each condition comes to for its rows.

    Args:
        of: how many rows the name has; 0 where that is not known.
    """
    there = [row for row, _ in rows if all(row[1 : 1 + len(asked.conditions)])]
    if there:
        return [_say_there(asked, there, of)]
    alike: dict[tuple[str, ...], list[tuple[Sequence[Any], Sequence[Evidence]]]] = {}
    for row, quotes in rows:
        alike.setdefault(tuple(map(str, row[1 : 1 + len(asked.conditions)])), []).append((row, quotes))
    return [line for group in alike.values() for line in _say_row(asked, *group[0], alike=len(group))]


def _say_there(asked: WhyQuery, rows: Sequence[Sequence[Any]], of: int) -> str:
    """Return where the rows of one name are that fulfil every condition, by the values that group or sort them."""
    name = cell(rows[0][0]) + (f" ({len(rows):,} of its {of:,} rows)" if of > len(rows) else "")
    values = dict.fromkeys(
        "; ".join(f"{words(column)}: {cell(row[place])}" for column, place in asked.placed) for row in rows
    )
    said = " and ".join(f"({each})" for each in list(values)[:_MOST_READ] if each)
    if asked.cut:
        return f"{name} fulfils every condition{f' {said}' if said else ''}, but {asked.cut}."
    return f"{name} is among them{f', under {said}' if said else ''}: every condition is fulfilled."


def _say_row(asked: WhyQuery, row: Sequence[Any], quotes: Sequence[Evidence], *, alike: int) -> list[str]:
    """Return what each condition comes to for rows of one name that are alike in that; values are of the first."""
    name = cell(row[0]) + (f" ({alike:,} rows)" if alike > 1 else "")
    truths = [None if v is None else bool(v) for v in row[1 : 1 + len(asked.conditions)]]
    lines = [f"{name} is not among them:"]
    for said, truth, read, compared in zip(asked.conditions, truths, asked.read, asked.compared, strict=True):
        values = ("e.g. " if alike > 1 and compared else "") + "; ".join(
            f"{words(column)}: {cell(row[place])}" for column, place in compared
        )
        lines.append(f"- {said}: {(_READ if read else _HELD)[truth]}" + (f" ({values})" if values else ""))
        lines += [f"   {format_quote(quote)}" for quote in quotes if read and quote.question in said][:1]
    return lines
