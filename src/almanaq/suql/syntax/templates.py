"""to_char, to_date and to_timestamp with their templates as written: sqlglot takes 'a.d.' for a day of the week.

They are given to the parser by names that it does not know, and are what they are again in the tree.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import sqlglot
from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

_HIDDEN = "_as_written_"
_CLASSES: dict[str, type[exp.Expr]] = {
    "to_char": exp.TimeToStr,
    "to_date": exp.StrToDate,
    "to_timestamp": exp.StrToTime,
}
_NAMES = {kind: name for name, kind in _CLASSES.items()}


def hide_templates(tokens: Sequence[Token]) -> list[Token]:
    """Return tokens in which the functions go by names that the parser does not know."""
    hidden = list(tokens)
    for i, (token, after) in enumerate(itertools.pairwise(tokens)):
        if after.token_type == TokenType.L_PAREN and token.text.lower() in _CLASSES:
            name = _HIDDEN + token.text.lower()
            hidden[i] = Token(TokenType.VAR, name, token.line, token.col, token.start, token.end, token.comments)
    return hidden


def shown_template(node: exp.Expr) -> exp.Expr:
    """Return a function that was hidden as the class that it has, its template as it is written; others as they are."""
    name = node.name.removeprefix(_HIDDEN) if isinstance(node, exp.Anonymous) else ""
    if name not in _CLASSES or not node.name.startswith(_HIDDEN):
        return node
    if len(node.expressions) == 2:
        return _CLASSES[name](this=node.expressions[0], format=node.expressions[1])
    if name == "to_timestamp" and len(node.expressions) == 1:
        return exp.UnixToTime(this=node.expressions[0])
    return exp.Anonymous(this=name, expressions=node.expressions)


def as_written(node: exp.Expr) -> exp.Expr:
    """Return a function with a template as PostgreSQL is told it."""
    return exp.Anonymous(this=_NAMES[type(node)], expressions=[node.this, node.args["format"]])


def with_read_template(node: exp.Expr) -> exp.Expr:
    """Return a function with a template as sqlglot writes it for other engines."""
    template = node.args["format"]
    if isinstance(template, exp.Literal):
        read = sqlglot.parse_one(f"to_char(NULL, {template.sql('postgres')})", read="postgres")
        node.set("format", read.args["format"])
    return node


TEMPLATED = tuple(_NAMES)
