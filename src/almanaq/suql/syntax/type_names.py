"""Types as PostgreSQL writes them: texts of a type, arrays with their size, types of several words."""

from __future__ import annotations

import re

from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType

from almanaq.suql.syntax.operands import STRINGS, group_end

T = TokenType
_NO_TYPE = frozenset(
    "escape uescape zone similar to like ilike as from for by at is not and or in on placing both leading trailing "
    "content document passing".split()
)
"""Words before a text that are no type."""
_PARTS_OF_INTERVAL = {"month": 1, "year": 2, "day": 3, "hour": 10, "minute": 11, "second": 12}
"""The bits of what an interval consists of, in the digits of its type."""
_WHOLE_INTERVAL, _SIX_DIGITS = 0x7FFF, 6
_AMOUNT = re.compile(r"\s*[-+]?\d+(?:\.\d+)?\s*[a-zA-Z]*\s*")


def respell_types(tokens: list[Token]) -> list[Token]:
    """Return tokens with `CAST('…' AS type)` for a text of a type that the parser has no name for, `int[]` for `int[3]`
    and `int ARRAY`, one word for `bit varying`, and digits for what an interval consists of.
    """
    tokens = _enclose_cast_texts(tokens)
    found: list[Token] = []
    i = 0
    while i < len(tokens):
        token = tokens[i]
        after = tokens[i + 1] if i + 1 < len(tokens) else None
        if token.token_type == T.BIT and after is not None and after.text.lower() == "varying":
            found.append(_at(token, T.VAR, "varbit"))
            i += 1
        elif token.token_type == T.BIT and after is not None and after.token_type in STRINGS:
            found.append(_at(after, T.BIT_STRING, after.text))  # as long as it is
            i += 1
        elif after is not None and _is_type_of_text(token, after, found):
            found += _cast(after, [token])
            i += 1
        elif token.token_type == T.IDENTIFIER and token.text == "char" and found and found[-1].token_type == T.DCOLON:
            found += [_at(token, T.VAR, "pg_catalog"), _at(token, T.DOT, "."), token]  # a type other than char
        elif token.token_type == T.INTERVAL and after is not None:
            i = _interval(tokens, i, found)
        else:
            found.append(token)
        i += 1
        if len(found) > 1 and found[-2].token_type == T.DCOLON:
            i = _array(tokens, i, found)
    return found


def _enclose_cast_texts(tokens: list[Token]) -> list[Token]:
    """Write `(date '2020-01-31')::text` for `date '2020-01-31'::text`: the parser would cast the text first."""
    for i in reversed(range(1, len(tokens) - 1)):
        if tokens[i].token_type in STRINGS and tokens[i + 1].token_type == T.DCOLON:
            start = _start_of_type(tokens, i - 1)
            if start is not None:
                opened, closed = _at(tokens[start], T.L_PAREN, "("), _at(tokens[i], T.R_PAREN, ")")
                tokens = [*tokens[:start], opened, *tokens[start : i + 1], closed, *tokens[i + 1 :]]
    return tokens


def _start_of_type(tokens: list[Token], at: int) -> int | None:
    """Return where the type begins whose last token stands at a place; None where there is none."""
    if tokens[at].text.lower() == "zone" and at > 2:
        at -= 3
    elif tokens[at].text.lower() in ("precision", "varying") and at > 0:
        at -= 1
    if tokens[at].token_type == T.R_PAREN:
        opened = next((j for j in range(at, -1, -1) if group_end(tokens, j) == at), 0)
        at = opened - 1
    typed = at >= 0 and tokens[at].token_type in Parser.TYPE_TOKENS and tokens[at].token_type != T.INTERVAL
    free = at < 1 or tokens[at - 1].token_type not in (T.DOT, T.DCOLON)
    return at if typed and free else None


def _at(place: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, place.line, place.col, place.start, place.end)


def _is_type_of_text(token: Token, after: Token, before: list[Token]) -> bool:
    named = token.token_type == T.VAR or (token.token_type == T.IDENTIFIER and token.text.lower() == "char")
    dotted = bool(before) and before[-1].token_type in (T.DOT, T.DCOLON)
    return named and after.token_type in STRINGS and token.text.lower() not in _NO_TYPE and not dotted


