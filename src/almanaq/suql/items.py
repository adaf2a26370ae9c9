"""Items of FROM: joins as a list, relations, aliases that differ from those around them, references to rows."""

from __future__ import annotations

import itertools
from collections.abc import Container

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from almanaq.errors import UnknownNameError, UnsupportedError
from almanaq.suql.catalog.relations import Catalog, Relation, fold
from almanaq.suql.catalog.sources import (
    columns_of,
    enclosing_selects,
    find_cte,
    find_source,
    from_items,
    holder_of,
    qualified,
    query_in,
    readers_in,
    references_in,
    sides_of,
)
from almanaq.suql.syntax.nodes import (
    aliased,
    column,
    derived,
    free_name,
    is_within,
    nodes_of,
    quoted,
    side_of,
    table_alias,
)
from almanaq.suql.text_functions import is_by_chance

# --- joins ------------------------------------------------------------------------------------------------------------


def flatten_joins(tree: exp.Query) -> None:
    """`FROM ((a JOIN b ON c) JOIN d ON e)` becomes `FROM a JOIN b ON c JOIN d ON e`: the same, and a list of items.

    `a JOIN (b JOIN c ON d) ON e` becomes `a CROSS JOIN b JOIN c ON d AND e`, and `a LEFT JOIN (b JOIN c ON d) ON e`
    `b JOIN c ON d RIGHT JOIN a ON e`.
    """
    for block in nodes_of(tree, exp.Select):
        from_ = block.args.get("from_")
        while from_ is not None and (_take_joins(block, from_) or _flatten_join(block, from_)):
            pass


def _take_joins(block: exp.Select, from_: exp.From) -> bool:
    if (inner := _unwrap_joins(from_.this)) is None:
        return False
    joins = [join.pop() for join in inner.args.get("joins") or ()]
    block.set("joins", [*joins, *(block.args.get("joins") or ())])
    from_.set("this", inner)
    return True


def _flatten_join(block: exp.Select, from_: exp.From) -> bool:
    joins = block.args.get("joins") or []
    unwrapped = ((place, inner) for place, join in enumerate(joins) if (inner := _unwrap_joins(join.this)) is not None)
    place, inner = next(unwrapped, (0, None))
    if inner is None:
        return False
    join, within = joins[place], [each.pop() for each in inner.args.get("joins") or ()]
    merges = [any(each.args.get(key) for key in ("using", "method")) for each in (join, *within)]
    on, sides = join.args.get("on"), {side_of(each) for each in within}
    join.set("this", inner)
    if not any(merges) and not side_of(join) and not sides - ({""} if on is not None else {"", "LEFT"}):
        if on is not None:
            last = within[-1] if within else join
            parts = [each for each in (last.args.get("on"), on) if each is not None and each is not on]
            join.set("on", None)
            join.set("kind", "CROSS" if last is not join else join.kind)
            last.set("on", exp.and_(*parts, on))
            last.set("kind", None)
        joins = [*joins[: place + 1], *within, *joins[place + 1 :]]
    elif not merges[0] and not place and not any(isinstance(output, exp.Star) for output in block.expressions):
        first = from_.this
        from_.set("this", inner)
        join.set("this", first)
        join.set("side", {"LEFT": "RIGHT", "RIGHT": "LEFT"}.get(side_of(join), join.side))
        joins = [*within, *joins]
    else:
        raise UnsupportedError(
            "a join in parentheses behind another join is not supported here beside text functions: write it as a "
            "derived table, (SELECT … FROM … JOIN …) AS d"
        )
    block.set("joins", joins)
    return True


def _unwrap_joins(item: exp.Expr) -> exp.Expr | None:
    within = item.this if isinstance(item, exp.Paren | exp.Subquery) and not item.alias else None
    if isinstance(within, exp.Table | exp.Values | exp.Unnest | exp.Lateral) or (
        isinstance(within, exp.Subquery) and (within.alias or within.args.get("joins"))
    ):
        inner: exp.Expr = item.this
        for join in item.args.get("joins") or ():
            inner.append("joins", join.pop())
        return inner
    return item if isinstance(item, exp.Table) and item.args.get("joins") else None


# --- relations and aliases --------------------------------------------------------------------------------------------


