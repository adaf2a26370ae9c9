"""How far an operand reaches in a list of tokens."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType

from almanaq.suql.syntax.keywords import RESERVED

T = TokenType
_ARITHMETIC = (T.PLUS, T.DASH, T.STAR, T.SLASH, T.MOD, T.CARET)
_OPENING = (T.L_PAREN, T.L_BRACKET)
_CLOSING = (T.R_PAREN, T.R_BRACKET)
_VALUES = (T.VAR, T.IDENTIFIER, T.NUMBER, T.NULL, T.TRUE, T.FALSE, T.END)
STRINGS = (
    *(T.STRING, T.BYTE_STRING, T.BIT_STRING, T.HEX_STRING, T.UNICODE_STRING, T.NATIONAL_STRING),
    *(T.RAW_STRING, T.HEREDOC_STRING),
)
_NOT_OPERANDS = frozenset(
    "zone escape uescape similar symmetric any all some first next rows range groups exclude to".split()
)


def ends_operand(token: Token) -> bool:
    """Return whether an operand may end with a token: what follows it is then an operator, and no sign."""
    if token.token_type in (*_VALUES, *_CLOSING, *STRINGS):
        return token.token_type != T.VAR or token.text.lower() not in _NOT_OPERANDS
    word = token.text.lower()
    return token.token_type in Parser.ID_VAR_TOKENS and word not in _NOT_OPERANDS and word not in RESERVED


def after_operand(tokens: Sequence[Token]) -> bool:
    """Return whether what follows a list of tokens follows an operand: a value, or the type that one is cast to."""
    return bool(tokens) and (ends_operand(tokens[-1]) or (len(tokens) > 1 and tokens[-2].token_type == T.DCOLON))


def group_end(tokens: Sequence[Token], opening: int) -> int:
    """Return the place of the parenthesis that closes the one at a place; the last token where none does."""
    depth = 0
    for i in range(opening, len(tokens)):
        depth += (tokens[i].token_type in _OPENING) - (tokens[i].token_type in _CLOSING)
        if depth == 0:
            return i
    return len(tokens) - 1


def end_of_operand(tokens: Sequence[Token], start: int) -> int:
    """Return the place after the arithmetic expression that begins at a place: `-a.b[1]::int + f(x) * 2`."""
    at, expected = start, True
    while at < len(tokens):
        token = tokens[at]
        kind = token.token_type
        if expected:
            if kind in (T.PLUS, T.DASH, T.TILDE, T.RLIKE, T.PARAMETER, T.PIPE_SLASH, T.DPIPE_SLASH):
                at += 1
                continue
            at = _end_of_value(tokens, at)
            expected = False
        elif kind in (*_ARITHMETIC, T.DOT):
            at, expected = at + 1, True
        elif kind == T.DCOLON:
            at += 2
        elif kind == T.L_BRACKET or (kind == T.L_PAREN and tokens[at - 1].token_type not in _CLOSING):
            at = group_end(tokens, at) + 1
        elif kind in STRINGS and not ends_value(tokens[at - 1]):
            at += 1  # the text of a type: interval '1 day'
        else:
            return at
    return at


def ends_value(token: Token) -> bool:
    """Return whether a token is a literal or closes a group: no text of a type follows it."""
    return token.token_type in (*_CLOSING, *STRINGS, T.NUMBER, T.VAR, T.IDENTIFIER)


def _end_of_value(tokens: Sequence[Token], at: int) -> int:
    kind = tokens[at].token_type
    if kind in _OPENING:
        return group_end(tokens, at) + 1
    if kind != T.CASE:
        return at + 1
    depth = 0
    for i in range(at, len(tokens)):
        depth += (tokens[i].token_type == T.CASE) - (tokens[i].token_type == T.END)
        if depth == 0:
            return i + 1
    return len(tokens)
