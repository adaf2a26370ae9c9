"""Which parts of the nodes that a query is built of later stages carry to the engine.

A part that is none of these would be lost on the way without a word, and is refused.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from almanaq.errors import UnsupportedError

_SET = "with_ this expression distinct order limit offset"
_SELECT = "expressions distinct from_ laterals joins where group having qualify windows"
_CARRIED = {
    "Select": f"with_ {_SELECT} order limit offset into locks",
    "Union": _SET,
    "Except": _SET,
    "Intersect": _SET,
    "Subquery": "this alias with_ joins order limit offset",
    "With": "expressions recursive",
    "CTE": "this alias materialized key_expressions",
    "Table": "this alias db catalog joins ordinality only rows_from",
    "TableAlias": "this columns",
    "Values": "expressions alias",
    "Join": "this on side kind using method",
    "Lateral": "this alias ordinality",
    "Unnest": "expressions alias offset",
    "Group": "expressions grouping_sets cube rollup all",
    "Order": "this expressions",
    "Ordered": "this desc nulls_first",
    "Limit": "expression",
    "Offset": "expression",
    "Fetch": "direction count limit_options",
    "LimitOptions": "percent rows with_ties",
    "Distinct": "expressions on",
    "Window": "this partition_by order spec alias over",
    "WindowSpec": "kind start start_side end end_side exclude",
    "Filter": "this expression",
    "WithinGroup": "this expression",
    "Column": "this table db catalog",
    "Identifier": "this quoted",
    "In": "this expressions query unnest field",
    "Between": "this low high symmetric",
    "Like": "this expression negate",
    "ILike": "this expression negate",
    "Is": "this expression negate",
    "Slice": "this expression",
    "Cast": "this to",
    "DataType": "this expressions nested kind values",
    "RecursiveWithSearch": "kind this expression using",
}
"""The names are sqlglot's, by class."""
_NAMES: Mapping[str, frozenset[str]] = {kind: frozenset(names.split()) for kind, names in _CARRIED.items()}
_CLAUSES = {"operation_modifiers": "a word after SELECT", "kind": "SELECT AS", "exclude": "EXCLUDE", "match": "MATCH"}


def check_carried(node: exp.Expr, kind: str) -> None:
    """Raise UnsupportedError if a node has a part that later stages would drop.

    Args:
        kind: the name of its class.
    """
    names = _NAMES.get(kind)
    if names is None or node.args.keys() <= names:
        return
    for key, value in node.args.items():
        if value and key not in names:
            clause = _CLAUSES.get(key, key.strip("_").replace("_", " ").upper())
            raise UnsupportedError(f"{clause} is not supported at this place ({kind.upper()}): leave it out")
