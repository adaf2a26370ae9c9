"""Named windows written out where they are used: `OVER w` is then one form less for every later stage."""

from __future__ import annotations

from sqlglot import exp

from almanaq.errors import UnknownNameError, suggest
from almanaq.suql.syntax.nodes import nodes, nodes_of

_PARTS = ("partition_by", "order", "spec")


def write_named_windows(tree: exp.Expr) -> None:
    """Write the windows of each WINDOW clause into the functions, and windows made of them, that name them, in place.

    Raises:
        UnknownNameError: no window is called so.
    """
    found = nodes(tree)
    if not any(isinstance(node, exp.Window) for node in found):
        return
    for block in [node for node in found if isinstance(node, exp.Select)]:
        named: dict[str, exp.Window] = {}
        for window in block.args.get("windows") or ():
            _fill(window, named)
            named[window.name.lower()] = window
        for window in _used(block):
            _fill(window, named)
        block.set("windows", None)


def _used(block: exp.Select) -> list[exp.Window]:
    clauses = ("expressions", "order", "distinct", "qualify")
    parts = [part for clause in clauses for part in _list(block.args.get(clause))]
    windows = [window for part in parts for window in nodes_of(part, exp.Window)]
    return [window for window in windows if window.find_ancestor(exp.Select) is block]


def _fill(window: exp.Window, named: dict[str, exp.Window]) -> None:
    alias = window.args.get("alias")
    if alias is None:
        return
    found = named.get(alias.name.lower())
    if found is None:
        known = suggest(alias.name, list(named))
        raise UnknownNameError(f"no window named {alias.name!r} in the WINDOW clause{known}")
    window.set("alias", None)
    for part in _PARTS:
        value = found.args.get(part)
        if value and not window.args.get(part):
            window.set(part, [node.copy() for node in value] if isinstance(value, list) else value.copy())


def _list(value: object) -> list[exp.Expr]:
    return [node for node in (value if isinstance(value, list) else [value]) if isinstance(node, exp.Expr)]
