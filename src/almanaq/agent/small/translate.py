"""What a small model wrote over views, as a query over the source; what does not fit is mended by rule."""

from __future__ import annotations

import re
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from almanaq.agent.linking.columns import LinkedColumn
from almanaq.agent.linking.joins import Hop, table_of
from almanaq.agent.local.spec import compared
from almanaq.agent.local.world import World
from almanaq.agent.small.views import LinkedValue, View, ViewColumn, Views
from almanaq.errors import nearest
from almanaq.text.sql_literals import is_plain

_FENCED = re.compile(r"```(?:sql)?\s*(.*?)(?:```|$)", re.DOTALL | re.IGNORECASE)
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_COMPARES = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between)
_ALIKE = 0.6


class NotTranslated(Exception):
    """What a model wrote is no query over the views, and no rule makes it one."""


@dataclass(frozen=True, slots=True)
class Translated:
    """A query over the source.

    Attributes:
        left_out: words of the question that mean a value which the query does not compare with.
    """

    suql: str
    left_out: tuple[str, ...]


def translate(written: str, views: Views, world: World) -> Translated:
    """Return what a model wrote as a query over the source, in its engine's dialect.

    Raises:
        NotTranslated: it is no SELECT over the views, and cannot be mended.
    """
    match = _FENCED.search(written)
    first = (match[1] if match else written).partition(";")[0].strip()
    try:
        tree = sqlglot.parse_one(first, read="duckdb")
    except SqlglotError as error:
        raise NotTranslated(str(error)) from error
    if not isinstance(tree, exp.Query):
        raise NotTranslated("no SELECT")
    values = {str(node.name).casefold() for node in tree.find_all(exp.Literal)}
    left_out = tuple(v.words for v in views.values if v.value.casefold() not in values and not _is_held(v, values))
    _Translation(views, world).write(tree)
    return Translated(tree.sql(world.dialect, normalize_functions=False), left_out)


def _is_held(value: LinkedValue, literals: set[str]) -> bool:
    return any(value.value.casefold() in literal for literal in literals)


