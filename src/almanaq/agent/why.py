"""Why rows are, or are not, among those that a query found: each of its conditions, with what it comes to for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from almanaq.agent.describe import condition_words, describe_order, group_keys, join_words, resolve_output, words
from almanaq.agent.dialects import quote_name
from almanaq.agent.facts import is_short_text
from almanaq.agent.linking.columns import link_column, name_column
from almanaq.agent.queries import query_tree, to_sql
from almanaq.agent.responder import cell, format_quote
from almanaq.errors import QueryError
from almanaq.suql.catalog.relations import Catalog
from almanaq.suql.explain.why_not import select_conditions
from almanaq.suql.syntax.nodes import aliased
from almanaq.suql.text_functions import has_text

if TYPE_CHECKING:
    from almanaq.suql.result import Evidence, Result

_MOST_ROWS, _MOST_READ, _MOST_VALUES = 200, 3, 4
"""Rows that are explained, and where texts are read for them, which costs calls; values that are counted."""
_READ = {True: "yes", False: "no", None: "the texts do not say"}
_HELD = {True: "yes", False: "no", None: "not known"}


@dataclass(frozen=True, slots=True)
class WhyQuery:
    """A query that gives, for the rows asked about, their name, the truth of each condition, and the values compared.

    Rows that fulfil every condition come first.

    Attributes:
        conditions: the conjuncts of the WHERE that is explained, in words; `read` says which of them read texts.
        compared: for each condition, the names of the columns that it compares, and the places among the outputs of
            their values and of what these are codes for (0: they are none).
        meant: for each condition, the place of what the value that it asks for is a code for (0: it is none).
        cut: which of the rows that fulfil every condition are given, in words; "" for all.
        placed: the places and names of the values by which such rows are grouped and sorted.
    """

    suql: str
    conditions: tuple[str, ...]
    read: tuple[bool, ...]
    compared: tuple[tuple[tuple[str, int, int], ...], ...]
    meant: tuple[int, ...] = ()
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
    select, conditions = select_conditions(tree, [found], catalog, first=[_name_of(source.this, found, catalog)])

    def add(*added: exp.Expr) -> int:
        for each in added:
            select.append("expressions", aliased(each.copy(), f"c{len(select.expressions)}"))
        return len(select.expressions) - 1 if added else 0

    compared, meant = [], []
    for part, columns in conditions:
        compared.append(tuple((c.name, at, add(*_meaning(c, c, tree, catalog))) for c, at in columns.items()))
        one = isinstance(part, exp.EQ) and isinstance(part.expression, exp.Literal)
        meant.append(add(*_meaning(part.this, part.expression, tree, catalog)) if one else 0)
    placed = tuple((column.name, add(column)) for column in _placing_columns(tree))
    parts = [part for part, _ in conditions]
    read = tuple(map(has_text, parts))
    if not any(read):
        select = select.order_by(exp.Case().when(exp.and_(*parts), "0").else_("1"))
    select = select.limit(_MOST_READ if any(read) else _MOST_ROWS)
    said = tuple(condition_words(part, catalog.dialect) for part in parts)
    return WhyQuery(
        to_sql(select, catalog.dialect), said, read, tuple(compared), tuple(meant), _cut(tree, catalog.dialect), placed
    )


def _meaning(column: exp.Expr, code: exp.Expr, tree: exp.Select, catalog: Catalog) -> list[exp.Expr]:
    """Return the query for what a value of a column is a code for; none where no foreign key leads to one name."""
    for table in tree.find_all(exp.Table):
        relation = catalog.find(".".join(part.name for part in table.parts))
        own = isinstance(column, exp.Column) and column.table in ("", table.alias_or_name)
        for names, other, theirs in relation.foreign_keys if own and relation is not None else ():
            referred = catalog.find(other) if [*map(str.casefold, names)] == [column.name.casefold()] else None
            columns = referred.columns if referred is not None else ()
            called = [each.name for each in columns if is_short_text(each) and each.name not in theirs]
            if len(called) == 1:
                value = exp.column(code.this, table.alias_or_name) if isinstance(code, exp.Column) else code
                name, key = (quote_name(each, catalog.dialect) for each in (called[0], theirs[0]))
                source = ".".join(quote_name(part, catalog.dialect) for part in other.split("."))
                found = f"SELECT max(r_.{name}) FROM {source} AS r_ WHERE r_.{key} = {value.sql(catalog.dialect)}"
                return [exp.paren(sqlglot.parse_one(found, read=catalog.dialect))]
    return []


def _placing_columns(tree: exp.Select) -> list[exp.Column]:
    """Return the columns by which a query groups its rows, or, where it gives the first of them, sorts them."""
    group, order = tree.args.get("group"), tree.args.get("order")
    keys: list[exp.Expr] = []
    if group is not None:
        keys = group_keys(tree, group)
    elif order is not None and tree.args.get("limit"):
        keys = [resolve_output(tree, key.this) for key in order.expressions]
    return [key for key in keys if isinstance(key, exp.Column)]


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
    having, limit = tree.args.get("having"), tree.args.get("limit")
    said = [f"{part.upper()} leaves some out" for part in ("qualify", "offset", "sample") if tree.args.get(part)]
    if having is not None:
        said.append(f"only groups whose {condition_words(having.this, dialect)} are given")
    if limit is not None:
        order, count = describe_order(tree, dialect), limit.args.get("count") or limit.expression
        first = "one is" if count is None or count.name == "1" else f"{count.name} are"
        said.append(f"only the first {first} given" + (f", {order}" if order else ""))
    return ", and ".join(said)


def say_why(asked: WhyQuery, result: Result, condition: str, earlier: str) -> str:
    """Return why the rows are, or are not, among those that a query found: by name, since a name may have many rows.

    Args:
        condition: what finds the rows, in words.
        earlier: what the query that is explained searched, in words; "" where it has none.
    """
    if not result.rows:
        return f"There is no row whose {condition} among those that the query reads."
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
    places = range(len(asked.conditions))
    held_by_none = [i for i in places if len(rows) > 1 and all(row[i + 1] in (False, 0) for row, _ in rows)]
    if held_by_none:
        return _say_rows(asked, rows, held_by_none, whole=len(rows) == of)
    alike: dict[tuple[str, ...], list[tuple[Sequence[Any], Sequence[Evidence]]]] = {}
    for row, quotes in rows:
        alike.setdefault(tuple(map(str, row[1 : 1 + len(asked.conditions)])), []).append((row, quotes))
    return [line for group in alike.values() for line in _say_rows(asked, group, places, whole=False)]


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


def _say_rows(
    asked: WhyQuery, group: Sequence[tuple[Sequence[Any], Sequence[Evidence]]], places: Sequence[int], *, whole: bool
) -> list[str]:
    """Return what conditions, by their places, come to for rows of one name that are alike in that."""
    rows, (row, quotes) = [row for row, _ in group], group[0]
    name, alike = cell(row[0]), len(rows)
    some = f"None of the {alike:,} rows of {name} is" if whole else f"{alike:,} rows of {name} are not"
    lines = [f"{some if alike > 1 else f'{name} is not'} among them:"]
    for i in places:
        truth, read, meant = None if row[i + 1] is None else bool(row[i + 1]), asked.read[i], asked.meant[i]
        meaning = f" ({cell(row[meant])})" if meant else ""
        values = _say_values(asked.compared[i], rows) if alike == 1 or truth is False else ""
        lines.append(f"- {asked.conditions[i]}{meaning}: {(_READ if read else _HELD)[truth]}{values}")
        lines += [f"   {format_quote(quote)}" for quote in quotes if read and quote.question in asked.conditions[i]][:1]
    return lines


def _say_values(compared: Sequence[tuple[str, int, int]], rows: Sequence[Sequence[Any]]) -> str:
    """Return the values of rows in the columns that a condition compares: of several rows, how many have which."""
    if not compared:
        return ""
    if len(rows) == 1:
        return f" ({'; '.join(f'{words(column)}: {_say_code(rows[0], *places)}' for column, *places in compared)})"
    counts = Counter(sorted(", ".join(_say_code(row, *places) for _, *places in compared) for row in rows))
    most = counts.most_common(_MOST_VALUES)
    listed = [f"{count:,} {'has' if count == 1 else 'have'} {value}" for value, count in most]
    other = len(rows) - sum(count for _, count in most)
    return f"; {join_words([*listed, *([f'{other:,} have others'] if other else [])])}"


def _say_code(row: Sequence[Any], value: int, meaning: int) -> str:
    return cell(row[value]) + (f" ({cell(row[meaning])})" if meaning and row[meaning] is not None else "")
