"""SELECT blocks: what they do beyond filtering and computing, and which of that comes after their text calls."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from sqlglot import exp

from almanaq.suql.catalog.answer_types import is_read_from
from almanaq.suql.catalog.sources import (
    AGGREGATES,
    from_items,
    is_aggregate,
    is_grouped,
    is_of_window,
    keys_in,
    keys_of_grouping_sets,
)
from almanaq.suql.plan.predicates import ask_lazily, conjuncts
from almanaq.suql.plan.sites import (
    CLAUSES_OF_ROWS,
    carry,
    in_where,
    is_nested_call,
    is_of_block,
    own_columns,
    parts_beside,
    references_from_above,
    take_rows,
    text_unit,
    where_of,
)
from almanaq.suql.plan.stages import ORDINAL
from almanaq.suql.syntax.nodes import aliased, column, derived, is_within, nodes, nodes_above, nodes_of, side_of
from almanaq.suql.text_functions import (
    has_text,
    is_by_chance,
    is_drawn,
    is_text_call,
    nested_queries,
    outermost_text_calls,
    own_nodes,
    own_text_calls,
)


def split_functions(block: exp.Select, name: str) -> bool:
    """Compute the text calls of a function in FROM in a derived table before it; say whether there were any.

    `t, f(answer(t.x, q)) AS e WHERE w` becomes `(SELECT t.a, answer(t.x, q) AS u0 FROM t WHERE w) AS d, f(d.u0) AS e`,
    and so does a query with text functions in its arguments.
    """
    from_, joins = block.args.get("from_"), block.args.get("joins") or []
    items = [from_.this, *(join.this for join in joins)] if from_ is not None else []
    place = next((place for place, item in enumerate(items) if _asked_in_arguments(item)), None)
    if place is None:
        return False
    computed: dict[str, exp.Expr] = {}
    for unit in _asked_in_arguments(items[place]):
        label = f"u{len(computed)}"
        computed[label] = unit.copy()
        unit.replace(column(name, label))
    inner = exp.Select()
    if place:
        before, joins = joins[: place - 1], joins[place - 1 :]
        known = {item.alias_or_name for item in items[:place]}
        parts = [] if any(side_of(join) in ("RIGHT", "FULL") for join in joins) else conjuncts(where_of(block))
        parts = [part for part in parts if is_of_block(part, block) and not (has_text(part) or is_by_chance(part))]
        about = [part.copy() for part in parts if {c.table for c in own_columns(block, part)} <= known]
        computed = carry(references_from_above(block, place - 1), name) | computed
        inner.set("from_", from_)
        inner.set("joins", before)
        inner.where(*about, copy=False)
    else:
        joins = [exp.Join(this=items[0], kind="CROSS"), *joins]
    inner.set("expressions", [aliased(node, label) for label, node in computed.items()])
    block.set("from_", exp.From(this=derived(inner, name)))
    block.set("joins", joins)
    return True


def _asked_in_arguments(item: exp.Expr) -> list[exp.Expr]:
    """Return what asks in the arguments of the function that makes the rows of an item of FROM; [] of any other."""
    function = item.this if isinstance(item, exp.Table | exp.Lateral) else item
    if not isinstance(function, exp.Func):
        return []
    calls = outermost_text_calls(function)
    queries = [query for query in nested_queries(function) if has_text(query)]
    apart = [query for query in queries if not any(is_within(query, call) for call in calls)]
    return [*map(text_unit, calls), *map(_whole, apart)]


def _whole(query: exp.Expr) -> exp.Expr:
    """Return what computes with a nested query as one: ARRAY, EXISTS or IN; of any other the query itself."""
    around = query.parent
    return around if isinstance(around, exp.Array | exp.Exists | exp.In) else query


def keep_grouped_readings(block: exp.Select, calls: list[exp.Anonymous]) -> None:
    """`… GROUP BY answer(a, q)` with `answer(a, q) = 'x'` or `answer(a, q)::boolean` above it: one in a whole group.

    Under ROLLUP and its like the key, and so what is read from it, is NULL in the groups that it does not tell apart.
    """
    group = block.args.get("group") or exp.Group()
    sometimes = keys_of_grouping_sets(group)
    keys = [*group.expressions, *sometimes]
    for call in calls:
        unit = text_unit(call)
        key = next((key for key in keys if is_read_from(call, key, _type_of(unit))), None)
        if key is None or any(unit == key.unnest() for key in keys) or in_where(unit, block):
            continue
        if unit.find_ancestor(exp.Group, *AGGREGATES, exp.Query) is block:
            of_truth = unit.to.this is exp.DType.BOOLEAN if isinstance(unit, exp.Cast) else unit is not call
            reading: exp.Expr = exp.LogicalOr(this=unit.copy()) if of_truth else exp.Max(this=unit.copy())
            if key in sometimes:
                told_apart = exp.EQ(this=exp.Grouping(expressions=[key.copy()]), expression=exp.Literal.number(0))
                reading = exp.Case(ifs=[exp.If(this=told_apart, true=reading)])
            unit.replace(reading)


def _type_of(unit: exp.Expr) -> exp.DataType | None:
    return unit.to if isinstance(unit, exp.Cast) else None


_GROUPED = ("group", "having", "distinct", "qualify")
LEAVES_OUT_UNKNOWN = "leaves_out_unknown"
"""What a block is marked by whose rows are left out where one of its calls fails."""
SET_RETURNING = frozenset(
    """
    generate_subscripts json_array_elements json_array_elements_text json_object_keys jsonb_array_elements
    jsonb_array_elements_text jsonb_object_keys jsonb_path_query regexp_matches regexp_split_to_table string_to_table
    unnest
    """.split()
)
"""Functions of DuckDB and PostgreSQL that give rows in a SELECT list, but for generate_series, which gives a list in
DuckDB: sqlglot has a class for each of the two."""


def is_plain(block: exp.Select) -> bool:
    """Return whether a block neither groups nor dedups nor looks across rows, and gives each row once."""
    if any(block.args.get(clause) for clause in _GROUPED) or sets_in(block.expressions):
        return False
    return not any(isinstance(node, (*AGGREGATES, exp.Window)) for node in own_nodes(block))


def keeps_each_row(block: exp.Select, made: set[str], *, cut: bool) -> bool:
    """Return whether more rows in one of the tables `made` could never take away a row that a block gives.

    `cut`: it is known elsewhere which rows a LIMIT keeps.
    """
    shown = [item for item in block.expressions if item.alias_or_name != ORDINAL]  # numbers in order stay in order
    plain = block.copy()
    plain.set("expressions", [item.copy() for item in shown])
    if not is_plain(plain) or any(side_of(join) for join in block.args.get("joins") or ()):
        return False
    if not cut and (block.args.get("limit") is not None or block.args.get("offset") is not None):
        return False
    items = {id(item.this) for item in from_items(block) if isinstance(item, exp.Subquery)}
    inner = [item.this for item in from_items(block) if isinstance(item, exp.Subquery)]
    if not all(isinstance(query, exp.Select) and keeps_each_row(query, made, cut=cut) for query in inner):
        return False
    nested = [query for query in nested_queries(block) if id(query) not in items and id(query.unnest()) not in items]
    return not any(table.name in made for query in nested for table in nodes_of(query, exp.Table))


def is_aggregated(block: exp.Select) -> bool:
    return bool(block.args.get("group") or block.args.get("having") or aggregates_in(block))


def windows_in(block: exp.Select) -> list[exp.Expr]:
    return [node for node in own_nodes(block) if isinstance(node, exp.Window)]


def keys_of_groups(block: exp.Select) -> list[exp.Expr]:
    """Return the keys of GROUP BY; [] without one, and under ROLLUP and its like, where a row is in several groups."""
    group = block.args.get("group")
    several = ("rollup", "cube", "grouping_sets", "totals")
    return [] if group is None or any(group.args.get(kind) for kind in several) else list(group.expressions)


def is_cut_or_grouped(block: exp.Select) -> bool:
    """Return whether a block has rows, or none, for another reason than that its FROM and WHERE give any."""
    return (
        bool(block.args.get("limit") or block.args.get("offset"))
        or is_aggregated(block)
        or bool(sets_in(block.expressions))
    )


def expand_output_names(block: exp.Select) -> None:
    """Replace the names of output columns in ORDER BY and DISTINCT ON by what they stand for."""
    outputs = {item.alias_or_name: item.unalias() for item in block.expressions}
    clauses = [block.args.get("order"), block.args.get("distinct")]
    for clause in clauses:
        for name in nodes_of(clause, exp.Column) if clause is not None else ():
            if not name.table and name.name in outputs and name.find_ancestor(exp.Query) is block:
                name.replace(outputs[name.name].copy())
    drop_constant_keys(block)


def drop_constant_keys(block: exp.Select) -> None:
    """Leave constants out of a block's ORDER BY: they order nothing, and a number would be taken for a position."""
    order = block.args.get("order")
    if order is not None:
        constants = (exp.Literal, exp.Null, exp.Boolean)
        kept = [node for node in order.expressions if not isinstance(node.this.unnest(), constants)]
        order.set("expressions", kept)
        if not kept:
            order.pop()
            fetch = block.args.get("limit")
            if isinstance(fetch, exp.Fetch):  # WITH TIES: where nothing orders the rows, each is a tie of the first
                count = fetch.args.get("count")
                none = count is not None and count.name == "0"
                block.set("limit", exp.Limit(expression=exp.Literal.number(0)) if none else None)


