"""QuerySpec: what a question asks of the rows of one relation; written as SQL, read back from it, and its pieces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from sqlglot import exp
from sqlglot.errors import SqlglotError

from almanaq.agent.linking.columns import LinkedColumn
from almanaq.agent.linking.joins import JoinGraph, Way, column_of, table_of
from almanaq.agent.linking.words import singular
from almanaq.agent.queries import query_tree, to_sql
from almanaq.text.sql_literals import is_plain

JOINS = "joins"
"""The mark of a condition that a join might say as well: it looks for the one row to which a key leads."""
TITLE = "title"
"""The key of an expression's metadata that names it where it is shown."""


def plain(column: LinkedColumn) -> exp.Column:
    """Return a linked column as it is shown."""
    return column_of(column.relation.name, column.name)


def compared(column: LinkedColumn) -> exp.Expr:
    """Return a linked column as numbers are compared with it: cast where it holds them as text."""
    own: exp.Expr = plain(column)
    if column.scale:
        steps = exp.Case(this=own)
        for rank, step in enumerate(column.scale, 1):
            steps = steps.when(text(step), exp.Literal.number(rank))
        return steps
    if column.minutes:
        return exp.Div(this=exp.Extract(this=exp.var("epoch"), expression=own), expression=number(60))
    if column.missing is not None:
        own = exp.func("NULLIF", own, text(column.missing))
    return exp.cast(own, "double") if column.cast else own


def text(value: str) -> exp.Literal:
    """Return a text literal."""
    return exp.Literal.string(value)


def number(value: float) -> exp.Expr:
    """Return a number without a needless fraction."""
    size = exp.Literal.number(int(abs(value)) if value == int(value) else repr(abs(value)))
    return size if value >= 0 else exp.Neg(this=size)


def day(value: date, column: LinkedColumn) -> exp.Expr:
    """Return a day as it is compared with a column."""
    return text(value.isoformat()) if column.kind != "date" else exp.cast(text(value.isoformat()), "date")


def count() -> exp.Expr:
    """Return the number of rows."""
    return exp.Count(this=exp.Star())


def aggregate(function: str, column: LinkedColumn) -> exp.Expr:
    """Return AVG, SUM, MIN, MAX, MEDIAN or COUNT (of distinct values) of a column."""
    if function == "COUNT":
        return exp.Count(this=exp.Distinct(expressions=[plain(column)]))
    kinds = {"AVG": exp.Avg, "SUM": exp.Sum, "MIN": exp.Min, "MAX": exp.Max, "MEDIAN": exp.Median}
    return kinds[function](this=compared(column))


def part(name: str, column: LinkedColumn, dialect: str) -> exp.Expr:
    """Return the year, month, quarter, week, day, hour or weekday of a column of dates."""
    own: exp.Expr = compared(column)
    if name == "day":
        return exp.cast(own, "date")
    if name == "weekday":
        if dialect == "duckdb":
            return exp.func("dayname", own)
        return exp.Anonymous(this="to_char", expressions=[own, text("FMDay")])
    return exp.Extract(this=exp.var(name), expression=own)


def one_of(column: exp.Expr, values: Sequence[exp.Expr]) -> exp.Expr:
    """Return the condition that a column has one of some values."""
    if len(values) == 1:
        return exp.EQ(this=column, expression=values[0])
    return exp.In(this=column, expressions=list(values))


def like(column: exp.Expr, form: str, value: str) -> exp.Expr:
    """Return the condition that a text holds a value as a form says, X for the value: "%X%", "X%"."""
    escaped = value.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    tree: exp.Expr = exp.ILike(this=column, expression=text(form.replace("X", escaped)))
    # PostgreSQL escapes by a backslash where nothing is said, DuckDB by nothing.
    return tree if escaped == value else exp.Escape(this=tree, expression=text("\\"))


