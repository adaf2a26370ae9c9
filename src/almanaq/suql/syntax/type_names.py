"""Types as PostgreSQL writes them: texts of a type, arrays with their size, types of several words."""

from __future__ import annotations

import re

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
    """Give tokens with `CAST('…' AS type)` for a text of a type that the parser has no name for, `int[]` for `int[3]`
    and `int ARRAY`, one word for `bit varying`, and digits for what an interval consists of.
    """
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
    plain = after.token_type == T.STRING and following not in _PARTS_OF_INTERVAL
    if plain and not _AMOUNT.fullmatch(after.text):
        found += _cast(after, [token])
        return at + 1
    found.append(token)
    return at


def _cast(text: Token, kind: list[Token]) -> list[Token]:
    before = [_at(text, T.VAR, "CAST"), _at(text, T.L_PAREN, "("), text, _at(text, T.ALIAS, "AS")]
    return [*before, *kind, _at(text, T.R_PAREN, ")")]


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
    """Give `pg_catalog.interval(mask, precision)`, which PostgreSQL itself makes of an interval with digits."""
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