def _interval(tokens: list[Token], at: int, found: list[Token]) -> int:
    """Read an interval's type or text; give the place of its last token."""
    token, after = tokens[at], tokens[at + 1]
    if after.token_type == T.L_PAREN:
        end = group_end(tokens, at + 1)
        digits = _typmod(token, _WHOLE_INTERVAL, tokens[at + 2].text)
        if end + 1 < len(tokens) and tokens[end + 1].token_type in STRINGS:
            found += _cast(tokens[end + 1], digits)
            return end + 1
        found += digits
        return end
    if found and found[-1].token_type in (T.DCOLON, T.ALIAS) and after.text.lower() in _PARTS_OF_INTERVAL:
        end, mask, precision = _parts(tokens, at + 1)
        found += _typmod(token, mask, precision)
        return end
    following = tokens[at + 2].text.lower() if at + 2 < len(tokens) else ""
    if after.token_type == T.STRING and following in _PARTS_OF_INTERVAL:
        end, mask, precision = _parts(tokens, at + 2)
        if tokens[end].token_type == T.R_PAREN:
            found += _cast(after, _typmod(token, mask, precision))
            return end
    plain = after.token_type == T.STRING and following not in _PARTS_OF_INTERVAL
    if plain and not _AMOUNT.fullmatch(after.text):
        found += _cast(after, [token])
        return at + 1
    found.append(token)
    return at


def _cast(text: Token, kind: list[Token]) -> list[Token]:
    called = Token(T.VAR, "CAST", text.line, text.col, text.start, text.start - 1)
    return [called, _at(text, T.L_PAREN, "("), text, _at(text, T.ALIAS, "AS"), *kind, _at(text, T.R_PAREN, ")")]


def _parts(tokens: list[Token], at: int) -> tuple[int, int, str]:
    """Read `day to second(2)`; give the place of its last token, its bits, and its precision."""
    names = list(_PARTS_OF_INTERVAL)
    first, last = tokens[at].text.lower(), tokens[at].text.lower()
    if at + 2 < len(tokens) and tokens[at + 1].text.lower() == "to" and tokens[at + 2].text.lower() in names:
        at, last = at + 2, tokens[at + 2].text.lower()
    order = ["year", "month", "day", "hour", "minute", "second"]
    bits = [1 << _PARTS_OF_INTERVAL[name] for name in order[order.index(first) : order.index(last) + 1]]
    precision = str(_SIX_DIGITS)
    if at + 2 < len(tokens) and tokens[at + 1].token_type == T.L_PAREN:
        precision, at = tokens[at + 2].text, at + 3
    return at, sum(bits), precision


def _typmod(place: Token, mask: int, precision: str) -> list[Token]:
    """Return `pg_catalog.interval(mask, precision)`, which PostgreSQL itself makes of an interval with digits."""
    return [
        *(_at(place, T.VAR, "pg_catalog"), _at(place, T.DOT, "."), _at(place, T.VAR, "interval")),
        *(_at(place, T.L_PAREN, "("), _at(place, T.NUMBER, str(mask)), _at(place, T.COMMA, ",")),
        *(_at(place, T.NUMBER, precision), _at(place, T.R_PAREN, ")")),
    ]


def _array(tokens: list[Token], at: int, found: list[Token]) -> int:
    """Read on after the name of a type in a cast: its digits, and how it says that it is an array."""
    if at < len(tokens) and tokens[at].token_type == T.L_PAREN:
        end = group_end(tokens, at)
        found += tokens[at : end + 1]
        at = end + 1
    if at < len(tokens) and tokens[at].token_type == T.ARRAY:
        found += [_at(tokens[at], T.L_BRACKET, "["), _at(tokens[at], T.R_BRACKET, "]")]
        at += 1
        return group_end(tokens, at) + 1 if at < len(tokens) and tokens[at].token_type == T.L_BRACKET else at
    while at < len(tokens) and tokens[at].token_type == T.L_BRACKET:
        end = group_end(tokens, at)
        if any(t.token_type != T.NUMBER for t in tokens[at + 1 : end]):
            break
        found += [tokens[at], tokens[end]]
        at = end + 1
    return at