def has_item(column: LinkedColumn, item: str) -> exp.Expr:
    """Return the condition that an array, or a text that is a list, has an item."""
    if column.column.array:
        return exp.EQ(this=text(item), expression=exp.Any(this=exp.paren(plain(column))))
    mark = column.mark
    escaped = item.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    around = exp.DPipe(this=exp.DPipe(this=text(mark), expression=plain(column)), expression=text(mark))
    return exp.Like(this=exp.paren(around), expression=text(f"%{mark}{escaped}{mark}%"))


def kinds_of(column: LinkedColumn) -> exp.Expr:
    """Return what tells the kinds of rows apart: a column, or each item of an array."""
    return exp.Explode(this=plain(column)) if column.column.array else plain(column)


def tables_in(expression: exp.Expr) -> list[str]:
    """Return the relations whose columns an expression reads, those of its subqueries aside."""
    own = (column for column in expression.find_all(exp.Column) if column.find_ancestor(exp.Select) is None)
    return list(dict.fromkeys(column.table for column in own))


def columns_in(expression: exp.Expr) -> frozenset[tuple[str, str]]:
    """Return the columns that an expression speaks of as (relation, name), those of subqueries included."""
    return frozenset((column.table, column.name) for column in expression.find_all(exp.Column))


def answer(column: LinkedColumn, question: str) -> exp.Expr:
    """Return the call that asks a text."""
    return exp.Anonymous(this="answer", expressions=[plain(column), text(question)])


Order = tuple[exp.Expr, bool]
"""What rows are ordered by, and whether the largest comes first."""


@dataclass(frozen=True, slots=True)
class QuerySpec:
    """A query over the rows of one relation; every column has its relation's name before it.

    Attributes:
        rows: the relation whose rows are asked for, or put together.
        columns: what is shown of a row; `measures` what is computed of many, after the `groups` that they are of.
        conditions: what holds of every row; `having` of every group.
        limit: most rows shown; `offset` those left out before.
        distinct: equal rows are shown once.
    """

    rows: str
    columns: tuple[exp.Expr, ...] = ()
    measures: tuple[exp.Expr, ...] = ()
    conditions: tuple[exp.Expr, ...] = ()
    groups: tuple[exp.Expr, ...] = ()
    having: tuple[exp.Expr, ...] = ()
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0
    distinct: bool = False

    @property
    def tests(self) -> frozenset[exp.Expr]:
        """The conditions, those aside that only leave out what is missing."""
        return frozenset(c for c in self.conditions if not (isinstance(c, exp.Not) and isinstance(c.this, exp.Is)))

    @property
    def gives_figures(self) -> bool:
        """Whether rows are put together rather than shown."""
        return bool(self.measures or self.groups)

    def with_conditions(self, conditions: Iterable[exp.Expr]) -> QuerySpec:
        """Return the same with other conditions, each once."""
        return replace(self, conditions=tuple(dict.fromkeys(conditions)))

    def expressions(self) -> list[exp.Expr]:
        """Return every expression of it."""
        ordered = [expression for expression, _ in self.order]
        return [*self.groups, *self.columns, *self.measures, *self.conditions, *self.having, *ordered]


def write_spec(spec: QuerySpec, graph: JoinGraph, dialect: str) -> str:
    """Return a spec as one SELECT; raises KeyError where a relation cannot be reached."""
    return to_sql(select_of(spec, graph), dialect)


def select_of(spec: QuerySpec, graph: JoinGraph) -> exp.Select:
    """Return the tree of a spec."""
    shown = [*spec.groups, *spec.columns, *spec.measures]
    select = exp.select(*map(_title_output, dict.fromkeys(shown))).from_(table_of(spec.rows))
    tested = {name for condition in spec.conditions for name in tables_in(condition)}
    read = list(dict.fromkeys(name for each in spec.expressions() for name in tables_in(each)))
    for hop, inner in _hops(read, tested, graph.ways(spec.rows)).items():
        on = exp.EQ(this=hop.own.copy(), expression=hop.theirs.copy())
        select = select.join(table_of(hop.right), on=on, join_type="" if inner and not hop.near else "left")
    if spec.conditions:
        parts = [exp.paren(c.copy()) if isinstance(c, exp.Or) else c.copy() for c in _flat(spec.conditions)]
        select.set("where", exp.Where(this=exp.and_(*parts, wrap=False)))
    if spec.groups:
        select = select.group_by(*(each.copy() for each in spec.groups))
    for condition in spec.having:
        select = select.having(condition.copy())
    for expression, down in spec.order or order_of_groups(spec):
        select = select.order_by(exp.Ordered(this=expression.copy(), desc=down, nulls_first=None))
    if spec.distinct:
        select = select.distinct()
    if spec.limit is not None:
        select = select.limit(spec.limit)
    if spec.offset:
        select = select.offset(spec.offset)
    return unqualify(select)


