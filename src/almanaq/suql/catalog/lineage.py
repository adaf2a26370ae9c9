"""Which columns the output of a query, and the texts it sends to a model, come from; private ones are reported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from almanaq.suql.catalog.linking import Link
from almanaq.suql.catalog.relations import Catalog, Column, ColumnKind, Relation
from almanaq.suql.catalog.sources import (
    columns_of,
    enclosing_selects,
    find_cte,
    find_source,
    from_items,
    query_in,
    relations_in,
)
from almanaq.suql.syntax.nodes import nodes, nodes_of
from almanaq.suql.text_functions import is_model_call, is_similarity

ENUM_FUNCTIONS = frozenset("enum_first enum_last enum_range enum_range_boundary".split())
"""Functions that give the values of an ENUM type from any column."""
Origin = tuple[Relation, Column]
_Seen = set[tuple[int, int | None]]


def origins(node: exp.Expr, catalog: Catalog) -> Iterator[Origin]:
    """Yield the columns that the value of an expression is made of, those read by subqueries in it included."""
    return _Lineage(catalog).of(node)


class _Lineage:
    """One walk. An output that was gone into once is not gone into again: recursive members of WITH name themselves."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._seen: _Seen = set()

    def of(self, node: exp.Expr) -> Iterator[Origin]:
        for part in nodes(node):
            if isinstance(part, exp.TableColumn):
                yield from self._row(part)
            elif isinstance(part, exp.Column):
                yield from self._column(part)
            elif isinstance(part, exp.Star | exp.Columns) and not isinstance(part.parent, exp.Count):
                yield from self._everything(part)
            elif is_enum_call(part):
                yield from self._enums()

    def _enums(self) -> Iterator[Origin]:
        """An ENUM's type has its values without any row; which column's type it is, its name does not tell."""
        for relation in self._catalog.relations:
            for column in relation.columns:
                if column.private or column.kind is ColumnKind.ENUM:  # a private one, however it was declared
                    yield relation, column

    def _column(self, column: exp.Column) -> Iterator[Origin]:
        item = find_source(column.table, column) if column.table else None
        if item is None:
            yield from self._output_name(column)
        else:
            yield from self._item(item, column.name)

    def _row(self, row: exp.TableColumn) -> Iterator[Origin]:
        """The name of an item of FROM, for what its function gives: rows of relations are written as their columns."""
        item = find_source(row.name, row)
        yield from self._everything(row) if item is None else self._item(item, None)

    def _output_name(self, column: exp.Column) -> Iterator[Origin]:
        """A bare name, in ORDER BY, is an output of the query around it."""
        query = column.find_ancestor(exp.Query)
        named = query.named_selects if isinstance(query, exp.Query) else []
        if isinstance(query, exp.Query) and column.name in named:
            yield from self.output(query, named.index(column.name))
        else:
            yield from self._everything(column)

    def _everything(self, node: exp.Expr) -> Iterator[Origin]:
        for select in enclosing_selects(node):
            for item in from_items(select):
                yield from self._item(item, None)

    def _item(self, item: exp.Expr, name: str | None) -> Iterator[Origin]:
        if isinstance(item, exp.Table) and item.args.get("pivots"):
            name = None
        position = _position(columns_of(item, self._catalog) or [], name)
        if not isinstance(item, exp.Table):
            yield from self._trace_query(item, position)
            return
        cte = find_cte(item)
        if cte is not None:
            yield from self._trace_query(cte, position)
        elif isinstance(item.this, exp.Func):
            yield from self.of(item.this)
        elif (relation := self._catalog.find(item.name)) is not None:
            yield from ((relation, column) for i, column in enumerate(relation.columns) if position in (None, i))

    def _trace_query(self, item: exp.Expr, position: int | None) -> Iterator[Origin]:
        query = (query_in(item) if isinstance(item, exp.CTE | exp.Subquery | exp.Lateral) else item) or item
        if isinstance(query, exp.Query):
            yield from self.output(query, position)
        elif isinstance(query, exp.Values) and position is not None:
            for row in query.expressions:
                yield from self.of(row.expressions[position] if isinstance(row, exp.Tuple) else row)
        else:  # unnest(…), a function
            yield from self.of(query)

    def output(self, query: exp.Expr, position: int | None) -> Iterator[Origin]:
        key = (id(query), position)
        if key in self._seen:
            return
        self._seen.add(key)
        if isinstance(query, exp.Subquery):
            yield from self.output(query.this, position)
        elif isinstance(query, exp.SetOperation):
            name = query.named_selects[position] if query.args.get("by_name") and position is not None else None
            for side in (query.this, query.expression):
                yield from self.output(side, position if name is None else _position(side.named_selects, name))
        elif isinstance(query, exp.Select):
            shown = query.selects
            starred = any(item.is_star for item in shown)
            for i, item in enumerate(shown):
                if position is None or starred or i == position or position >= len(shown):
                    yield from self.of(item)
        else:
            yield from self.of(query)


def is_enum_call(node: exp.Expr) -> bool:
    """Return whether a node is a call that gives values of an ENUM's type, whoever has that; `typeof` lists them."""
    return isinstance(node, exp.Typeof) or (isinstance(node, exp.Anonymous) and node.name.lower() in ENUM_FUNCTIONS)


def _position(names: list[str], name: str | None) -> int | None:
    """Return the place of a name; None, which is every place, for one that is not there or there twice."""
    return names.index(name) if name is not None and names.count(name) == 1 else None


def private_columns_read(tree: exp.Query, links: tuple[Link, ...], catalog: Catalog) -> tuple[str, ...]:
    """Return the private columns that what a query asks a model, also to link its literals, is made of."""
    if not _any_private(tree, catalog):
        return ()
    linked = ((relation := catalog.relation(link.relation), relation.column(link.column)) for link in links)
    calls = filter(is_model_call, nodes_of(tree, exp.Anonymous))
    found = (origin for call in calls for origin in origins(call, catalog))
    return _private([*found, *((relation, column) for relation, column in linked if column is not None)])


def private_columns_compared(tree: exp.Query, catalog: Catalog) -> tuple[str, ...]:
    """Return the private columns that the arguments of `similarity` are made of, which an embedder sees."""
    if not _any_private(tree, catalog):
        return ()
    calls = filter(is_similarity, nodes_of(tree, exp.Anonymous))
    return _private(origin for call in calls for origin in origins(call, catalog))


def private_columns_shown(tree: exp.Query, catalog: Catalog) -> tuple[str, ...]:
    """Return the private columns that a query's rows, or the quotes that they rest on, are made of."""
    if not _any_private(tree, catalog):
        return ()
    shown = _private(_Lineage(catalog).output(tree, None))
    return tuple(dict.fromkeys((*shown, *private_columns_read(tree, (), catalog))))


def private_outputs(tree: exp.Query, catalog: Catalog) -> list[bool]:
    """Return for each output of a query whether private columns are in what it is made of."""
    return [bool(_private(_Lineage(catalog).output(tree, place))) for place in range(len(tree.selects))]


def _any_private(tree: exp.Query, catalog: Catalog) -> bool:
    if not catalog.has_private:
        return False
    lists = any(map(is_enum_call, nodes_of(tree, exp.Anonymous, exp.Typeof)))
    relations = catalog.relations if lists else relations_in(tree, catalog)
    return any(column.private for relation in relations for column in relation.columns)


def _private(found: Iterable[Origin]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f"{relation.name}.{column.name}" for relation, column in found if column.private))