def name_relations(tree: exp.Query, catalog: Catalog) -> dict[str, Relation]:
    """Write each relation under its name in the catalog, with an alias; return them by these names.

    A schema before a relation or a column is left out where it is known what is meant. So that it stays known, a member
    of WITH that is called as a relation is renamed, and so is the alias that another item beside or around it has.
    """
    found: list[tuple[exp.Table, Relation]] = []
    for table in nodes_of(tree, exp.Table):
        if not isinstance(table.this, exp.Identifier) or find_cte(table) is not None:
            continue
        relation = catalog.find(".".join(part.name for part in table.parts))
        if relation is None:
            raise UnknownNameError(catalog.unknown(table.name))
        found.append((table, relation))
    named = {relation.name: relation for _, relation in found}
    _rename_members(tree, named)
    for table, relation in found:
        called = table.name
        table.meta["place"] = tuple(part.name for part in table.parts)
        for part in ("db", "catalog"):
            table.set(part, None)
        table.set("this", quoted(relation.name))
        _keep_name(table, called)
    if named:
        _separate_items(tree, [table for table, _ in found])
    return named


def _rename_members(tree: exp.Query, relations: Container[str]) -> None:
    """Give members of WITH that are called as a relation of the query a name of their own: `public.t` is none."""
    readers = readers_in(tree)
    for cte in nodes_of(tree, exp.CTE):
        if cte.alias not in relations:
            continue
        name = _free_name(tree, cte.alias)
        for table in readers.get(id(cte), ()):
            _keep_name(table, table.name)
            table.set("this", quoted(name))
        cte.args["alias"].set("this", quoted(name))


def _keep_name(table: exp.Table, name: str) -> None:
    """Give a relation an alias where it has none."""
    if table.args.get("alias") is None:
        table.set("alias", table_alias(name))
    elif table.args["alias"].this is None:
        table.args["alias"].set("this", quoted(name))


def _free_name(tree: exp.Query, name: str) -> str:
    return free_name(name, {node.name for node in nodes_of(tree, exp.Table, exp.TableAlias)})


def _separate_items(tree: exp.Query, tables: list[exp.Table]) -> None:
    """Leave the schema out before columns, `s.t.c`, where it is one of an item of FROM; else `s` may be a struct.

    An item that would not be found without it gets an alias of its own.
    """
    references: dict[int, list[exp.Column]] = {}
    hidden = {id(table) for table in tables if _is_second(table)}
    for reference in nodes_of(tree, exp.Column):
        of_schema = reference.args.get("db") is not None
        item = _find_placed(reference) if of_schema else find_source(reference.table, reference)
        if reference.table and isinstance(item, exp.Table):
            references.setdefault(id(item), []).append(reference)
            if of_schema and find_source(reference.table, reference) is not item:
                hidden.add(id(item))
    for table in tables:
        alias = table.alias
        new = _free_name(tree, alias) if id(table) in hidden else alias
        table.args["alias"].set("this", quoted(new))
        for reference in references.get(id(table), ()):
            reference.set("table", quoted(new))
            reference.set("db", None)
            reference.set("catalog", None)


def _find_placed(reference: exp.Column) -> exp.Expr | None:
    """Return the item of FROM that stands for the relation of a column with its schema, looking outwards."""
    before = tuple(part.name for part in reference.parts[:-1])
    for select in enclosing_selects(reference):
        for item in from_items(select):
            placed = item.meta.get("place", ())[-len(before) :] == before
            if placed and item.alias_or_name == before[-1] and not is_within(reference, item):
                return item
    return None


def _is_second(table: exp.Table) -> bool:
    """Return whether an item of the same FROM before a table has its alias."""
    block = table.find_ancestor(exp.Select)
    for item in from_items(block) if block is not None else ():
        if item is table:
            return False
        if item.alias_or_name == table.alias:
            return True
    return False


def rename_hidden_aliases(tree: exp.Query) -> None:
    """Give a FROM item that hides one around it an alias of its own: a name then means the same wherever it moves.

    An item of a derived table, or of a member of WITH, may move to the block that reads it.
    """
    read = references_in(tree)
    for block in nodes_of(tree, exp.Select):
        around: set[str] = set()
        for select in itertools.islice(enclosing_selects(block), 1, None):
            items = list(from_items(select))
            nested = not any(is_within(block, part) for part in (*items, select.args.get("with_")) if part)
            around |= {name for item in items for name in (_aliases_in(item) if nested else [item.alias_or_name])}
        for item in from_items(block):
            alias = item.alias_or_name
            if not alias or alias not in around:
                continue
            taken = around | {name for other in from_items(block) for name in _aliases_in(other)}
            new = free_name(alias, taken)
            item.args["alias"].set("this", quoted(new))
            for reference in read.get(id(item), ()):
                reference.set("table", quoted(new))


