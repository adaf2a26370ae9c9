"""What a text may be: how long and how deep, and what a clause in the wrong place was meant as."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from almanaq.errors import QuerySyntaxError, RefusedQueryError, UnsupportedError, nearest

T = TypeVar("T")

LONGEST = 1_000_000
"""Characters of a query."""
MOST_TOKENS = 50_000
"""Words, signs and values of a query."""
MOST_WORDS = 15_000
"""Those of them that are neither values nor commas, which cost more."""
DEEPEST = 100
"""Parentheses, brackets, CASEs and signs within each other."""
MOST_BRACKETS = 1_000
"""Brackets within each other in a text: an engine's own parser may take minutes over many that are never closed."""
MOST_LEVELS = 300
"""Levels of a query's tree: operators in a chain, SELECTs in a UNION; AND and OR count once for the whole chain."""
MOST_QUERIES = 300
"""SELECTs of a query, nested ones and members of WITH included."""
MOST_NODES = 100_000
"""Nodes of a query's tree with the values of its parameters."""
_FRAMES = 6_000
"""Python calls within each other that reading and planning a query of the limits' size may take."""
_PIECES = re.compile(r"""'[^']*'|"[^"]*"|--[^\n]*|/\*.*?\*/|\w+|[^\s\w]""", re.DOTALL)
_QUOTED_OR_BRACKET = re.compile(
    r"""'[^']*'|"[^"]*"|(?P<tag>\$\w*\$).*?(?P=tag)|--[^\n]*|/\*.*?\*/|[][(){}]""", re.DOTALL
)
_LONGEST_SIGN = 3
"""Pieces of a text are its tokens, signs cut into characters: counted in a hundredth of the time that reading takes."""
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END)
_PREFIX = (TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE, TokenType.RLIKE)
_CHEAP = (TokenType.COMMA, TokenType.NUMBER, TokenType.STRING, TokenType.PLACEHOLDER)


def single_statement(statements: Sequence[T]) -> T:
    """Return the one statement that a text holds; raise an error for none, and for several."""
    if not statements:
        raise QuerySyntaxError("the query is empty; write a SELECT")
    if len(statements) > 1:
        raise RefusedQueryError(f"the text holds {len(statements)} statements; give one at a time")
    return statements[0]


def refuse_kind(kind: str) -> RefusedQueryError:
    if kind == "EXPLAIN":
        return RefusedQueryError("EXPLAIN is no query here: con.explain(query), or --explain, gives the plan")
    return RefusedQueryError(f"only a SELECT may run here; this is a statement of the kind {kind}")


def as_query(tree: exp.Expr) -> exp.Query:
    """Return a tree that is a query; raise RefusedQueryError for any other statement."""
    if not isinstance(tree, exp.Query):
        raise refuse_kind((str(tree.this) if isinstance(tree, exp.Command) else tree.key).upper())
    return tree


def check_length(text: str) -> None:
    """Raise UnsupportedError for a text that would take too long to be read."""
    _refuse_above(LONGEST, len(text), "characters", "put long texts into parameters")
    if len(text) > MOST_TOKENS:
        _refuse_tokens(sum(1 for _ in _PIECES.finditer(text)) // _LONGEST_SIGN)
    if sum(map(text.count, "([{")) > MOST_BRACKETS:
        pieces = (piece[0] for piece in _QUOTED_OR_BRACKET.finditer(text))
        deepest = max(itertools.accumulate((piece in "([{") - (piece in ")]}") for piece in pieces), default=0)
        _refuse_above(MOST_BRACKETS, deepest, "brackets within each other", "close them")


def check_tokens(tokens: Sequence[Token]) -> None:
    """Raise UnsupportedError for what would take too long to parse, or too many calls within each other."""
    _refuse_tokens(len(tokens))
    words = sum(token.token_type not in _CHEAP for token in tokens)
    _refuse_above(MOST_WORDS, words, "words and signs", "write it in several queries")
    deepest = _depth(tokens)
    _refuse_above(DEEPEST, deepest, "levels of parentheses, CASEs and signs", "write parts of it as members of WITH")
    if deepest > 10 or len(tokens) > 300:
        sys.setrecursionlimit(max(sys.getrecursionlimit(), _FRAMES))


def check_tree(found: Sequence[exp.Expr]) -> None:
    """Raise UnsupportedError for a tree that would take too long to plan."""
    if len(found) <= min(MOST_LEVELS, MOST_QUERIES):
        return
    _refuse_above(MOST_NODES, len(found), "names, operators and values", "put a long list into a table, and join it")
    levels, level = 0, [found[0]]
    while level and levels <= MOST_LEVELS:
        levels, level = levels + 1, [child for node in level for child in node.iter_expressions()]
    _refuse_above(MOST_LEVELS, levels, "levels of operators within each other", "write parts of it as members of WITH")
    queries = sum(isinstance(node, exp.Select) for node in found)
    _refuse_above(MOST_QUERIES, queries, "SELECTs", "write it in several queries")


def check_list(values: Sequence[object]) -> Sequence[object]:
    """Return the values of a parameter; raise UnsupportedError for too many."""
    _refuse_above(MOST_NODES, len(values), "values in a list", "put a long list into a table, and join it")
    return values


@contextmanager
def within_limits() -> Iterator[None]:
    """Raise UnsupportedError where reading or planning within the block goes deeper than Python does, or runs full."""
    try:
        yield
    except (RecursionError, MemoryError) as error:
        what = "its parts lie too deep within each other" if isinstance(error, RecursionError) else "memory ran out"
        raise UnsupportedError(f"the query is too large: {what}; write parts of it as members of WITH") from None


def _refuse_tokens(found: int) -> None:
    _refuse_above(MOST_TOKENS, found, "words, signs and values", "put a long list into a table, and join it")


def _depth(tokens: Sequence[Token]) -> int:
    """Return how deep parentheses and the like go; signs before an operand count until the operand ends."""
    deepest = depth = signs = chain = 0
    before = None
    for token in tokens:
        kind = token.token_type
        signs = signs + 1 if kind in _PREFIX else 0
        if kind in _OPENING:
            depth += 1
            chain = chain + 1 if kind == TokenType.L_BRACKET and before == TokenType.R_BRACKET else 0
        elif kind in _CLOSING:
            depth = max(depth - 1, 0)
        before = kind
        deepest = max(deepest, depth + signs, chain)
    return deepest


def _refuse_above(limit: int, found: int, what: str, instead: str) -> None:
    if found > limit:
        raise UnsupportedError(f"the query is too large: more than {limit:,} {what}; {instead}")


_CLAUSES = (
    *("SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "JOIN", "UNION", "WINDOW", "WITH"),
    "SUMMARIZE",
)


def clause_meant(text: str, place: int | None) -> str:
    """Return the end of a message that offers the clause which a word at a place, or the one before it, is meant for.

    >>> clause_meant("SELECT name FORM dogs", 17)
    '; did you mean FROM?'
    """
    if place is None:
        return ""
    words = [word[0] for word in re.finditer(r"\w+", text) if word.start() <= place]
    for word in words[-1:-3:-1]:
        near = nearest(word.upper(), _CLAUSES, most=1, alike=0.7) if word.upper() not in _CLAUSES else []
        if near:
            return f"; did you mean {near[0]}?"
    return ""
