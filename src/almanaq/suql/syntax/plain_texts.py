"""Texts in PostgreSQL's other quotes, read as the plain ones that they mean.

`E'it\\'s'`, `U&'\\0041'`, `N'x'` and `$$x$$` go out of every engine's own rules for backslashes this way.
"""

from __future__ import annotations

import re

from sqlglot import exp

from almanaq.errors import QuerySyntaxError
from almanaq.suql.syntax.normal_forms import rewritten

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{1,2})|([0-7]{1,3})|(.))|''", re.DOTALL)
_SIGNS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_NO_ESCAPE = frozenset("0123456789abcdefABCDEF+'\" ")
_OTHER_QUOTES = re.compile(r"[eEnN&]'|\$")
_MOST = 0x10FFFF


def write_plain_texts(tree: exp.Expr, text: str) -> exp.Expr:
    """Return a tree, which is changed, in which every text is a plain literal.

    Args:
        text: what the tree was read from.

    Raises:
        QuerySyntaxError: an escape that stands for no character.
    """

    if not _OTHER_QUOTES.search(text):
        return tree

    def plain(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.RawString | exp.National):
            return exp.Literal.string(node.name)
        if isinstance(node, exp.ByteString):
            return exp.Literal.string(_read(node, text, _ESCAPE, "E"))
        if isinstance(node, exp.UnicodeString):
            return exp.Literal.string(_read(node, text, _unicode(node.args.get("escape")), "U&"))
        return node

    return rewritten(tree, plain)


def _read(node: exp.Expr, text: str, escapes: re.Pattern[str], prefix: str) -> str:
    """Read a text again from the query: the parser keeps some of the escapes and reads others."""
    start, end = node.meta.get("start"), node.meta.get("end")
    written = "" if start is None or end is None else text[start : end + 1]
    body = written[len(prefix) :]
    if not (written[: len(prefix)].upper() == prefix and body[:1] == body[-1:] == "'" and len(body) > 1):
        raise QuerySyntaxError("this text cannot be read; write it in plain quotes", query=text, start=start, end=end)
    read = escapes.sub(_character, body[1:-1])
    try:
        read = read.encode("utf-8", "surrogateescape").decode()
    except UnicodeError:
        read = "\0"
    if "\0" in read:
        message = "an escape here stands for no character that a text may hold"
        raise QuerySyntaxError(message, query=text, start=start, end=end)
    return read


def _unicode(escape: object) -> re.Pattern[str]:
    """Return what an escape in `U&'…'` looks like; another sign than a backslash may be said by UESCAPE."""
    sign = escape.name if isinstance(escape, exp.Expr) else "\\"
    if len(sign) != 1 or sign in _NO_ESCAPE:
        raise QuerySyntaxError("UESCAPE takes one sign that is no digit, letter up to f, plus, quote or space")
    sign = re.escape(sign)
    return re.compile(rf"{sign}(?:([0-9a-fA-F]{{4}})|\+([0-9a-fA-F]{{6}})|({sign}))|''")


def _character(match: re.Match[str]) -> str:
    if match[0] == "''":
        return "'"
    groups = match.groups()
    sign = groups[-1]
    if sign is not None:
        return _SIGNS.get(sign, sign)
    octal = len(groups) == 5 and groups[3] is not None
    digits = next(group for group in groups if group is not None)
    number = int(digits, 8 if octal else 16)
    if len(groups) == 5 and (octal or groups[2] is not None):
        byte = number & 0xFF  # of UTF-8, as PostgreSQL reads it: more than one may make a character
        return chr(byte) if byte < 0x80 else chr(0xDC00 + byte)
    return chr(number) if number <= _MOST else "\0"
