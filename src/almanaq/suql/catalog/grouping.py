"""GROUP BY as PostgreSQL reads it: positions and outputs in ROLLUP and its like, and columns that a key decides."""

from __future__ import annotations

from sqlglot import exp

from almanaq.errors import UnsupportedError
from almanaq.suql.catalog.relations import Catalog
from almanaq.suql.catalog.sources import find_cte, from_items
from almanaq.suql.syntax.nodes import nodes, nodes_of

_SETS = ("rollup", "cube", "grouping_sets")
_WHOLE = ("json", "xml", "point", "box", "circle", "line", "lseg", "path", "polygon")
"""Types that PostgreSQL cannot group by; a key decides them there without being written."""


def write_group_keys(block: exp.Select) -> None:
    """Write what positions and names of outputs within ROLLUP, CUBE and GROUPING SETS stand for.

    Raises:
        UnsupportedError: two outputs that are the same are keys apart, which could no longer be told apart.
    """
    group = block.args.get("group")
    outputs = {item.alias_or_name: item for item in reversed(block.expressions)}
    keys: dict[str, set[str]] = {}
    for node in group.expressions if group is not None else ():
        if isinstance(node, exp.Column) and not node.table and node.name in outputs:
            keys.setdefault(outputs[node.name].unalias().sql(), set()).add(node.name)
    for key in _SETS:
        for sets in (group.args.get(key) or []) if group is not None else ():
            for node in nodes(sets):
                found = None
                if isinstance(node, exp.Column) and not node.table:
                    found = outputs.get(node.name)
                elif isinstance(node, exp.Literal) and node.is_int and 0 < int(node.name) <= len(block.expressions):
                    found = block.expressions[int(node.name) - 1] if _is_key(node) else None
                if found is not None:
                    same = keys.setdefault(found.unalias().sql(), set())
                    same.add(found.alias_or_name)
                    if len(same) > 1:
                        listed = " and ".join(map(repr, sorted(same)))
                        raise UnsupportedError(f"{listed} are the same and grouped apart: compute one in a subquery")
                    node.replace(found.unalias().copy())


def write_decided_columns(tree: exp.Query, catalog: Catalog) -> None:
    """Group by every column that a block shows of a table by whose primary key it groups: the key decides it.

    `SELECT p.name, count(*) … GROUP BY p.id` becomes `… GROUP BY p.id, p.name`, with the same groups.
    """
    for block in nodes_of(tree, exp.Select):
        group = block.args.get("group")
        if group is None:
            continue
        for item in from_items(block):
            relation = catalog.find(item.name) if isinstance(item, exp.Table) and find_cte(item) is None else None
            if relation is None or not relation.key:
                continue
            alias = item.alias_or_name
            keys = {key.name for key in group.expressions if isinstance(key, exp.Column) and key.table == alias}
            if not {name.lower() for name in relation.key} <= keys:
                continue
            kept = {column.name.lower() for column in relation.columns if column.type in _WHOLE}
            kept |= {
                key.name for kind in _SETS for sets in group.args.get(kind) or [] for key in nodes_of(sets, exp.Column)
            }
            for column in _outside_aggregates(block, alias):
                if column.name not in keys | kept:
                    keys.add(column.name)
                    group.append("expressions", column.copy())


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


def _outside_aggregates(block: exp.Select, alias: str) -> list[exp.Column]:
    """Return the columns of an item of FROM that a block's groups are shown by, nested queries included."""
    clauses = ("having", "order", "distinct", "qualify", "windows")
    parts = [*block.expressions, *(block.args.get(clause) for clause in clauses)]
    found = []
    for part in parts:
        for node in part if isinstance(part, list) else [part]:
            for column in nodes_of(node, exp.Column) if node is not None else ():
                if column.table == alias and not is_aggregated(column, block):
                    found.append(column)
    return found


def is_aggregated(node: exp.Expr, block: exp.Select) -> bool:
    """Return whether an expression of a block is, or stands in, an aggregate, which is not the function of a window."""
    at: exp.Expr | None = node
    while at is not None and at is not block:
        parent = at.parent
        while isinstance(parent, exp.Filter | exp.WithinGroup) and parent.this is at:
            at, parent = parent, parent.parent
        if isinstance(at, exp.AggFunc | exp.Filter | exp.WithinGroup):
            if not (isinstance(parent, exp.Window) and parent.this is at):
                return True
        at = parent
    return False


def _is_key(node: exp.Expr) -> bool:
    """Return whether a number is a whole key, not a part of one."""
    at = node.parent
    while isinstance(at, exp.Tuple | exp.Paren):
        at = at.parent
    return isinstance(at, exp.Rollup | exp.Cube | exp.GroupingSets)
