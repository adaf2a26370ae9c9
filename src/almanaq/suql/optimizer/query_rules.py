"""Rewrites of a bound query before it is planned: conditions where they cost least, and nothing that nobody reads."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp
from sqlglot.optimizer.merge_subqueries import merge_subqueries

from almanaq.errors import UnsupportedError
from almanaq.suql.catalog.sources import find_source, from_items, holder_of, is_of_window, readers_in, references_in
from almanaq.suql.plan.blocks import (
    aggregates_in,
    drop_constant_keys,
    expand_output_names,
    is_aggregated,
    is_cut_or_grouped,
    keys_of_groups,
    sets_in,
    windows_in,
)
from almanaq.suql.plan.joins import conditions_about, has_outer_join, keeps_rows, needed_matches
from almanaq.suql.plan.predicates import conjuncts
from almanaq.suql.plan.sites import is_correlated, where_of
from almanaq.suql.syntax.nodes import aliased, is_comma, nodes, nodes_of, quoted, side_of
from almanaq.suql.text_functions import (
    has_text,
    is_by_chance,
    is_text_call,
    outermost_text_calls,
    own_nodes,
)


def unused_outputs(tree: exp.Query) -> exp.Query:
    """Drop the members of WITH that nobody reads, and the text in outputs of derived tables that nobody reads.

    Before: `SELECT count(*) FROM (SELECT id, answer(…) AS a FROM t) AS d` asks for every row of t.
    After: `SELECT count(*) FROM (SELECT id, NULL AS a FROM t) AS d` asks nothing; so does the SELECT list of an EXISTS.

    So does a field of a STRUCT that nobody reads: `b` in `SELECT d.s.a FROM (SELECT {'a': …, 'b': answer(…)} AS s …)`.

    Text calls become NULL, and outputs with aggregates that hold them (`max(NULL)` where these are the only ones), so
    every block keeps its grouping, its columns and its number of rows. Blocks under DISTINCT or in a set operation are
    left alone: there, outputs decide which rows there are.
    """
    nested = len(nodes_of(tree, exp.Select)) > 1
    while nested and has_text(tree) and (_drop_unread_members(tree) or _drop_unread_outputs(tree)):
        pass
    return tree


def _drop_unread_members(tree: exp.Query) -> bool:
    readers = readers_in(tree)
    for with_ in nodes_of(tree, exp.With):
        for cte in list(with_.expressions):
            if not has_text(cte):
                continue
            inside = {id(table) for table in nodes_of(cte, exp.Table)}  # a recursive member reads itself
            if all(id(reader) in inside for reader in readers.get(id(cte), ())):
                cte.pop()
                if not with_.expressions:
                    with_.pop()
                return True
    return False


def _drop_unread_outputs(tree: exp.Query) -> bool:
    changed = False
    readers, columns, fields = readers_in(tree), references_in(tree), _fields_read(tree)
    for block in nodes_of(tree, exp.Select):
        if not has_text(block):
            continue
        read = _outputs_read(block, readers, columns)
        distinct = block.args.get("distinct")
        if read is None or (distinct is not None and distinct.args.get("on") is None):
            continue
        aggregated = is_aggregated(block)
        ordering = [clause for clause in (block.args.get("order"), distinct) if clause is not None]
        ordered = {c.name for clause in ordering for c in nodes_of(clause, exp.Column) if not c.table}
        read = read | ordered
        for item in block.expressions:
            if item.alias_or_name not in ordered and block.args.get("group") is None:
                changed |= _drop_unread_fields(item, fields.get((id(block.parent), item.alias_or_name), set()))
            if item.alias_or_name in read or sets_in([item]) or not has_text(item):
                continue
            nested = any(has_text(query) for query in nodes_of(item, exp.Query))
            # An aggregate goes whole: of what is left in it, it might be one of the query around.
            whole = bool(aggregates_in(item)) or (nested and not aggregated)
            for part in [item.unalias()] if whole else outermost_text_calls(item):
                if not whole and block.args.get("group") is not None and part.find_ancestor(exp.Query) is block:
                    continue  # part of a grouping key, which the output must go on to equal
                nothing = exp.cast(exp.null(), "text")
                part.replace(nothing)
                if aggregated and not is_aggregated(block):  # it held the only aggregate: one row, not one for each
                    nothing.replace(exp.Max(this=nothing.copy()))
                changed = True
    return changed


def _fields_read(tree: exp.Query) -> dict[tuple[int, str], set[str]]:
    """Return the fields that are read of each output, by the item of FROM that holds it; "" is the whole of it."""
    found: dict[tuple[int, str], set[str]] = {}
    for column in nodes_of(tree, exp.Column):
        item = find_source(column.table, column) if column.table else None
        holder = (holder_of(item) if item is not None else None) or item
        within = column.parent
        named = within.expression if isinstance(within, exp.Dot) and within.this is column else None
        field = named.name.lower() if isinstance(named, exp.Identifier) else ""
        found.setdefault((id(holder), column.name), set()).add(field)
    return found


def _drop_unread_fields(item: exp.Expr, read: set[str]) -> bool:
    made, changed = item.unalias(), False
    for pair in made.expressions if isinstance(made, exp.Struct) and read and "" not in read else ():
        if isinstance(pair, exp.PropertyEQ) and pair.this.name.lower() not in read and has_text(pair):
            for call in outermost_text_calls(pair):
                call.replace(exp.cast(exp.null(), "text"))
                changed = True
    return changed


def _outputs_read(
    block: exp.Select, readers: dict[int, list[exp.Table]], columns: dict[int, list[exp.Column]]
) -> set[str] | None:
    """Return the outputs of a block that something looks at; None when they all count."""
    parent = block.parent
    if isinstance(parent, exp.Exists) and not any(block.args.get(clause) for clause in ("limit", "offset")):
        return set()
    if isinstance(parent, exp.Subquery) and isinstance(parent.parent, exp.From | exp.Join | exp.Lateral):
        item: exp.Expr = parent if not isinstance(parent.parent, exp.Lateral) else parent.parent
        items = [item]
    elif isinstance(parent, exp.CTE):
        item, items = parent, [*readers.get(id(parent), ())]
    else:
        return None
    return None if item.alias_column_names else {c.name for each in items for c in columns.get(id(each), ())}


def exists_limit(tree: exp.Query) -> exp.Query:
    """Return an EXISTS that does not look around itself a LIMIT 1.

    Before: `WHERE EXISTS (SELECT 1 FROM r WHERE answer(…) = 'Yes')` asks for every row of r.
    After: `WHERE EXISTS (SELECT 1 FROM r WHERE answer(…) = 'Yes' LIMIT 1)` stops at the first, as any LIMIT does.

    EXISTS is true by one row as by many. Blocks that group, or have a LIMIT of their own, are left alone.
    """
    for exists in nodes_of(tree, exp.Exists):
        block = exists.this
        if isinstance(block, exp.Select) and has_text(block) and not is_cut_or_grouped(block):
            block.set("distinct", None)
            if not is_correlated(block):
                block.limit(1, copy=False)
    return tree


def limited_arms(tree: exp.Query) -> exp.Query:
    """Give each side of a UNION ALL the LIMIT of the whole, where the order of rows does not matter.

    Before: `SELECT answer(…) FROM a UNION ALL SELECT answer(…) FROM b LIMIT 2` asks for every row of a and of b.
    After: `(SELECT … FROM a LIMIT 2) UNION ALL (SELECT … FROM b LIMIT 2) LIMIT 2` asks for two of each.
    """
    for query in nodes_of(tree, exp.Union, exp.Select) if nodes_of(tree, exp.Union) else ():
        limit, offset = ((query.args.get(clause) or exp.Limit()).expression for clause in ("limit", "offset"))
        if limit is None or not limit.is_int or (offset is not None and not offset.is_int) or query.args.get("order"):
            continue
        union = _shown_whole(query) if isinstance(query, exp.Select) else query
        if isinstance(union, exp.Union) and not union.args.get("distinct") and has_text(union):
            _limit_arms(union, int(limit.name) + (int(offset.name) if offset is not None else 0))
    return tree


_CUTTING = ("limit", "offset", "order", "with_")


def _limit_arms(union: exp.SetOperation, rows: int) -> None:
    for arm in (union.this, union.expression):
        side = arm.unnest()
        if any(each.args.get(clause) for each in (arm, side) for clause in _CUTTING):
            continue
        if isinstance(side, exp.Union) and not side.args.get("distinct"):
            _limit_arms(side, rows)
        elif isinstance(side, exp.Select) and has_text(side):
            side.limit(rows, copy=False)
            if side is arm:
                arm.replace(exp.Subquery(this=arm.copy()))


def _shown_whole(block: exp.Select) -> exp.Expr | None:
    """Return the query of the one derived table that a block only shows columns of, each row as one; None of others."""
    items = list(from_items(block))
    shown = {key for key, value in block.args.items() if value} <= {"expressions", "from_", "limit", "offset"}
    if not shown or not isinstance(items[0], exp.Subquery) or not all(_is_column(item) for item in block.expressions):
        return None
    query = items[0].this.unnest()
    return None if any(query.args.get(clause) for clause in _CUTTING) else query


def _is_column(item: exp.Expr) -> bool:
    return isinstance(item.unalias(), exp.Column)


def merged_derived_tables(tree: exp.Query) -> exp.Query:
    """Merge derived tables and members of WITH that only filter and compute into the block that reads them.

    Before: `SELECT name FROM (SELECT * FROM r WHERE answer(…) = 'Yes') AS d LIMIT 3` asks for every row of r.
    After: `SELECT name FROM r WHERE answer(…) = 'Yes' LIMIT 3` stops at the third.

    A block without grouping, DISTINCT, windows or LIMIT gives the same rows in place as apart. Its ORDER BY becomes
    that of the block which reads it, where that hands its rows on; where it computes with their order, as `list(x)` and
    `row_number() OVER ()` do, the block stays. One that an outer join may fill with NULL stays: an output like
    `coalesce(a, 'x')` is NULL there for rows without a match, and would not be if it were computed after the join.
    Queries with recursive members are left alone, and those with outputs that make rows (`unnest`) or are by chance,
    which would be drawn wherever they are read.
    """
    recursive = any(with_.args.get("recursive") for with_ in nodes_of(tree, exp.With))
    blocks = nodes_of(tree, exp.Select)
    sets = any(sets_in(block.expressions) for block in blocks)
    drawn = any(is_by_chance(item) for block in blocks if block is not tree for item in block.expressions)
    if recursive or sets or drawn or not has_text(tree):
        return tree
    merged = _merge(tree, blocks) if len(blocks) > 1 else tree
    _drop_parentheses(merged)
    for node in nodes(merged):
        if isinstance(node, exp.Select):
            drop_constant_keys(node)
        elif isinstance(node, exp.Ordered):
            _cast_constant(node)
    return merged


def _merge(tree: exp.Query, blocks: list[exp.Select]) -> exp.Query:
    for block in reversed(blocks):  # the innermost first: an order may pass through several
        _take_order(block)
    apart = [inner for block in blocks for inner in (*_find_apart(block), *_find_ordered(block))]
    for inner in apart:
        inner.set("connect", exp.Connect())  # a clause that no merged block may have
    try:
        merged: exp.Query = merge_subqueries(tree)
    except LookupError as error:
        raise UnsupportedError("nested queries of this form are not planned beside text functions") from error
    for inner in apart:
        inner.set("connect", None)
    return merged


_WHATEVER_THE_ORDER = (
    *(exp.ApproxDistinct, exp.Avg, exp.Count, exp.CountIf, exp.LogicalAnd, exp.LogicalOr, exp.Max, exp.Median),
    *(exp.Min, exp.Quantile, exp.Stddev, exp.Sum, exp.Variance),
)
"""Aggregates that come to the same in any order of their rows."""


def _computes_with_order(block: exp.Select) -> bool:
    """Return whether what a block computes depends on the order of the rows that it reads, and orders itself no more.

    DISTINCT ON does where ORDER BY tells no rows of one key apart.
    """
    distinct, order = block.args.get("distinct"), block.args.get("order")
    first_of = distinct.args.get("on") if distinct is not None else None
    keys = [key.this for key in order.expressions] if order is not None else []
    if first_of is not None and all(key in first_of.expressions for key in keys):
        return True
    if any(window.args.get("order") is None for window in windows_in(block)):
        return True
    made = [node for node in own_nodes(block) if isinstance(node, exp.AggFunc) and not is_of_window(node)]
    return any(not isinstance(node, _WHATEVER_THE_ORDER) and node.find(exp.Order) is None for node in made)


def _query_in(item: exp.Expr) -> exp.Select | None:
    """Return the SELECT of a derived table, or of the member of WITH that an item of FROM names."""
    holder = holder_of(item)
    inner = holder.this if isinstance(holder, exp.CTE | exp.Subquery) else None
    return inner if isinstance(inner, exp.Select) else None


def _find_ordered(block: exp.Select) -> Iterator[exp.Select]:
    if _computes_with_order(block):
        yield from (q for item in from_items(block) if (q := _query_in(item)) is not None and _is_ordered(q))


def _is_ordered(block: exp.Select) -> bool:
    """Return whether a block has an ORDER BY, or hands on the rows of one that has."""
    inner = [query for item in from_items(block) if (query := _query_in(item)) is not None]
    return block.args.get("order") is not None or any(map(_is_ordered, inner))


def _take_order(block: exp.Select) -> None:
    """Order a block's rows as the first item of its FROM does, where it joins others to it and orders them no more."""
    joins = block.args.get("joins") or ()
    first = next(from_items(block), None) if joins else None
    inner = _query_in(first) if first is not None and not first.alias_column_names else None
    order = inner.args.get("order") if inner is not None else None
    if first is None or inner is None or order is None or is_by_chance(order) or inner.args.get("distinct"):
        return
    if any(block.args.get(clause) for clause in ("order", "distinct")) or is_aggregated(block):
        return
    side_of_set = isinstance(block.parent, exp.SetOperation)
    if side_of_set and (not isinstance(block.parent, exp.Union) or block.parent.args.get("distinct")):
        return
    if {side_of(join) for join in joins} & {"RIGHT", "FULL"} or _computes_with_order(block):
        return
    expand_output_names(inner)
    keys, name = [], first.alias_or_name
    for number, key in enumerate(order.expressions):
        label = f"_order_{number}"
        inner.append("expressions", aliased(key.this.copy(), label))
        outer = key.copy()
        outer.set("this", exp.column(quoted(label), quoted(name)))
        keys.append(outer)
    block.set("order", exp.Order(expressions=keys) if keys else None)
    if side_of_set and keys:  # written bare, it would be the order of the whole
        side = exp.Subquery()
        block.replace(side)
        side.set("this", block)


