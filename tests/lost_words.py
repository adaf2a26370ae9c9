"""Which words of a query are not in the statement that is sent for it."""

from __future__ import annotations

from collections import Counter

from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import Token, TokenType

_STRINGS = (TokenType.STRING, TokenType.NATIONAL_STRING)
KEYWORDS = frozenset(
    """
    distinct all any some except intersect union filter within over partition rows range groups preceding following
    unbounded current exclude ties others recursive materialized search cycle depth breadth lateral ordinality rollup
    cube grouping sets having limit offset escape similar ilike like between symmetric zone collate leading trailing
    both placing variadic case when then else cast extract exists in array only nulls first last left right full cross
    """.split()
)
REWRITTEN = {
    **dict.fromkeys(("fetch", "next"), "limit"),
    "some": "any",
    "cast": "::",
    "::": "cast",
}
"""What may stand for a word instead of itself."""


def lost(query: str, sent: str) -> list[str]:
    """Return the keywords, numbers and texts of a query that are in no statement, each as often as it is missing."""
    found, left = _counted(sent), []
    for word, times in sorted(_counted(query).items()):
        others = found[word] + found[REWRITTEN[word]] if word in REWRITTEN else found[word]
        left += [word] * max(0, min(times, 1) - others)
    return left


def _counted(text: str) -> Counter[str]:
    return Counter(word for token in Dialect.get_or_raise("postgres").tokenize(text) for word in _words(token))


def _words(token: Token) -> list[str]:
    if token.token_type in _STRINGS:
        return [f"'{token.text}'"]
    if token.token_type == TokenType.NUMBER:
        return [token.text]
    if token.token_type == TokenType.IDENTIFIER:
        return []
    words = token.text.lower().split()
    return [word for word in words if word in KEYWORDS]