class _Translation:
    def __init__(self, views: Views, world: World) -> None:
        self._views, self._world = views, world
        self._scopes: dict[int, dict[str, View | None]] = {}

    def write(self, tree: exp.Expr) -> None:
        """Write the names of the source into a tree, and mend it."""
        selects = list(tree.find_all(exp.Select))
        own = {cte.alias.casefold() for cte in tree.find_all(exp.CTE)}
        for select in selects:
            self._scopes[id(select)] = self._read_tables(select, own)
        for select in selects:
            for column in [c for c in select.find_all(exp.Column) if c.find_ancestor(exp.Select) is select]:
                self._write_column(column, select)
        for select in selects:
            self._write_tables(select)
            _group_rest(select)
        for select in selects:
            _compare_with_any(select)

    def _read_tables(self, select: exp.Select, own: set[str]) -> dict[str, View | None]:
        """Return the views of FROM and JOIN by the names under which the query knows them; None for a derived one."""
        found: dict[str, View | None] = {}
        for item in _sources(select):
            if not isinstance(item, exp.Table) or item.name.casefold() in own:
                found[item.alias_or_name.casefold()] = None
                continue
            view = self._views.find(item.name) or self._nearest_view(item.name)
            found[item.alias_or_name.casefold()] = view
        return found

    def _nearest_view(self, name: str) -> View:
        near = nearest(name, [view.name for view in self._views.views], most=1, alike=_ALIKE)
        view = self._views.find(near[0]) if near else None
        if view is None:
            raise NotTranslated(f"no table {name}")
        return view

    def _write_tables(self, select: exp.Select) -> None:
        for item in _sources(select):
            view = self._scopes[id(select)].get(item.alias_or_name.casefold())
            if view is not None and isinstance(item, exp.Table):
                alias = item.alias_or_name
                item.replace(_alias_table(view, alias))

    def _write_column(self, column: exp.Column, select: exp.Select) -> None:
        if isinstance(column.this, exp.Star):
            return
        found = self._resolve(column, select)
        if found is None:
            return
        alias, shown = found
        shown = self._by_value(column, shown, alias, select)
        if shown.linked.kind == "date":
            column = _compare_years(column)
        elif shown.type == "int" and isinstance(column.parent, exp.Year):
            year, column = column.parent, column.copy()
            year.replace(column)
        _spell_values(column, shown.linked, self._world)
        node = compared(shown.linked) if _is_computed(column, shown.linked) else _as_it_is(shown.linked)
        for each in node.find_all(exp.Column):
            each.set("table", exp.to_identifier(alias, quoted=not is_plain(alias)))
        column.replace(node)

    def _resolve(self, column: exp.Column, select: exp.Select) -> tuple[str, ViewColumn] | None:
        """Return the column that a name means, with the table's alias; None for a name that the query made itself."""
        name, qualifier = column.name, column.table.casefold()
        scope, scopes = select, [self._scopes[id(select)]]
        while (outer := scope.find_ancestor(exp.Select)) is not None:
            scope = outer
            scopes.append(self._scopes[id(scope)])
        for tables in scopes:
            here = {q: v for q, v in tables.items() if q == qualifier} if qualifier in tables else tables
            if qualifier and qualifier in tables and tables[qualifier] is None:
                return None
            for alias, view in here.items():
                shown = view.column(name) if view is not None else None
                if shown is not None:
                    return alias, shown
        aliases = {item.alias.casefold() for item in select.expressions if isinstance(item, exp.Alias)}
        if not qualifier and name.casefold() in aliases:
            return None
        if None in scopes[0].values() and not qualifier:
            return None
        return self._join_for(name, qualifier, select) or self._nearest_column(name, scopes[0])

    def _join_for(self, name: str, qualifier: str, select: exp.Select) -> tuple[str, ViewColumn] | None:
        """Add the table that has a column to the query, where one step leads to it."""
        tables = self._scopes[id(select)]
        for view in self._views.views:
            shown = view.column(name)
            if shown is None or view.name in tables or (qualifier and self._views.find(qualifier) not in (view, None)):
                continue
            for alias, other in tables.items():
                for hop in self._world.graph.hops(other.relation.name) if other is not None else ():
                    if hop.right == view.relation.name:
                        select.join(_alias_table(view, view.name), on=_on(hop, alias, view.name), copy=False)
                        tables[view.name] = view
                        return view.name, shown
        return None

    def _nearest_column(self, name: str, tables: dict[str, View | None]) -> tuple[str, ViewColumn]:
        names = [column.name for view in tables.values() if view is not None for column in view.columns]
        for near in nearest(name, names, most=1, alike=_ALIKE):
            for alias, view in tables.items():
                shown = view.column(near) if view is not None else None
                if shown is not None:
                    return alias, shown
        raise NotTranslated(f"no column {name}")

    def _by_value(self, column: exp.Column, shown: ViewColumn, alias: str, select: exp.Select) -> ViewColumn:
        """Return the column of the same view that a value was linked to, where the query compares another with it."""
        view = self._scopes[id(select)].get(alias)
        if view is None or not isinstance(column.parent, exp.EQ):
            return shown
        literal = column.parent.right
        if isinstance(literal, exp.Literal) and literal.is_string:
            linked = [v for v in self._views.values if v.value.casefold() == literal.name.casefold()]
            if linked and all(v.column is not shown for v in linked):
                return next((v.column for v in linked if v.view == view.name), shown)
        return shown


def _as_it_is(column: LinkedColumn) -> exp.Column:
    """Return a column as it is, to be shown, grouped by or compared with a text."""
    return exp.column(exp.to_identifier(column.name, quoted=not is_plain(column.name)), table="t")


def _alias_table(view: View, alias: str) -> exp.Expr:
    table = table_of(view.relation.name)
    if alias.casefold() == view.relation.name.casefold():
        return table
    return exp.alias_(table, exp.to_identifier(alias, quoted=not is_plain(alias)), table=True)


def _on(hop: Hop, alias: str, other: str) -> exp.Expr:
    own, theirs = hop.own.copy(), hop.theirs.copy()
    for side, name in ((own, alias), (theirs, other)):
        for column in side.find_all(exp.Column):
            column.set("table", exp.to_identifier(name, quoted=not is_plain(name)))
    return exp.EQ(this=own, expression=theirs)