def _find_apart(block: exp.Select) -> Iterator[exp.Select]:
    """Yield the blocks that one with outer joins reads, and that are not to be merged into it.

    Without a WHERE or LIMIT there is nothing to filter or to stop by: a table by itself is read without being copied.
    """
    narrows = block.args.get("limit") or block.args.get("where")
    for item in from_items(block) if any(map(side_of, block.args.get("joins") or ())) else ():
        inner = _query_in(item)
        if inner is None:
            continue
        commas = [join for join in inner.args.get("joins") or () if is_comma(join)]
        if not (narrows and keeps_rows(block, item.alias_or_name)) or (commas and has_outer_join(inner)):
            yield inner
        for join in commas if not has_outer_join(inner) else ():
            join.set("kind", "CROSS")  # what follows must see the items before it


def _drop_parentheses(tree: exp.Query) -> None:
    """Drop the parentheses that merging puts around an output where they change nothing: a key of GROUP BY is found in
    the other clauses by its form."""
    for paren in nodes_of(tree, exp.Paren):
        within = paren.parent
        alone = isinstance(within, exp.Alias | exp.Group | exp.Ordered | exp.Select | exp.Func | exp.Paren)
        if alone and not isinstance(within, exp.Binary):
            paren.replace(paren.this)


def _cast_constant(key: exp.Ordered) -> None:
    """Cast an output that is a constant, now in its place: an aggregate's ORDER BY may hold no bare one in DuckDB."""
    constant = key.this.unnest()
    of_rows = key.find_ancestor(exp.AggFunc, exp.WithinGroup, exp.Query) is key.find_ancestor(exp.Query)
    if of_rows or constant.is_number or not isinstance(constant, exp.Literal | exp.Null | exp.Boolean):
        return
    key.set("this", exp.cast(constant, "boolean" if isinstance(constant, exp.Boolean) else "text"))


