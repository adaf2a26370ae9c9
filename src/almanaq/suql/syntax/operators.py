"""Operators of PostgreSQL that the parser has no sign for, written `OPERATOR(pg_catalog.…)`."""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

from almanaq.suql.syntax.operands import after_operand

T = TokenType
_SIGNS = frozenset("+-*/<>=~!@#%^&|`?")
UNREAD = frozenset(
    [
        *("^@", "<<=", ">>=", "<<|", "|>>", "&<|", "|&>", "~=", "<^", ">^", "?#", "##", "#=", "<@>", "?-|", "?", "?-"),
        *("~<~", "~<=~", "~>~", "~>=~", "*=", "*<>", "*<", "*>", "*<=", "*>="),
    ]
)
"""Operators of two operands without a token of the parser's own."""


def respell_operators(tokens: list[Token], text: str) -> list[Token]:
    """Return tokens with `a OPERATOR(pg_catalog.^@) b` for `a ^@ b`, and the like; `?` only where it stands between
    two.

    A placeholder never follows a value, the operator `?` of jsonb always does.
    """
    found: list[Token] = []
    i = 0
    while i < len(tokens):
        sign, count = _sign(tokens, i, text)
        if sign in UNREAD and after_operand(found):
            first = tokens[i]
            for kind, word in (
                *((T.OPERATOR, "OPERATOR"), (T.L_PAREN, "("), (T.VAR, "pg_catalog"), (T.DOT, ".")),
                *((T.VAR, sign), (T.R_PAREN, ")")),
            ):
                found.append(Token(kind, word, first.line, first.col, first.start, first.end))
            i += count
        else:
            found.append(tokens[i])
            i += 1
    return found


def _sign(tokens: list[Token], at: int, text: str) -> tuple[str, int]:
    """Return the operator that begins at a token, which may be several tokens without space between, and their number.

    As in PostgreSQL the longest run of signs is one operator, but for a sign of a number at its end.
    """
    run, count = "", 0
    while at + count < len(tokens):
        token = tokens[at + count]
        written = text[token.start : token.end + 1] if token.text != "$" else "$"  # a placeholder with its number
        if not written or not set(written) <= _SIGNS or (count and token.start != tokens[at + count - 1].end + 1):
            break
        run, count = run + written, count + 1
    while count > 1 and run[-1] in "+-" and not set(run) & set("~!@#%^&|`?"):
        run, count = run[: -len(text[tokens[at + count - 1].start : tokens[at + count - 1].end + 1])], count - 1
    return run, count