_AGGREGATES: dict[type[exp.Expr], str] = {
    exp.Avg: "average",
    exp.Sum: "total",
    exp.Min: "minimum",
    exp.Max: "maximum",
    exp.Median: "median",
}


def _title_output(item: exp.Expr) -> exp.Expr:
    """Return an output column under a name that says what it holds: "average price", "year"; plain columns keep theirs.

    >>> _title_output(exp.Avg(this=exp.column("price"))).sql()
    'AVG(price) AS "average price"'
    """
    column = item.find(exp.Column)
    name = "" if column is None else column.name.replace("_", " ")
    if title := item.meta.get(TITLE, ""):
        pass
    elif item == exp.Count(this=exp.Star()):
        title = "count"
    elif isinstance(item, exp.Count):
        title = f"number of different {name}"
    elif type(item) in _AGGREGATES:
        title = f"{_AGGREGATES[type(item)]} {name}"
    elif isinstance(item, exp.Explode):
        title = singular(name)
    elif isinstance(item, exp.Extract):
        title = item.name.lower()
    elif isinstance(item, exp.Cast) and item.is_type("date"):
        title = "day"
    elif isinstance(item, exp.Div):
        title = "percent"
    elif isinstance(item, exp.Anonymous) and item.name.lower() in ("dayname", "to_char"):
        title = "weekday"
    return exp.alias_(item.copy(), title, quoted=not is_plain(title)) if title else item.copy()


def order_of_groups(spec: QuerySpec) -> tuple[Order, ...]:
    """Return the order of groups for which none was asked: times as they follow, else the largest figure first."""
    if not spec.groups or not spec.measures or spec.having or spec.limit is not None:
        return ()
    timely = ("year", "month", "quarter", "week", "day")
    times = [group for group in spec.groups if _title_output(group).alias in timely]
    return ((times[0], False),) if times else ((spec.measures[0], True),)


def _hops(read: Sequence[str], tested: set[str], ways: Mapping[str, Way]) -> dict:  # type: ignore[type-arg]
    found: dict = {}  # type: ignore[type-arg]
    for name in read:
        for hop in ways[name]:
            found[hop] = found.get(hop, False) or name in tested
    return found


def unqualify(select: exp.Select) -> exp.Select:
    """Return a query in which columns have their relation's name only where several are read."""
    for node in [select, *(each for each in select.find_all(exp.Select) if each is not select)]:
        table = node.args["from_"].this
        if node.args.get("joins") or not isinstance(table, exp.Table):
            continue
        inner = [each for each in node.find_all(exp.Select) if each is not node]
        if any(each.args["from_"].this.name == table.name for each in inner) and node is not select:
            continue
        for column in node.find_all(exp.Column):
            if column.table == table.name and column.find_ancestor(exp.Select) is node:
                column.set("table", None)
    return select


def _read_select(suql: str, dialect: str) -> exp.Select | None:
    """Return the tree of a query, to be read only; None where it is no SELECT."""
    try:
        tree = query_tree(suql, dialect)
    except SqlglotError:
        return None
    return tree if isinstance(tree, exp.Select) else None


