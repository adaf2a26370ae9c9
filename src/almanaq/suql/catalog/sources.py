"""What a block reads and groups by: the items of FROM, the keys of GROUP BY, and what stands in an aggregate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from operator import attrgetter

from sqlglot import exp, parse_one

from almanaq.suql.catalog.relations import Catalog, Column, Relation, fold
from almanaq.suql.syntax.nodes import ancestors, copy_tree, is_within, nodes_of, quoted


def relations_in(tree: exp.Expr, catalog: Catalog) -> list[Relation]:
    found = map(catalog.find, {table.name: None for table in nodes_of(tree, exp.Table)})
    return [relation for relation in found if relation is not None]


def from_items(select: exp.Select) -> Iterator[exp.Expr]:
    """Yield the items of a block's FROM: tables, subqueries, laterals, unnests, values."""
    from_ = select.args.get("from_")
    if from_ is not None:
        yield from_.this
    for join in select.args.get("joins") or ():
        yield join.this
    yield from select.args.get("laterals") or ()


def enclosing_selects(node: exp.Expr) -> Iterator[exp.Select]:
    """Return the SELECT blocks around a node, innermost first (the node itself first, if it is one)."""
    return (at for at in ancestors(node) if isinstance(at, exp.Select))


def find_source(alias: str, block: exp.Expr) -> exp.Expr | None:
    """Return the FROM item of that alias, looking outwards from a block; an item does not see itself."""
    for select in enclosing_selects(block):
        for item in from_items(select):
            if item.alias_or_name == alias and not is_within(block, item):
                return item
    return None


def find_cte(table: exp.Table, name_of: Callable[[exp.Expr], str] = attrgetter("name")) -> exp.CTE | None:
    """Return the CTE that a table node names, or None for a base table."""
    if table.args.get("db") is not None or not isinstance(table.this, exp.Identifier):
        return None
    name = name_of(table.this)
    inside: exp.Expr | None = None
    for at in ancestors(table):
        with_ = at.args.get("with_")
        recursive = with_ is not None and with_.args.get("recursive")
        for cte in with_.expressions if with_ is not None else ():
            if cte is inside and not recursive:
                break  # a member sees those before it; what has its own name in it is another
            if name_of(cte.args["alias"].this) == name:
                return cte  # type: ignore[no-any-return]
        inside = at if isinstance(at, exp.CTE) else inside
    return None


def holder_of(item: exp.Expr) -> exp.Expr | None:
    """Return the member of WITH that an item of FROM names, or the item, which is its own; None for a relation."""
    return find_cte(item) if isinstance(item, exp.Table) else item


def sides_of(query: exp.Expr) -> list[exp.Expr]:
    """Return the sides of UNION, EXCEPT and INTERSECT, those within each other too; of another query itself."""
    at = query.unnest()
    return [*sides_of(at.this), *sides_of(at.expression)] if isinstance(at, exp.SetOperation) else [at]


def readers_in(tree: exp.Expr) -> dict[int, list[exp.Table]]:
    """Return the tables of a tree that name a member of WITH, by the id of the member."""
    readers: dict[int, list[exp.Table]] = {}
    for table in nodes_of(tree, exp.Table):
        if (cte := find_cte(table)) is not None:
            readers.setdefault(id(cte), []).append(table)
    return readers


def references_in(tree: exp.Expr) -> dict[int, list[exp.Column]]:
    """Return the columns of a tree by the id of the item of FROM that they are of."""
    references: dict[int, list[exp.Column]] = {}
    for reference in nodes_of(tree, exp.Column):
        item = find_source(reference.table, reference) if reference.table else None
        if item is not None:
            references.setdefault(id(item), []).append(reference)
    return references


def is_relation(table: exp.Table) -> bool:
    """Return whether a table is named as the catalog names relations: by no place, and as no member of WITH."""
    return isinstance(table.this, exp.Identifier) and table.args.get("db") is None and find_cte(table) is None


def set_place(table: exp.Table, place: Sequence[str]) -> None:
    """Write where a table is, identifiers from the outermost, in place of its name, which columns still have."""
    if table.args.get("alias") is None:
        table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name, quoted=True)))
    for part, name in zip(("catalog", "db", "this")[-len(place) :], place, strict=True):
        table.set(part, exp.to_identifier(name, quoted=True))


