"""sqlglot's dialects of Spark and Databricks, with texts as these engines read and write them: in place of its own.

It decodes no `\\u0041`, `\\102`, `\\Z` or `\\q`, and has others, as `\\a`, that Spark does not.
"""

from __future__ import annotations

import re
import sys

from sqlglot.dialects.databricks import Databricks as _Databricks
from sqlglot.dialects.dialect import DialectType
from sqlglot.dialects.spark import Spark as _Spark
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))", re.DOTALL)
_CHARACTERS = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": r"\%", "_": r"\_"}
_WRITTEN = {"\\": r"\\", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\b": r"\b", "\0": r"\u0000"}
"""Characters that texts are written with; `\\0` before a digit would be another."""


def decode_text(written: str) -> str:
    r"""Return what Spark reads between the quotes of a text.

    >>> decode_text(r"\u0041\102\q\%")
    'ABq\\%'
    """
    if "\\" not in written:
        return written
    decoded = _ESCAPE.sub(_decode, written)
    return decoded.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # two halves of one character


def _decode(escape: re.Match[str]) -> str:
    short, long, octal, character = escape.groups()
    if character is not None:
        return _CHARACTERS.get(character, character)
    code = int(octal, 8) if octal else int(short or long, 16)
    if code > sys.maxunicode:
        raise TokenError(f"{escape[0]} is no character")
    return chr(code)


def _tokens_with_texts(tokens: list[Token], sql: str) -> list[Token]:
    for token in tokens:
        if token.token_type == TokenType.STRING and "\\" in sql[token.start : token.end]:
            token.text = decode_text(sql[token.start + 1 : token.end])
    return tokens


class Spark(_Spark):
    def tokenize(self, sql: str, dialect: DialectType = None) -> list[Token]:
        return _tokens_with_texts(super().tokenize(sql, dialect), sql)


class Databricks(_Databricks):
    def tokenize(self, sql: str, dialect: DialectType = None) -> list[Token]:
        return _tokens_with_texts(super().tokenize(sql, dialect), sql)


Spark.ESCAPED_SEQUENCES = Databricks.ESCAPED_SEQUENCES = _WRITTEN  # sqlglot's metaclass makes them otherwise