def pushed_conditions(tree: exp.Query) -> exp.Query:
    """Repeat conditions about a derived table, or about a member of WITH that is read once, inside of it.

    Before: `SELECT * FROM (SELECT DISTINCT city, answer(…) AS a FROM t) AS d WHERE d.city = 'Rome'` asks for every row.
    After: the derived table has `WHERE city = 'Rome'`, and so do both sides of a UNION; the condition outside stays.
    Of `a LEFT JOIN (SELECT id, answer(…) AS b FROM t) AS d ON d.id = a.id` it asks for rows that have a match in a; of
    `SELECT … FROM (SELECT answer(…) AS a, row_number() OVER w AS n FROM t) AS d WHERE d.n = 1` for the first ones.

    A row that fails the condition outside is dropped there anyway, and no other row depends on it. Below a LIMIT, a
    window or an aggregate one would, so conditions are pushed past those only where they are about their keys.
    """
    blocks = nodes_of(tree, exp.Select)
    for block in blocks if len(blocks) > 1 and has_text(tree) else ():
        for item in from_items(block):
            inner, name = _read_only_by(item, tree), item.alias_or_name
            if inner is None or not has_text(inner):
                continue
            for part in (*conditions_about(block, name), *needed_matches(block, item)):
                _push(inner, part, name, [output.alias_or_name for output in inner.selects])
    return tree