def _sources(select: exp.Select) -> list[exp.Expr]:
    source = select.args.get("from_")
    joined = [join.this for join in select.args.get("joins") or ()]
    return [*([source.this] if source is not None else []), *joined]


def _siblings(node: exp.Expr) -> list[exp.Expr]:
    return [other for other in node.parent.iter_expressions() if other is not node] if node.parent is not None else []


def _is_computed(column: exp.Expr, linked: LinkedColumn) -> bool:
    """Return whether a column is used as the number that it is shown as, and not shown, grouped by or read as text."""
    parent = column.parent
    siblings = _siblings(column)
    if isinstance(parent, exp.Like | exp.ILike | exp.Count | exp.Group | exp.Distinct | exp.Anonymous):
        return False
    if any(isinstance(node, exp.Literal) and node.is_string for node in siblings):
        return False
    if isinstance(parent, exp.Select | exp.Alias):  # what a subquery shows is compared with something
        select = column.find_ancestor(exp.Select)
        return linked.cast and select is not None and select.find_ancestor(exp.Select) is not None
    return linked.cast or not any(isinstance(node, exp.Column) for node in siblings)


def _compare_with_any(select: exp.Select) -> None:
    """Compare with any row of a subquery that may give several: `x < (SELECT y …)`."""
    subquery = select.parent
    comparison = subquery.parent if isinstance(subquery, exp.Subquery) else None
    several = not select.args.get("limit") and not any(map(_aggregates, select.expressions))
    if several and isinstance(comparison, exp.EQ | exp.GT | exp.GTE | exp.LT | exp.LTE):
        if subquery is comparison.expression:
            subquery.replace(exp.Any(this=subquery.copy()))


def _compare_years(column: exp.Column) -> exp.Column:
    """Compare the year of a date where a query compares the date with one: `opened > 2013`, `LIKE '2013%'`.

    Returns the column where it is now.
    """
    parent = column.parent
    year = exp.Extract(this=exp.var("year"), expression=column.copy())
    if isinstance(parent, exp.Like):
        pattern = parent.expression.name
        if _YEAR.match(pattern) and pattern[4:] in ("%", "-%"):
            parent.replace(exp.EQ(this=year, expression=exp.Literal.number(pattern[:4])))
            column = year.expression
    elif isinstance(parent, _COMPARES):
        others = _siblings(column)
        if others and all(isinstance(node, exp.Literal) and _YEAR.fullmatch(node.name) for node in others):
            for node in others:
                node.replace(exp.Literal.number(node.name))
            column.replace(year)
            column = year.expression
    return column


def _spell_values(column: exp.Expr, linked: LinkedColumn, world: World) -> None:
    """Spell the texts that a column is compared with as it spells them."""
    if linked.kind not in ("text", "boolean") or not isinstance(column.parent, exp.EQ | exp.NEQ | exp.In):
        return
    for literal in column.parent.find_all(exp.Literal):
        if literal.is_string and literal.find_ancestor(exp.EQ, exp.NEQ, exp.In) is column.parent:
            meant = [v for v in world.index.values_of(linked) if v.casefold() == literal.name.casefold()]
            if meant and literal.name not in meant:
                literal.replace(exp.Literal.string(meant[0]))


def _group_rest(select: exp.Select) -> None:
    """Group by the columns that a query shows beside an aggregate."""
    shown = [item.unalias() for item in select.expressions]
    order = select.args.get("order")
    aggregates = [item for item in (*shown, *(order.expressions if order is not None else ())) if _aggregates(item)]
    group = select.args.get("group")
    if not aggregates and group is None:
        return
    known = {node.sql() for node in group.expressions} if group is not None else set()
    named = {item.alias for item in select.expressions if isinstance(item, exp.Alias)}
    if known & named or any(isinstance(node, exp.Literal) for node in (group.expressions if group else ())):
        return
    rest = [item for item in shown if not _aggregates(item) and item.find(exp.Column) and item.sql() not in known]
    if rest and not any(isinstance(item.find(exp.Window), exp.Window) for item in shown):
        select.group_by(*(item.copy() for item in rest), copy=False)


def _aggregates(item: exp.Expr) -> bool:
    return any(call.find_ancestor(exp.Subquery, exp.Window) is None for call in item.find_all(exp.AggFunc))
