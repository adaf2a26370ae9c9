"""DuckDB's tree of a query, as JSON: what to find in it, and rewrites of it that sqlglot reads as the same."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import sqlglot
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from almanaq.suql.text_functions import DECLARED

Node = dict[str, Any]
_NOWHERE: Node = {"query_location": 2**64 - 1, "query_location_length": 0}


def needs_split(tree: Node) -> bool:
    """Return whether a statement has a form that sqlglot's tree says otherwise or not at all."""
    return any(map(_is_beyond, walk(tree)))


def flatten_joins(tree: Node) -> None:
    """Write `a, (b JOIN c ON d)` as `(a, b) JOIN c ON d`, into a tree: sqlglot reads joins from left to right."""
    for join in [node for node in walk(tree) if node.get("type") == "JOIN"]:
        while join["ref_type"] == "CROSS" and join.get("condition") is None and not join.get("using_columns"):
            right = join["right"]
            if right["type"] != "JOIN" or right["join_type"] not in ("INNER", "LEFT", "SEMI", "ANTI"):
                break
            if right.get("using_columns") or right["ref_type"] not in ("REGULAR", "CROSS"):
                break
            first = {**copy_node(join), "right": right["left"], "is_implicit": False}
            join.clear()
            join.update(right, left=first)


def write_numbers(tree: Node) -> None:
    """Write `1_000` as `1000`, into a tree: sqlglot writes it so."""
    for node in walk(tree):
        if node.get("kind") in ("INTEGER", "NUMERIC") and "text" in node:
            node["text"] = node["text"].replace("_", "")


def number_groups(tree: Node, aggregates: frozenset[str]) -> None:
    """Write the numbers of the outputs that hold no aggregate in the place of GROUP BY ALL, into a tree."""
    for query in [node for node in walk(tree) if node.get("aggregate_handling") == "FORCE_AGGREGATES"]:
        items = query["select_list"]
        if any(node.get("type") == "STAR" and node.get("class") == "STAR" for item in items for node in walk(item)):
            continue
        made: set[str] = set()
        keys = []
        for number, item in enumerate(items, 1):
            called = functions_in(node for node in own_nodes(item) if node.get("class") == "FUNCTION")
            if called & aggregates or made & names_in(item):
                made |= {str(item.get("alias", "")).lower()} - {""}
            else:
                keys.append(number)
        query["aggregate_handling"] = "STANDARD_HANDLING"
        query["group_expressions"] = [integer(number) for number in keys]
        query["group_sets"] = [list(range(len(keys)))]


def write_null_order(tree: Node, nulls: str, direction: str) -> None:
    """Write the order that a connection's settings mean into a tree; a key with a text function puts NULL last."""
    for order in [node for node in walk(tree) if "null_order" in node]:
        if order["type"] == "ORDER_DEFAULT" and direction.startswith("DESC"):
            order["type"] = "DESCENDING"
        falling = order["type"] == "DESCENDING"
        first = ("NULLS_FIRST", f"NULLS_{'LAST_ON_ASC_FIRST_ON_DESC' if falling else 'FIRST_ON_ASC_LAST_ON_DESC'}")
        if order["null_order"] == "ORDER_DEFAULT" and nulls in first and not has_text(order):
            order["null_order"] = "NULLS FIRST"


def number_order(tree: Node, count: int) -> None:
    """Write the numbers of all outputs in the place of ORDER BY ALL, into a tree."""
    for modifier in tree["node"].get("modifiers", ()):
        orders = modifier.get("orders", ())
        if len(orders) == 1 and _is_all(orders[0]):
            modifier["orders"] = [{**orders[0], "expression": integer(i + 1)} for i in range(count)]


def _is_all(order: Node) -> bool:
    star = order.get("expression", {})
    return star.get("type") == "STAR" and bool(star.get("columns")) and star.get("expr") is None


def integer(value: int) -> Node:
    literal = {"kind": "INTEGER", "text": str(value)}
    return {"class": "CONSTANT", "type": "VALUE_CONSTANT", "alias": "", "literal": literal, **_NOWHERE}


def walk(value: Any) -> list[Node]:
    """Return the nodes of a tree, each before what it is made of."""
    found: list[Node] = []
    pending = [value]
    while pending:
        at = pending.pop()
        if isinstance(at, dict):
            found.append(at)
            pending += reversed(at.values())
        elif isinstance(at, list):
            pending += reversed(at)
    return found


def copy_node(node: Node) -> Node:
    """Return a copy of a node, by its JSON: `deepcopy` takes five times as long."""
    copied: Node = json.loads(json.dumps(node))
    return copied


