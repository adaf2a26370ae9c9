"""PIVOT without IN: DuckDB runs it as several statements; here the values are looked up first and written into IN."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import sqlglot
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from almanaq.engines.duckdb.trees import walk

Node = dict[str, Any]
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
    places = [place for i, token in enumerate(tokens) if _is_pivot(token) for place in _bare_ends(tokens, i)]
    for number, place in sorted(enumerate(sorted(places)), reverse=True):
        text = f"{text[:place]} IN ('{MARK}{number}'){text[place:]}"
    return text


def _is_pivot(token: Token) -> bool:
    return token.token_type == TokenType.PIVOT or token.text.upper() in ("PIVOT", "PIVOT_WIDER")


def _bare_ends(tokens: list[Token], pivot: int) -> Iterator[int]:
    """Yield where the expressions of a pivot's ON end that have no IN."""
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
                yield tokens[i - 1].end + 1
            start, has_in = i + 1, False
        if over:
            return
        has_in = has_in or (depth == 0 and word == "IN")
        depth += (kind in _OPENING) - (kind in _CLOSING)


def lookups(tree: Node, parse: Callable[[str], Node]) -> list[tuple[str, Node]]:
    """Return for each mark in a tree the query of its values, as text and in their order.

    Args:
        parse: gives the tree of a text.
    """
    found: list[tuple[str, Node]] = []
    for item in [node for node in walk(tree) if node.get("type") == "PIVOT"]:
        for pivot in item["pivots"]:
            for mark in filter(None, map(_mark_of, pivot["entries"])):
                query = parse("SELECT DISTINCT CAST(v AS VARCHAR) AS v FROM t WHERE v IS NOT NULL ORDER BY 1")
                select, (expression,) = query["node"], pivot["pivot_expressions"]
                select["select_list"][0]["child"] = copy.deepcopy(expression)
                select["where_clause"]["children"] = [copy.deepcopy(expression)]
                select["from_table"] = copy.deepcopy(item["source"])
                select["cte_map"] = copy.deepcopy(tree["node"]["cte_map"])
                found.append((mark, query))
    return found


def _mark_of(entry: Node) -> str:
    text = str(((entry.get("star_expr") or {}).get("literal") or {}).get("text", ""))
    return text if text.startswith(MARK) else ""