def derive(block: exp.Select, name: str, units: Iterable[exp.Expr], above: Sequence[exp.Expr] = ()) -> exp.Select:
    """Move a block's FROM and WHERE into a derived table that also computes some of its expressions, and return it.

    With unit `f(a)`, `SELECT max(f(a)) FROM t WHERE w` becomes
    `SELECT max(d.u0) FROM (SELECT f(a) AS u0 FROM t WHERE w) AS d`. The rows stay the same, since the derived table has
    one row for each that reached the block's other clauses. The conjuncts `above` of WHERE stay above.
    """
    kept = _drop_conjuncts(block, above)
    computed: dict[str, exp.Expr] = {}
    labels: dict[tuple[object, ...], str] = {}
    for unit in units:  # equal ones share a column, but not two draws
        same = unit.sql(), *(node.meta.get("draw") for node in nodes(unit))
        label = labels.setdefault(same, f"u{len(labels)}")
        computed.setdefault(label, unit.copy())
        unit.replace(column(name, label))
    parts = parts_beside(block, CLAUSES_OF_ROWS) + kept
    carried = carry(own_columns(block, *parts), name)
    inner = take_rows(block)
    outputs = [aliased(node, label) for label, node in {**carried, **computed}.items()]
    inner.set("expressions", outputs or [aliased(exp.Literal.number(1), "one")])
    block.set("from_", exp.From(this=derived(inner, name)))
    if kept:
        block.set("where", exp.Where(this=exp.and_(*kept, copy=False)))
    return inner