def _aliases_in(item: exp.Expr) -> set[str]:
    """Return the alias of a FROM item, and those of the items that it is made of."""
    found, pending, seen = set[str](), [item], set[int]()
    while pending:
        at = pending.pop()
        found.add(at.alias_or_name)
        holder = holder_of(at)
        if holder is not None and id(holder) not in seen:  # a recursive member reads itself
            seen.add(id(holder))
            pending += [inner for block in nodes_of(holder, exp.Select) for inner in from_items(block)]
    return found


def inline_correlated_members(tree: exp.Query) -> None:
    """Write members of WITH that name columns of a query around theirs as derived tables: others are planned once."""
    for cte in nodes_of(tree, exp.CTE):
        with_ = cte.parent
        named = [find_source(each.table, each) for each in nodes_of(cte.this, exp.Column) if each.table]
        if not isinstance(with_, exp.With) or all(item is None or is_within(item, cte) for item in named):
            continue
        readers = readers_in(tree).get(id(cte), [])
        if with_.args.get("recursive") or (len(readers) > 1 and is_by_chance(cte.this)):
            continue
        for table in readers:
            table.replace(derived(cte.this.copy(), table.alias, cte.alias_column_names))
        cte.pop()
        if not with_.expressions and with_.parent is not None:
            with_.parent.set("with_", None)


# --- rows -------------------------------------------------------------------------------------------------------------


def write_fields(tree: exp.Query, catalog: Catalog) -> int:
    """Write `(x).c` as `x.c` and `(x).*` as `x.*` where `x` is a row of an item of FROM; return how many there were."""
    found = 0
    for dot in nodes_of(tree, exp.Dot):
        row, field = dot.this.unnest(), dot.expression
        if not isinstance(field, exp.Identifier | exp.Star) or not isinstance(row, exp.Column):
            continue
        if _names_row(row, catalog):
            if isinstance(field, exp.Identifier):
                field = quoted(fold(field.name, catalog.dialect, quoted=bool(field.args.get("quoted"))))
            dot.replace(exp.Column(this=field, table=quoted(row.name)))
            found += 1
    return found


def write_rows(tree: exp.Query, catalog: Catalog, dialect: str) -> None:
    """Write each reference to the row of an item of FROM as the columns that it is made of.

    `count(x)` becomes `count({'a': x.a, 'b': x.b})`, a STRUCT that keeps the names: what is asked for one of them is
    asked for the row.
    """
    if not Dialect.get_or_raise(dialect).TABLES_REFERENCEABLE_AS_COLUMNS:
        return
    for reference in nodes_of(tree, exp.Column):
        within = reference.parent
        if isinstance(reference.this, exp.Star) and reference.table and not isinstance(within, exp.Select):
            item = find_source(reference.table, reference)
            of_row = isinstance(within, exp.Anonymous) and within.name.lower() == "row"
            if item is not None and within is not None and (of_row or isinstance(within, exp.Tuple)):
                names = _columns_of_row(item, catalog)
                parts = [column(reference.table, name) for name in names]
                listed = [part for each in within.expressions for part in (parts if each is reference else [each])]
                within.set("expressions", listed)
                continue
        elif not _names_row(reference, catalog) or _is_output_name(reference):
            continue
        else:
            item = find_source(reference.name, reference)
        if item is None or not _has_row(item):
            continue
        made = _row_of(item, catalog, dialect)
        made.meta["row"] = item.alias_or_name
        shown = isinstance(within, exp.Select) and reference.arg_key == "expressions"
        reference.replace(aliased(made, reference.name) if shown else made)


def _has_row(item: exp.Expr) -> bool:
    """Return whether an item of FROM is a relation or a query: a function may give values."""
    if isinstance(item, exp.Table):
        return isinstance(item.this, exp.Identifier)
    return isinstance(item, exp.Subquery | exp.Values) or isinstance(item.this, exp.Subquery)


