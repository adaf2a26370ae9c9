"""Rows that LIMIT or DISTINCT ON keeps, found before the texts of other clauses are asked.

`SELECT t, answer(x, 'q') FROM t WHERE answer(y, 'r') = 'Yes' LIMIT 3` reads the three rows that a part keeps, which is
planned whole: it asks no more texts than it needs, and the documents of the SELECT are then those of these rows.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

from almanaq.engines.duckdb.answer_tables import Parts
from almanaq.engines.duckdb.trees import (
    Node,
    add_members,
    alias_of,
    both,
    column,
    functions_in,
    has_text,
    is_constant,
    names_in,
    select,
    select_all,
    walk,
)
from almanaq.suql.language import WORK_SCHEMA
from almanaq.suql.plan.blocks import SET_RETURNING

_ROW = "almanaq_row"


def keep_first_rows(node: Node, members: Sequence[Node], engine: Parts) -> None:
    """Let a SELECT read the rows of one item of FROM that its LIMIT or DISTINCT ON keeps, where nothing else cuts."""
    item = node["from_table"]
    if not _is_cut(node, engine):
        return
    row = engine.row_id(item) if item["type"] == "BASE_TABLE" else None
    whole = item["type"] in ("BASE_TABLE", "SUBQUERY") and alias_of(item) and not has_text(item)
    if row is None and (not whole or item["sample"]):
        return
    numbered = column(alias_of(item), row or "")
    kept_item = copy.deepcopy(item)
    part = select_all(kept_item) if row is None else select([{**numbered, "alias": _ROW}], kept_item)
    part |= {key: copy.deepcopy(node[key]) for key in ("where_clause", "modifiers")}
    name = engine.keep(add_members(part, members), None if row is None else ())
    if name is None:
        return
    node["modifiers"] = [modifier for modifier in node["modifiers"] if modifier["type"] == "ORDER_MODIFIER"]
    if row is None:
        node["from_table"] = {**engine.item(f"{WORK_SCHEMA}.{name}"), "alias": alias_of(item)}
        node["where_clause"] = None
        return
    kept = engine.express(f"a IN (SELECT {_ROW} FROM {WORK_SCHEMA}.{name})", a=numbered)
    node["where_clause"] = both(kept, node["where_clause"])


def _is_cut(node: Node, engine: Parts) -> bool:
    """Return whether LIMIT or DISTINCT ON cuts the rows of FROM, and nothing else does."""
    modifiers = {modifier["type"]: modifier for modifier in node["modifiers"]}
    limit, distinct = modifiers.get("LIMIT_MODIFIER", {}), modifiers.get("DISTINCT_MODIFIER", {})
    targets = distinct.get("distinct_on_targets", [])
    if not (limit or targets) or (distinct and not targets) or "LIMIT_PERCENT_MODIFIER" in modifiers:
        return False
    if node["group_expressions"] or node["group_sets"] or node["having"] or node["qualify"] or node["sample"]:
        return False
    keys = [*targets, *(order["expression"] for order in modifiers.get("ORDER_MODIFIER", {}).get("orders", ()))]
    aliases = {str(output["alias"]).lower() for output in node["select_list"]}
    plain = all(limit.get(key) is None or is_constant(limit[key]) for key in ("limit", "offset"))
    named = names_in(keys) & aliases or any(is_constant(key) or key["class"] == "STAR" for key in keys)
    across = any(map(engine.is_grouped, [*node["select_list"], *keys]))
    unnested = not SET_RETURNING.isdisjoint(functions_in(walk(node["select_list"])))
    return plain and not (named or across or unnested or engine.is_nondeterministic(node["where_clause"]))