def draw_first(block: exp.Select, name: str) -> None:
    """Compute what chance decides in a plain block in a derived table, which is read once.

    `SELECT f(a) FROM t ORDER BY random() LIMIT 3` becomes
    `SELECT f(d.a) FROM (SELECT a, random() AS u0 FROM t) AS d ORDER BY d.u0 LIMIT 3`, whose rows are then cut as well.
    """
    parts = conjuncts(where_of(block))
    above = [part for part in parts if has_text(part)]
    shown = parts_beside(block, CLAUSES_OF_ROWS)
    drawn = [node for part in (*above, *shown) for node in own_nodes(part) if is_drawn(node)]
    if not drawn and not any(is_by_chance(part) for part in parts if not has_text(part)):
        return
    derive(block, name, drawn, above)
    split_page(block, f"{name}_page")


def split_page(block: exp.Select, name: str) -> bool:
    """Cut a block's rows in a derived table where only what it shows asks; say whether it does.

    `SELECT f(a) FROM t ORDER BY b LIMIT 1` becomes
    `SELECT f(d.a) FROM (SELECT a, b FROM t ORDER BY b LIMIT 1) AS d ORDER BY d.b`.
    """
    cut = [clause for clause in ("limit", "offset") if block.args.get(clause) is not None]
    beside = [part for part in block.iter_expressions() if part.arg_key != "expressions"]
    if not cut or not is_plain(block) or any(map(has_text, beside)):
        return False
    order = block.args.get("order")
    kept = order.copy() if order is not None else None
    inner = derive(block, name, [])
    inner.set("order", kept)
    for clause in cut:
        inner.set(clause, block.args.pop(clause))
    return True


def split_nested_calls(block: exp.Select, name: str) -> bool:
    """Compute text calls that are arguments of others in a derived table; say whether there were any."""
    nested = [call for call in own_text_calls(block) if is_nested_call(call)]
    if not nested:
        return False
    above = [part for part in conjuncts(where_of(block)) if any(is_nested_call(call) for call in own_text_calls(part))]
    calls = [inner for call in nested for argument in call.expressions for inner in own_text_calls(argument)]
    innermost = [text_unit(call) for call in calls if not is_nested_call(call)]
    decisive = [part for part in above if part.find(exp.Or) is None]  # NULL where a call in it fails
    needed = all(any(is_within(call, part) for part in decisive) for call in innermost)
    inner = derive(block, name, ask_lazily(innermost, block), above)
    if needed or LEAVES_OUT_UNKNOWN in block.meta:
        inner.meta[LEAVES_OUT_UNKNOWN] = True
    return True


def split_windows(block: exp.Select, name: str) -> bool:
    """Compute window functions that text functions read in a derived table; say whether there were any."""
    windows = windows_in(block)
    read = [node for node in windows if (call := node.find_ancestor(exp.Anonymous)) is not None and is_text_call(call)]
    if not read:
        return False
    outermost = [node for node in windows if node.find_ancestor(exp.Window, exp.Query) is block]
    derive(block, name, outermost)
    return True