def read_spec(suql: str, dialect: str) -> QuerySpec | None:
    """Return the spec of a query; None of one that is no plain SELECT over relations joined by their keys."""
    tree = _read_select(suql, dialect)
    source = tree.args.get("from_") if tree is not None else None
    if tree is None or source is None or not isinstance(source.this, exp.Table):
        return None
    if any(tree.args.get(each) for each in ("with_", "qualify", "windows")) or source.this.alias:
        return None
    rows = ".".join(part.name for part in source.this.parts)
    qualified = _qualify(tree)
    where, group, order = (qualified.args.get(each) for each in ("where", "group", "order"))
    having, limit = qualified.args.get("having"), qualified.args.get("limit")
    # Copies: `tables_in` takes what hangs in a SELECT for a part of a subquery.
    groups = tuple(each.copy() for each in group.expressions) if group is not None else ()
    items = [item.unalias().copy() for item in qualified.expressions]
    spec = QuerySpec(
        rows,
        tuple(item for item in items if not _is_measure(item) and item not in groups),
        tuple(item for item in items if _is_measure(item)),
        _conditions(where),
        groups,
        _conditions(having),
        tuple((each.this.copy(), bool(each.args.get("desc"))) for each in order.expressions)
        if order is not None
        else (),
        _amount(limit),
        _amount(qualified.args.get("offset")) or 0,
        qualified.args.get("distinct") is not None,
    )
    # An order that nobody asked for is none of what a follow-up keeps.
    return replace(spec, order=()) if spec.order == order_of_groups(spec) else spec


def _qualify(tree: exp.Select) -> exp.Select:
    """Return a query in which each column has its relation's name before it."""
    copy = tree.copy()
    for counted in copy.find_all(exp.Count):
        if isinstance(counted.this, exp.Star):
            counted.set("big_int", None)  # a parsed COUNT(*) equals one that is made
    for node in copy.find_all(exp.Select):
        source = node.args.get("from_")
        table = source.this if source is not None else None
        if not isinstance(table, exp.Table):
            continue
        for column in node.find_all(exp.Column):
            if not column.table and column.find_ancestor(exp.Select) is node:
                column.set("table", table.this.copy())
    return copy


def _is_measure(item: exp.Expr) -> bool:
    return any(node.find_ancestor(exp.Select) is item.find_ancestor(exp.Select) for node in item.find_all(exp.AggFunc))


def _conditions(clause: exp.Expr | None) -> tuple[exp.Expr, ...]:
    if clause is None:
        return ()
    return tuple(each.copy() for each in _flat([clause.this]))


def _flat(conditions: Iterable[exp.Expr]) -> list[exp.Expr]:
    """Return the conditions that all have to hold, each alone."""
    found: list[exp.Expr] = []
    for condition in conditions:
        plain = condition.unnest() if isinstance(condition, exp.Paren) else condition
        found += _flat([plain.left, plain.right]) if isinstance(plain, exp.And) else [plain]
    return found


def _amount(clause: exp.Expr | None) -> int | None:
    amount = clause.args.get("count" if isinstance(clause, exp.Fetch) else "expression") if clause is not None else None
    return int(amount.name) if isinstance(amount, exp.Literal) else None


def without_limit(suql: str, dialect: str) -> str:
    """Return a query without its LIMIT; as it is where it is no plain SELECT."""
    tree = _read_select(suql, dialect)
    if tree is None:
        return suql
    whole = tree.copy()
    whole.set("limit", None)
    return to_sql(whole, dialect)


def is_cut(suql: str, found: int, dialect: str) -> bool:
    """Return whether a LIMIT that follows no order kept so many rows: there may be more that answer as well."""
    spec = read_spec(suql, dialect)
    return spec is not None and spec.limit == found and not (spec.order or spec.gives_figures)


def count_all(suql: str, found: int, dialect: str) -> str | None:
    """Return the query that counts all rows, where a LIMIT that nobody asked for kept so many of them; else None."""
    spec, tree = read_spec(suql, dialect), _read_select(suql, dialect)
    if spec is None or tree is None or spec.limit != found or spec.gives_figures or spec.distinct or spec.offset:
        return None
    if spec.order or tree.find(exp.Anonymous) is not None:
        return None
    counting = tree.select(count(), append=False)
    counting.set("limit", None)
    return to_sql(counting, dialect)
