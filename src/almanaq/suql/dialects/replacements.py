r"""What a match is replaced by: `\1` to `\9`, `\&` for all of it, `\\` for a backslash."""

from __future__ import annotations

import re

from sqlglot import exp

from almanaq.errors import UnsupportedError
from almanaq.suql.dialects.duckdb_matches import call, text

_PIECES = re.compile(r"\\([1-9&\\])")
_MOST = 9


def pieces_of(replacement: str) -> list[str | int]:
    """Return the texts and the numbers of groups, 0 for the whole match, of which PostgreSQL puts a replacement
    together.

    What stands behind any other backslash is itself, and so is the backslash.
    """
    found: list[str | int] = []
    last = 0
    for match in _PIECES.finditer(replacement):
        found += [replacement[last : match.start()]]
        found += ["\\" if match[1] == "\\" else 0 if match[1] == "&" else int(match[1])]
        last = match.end()
    return [piece for piece in [*found, replacement[last:]] if piece != ""]


def rewritten_replacement(by: exp.Expr, groups: int, *, framed: bool) -> exp.Expr:
    r"""Return a replacement for RE2, of a pattern with some groups; `\0` is the whole match there.

    `framed`: the match is the second of three groups, the others stand around it and stay.

    Raises:
        UnsupportedError: it refers to more groups than RE2's replacements can.
    """
    if not isinstance(by, exp.Literal):
        if framed:
            raise UnsupportedError("a word's edge takes a replacement that is written out on duckdb")
        return _without_backslash(by)
    shift = 2 if framed else 0
    written = ""
    for piece in pieces_of(by.name):
        if isinstance(piece, str):
            written += piece.replace("\\", "\\\\")
        elif piece <= groups:
            written += f"\\{piece + shift}"
    if framed:
        if groups + shift + 1 > _MOST:
            raise UnsupportedError("a pattern with a word's edge has at most 6 groups on duckdb")
        written = f"\\1{written}\\{groups + shift + 1}"
    return text(written)


def _without_backslash(by: exp.Expr) -> exp.Expr:
    r"""Return a computed replacement, or an error where it has a backslash."""
    message = text("regexp_replace takes a replacement with a backslash only written out, on duckdb")
    found = call("contains", by, text("\\"))
    return exp.Case(ifs=[exp.If(this=found, true=call("error", message))], default=by.copy())