def _read_only_by(item: exp.Expr, tree: exp.Query) -> exp.Query | None:
    holder = holder_of(item)
    if not isinstance(holder, exp.CTE | exp.Subquery) or item.alias_column_names or holder.alias_column_names:
        return None
    if isinstance(holder, exp.CTE):
        recursive = holder.parent is not None and holder.parent.args.get("recursive")
        if recursive or len(readers_in(tree)[id(holder)]) != 1:
            return None
    return holder.this if isinstance(holder.this, exp.Query) else None


def _push(query: exp.Expr, part: exp.Expr, item: str, names: list[str]) -> None:
    own = [column for column in nodes_of(part, exp.Column) if column.table == item]
    if query.args.get("limit") or query.args.get("offset"):
        return
    if isinstance(query, exp.Subquery):
        _push(query.this, part, item, names)
    elif isinstance(query, exp.SetOperation):
        if all(_has_one_type(query, names.index(column.name)) for column in own):
            _push(query.this, part, item, names)
            _push(query.expression, part, item, names)
    elif isinstance(query, exp.Select):
        outputs = dict(zip(names, (item.unalias() for item in query.expressions), strict=False))
        read = [outputs.get(column.name) for column in own]
        found = [node for node in read if node is not None]
        if len(found) < len(read) or not _is_open(query):
            return
        windows = any(node.find(exp.Window) for node in found)  # in an EXISTS they would be of another query
        if all(_may_filter(node, query) for node in found):
            query.where(_over(part, item, outputs), copy=False)
        elif all(_may_choose(node, query) for node in found) and not (windows and part.find(exp.Query)):
            chosen, before = _over(part, item, outputs), query.args.get("qualify")
            query.set("qualify", exp.Qualify(this=exp.and_(*([before.this] if before else []), chosen, copy=False)))