def replace_expression(node: Node, made: Node) -> None:
    """Put an expression in the place of another, whose alias it takes."""
    alias = node.get("alias", "")
    node.clear()
    node.update({**made, "alias": alias})


def has_text(value: Any) -> bool:
    return any(map(is_text_call, walk(value)))


def is_text_call(node: Node) -> bool:
    return node.get("class") == "FUNCTION" and str(node["function_name"]).lower() in DECLARED


def _is_beyond(node: Node) -> bool:
    kind = node.get("type")
    if node.get("class") == "FUNCTION":
        starred = any(one["expression"].get("class") == "STAR" for one in node["arguments"])
        return starred or str(node["function_name"]).lower() == "alias"
    if node.get("class") == "COLUMN_REF":
        return len(node["column_names"]) > 1 and str(node["column_names"][0]).lower() == "alias"
    if kind == "SELECT_NODE":
        aliases = [alias_of(item).lower() for item in items_of(node["from_table"])]
        return node.get("sample") is not None or any(alias and aliases.count(alias) > 1 for alias in aliases)
    if node.get("class") == "WINDOW" and (node["ignore_nulls"] or node["arg_orders"]):
        return True
    if kind == "STAR" and (node.get("columns") or node.get("expr") is not None or node.get("rename_list")):
        return True
    if node.get("sample") is not None or kind in ("PIVOT", "SHOW_REF"):
        return True
    if node.get("column_name_alias") or node.get("aliases"):  # sqlglot gives each side these names by place
        return any(inner.get("setop_type") == "UNION_BY_NAME" for inner in walk(node))
    if kind == "JOIN":
        half = node.get("join_type") in ("SEMI", "RIGHT_SEMI", "RIGHT_ANTI")
        return (half and has_text(node.get("condition"))) or node.get("ref_type") in ("ASOF", "POSITIONAL")
    return node.get("limit_type") == "PERCENTAGE"


def items_of(item: Node | None) -> Iterator[Node]:
    if item is not None and item["type"] == "JOIN":
        yield from items_of(item["left"])
        yield from items_of(item["right"])
    elif item is not None:
        yield item


def alias_of(item: Node) -> str:
    """Return the name by which a query calls an item of FROM; "" where it has none."""
    return str(item.get("alias") or item.get("table_name") or "")


def member_of(item: Node, members: Sequence[Node]) -> Node | None:
    """Return the member of WITH that an item of FROM names; None where it names none."""
    bare = item["type"] == "BASE_TABLE" and len(item["qualified_name"]["path"]) == 1
    named = [member for member in members if bare and member["key"].lower() == item["table_name"].lower()]
    return named[-1] if named else None


def names_in(value: Any) -> set[str]:
    """Return the bare names that an expression has, in lower case."""
    found = (node["column_names"] for node in walk(value) if node.get("class") == "COLUMN_REF")
    named = [[str(part).lower() for part in parts] for parts in found]
    return {parts[0] for parts in named if len(parts) == 1} | {p[1] for p in named if len(p) > 1 and p[0] == "alias"}


def functions_in(nodes: Iterable[Node]) -> set[str]:
    return {str(node.get("function_name", "")).lower() for node in nodes}


def own_nodes(value: Any) -> Iterator[Node]:
    """Yield the nodes of an expression, but for those of nested queries."""
    if isinstance(value, list):
        for part in value:
            yield from own_nodes(part)
    elif isinstance(value, dict):
        yield value
        for key, part in value.items():
            if key != "subquery":
                yield from own_nodes(part)


def column(*path: str) -> Node:
    return {"class": "COLUMN_REF", "type": "COLUMN_REF", "alias": "", "column_names": list(path), **_NOWHERE}


def select(shown: list[Node], item: Node | None, where: Node | None = None) -> Node:
    """Return a query of some expressions over an item of FROM; None: over nothing."""
    return {
        **{"type": "SELECT_NODE", "modifiers": [], "cte_map": {"map": []}, "select_list": shown},
        **{"from_table": item or {"type": "EMPTY", "alias": "", "sample": None, **_NOWHERE}, "where_clause": where},
        **{"group_expressions": [], "group_sets": [], "aggregate_handling": "STANDARD_HANDLING"},
        **{"having": None, "sample": None, "qualify": None},
    }


def select_all(item: Node) -> Node:
    star = {
        **{"class": "STAR", "type": "STAR", "alias": "", "relation_name": "", "exclude_list": [], "replace_list": []},
        **{"columns": False, "expr": None, "qualified_exclude_list": [], "rename_list": [], **_NOWHERE},
    }
    return select([star], item)