def split_ordering(block: exp.Select, name: str) -> bool:
    """Compute nested queries with windows that order a block in a derived table; say whether there were any.

    The rows of a text block are numbered by a window in its order, which may hold no window.
    """
    keys = block.args["order"].expressions if block.args.get("order") is not None else []
    read = [query for key in keys for query in nested_queries(key) if query.find(exp.Window) is not None]
    if not read or not is_plain(block) or not own_text_calls(block):
        return False
    derive(block, name, list(map(_whole, read)))
    return True


def split_sets(block: exp.Select, name: str) -> bool:
    """Make the rows of `unnest(x)` in the SELECT list in a derived table; say whether text functions stand above it.

    `SELECT unnest(x), f(a) FROM t LIMIT 3` becomes `SELECT d.u0, f(d.a) FROM (SELECT unnest(x) AS u0, a FROM t) AS d
    LIMIT 3`: LIMIT counts the rows that the sets make.
    """
    order = [block.args["order"]] if block.args.get("order") is not None else []
    nodes = [node for part in (*block.expressions, *order) for node in own_nodes(part)]
    over_rows = [node for node in nodes if node.find_ancestor(exp.Window, exp.Query) is block]
    reads = any(is_text_call(node) or (isinstance(node, exp.Query) and has_text(node)) for node in over_rows)
    sets = [node for node in nodes if _is_set(node)]
    if not sets or is_aggregated(block) or not (reads or sets_in(order)):
        return False
    if asked := [text_unit(call) for each in sets for call in own_text_calls(each)]:  # the rows are made of answers
        derive(block, name, asked)
        return True
    derive(block, name, [*sets, *(node for node in over_rows if isinstance(node, exp.Window))])
    return True


def sets_in(parts: list[exp.Expr]) -> list[exp.Expr]:
    """Return the functions in parts of a block that make rows: `unnest` and its like in a SELECT list."""
    return [node for part in parts for node in own_nodes(part) if _is_set(node)]


def _is_set(node: exp.Expr) -> bool:
    named = isinstance(node, exp.Anonymous) and node.name.lower() in SET_RETURNING
    return named or isinstance(node, exp.Explode | exp.ExplodingGenerateSeries)


def split_groups(block: exp.Select, name: str) -> bool:
    """Group in a derived table where text functions read groups; say whether they do.

    `SELECT summary(array_agg(a)) FROM t GROUP BY b HAVING h` becomes
    `SELECT summary(d.u0) FROM (SELECT array_agg(a) AS u0 FROM t GROUP BY b) AS d WHERE h`.
    """
    if not is_aggregated(block) or not _reads_groups(block):
        return False
    keys = sorted(_group_keys(block), key=lambda key: -len(nodes(key)))  # a key may be part of another
    group, having = block.args.get("group"), block.args.get("having")
    block.set("group", None)
    # Keys are looked for once the aggregates are replaced: one inside an aggregate is a column of the rows.
    parts = ((key, part) for key in keys for part in parts_beside(block, CLAUSES_OF_ROWS))
    read = (node for key, part in parts for node in nodes(part) if node == key)
    inner = derive(block, name, itertools.chain(aggregates_in(block), read))
    inner.set("group", group)
    if having is not None:
        block.set("having", None)
        block.set("where", exp.Where(this=having.this))
    return True


def _reads_groups(block: exp.Select) -> bool:
    keys = _group_keys(block)
    clauses = [*block.expressions, *(block.args.get(name) for name in ("having", "order", "distinct"))]
    parts = [part for part in clauses if part is not None]
    readers = [reader for part in parts for reader in (*own_text_calls(part), *filter(has_text, nested_queries(part)))]
    return not all(
        is_grouped(reader, block, keys)
        or (is_text_call(reader) and any(is_read_from(reader, key, _type_of(text_unit(reader))) for key in keys))
        for reader in readers
    )


def _group_keys(block: exp.Select) -> list[exp.Expr]:
    group = block.args.get("group")
    if group is None:
        return []
    return list({key.sql(): key for key in keys_in(group)}.values())


def aggregates_in(tree: exp.Expr) -> list[exp.Expr]:
    """Return the outermost aggregates of a block's own expressions; a window's own function is none."""

    def aggregates(node: exp.Expr) -> bool:
        return is_aggregate(node) and not is_of_window(node)

    found = nodes_above(tree, lambda at: aggregates(at) or (isinstance(at, exp.Query) and at is not tree))
    return list(filter(aggregates, found))


def _drop_conjuncts(block: exp.Select, above: Sequence[exp.Expr]) -> list[exp.Expr]:
    if not above:
        return []
    rest = [part for part in conjuncts(where_of(block)) if not any(part is kept for kept in above)]
    block.set("where", exp.Where(this=exp.and_(*rest, copy=False)) if rest else None)
    kept: list[exp.Expr] = [exp.paren(part, copy=False) for part in above]  # so that a column has a parent to change in
    for part in kept:
        part.parent = block
    return kept