def _has_one_type(query: exp.Query, number: int) -> bool:
    """Return whether an output of a set operation has one type on both sides: otherwise it is cast on its way out."""
    sides = (query.this, query.expression) if isinstance(query, exp.SetOperation) else ()
    outputs = [side.selects[number].unalias() for side in sides if len(side.selects) > number]
    known = {output.type.sql() for output in outputs if output.type is not None}
    return len(outputs) == 2 and len(known) == 1 and all(output.type is not None for output in outputs)


def _is_open(block: exp.Select) -> bool:
    distinct = block.args.get("distinct")
    if (distinct is not None and distinct.args.get("on") is not None) or sets_in(block.expressions):
        return False
    return not is_aggregated(block) or bool(keys_of_groups(block))


def _may_filter(node: exp.Expr, block: exp.Select) -> bool:
    key = not is_aggregated(block) or node in keys_of_groups(block)
    key = key and all(node in (window.args.get("partition_by") or ()) for window in windows_in(block))
    return key and not (has_text(node) or is_by_chance(node)) and node.find(exp.Query) is None


def _may_choose(node: exp.Expr, block: exp.Select) -> bool:
    """Return whether an output may tell which rows of a block are asked about, once its windows have seen all."""
    windows = windows_in(block)
    asks = any(map(has_text, block.expressions)) and not is_aggregated(block)
    known = not (has_text(node) or is_by_chance(node)) and node.find(exp.Query) is None
    return bool(windows) and not any(map(has_text, windows)) and asks and known