def add_members(query: Node, members: Sequence[Node]) -> Node:
    inner = copy.deepcopy(query)
    inner["cte_map"] = {"map": [*copy.deepcopy(list(members)), *inner.get("cte_map", {"map": []})["map"]]}
    return inner


def both(*conditions: Node | None) -> Node | None:
    """Return the conjunction of those conditions that there are; None of none."""
    parts = [condition for condition in conditions if condition is not None]
    if len(parts) < 2:
        return next(iter(parts), None)
    return {"class": "CONJUNCTION", "type": "CONJUNCTION_AND", "alias": "", "children": parts}


def is_constant(node: Node) -> bool:
    return node.get("class") in ("CONSTANT", "PARAMETER") or (
        node.get("class") == "CAST" and is_constant(node["child"])
    )


def statement(query: Node) -> Node:
    return {"node": query, "named_param_map": []}


def subquery(query: Node, alias: str) -> Node:
    item: Node = {"type": "SUBQUERY", "alias": alias, "sample": None, "column_name_alias": []}
    return {**item, "subquery": statement(query)}


def without_places(node: Any) -> Any:
    if isinstance(node, list):
        return [without_places(part) for part in node]
    if isinstance(node, dict):
        return {k: without_places(v) for k, v in node.items() if not k.startswith("query_location")}
    return node


MARK = "almanaq pivot values "
"""What stands in IN until the values are known, with a number behind it."""
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)
_ENDS = frozenset(
    ["USING", "GROUP", "GROUP BY", "ORDER", "ORDER BY", "LIMIT", "OFFSET", "UNION", "EXCEPT", "INTERSECT"]
)


def mark_pivots(text: str) -> str:
    """Return a query with a mark in the IN of each `PIVOT t ON expression` that has none; any other text as it is."""
    try:
        tokens = sqlglot.tokenize(text, read="duckdb")
    except TokenError:
        return text
    places = [
        place
        for i, token in enumerate(tokens)
        if token.token_type == TokenType.PIVOT or token.text.upper() in ("PIVOT", "PIVOT_WIDER")
        for place in _bare_expressions(tokens, i)
    ]
    for number, (start, end) in sorted(enumerate(sorted(places)), reverse=True):
        text = f"{text[:start]}({text[start:end]}) IN ('{MARK}{number}'){text[end:]}"
    return text


def _bare_expressions(tokens: list[Token], pivot: int) -> Iterator[tuple[int, int]]:
    """Yield where the expressions of a pivot's ON begin and end that have no IN."""
    depth, start = 0, None
    has_in = False
    for i in range(pivot + 1, len(tokens) + 1):
        token = tokens[i] if i < len(tokens) else None
        kind = token.token_type if token is not None else None
        word = token.text.upper() if token is not None else ""
        if depth == 0 and start is None and word == "ON":
            start = i + 1
            continue
        over = token is None or kind == TokenType.SEMICOLON or (depth == 0 and (kind in _CLOSING or word in _ENDS))
        if start is not None and depth == 0 and (over or kind == TokenType.COMMA):
            if not has_in and i > start:
                yield tokens[start].start, tokens[i - 1].end + 1
            start, has_in = i + 1, False
        if over:
            return
        has_in = has_in or (depth == 0 and word == "IN")
        depth += (kind in _OPENING) - (kind in _CLOSING)


def has_marks(tree: Node) -> bool:
    return any(str((node.get("literal") or {}).get("text", "")).startswith(MARK) for node in walk(tree))


def lookups(tree: Node, parse: Callable[[str], Node]) -> list[tuple[str, Node]]:
    """Return for each mark in a tree the query of its values, as text and in their order."""
    found: list[tuple[str, Node]] = []
    for item in [node for node in walk(tree) if node.get("type") == "PIVOT"]:
        for pivot in item["pivots"]:
            values = [(entry.get("star_expr") or {}).get("literal") or {} for entry in pivot["entries"]]
            for mark in (text for value in values if (text := str(value.get("text", ""))).startswith(MARK)):
                query = parse("SELECT DISTINCT CAST(v AS VARCHAR) AS v FROM t WHERE v IS NOT NULL ORDER BY 1")
                select, (expression,) = query["node"], pivot["pivot_expressions"]
                select["select_list"][0]["child"] = copy_node(expression)
                select["where_clause"]["children"] = [copy_node(expression)]
                select["from_table"] = copy_node(item["source"])
                select["cte_map"] = copy_node(tree["node"]["cte_map"])
                found.append((mark, query))
    return found
