"""PostgreSQL's spellings that the parser does not know, or reads as something else, written as those it knows.

All of it happens to tokens: each new one stands where an old one stood, so that errors still point at the query.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

from almanaq.errors import UnsupportedError
from almanaq.suql.syntax.operands import after_operand, end_of_operand, ends_operand, group_end
from almanaq.suql.syntax.operators import respell_operators
from almanaq.suql.syntax.type_names import respell_types

Tokens = list[Token]
T = TokenType

_QUERY_BEFORE = (T.UNION, T.EXCEPT, T.INTERSECT, T.ALL, T.DISTINCT, T.L_PAREN, T.R_PAREN)
_PREFIX = (T.PARAMETER, T.PIPE_SLASH, T.DPIPE_SLASH)
MISREAD = frozenset(
    """
    convert date_add date_bin date_part date_trunc host json_object jsonb_contains jsonb_exists log10 mod overlaps
    regexp_like
    """.split()
)
"""Functions that the parser takes for others, or leaves arguments out of, in some of their forms. Behind `pg_catalog.`
it leaves a function as it is."""


def respell(tokens: Tokens, text: str) -> Tokens:
    """Return the tokens of a query in spellings that the parser knows.

    - `VALUES (1), (2)` as a statement becomes a SELECT from it, `TABLE t` `SELECT * FROM t`;
    - `USING (i) AS x` loses its alias, and `x.i` becomes `i`; `ORDER BY a USING >` becomes `ORDER BY a DESC`;
    - `substring(a SIMILAR b ESCAPE c)` becomes `substring(a FROM b FOR c)`;
    - `@ a` becomes `abs(a)`; what `@`, `|/`, `||/` and `~` stand before is put in parentheses;
    - `point '(1,2)'` becomes a cast, `int[3]` and `int ARRAY` become `int[]`;
    - operators that the parser does not know become `OPERATOR(pg_catalog.…)`.
    """
    tokens = respell_operators(tokens, text)
    tokens = respell_types(tokens)
    for respelled in _PASSES:
        tokens = respelled(tokens)
    return tokens


def named(at: Token, name: str) -> Token:
    """Return the name of a function that the query does not write: it stands nowhere, where another token begins."""
    return Token(T.VAR, name, at.line, at.col, at.start, at.start - 1)


def spelled(at: Token, *parts: tuple[TokenType, str]) -> Tokens:
    """Return new tokens that stand where another one does."""
    return [Token(kind, text, at.line, at.col, at.start, at.end) for kind, text in parts]


def _statements(tokens: Tokens) -> Tokens:
    found: Tokens = []
    for i, token in enumerate(tokens):
        begins = not found or found[-1].token_type in _QUERY_BEFORE
        if token.token_type == T.TABLE and begins:
            found += spelled(token, (T.SELECT, "SELECT"), (T.STAR, "*"), (T.FROM, "FROM"))
        elif token.token_type == T.VALUES and (i == 0 or found[-1].token_type == T.R_PAREN):
            return found + _select_from_values(tokens, i)
        else:
            found.append(token)
    return found


def _select_from_values(tokens: Tokens, at: int) -> Tokens:
    """Write `VALUES (…), (…) ORDER BY 1` as `SELECT * FROM (VALUES (…), (…)) AS "values" (column1, …) ORDER BY 1`."""
    end, width = at + 1, 0
    while end < len(tokens) and tokens[end].token_type == T.L_PAREN:
        closing = group_end(tokens, end)
        width = width or _width(tokens[end + 1 : closing])
        end = closing + 1
        if end < len(tokens) and tokens[end].token_type == T.COMMA:
            end += 1
    first, last = tokens[at], tokens[end - 1]
    columns = [part for i in range(width) for part in ((T.COMMA, ","), (T.VAR, f"column{i + 1}"))][1:]
    alias = ((T.ALIAS, "AS"), (T.IDENTIFIER, "values"), (T.L_PAREN, "("), *columns, (T.R_PAREN, ")"))
    before = spelled(first, (T.SELECT, "SELECT"), (T.STAR, "*"), (T.FROM, "FROM"), (T.L_PAREN, "("))
    return [*before, *tokens[at:end], *spelled(last, (T.R_PAREN, ")"), *alias), *_statements(tokens[end:])]


def _width(tokens: Sequence[Token]) -> int:
    depth, width = 0, 1
    for token in tokens:
        depth += {T.L_PAREN: 1, T.L_BRACKET: 1, T.R_PAREN: -1, T.R_BRACKET: -1}.get(token.token_type, 0)
        width += depth == 0 and token.token_type == T.COMMA
    return width


def _merged_aliases(tokens: Tokens) -> Tokens:
    """Take the name of the merged columns away, `USING (i, j) AS x`: they are visible by their own names."""
    merged: dict[str, list[str]] = {}
    found: Tokens = []
    i = 0
    while i < len(tokens):
        found.append(tokens[i])
        if tokens[i].token_type == T.USING and i + 1 < len(tokens) and tokens[i + 1].token_type == T.L_PAREN:
            end = group_end(tokens, i + 1)
            found += tokens[i + 1 : end + 1]
            if end + 2 < len(tokens) and tokens[end + 1].token_type == T.ALIAS:
                names = [t.text for t in tokens[i + 2 : end] if t.token_type != T.COMMA]
                merged[tokens[end + 2].text.lower()] = names
                end += 2
            i = end
        i += 1
    return _without_qualifier(found, merged) if merged else found


def _row(columns: list[tuple[T, str]]) -> list[tuple[T, str]]:
    """Return `(SELECT "_row" FROM (SELECT i, j) AS "_row")`, the row of some columns as one value."""
    row, opened, closed = (T.IDENTIFIER, "_row"), (T.L_PAREN, "("), (T.R_PAREN, ")")
    inner = [opened, (T.SELECT, "SELECT"), *columns, closed, (T.ALIAS, "AS"), row]
    return [opened, (T.SELECT, "SELECT"), row, (T.FROM, "FROM"), *inner, closed]


def _without_qualifier(tokens: Tokens, merged: dict[str, list[str]]) -> Tokens:
    found: Tokens = []
    i = 0
    while i < len(tokens):
        name = merged.get(tokens[i].text.lower()) if tokens[i].token_type in (T.VAR, T.IDENTIFIER) else None
        after = tokens[i + 1].token_type if i + 1 < len(tokens) else None
        if name is None or (found and found[-1].token_type == T.DOT):
            found.append(tokens[i])
        elif after == T.DOT and i + 2 < len(tokens) and tokens[i + 2].token_type == T.STAR:
            columns = [p for n in name for p in ((T.COMMA, ","), (T.IDENTIFIER, n))][1:]
            called = [token.token_type for token in found[-2:]] == [T.VAR, T.L_PAREN]
            found += spelled(tokens[i], *(_row(columns) if called else columns))
            i += 2
        elif after == T.DOT:
            i += 1
        else:
            raise UnsupportedError(
                f"{tokens[i].text!r} names the columns that USING merges: give each as {tokens[i].text}.{name[0]}"
            )
        i += 1
    return found


def _orders(tokens: Tokens) -> Tokens:
    """Write the operator of `ORDER BY a USING >` as a direction."""
    found: Tokens = []
    skip = False
    for token, after in zip(tokens, [*tokens[1:], None], strict=False):
        if skip:
            skip = False
        elif token.token_type == T.USING and after is not None and after.token_type in (T.LT, T.GT):
            found += spelled(token, (T.DESC, "DESC") if after.token_type == T.GT else (T.ASC, "ASC"))
            skip = True
        else:
            found.append(token)
    return found


def _substrings(tokens: Tokens) -> Tokens:
    """Write `substring(a SIMILAR b ESCAPE c)` as `substring(a FROM b FOR c)`, which means the same."""
    found, opened, inside = list(tokens), [], set()
    for i, token in enumerate(tokens):
        if token.token_type == T.L_PAREN:
            opened.append(i > 0 and tokens[i - 1].text.lower() == "substring")
        elif token.token_type == T.R_PAREN and opened:
            opened.pop()
            inside.discard(len(opened) + 1)
        elif opened and opened[-1] and token.text.lower() == "similar":
            found[i : i + 1] = spelled(token, (T.FROM, "FROM"))
            inside.add(len(opened))
        elif token.token_type == T.ESCAPE and len(opened) in inside:
            found[i : i + 1] = spelled(token, (T.FOR, "FOR"))
    return found


def _prefixes(tokens: Tokens) -> Tokens:
    """Write what an operator stands before in parentheses: it reaches as far as arithmetic does, `@ a - b`."""
    for i in reversed(range(len(tokens) - 1)):
        token = tokens[i]
        if after_operand(tokens[max(0, i - 2) : i]):
            continue
        if token.token_type in _PREFIX or token.text == "~":
            if token.text == "$":
                continue
            end = end_of_operand(tokens, i + 1)
            operator = [named(token, "abs")] if token.text == "@" else [token]
            opened = spelled(token, (T.L_PAREN, "("))
            closed = spelled(tokens[end - 1], (T.R_PAREN, ")"))
            tokens = [*tokens[:i], *operator, *opened, *tokens[i + 1 : end], *closed, *tokens[end:]]
    return tokens


def _without_schema(tokens: Tokens) -> Tokens:
    """Write `pg_catalog.lower(x)` as `lower(x)`."""
    found: Tokens = []
    skip = False
    for i, token in enumerate(tokens):
        called = i + 3 < len(tokens) and tokens[i + 1].token_type == T.DOT and tokens[i + 3].token_type == T.L_PAREN
        if skip:
            skip = False
        elif called and token.text.lower() == "pg_catalog" and not (found and found[-1].token_type == T.DCOLON):
            skip = tokens[i + 2].text.lower() != "interval"
            found += [] if skip else [token]
        else:
            found.append(token)
    return found


def _functions(tokens: Tokens) -> Tokens:
    """Write `pg_catalog.` before calls that the parser would make something else of."""
    found: Tokens = []
    for i, token in enumerate(tokens):
        called = i + 1 < len(tokens) and tokens[i + 1].token_type == T.L_PAREN
        qualified = bool(found) and found[-1].token_type == T.DOT
        if called and not qualified and _is_misread(token.text.lower(), tokens, i + 1):
            found += spelled(token, (T.VAR, "pg_catalog"), (T.DOT, "."), (T.VAR, token.text.lower()))
        else:
            found.append(token)
    return _collations(found)


def _is_misread(name: str, tokens: Tokens, opening: int) -> bool:
    inside = tokens[opening + 1 : group_end(tokens, opening)]
    count = _width(inside) if inside else 0
    if name == "json_object":
        return not any(t.token_type == T.COLON or t.text.upper() in ("VALUE", "KEY") for t in inside)
    if name == "date_trunc":
        return count == 3 or not inside or inside[0].token_type != T.STRING
    if name == "regexp_like":
        return count == 3 and not (inside[-1].token_type == T.STRING and inside[-1].text in ("", "i", "c", "s"))
    if name == "overlaps":
        return count == 4 and opening > 1 and not ends_operand(tokens[opening - 2])
    return name in MISREAD


def _escapes(tokens: Tokens) -> Tokens:
    """Write `ESCAPE '#'::text` as `ESCAPE '#'`: it is of the type of what is matched."""
    found: Tokens = []
    for token in tokens:
        before = [t.token_type for t in found[-3:]]
        if before == [T.ESCAPE, T.STRING, T.DCOLON] and token.text.lower() in ("text", "varchar", "bytea"):
            found.pop()
        else:
            found.append(token)
    return found


def _named_arguments(tokens: Tokens) -> Tokens:
    """Write `f(a := 1)`, as it was written before PostgreSQL 9.5, as `f(a => 1)`."""
    return [spelled(t, (T.FARROW, "=>"))[0] if t.token_type == T.COLON_EQ else t for t in tokens]


def _collations(tokens: Tokens) -> Tokens:
    """Write `COLLATION FOR (x)` as the function that it is."""
    found: Tokens = []
    skip = False
    for token, after in zip(tokens, [*tokens[1:], None], strict=False):
        if skip:
            skip = False
        elif token.text.lower() == "collation" and after is not None and after.token_type == T.FOR:
            found.append(named(token, "pg_collation_for"))
            skip = True
        else:
            found.append(token)
    return found


_PASSES = (
    *(_statements, _merged_aliases, _orders, _substrings, _prefixes, _without_schema, _functions, _named_arguments),
    _escapes,
)
