"""Drop what nobody looks at: outputs, and rows of an EXISTS after the first."""

from __future__ import annotations

from sqlglot import exp

from almanaq.suql.catalog.sources import find_cte, find_source
from almanaq.suql.plan.blocks import is_aggregated, is_cut_or_grouped, sets_in
from almanaq.suql.plan.sites import is_correlated
from almanaq.suql.syntax.nodes import nodes_of
from almanaq.suql.text_functions import has_text, outermost_text_calls


def unused_outputs(tree: exp.Query) -> exp.Query:
    """Drop the members of WITH that nobody reads, and the text in outputs of derived tables that nobody reads.

    Before: `SELECT count(*) FROM (SELECT id, answer(…) AS a FROM t) AS d` asks for every row of t.
    After: `SELECT count(*) FROM (SELECT id, NULL AS a FROM t) AS d` asks nothing; so does the SELECT list of an EXISTS.

    Only text calls become NULL (an aggregate of it where they read the only aggregates), so every block keeps its
    grouping, its columns and its number of rows. Blocks under DISTINCT or in a set operation are left alone: there,
    outputs decide which rows there are.
    """
    while has_text(tree) and (_drop_unread_members(tree) or _drop_unread_outputs(tree)):
        pass
    return tree


def _drop_unread_members(tree: exp.Query) -> bool:
    readers = _readers(tree)
    for with_ in nodes_of(tree, exp.With):
        for cte in list(with_.expressions):
            if not has_text(cte):
                continue
            inside = {id(table) for table in nodes_of(cte, exp.Table)}  # a recursive member reads itself
            if not readers.get(id(cte), set()) - inside:
                cte.pop()
                if not with_.expressions:
                    with_.pop()
                return True
    return False


def _readers(tree: exp.Query) -> dict[int, set[int]]:
    readers: dict[int, set[int]] = {}
    for table in nodes_of(tree, exp.Table):
        cte = find_cte(table)
        if cte is not None:
            readers.setdefault(id(cte), set()).add(id(table))
    return readers


def _columns(tree: exp.Query) -> dict[int, set[str]]:
    read: dict[int, set[str]] = {}
    for column in nodes_of(tree, exp.Column):
        item = find_source(column.table, column) if column.table else None
        if item is not None:
            read.setdefault(id(item), set()).add(column.name)
    return read


def _drop_unread_outputs(tree: exp.Query) -> bool:
    changed = False
    readers, columns = _readers(tree), _columns(tree)
    for block in nodes_of(tree, exp.Select):
        if not has_text(block):
            continue
        read = _outputs_read(block, readers, columns)
        distinct = block.args.get("distinct")
        if read is None or (distinct is not None and distinct.args.get("on") is None):
            continue
        aggregated = is_aggregated(block)
        for item in block.expressions:
            if item.alias_or_name not in read and not _decides_rows(item, block) and not sets_in([item]):
                if not aggregated and _drop_nested(item):
                    changed = True
                    continue
                for call in outermost_text_calls(item):
                    around = call.find_ancestor(exp.AggFunc, exp.Query)
                    if block.args.get("group") is not None and (around is block or isinstance(around, exp.Grouping)):
                        continue  # part of a grouping key, which the output must go on to equal
                    nothing = exp.cast(exp.null(), "text")
                    call.replace(nothing)
                    if aggregated and not is_aggregated(block):  # it read the only aggregate: one row, not one for each
                        nothing.replace(exp.Max(this=nothing.copy()))
                    changed = True
    return changed


def _drop_nested(item: exp.Expr) -> bool:
    if not any(has_text(query) for query in nodes_of(item, exp.Query)):
        return False
    item.unalias().replace(exp.null())
    return True


def _outputs_read(block: exp.Select, readers: dict[int, set[int]], columns: dict[int, set[str]]) -> set[str] | None:
    """Return the outputs of a block that something looks at; None when they all count."""
    parent = block.parent
    if isinstance(parent, exp.Exists) and not any(block.args.get(clause) for clause in ("limit", "offset")):
        return set()
    if isinstance(parent, exp.Subquery) and isinstance(parent.parent, exp.From | exp.Join | exp.Lateral):
        item = parent if not isinstance(parent.parent, exp.Lateral) else parent.parent
        return columns.get(id(item), set()) if not _renames(item) else None
    if isinstance(parent, exp.CTE) and not _renames(parent):
        return {name for table in readers.get(id(parent), ()) for name in columns.get(table, ())}
    return None


def _renames(item: exp.Expr) -> bool:
    alias = item.args.get("alias")
    return isinstance(alias, exp.TableAlias) and bool(alias.args.get("columns"))


def _decides_rows(item: exp.Expr, block: exp.Select) -> bool:
    clauses = [clause for clause in (block.args.get("order"), block.args.get("distinct")) if clause is not None]
    names = [column for clause in clauses for column in nodes_of(clause, exp.Column)]
    return any(not column.table and column.name == item.alias_or_name for column in names)


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