def columns_of(item: exp.Expr, catalog: Catalog) -> list[str] | None:
    """Return the column names of a FROM item, as the engine finds them; None when they are unknown."""
    names = _unrenamed_columns(item, catalog)
    listed = item.alias_column_names if isinstance(item.args.get("alias"), exp.TableAlias) else []
    if not listed or names is None:
        return listed or names
    return [*listed, *(["*"] if "*" in names else names[len(listed) :])]


def _unrenamed_columns(item: exp.Expr, catalog: Catalog) -> list[str] | None:
    if isinstance(item, exp.Table):
        cte = find_cte(item)
        if cte is not None:
            return columns_of(cte, catalog)
        relation = catalog.find(item.name)
        columns = relation.columns if relation is not None else None
        return None if columns is None else [fold(column.name, catalog.dialect, quoted=True) for column in columns]
    inner = query_in(item)
    return list(inner.named_selects) if isinstance(inner, exp.Query) else None


def query_in(item: exp.Expr) -> exp.Expr | None:
    """Return what an item of FROM, or a member of WITH, holds; a query without the parentheses around it."""
    inner: exp.Expr | None = item.this
    return inner.unnest() if isinstance(inner, exp.Subquery) else inner


def origin(column: exp.Column, catalog: Catalog) -> tuple[Relation, Column] | None:
    """Return what relation and column a qualified column shows, through derived tables and WITH; None if computed."""
    item = find_source(column.table, column)
    if item is None:
        return None
    made, names = holder_of(item), columns_of(item, catalog) or []
    if made is None:
        relation = catalog.find(item.name)
        if relation is None:
            return None
        known = relation.column(column.name)
        if item.alias_column_names:
            known = dict(zip(names, relation.columns, strict=False)).get(column.name)
        return (relation, known) if known is not None else None
    query = made.this
    if not isinstance(query, exp.Select) or column.name not in names:
        return None
    shown = query.selects[names.index(column.name)].unalias()
    return origin(shown, catalog) if isinstance(shown, exp.Column) and shown.table else None


def qualified(expression: str, alias: str) -> exp.Expr:
    """Return a SQL expression over a relation (in PostgreSQL's dialect) with its columns qualified."""
    tree = copy_tree(_parse(expression))
    for reference in nodes_of(tree, exp.Column):
        reference.set("table", quoted(alias))
    return tree


@lru_cache(maxsize=64)
def _parse(expression: str) -> exp.Expr:
    return parse_one(expression, read="postgres")


_SETS = ("rollup", "cube", "grouping_sets")


def keys_in(group: exp.Group) -> list[exp.Expr]:
    """Return the keys of a GROUP BY, those of ROLLUP, CUBE and GROUPING SETS included."""
    return [*group.expressions, *keys_of_grouping_sets(group)]


def keys_of_grouping_sets(group: exp.Group) -> list[exp.Expr]:
    """Return the keys that only some of the groups have: those of ROLLUP, CUBE and GROUPING SETS."""
    return [key for kind in _SETS for sets in group.args.get(kind) or () for key in _parts(sets)]


def _parts(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Paren):
        return _parts(node.this)
    if isinstance(node, exp.Tuple | exp.Rollup | exp.Cube | exp.GroupingSets):
        return [key for part in node.expressions for key in _parts(part)]
    return [node]


AGGREGATES = (exp.AggFunc, exp.Filter, exp.WithinGroup)
_OF_NULLS = (exp.IgnoreNulls, exp.RespectNulls)


def is_aggregate(node: exp.Expr) -> bool:
    """Return whether a node is an aggregate, with what stands behind it: FILTER, WITHIN GROUP, IGNORE NULLS."""
    return isinstance(node, AGGREGATES) or (isinstance(node, _OF_NULLS) and isinstance(node.this, AGGREGATES))


def is_grouped(node: exp.Expr, block: exp.Select, keys: Sequence[exp.Expr] = ()) -> bool:
    """Return whether an expression of a block is, or stands in, an aggregate of rows, or one of some keys."""
    return any(at in keys or (isinstance(at, AGGREGATES) and not is_of_window(at)) for at in ancestors(node, block))


def is_of_window(node: exp.Expr) -> bool:
    """Return whether an aggregate, or its FILTER or IGNORE NULLS, is the function of a window."""
    parent = node.parent
    while isinstance(parent, (exp.Filter, exp.WithinGroup, *_OF_NULLS)) and parent.this is node:
        node, parent = parent, parent.parent
    return isinstance(parent, exp.Window) and parent.this is node