def _is_output_name(reference: exp.Column) -> bool:
    """Return whether a name is one that GROUP BY, ORDER BY or DISTINCT ON takes for an output's."""
    holder = reference.find_ancestor(exp.Group, exp.Order, exp.Distinct, exp.Query)
    block = reference.find_ancestor(exp.Query)
    alone = isinstance(reference.parent, exp.Ordered | exp.Group | exp.Distinct | exp.Tuple)
    if isinstance(holder, exp.Query) or block is None or not alone:
        return False
    named = [item.this for item in block.selects if isinstance(item, exp.Alias) and item.alias == reference.name]
    return any(output.meta.get("row") != reference.name for output in named)


def _names_row(reference: exp.Column, catalog: Catalog) -> bool:
    """Return whether a name alone is that of an item of FROM, and of no column around it."""
    if reference.table or isinstance(reference.this, exp.Star):
        return False
    item = find_source(reference.name, reference)
    if item is None or not _has_row(item):
        return False
    items = [each for select in enclosing_selects(reference) for each in from_items(select)]
    shown = [columns_of(each, catalog) for each in items if not is_within(reference, each)]
    return not any(names is not None and reference.name in names for names in shown)


def _columns_of_row(item: exp.Expr, catalog: Catalog) -> list[str]:
    names = columns_of(item, catalog)
    holder = holder_of(item)
    query = query_in(holder) if holder is not None else None
    unnamed = isinstance(query, exp.Query) and names is not None and len(query.selects) != len(names)
    if not names or not all(names) or unnamed or "*" in names or len(set(names)) < len(names):
        raise UnsupportedError(
            f"what the columns of a row of {item.alias_or_name!r} are called cannot be told here: give each a name (AS)"
        )
    return names


def _row_of(item: exp.Expr, catalog: Catalog, dialect: str) -> exp.Expr:
    names, alias = _columns_of_row(item, catalog), item.alias_or_name
    if dialect != "postgres":
        raise UnsupportedError(f"a row of {alias!r} is not supported beside text functions: name its columns")
    pairs = [exp.PropertyEQ(this=quoted(name), expression=column(alias, name)) for name in names]
    made: exp.Expr = exp.Struct(expressions=pairs)
    relation = catalog.find(item.name) if isinstance(item, exp.Table) and find_cte(item) is None else None
    if relation is not None and not relation.is_narrowed:
        place = ".".join(quoted(part).sql(dialect) for part in relation.location)
        made = exp.Cast(this=made, to=exp.DataType(this=exp.DType.USERDEFINED, kind=place))
    if not _may_lack_match(item):
        return made
    if relation is not None and relation.row_id is not None:
        mark: exp.Expr = qualified(relation.row_id, alias)
    elif _mark_rows(item):
        mark = column(alias, _MARK)
    else:
        raise UnsupportedError(
            f"a row of {alias!r}, which an outer join may leave out, is not supported beside text functions: name its "
            "columns"
        )
    known = exp.Not(this=exp.Is(this=mark, expression=exp.null()))
    return exp.Case(ifs=[exp.If(this=known, true=made)])


_MARK = "is a row"
"""The column by which a row of a query is told from one that an outer join makes up."""


def _mark_rows(item: exp.Expr) -> bool:
    """Have the query of a derived table, or of a member of WITH, show the mark; say whether it does."""
    holder = holder_of(item)
    block = item.find_ancestor(exp.Select)
    starred = block is None or any(output.is_star for output in block.expressions)
    with_ = holder.find_ancestor(exp.With) if isinstance(holder, exp.CTE) else None
    sides = sides_of(holder.this) if holder is not None else []
    selects = [side for side in sides if isinstance(side, exp.Select)]
    if starred or not sides or len(selects) < len(sides) or (with_ is not None and with_.args.get("recursive")):
        return False
    for each in selects:
        if _MARK not in each.named_selects:
            each.append("expressions", aliased(exp.true(), _MARK))
    return True


def _may_lack_match(item: exp.Expr) -> bool:
    """Return whether an outer join may give rows without one of an item of FROM."""
    block = item.find_ancestor(exp.Select)
    if block is None or not (joins := block.args.get("joins")):
        return False
    place = next((n for n, each in enumerate(from_items(block)) if each is item or is_within(item, each)), 0)
    own = side_of(joins[place - 1]) if 0 < place <= len(joins) else ""
    return own in ("LEFT", "FULL") or any(side_of(join) in ("RIGHT", "FULL") for join in joins[place:])