def _over(part: exp.Expr, item: str, outputs: dict[str, exp.Expr]) -> exp.Expr:
    holder = exp.paren(part.copy(), copy=False)
    for column in (column for column in nodes_of(holder, exp.Column) if column.table == item):
        output = outputs[column.name].copy()
        column.replace(output if isinstance(output, exp.Column) else exp.paren(output, copy=False))
    return holder


_OF_BOTH_SIDES = (
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Like, exp.ILike),
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod),
)
"""Operators that give NULL where one side is NULL."""
_OF_THE_FIRST = (exp.Paren, exp.Cast, exp.Neg, exp.Not, exp.Between)
"""Operators that give NULL where what they are about is NULL."""


def inner_joins(tree: exp.Query) -> exp.Query:
    """Turn outer joins whose rows without a match a later condition drops into inner joins.

    Before: `SELECT … FROM a LEFT JOIN b ON answer(a.x, …) = answer(b.y, …) WHERE b.id < 5` asks for every row of b.
    After: `SELECT … FROM a JOIN b ON answer(a.x, …) = answer(b.y, …) WHERE b.id < 5` asks for those with `id < 5`.

    A row without a match has NULL for every column of the other side, and the condition is not true of NULL. A FULL
    JOIN may turn into a LEFT or RIGHT JOIN.
    """
    if has_text(tree) and has_outer_join(tree):
        for block in nodes_of(tree, exp.Select):
            while any(_narrow(block, place) for place in range(len(block.args.get("joins") or ()))):
                pass
    return tree


def _narrow(block: exp.Select, place: int) -> bool:
    joins, items = block.args["joins"], [item.alias_or_name for item in from_items(block)]
    join, side = joins[place], side_of(joins[place])
    if side not in ("LEFT", "RIGHT", "FULL") or join.args.get("using") or join.args.get("method"):
        return False
    comma = max((i for i, earlier in enumerate(joins[:place]) if is_comma(earlier)), default=-1)
    before, item = set(items[comma + 1 : place + 1]), {items[place + 1]}
    joining = [later.args.get("on") for later in joins[place + 1 :] if side_of(later) in ("", "RIGHT")]
    conditions = [part for condition in (where_of(block), *joining) for part in conjuncts(condition)]
    keeps_before = side in ("LEFT", "FULL") and not any(_drops(part, item) for part in conditions)
    keeps_item = side in ("RIGHT", "FULL") and not any(_drops(part, before) for part in conditions)
    narrowed = {(True, True): "FULL", (True, False): "LEFT", (False, True): "RIGHT"}.get((keeps_before, keeps_item))
    join.set("side", narrowed)
    join.set("kind", None)
    return narrowed != side


def _drops(node: exp.Expr, names: set[str]) -> bool:
    """Return whether a condition is not true where every column of some FROM items is NULL."""
    if isinstance(node, exp.Paren):
        return _drops(node.this, names)
    if isinstance(node, exp.And | exp.Or):
        sides = (_drops(node.this, names), _drops(node.expression, names))
        return any(sides) if isinstance(node, exp.And) else all(sides)
    asked = node.this.unnest() if isinstance(node, exp.Not) else node
    if isinstance(asked, exp.Is) and isinstance(asked.expression, exp.Null):
        negated = (asked is not node) != bool(asked.args.get("negate"))
        return negated and _is_null(asked.this, names)
    return _is_null(node, names)


def _is_null(node: exp.Expr | None, names: set[str]) -> bool:
    """Return whether an expression is NULL where every column of some FROM items is; answers about NULL are."""
    if isinstance(node, exp.Column):
        return node.table in names
    if isinstance(node, _OF_THE_FIRST) or (isinstance(node, exp.In) and node.expressions):
        return _is_null(node.this, names)
    if isinstance(node, _OF_BOTH_SIDES) and not isinstance(node.expression, exp.Any | exp.All):
        return _is_null(node.this, names) or _is_null(node.expression, names)
    if isinstance(node, exp.And | exp.Or):
        return _is_null(node.this, names) and _is_null(node.expression, names)
    arguments = node.expressions[:2] if node is not None and is_text_call(node) else []
    return any(_is_null(argument, names) for argument in arguments)
