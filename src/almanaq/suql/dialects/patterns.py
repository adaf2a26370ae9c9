"""Regular expressions: PostgreSQL's, as RE2 and the like have them, or an error where they have nothing the same."""

from __future__ import annotations

import re

from sqlglot import exp

from almanaq.errors import UnsupportedError

_ESCAPES = re.compile(r"\\(.)", re.DOTALL)
_NOT_RE2 = re.compile(r"\(\?(?:=|!|<)|\\[1-9]|\\[mM]|\[\[:[<>]:\]\]")


def in_re2(pattern: exp.Expr, engine: str) -> exp.Expr:
    """Return a pattern in RE2's syntax; one that is computed is taken as it is."""
    if not isinstance(pattern, exp.Literal):
        return pattern
    if found := _NOT_RE2.search(pattern.name):
        raise UnsupportedError(
            f"{engine}'s regular expressions have no {found[0]!r} (in {pattern.name!r}): write the pattern without "
            "look-around, back references and \\m, \\M"
        )
    words = {"y": r"\b", "Y": r"\B", "Z": r"\z"}
    written = _ESCAPES.sub(lambda match: words.get(match[1], match[0]), pattern.name)
    return exp.Literal.string(written)


def similar_as_regexp(pattern: exp.Expr) -> str:
    """Return the regular expression of a SIMILAR TO pattern: % and _ are its wildcards, and it matches
    the whole text.
    """
    if not isinstance(pattern, exp.Literal):
        raise UnsupportedError("SIMILAR TO takes a pattern that is written out here: use ~ for a computed one")
    parts = re.findall(r"\\.|\[(?:\\.|[^\]\\])*\]|.", pattern.name, re.DOTALL)
    signs = {"(": "(?:", "%": ".*", "_": ".", ".": r"\.", "^": r"\^", "$": r"\$"}
    return f"^(?:{''.join(signs.get(part, part) for part in parts)})$"


def refuse_backspace(node: exp.Expr) -> None:
    """Raise UnsupportedError for a word's edge as other engines write it."""
    pattern = node.args.get("expression") if isinstance(node, exp.RegexpLike | exp.RegexpILike) else None
    if isinstance(pattern, exp.Literal) and any(match[1] == "b" for match in _ESCAPES.finditer(pattern.name)):
        raise UnsupportedError(
            rf"\b is a backspace in PostgreSQL's regular expressions: write \y for a word's edge (in {pattern.name!r})"
        )
