"""The `?` of a query: where a value goes, unless it stands between two values, where it is PostgreSQL's operator."""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

from almanaq.suql.syntax.operands import after_operand

T = TokenType


def number_placeholders(tokens: list[Token], text: str) -> tuple[list[Token], int]:
    """Return tokens with `$1`, `$2`, … for each `?`, and their number: a number keeps them apart from the operator."""
    found: list[Token] = []
    count, skip = 0, False
    for i, token in enumerate(tokens):
        if skip:
            skip = False
        elif after_operand(found) or not _is_placeholder(token, text):
            found.append(token)
        else:
            count += 1
            for kind, written in ((T.PARAMETER, "$"), (T.NUMBER, str(count))):
                found.append(Token(kind, written, token.line, token.col, token.start, token.start))
            if token.token_type == T.QDCOLON:
                found.append(Token(T.DCOLON, "::", token.line, token.col, token.start + 1, token.end))
            elif token.token_type == T.QMARK_PIPE:  # the first sign of || went with it
                found.append(Token(T.DPIPE, "||", token.line, token.col, token.end, tokens[i + 1].end))
                skip = True
    return found, count


def _is_placeholder(token: Token, text: str) -> bool:
    joined = token.token_type == T.QMARK_PIPE and text[token.end + 1 : token.end + 2] == "|"
    return (token.token_type == T.PLACEHOLDER and token.text == "?") or token.token_type == T.QDCOLON or joined
