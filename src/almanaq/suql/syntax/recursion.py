"""SEARCH and CYCLE of WITH RECURSIVE, of which the parser knows neither several columns nor any but the last member's.

Each is read from the tokens and moved, as one odd name, to a place that the parser keeps: `t USING KEY (…) AS (…)`.
After it the names are made nodes; they are printed when all else of the statement is written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from almanaq.errors import QuerySyntaxError, UnsupportedError
from almanaq.suql.syntax.operands import STRINGS

T = TokenType
_WORDS = ("search", "cycle", "key")
_ADVICE = "count the steps, or keep the path in an array, and look at that"


def move_search_clauses(tokens: list[Token]) -> list[Token]:
    """Write `t AS (…) CYCLE a SET b USING c` as `t USING KEY ("…") AS (…)`, which the parser reads.

    Raises:
        QuerySyntaxError: a clause is cut off, or the query writes USING KEY itself, which is not PostgreSQL's.
    """
    if not any(token.text.lower() in _WORDS for token in tokens):
        return tokens
    found: list[Token] = []
    opened: list[int] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        _refuse_key(tokens, at)
        found.append(token)
        at += 1
        if token.token_type == T.L_PAREN:
            opened.append(len(found) - 1)
        elif token.token_type == T.R_PAREN and opened:
            place = _place_of_as(found, opened.pop())
            clauses: list[Token] = []
            while _begins(tokens, at):
                clause, end = _Clause(tokens, at).read()
                clauses += [_like(tokens[at], T.IDENTIFIER, clause), _like(tokens[at], T.COMMA, ",")]
                at = end
            if clauses:
                key = (T.USING, "USING"), (T.VAR, "KEY"), (T.L_PAREN, "(")
                opening = [_like(token, kind, text) for kind, text in key]
                found[place:place] = [*opening, *clauses[:-1], _like(token, T.R_PAREN, ")")]
    return found


def read_search_clauses(found: list[exp.Expr], engine: str | None) -> None:
    """Make nodes of the clauses that `move_search_clauses` moved, in place.

    Raises:
        UnsupportedError: the engine has neither clause.
    """
    for cte in found:
        written = cte.args.get("key_expressions") if isinstance(cte, exp.CTE) else None
        if not written:
            continue
        if engine not in (None, "postgres"):
            raise UnsupportedError(f"SEARCH and CYCLE are not supported on {engine}: {_ADVICE}")
        cte.set("key_expressions", [_node(name.name) for name in written])


def columns_of_clauses(cte: exp.CTE) -> Iterator[exp.Identifier]:
    """Yield the names of the columns that the clauses of a member of WITH add to it."""
    for clause in cte.args.get("key_expressions") or ():
        for name in (clause.args["expression"], clause.args.get("using")):
            if name is not None:
                yield name


def with_written_clauses(cte: exp.CTE) -> exp.Expr:
    """Return a member of WITH with its clauses as PostgreSQL writes them."""
    clauses = cte.args.get("key_expressions")
    if not clauses:
        return cte
    written = "".join(f" {_written(clause)}" for clause in clauses)
    bare = cte.copy()
    bare.set("key_expressions", None)
    return exp.Tag(this=bare, prefix="", postfix=written)


def _written(clause: exp.RecursiveWithSearch) -> str:
    kind = clause.args["kind"]
    columns = ", ".join(name.sql("postgres") for name in clause.this.expressions)
    beginning = f"CYCLE {columns}" if kind == "CYCLE" else f"SEARCH {kind} FIRST BY {columns}"
    mark = clause.args["expression"].sql("postgres")
    using = clause.args.get("using")
    marked = [value.sql("postgres") for value in clause.this.args.get("marks") or ()]
    values = f" TO {marked[0]} DEFAULT {marked[1]}" if marked else ""
    return f"{beginning} SET {mark}{values}" + (f" USING {using.sql('postgres')}" if using is not None else "")


def _node(clause: str) -> exp.RecursiveWithSearch:
    parts = json.loads(clause)
    named = {key: exp.to_identifier(parts[key], quoted=True) if parts[key] else None for key in ("set", "using")}
    columns = exp.Tuple(expressions=[exp.to_identifier(name, quoted=True) for name in parts["columns"]])
    columns.set("marks", [_value(*value) for value in parts["values"]] or None)
    return exp.RecursiveWithSearch(kind=parts["kind"], this=columns, expression=named["set"], using=named["using"])


def _value(kind: str, text: str) -> exp.Expr:
    if kind == "boolean":
        return exp.Boolean(this=text == "TRUE")
    return exp.Literal.string(text) if kind == "string" else exp.Literal.number(text)


class _Clause:
    """Reads one clause from tokens."""

    def __init__(self, tokens: list[Token], at: int) -> None:
        self._tokens, self._at = tokens, at

    def read(self) -> tuple[str, int]:
        """Return the clause as a text that `_node` reads, and the place after it."""
        kind, values, using = "CYCLE", [], ""
        if self._word() == "search":
            kind = self._word().upper()
            for expected in ("first", "by"):
                self._expect(expected)
        columns = [self._name()]
        while self._peek() == ",":
            self._at += 1
            columns.append(self._name())
        self._expect("set")
        mark = self._name()
        if kind == "CYCLE":
            if self._peek() == "to":
                self._at += 1
                values.append(self._value())
                self._expect("default")
                values.append(self._value())
            self._expect("using")
            using = self._name()
        parts = {"kind": kind, "columns": columns, "set": mark, "values": values, "using": using}
        return json.dumps(parts), self._at

    def _peek(self) -> str:
        return self._tokens[self._at].text.lower() if self._at < len(self._tokens) else ""

    def _word(self) -> str:
        word = self._peek()
        self._at += 1
        return word

    def _expect(self, word: str) -> None:
        if self._word() != word:
            raise QuerySyntaxError(
                "SEARCH reads SEARCH DEPTH|BREADTH FIRST BY column, … SET column, and CYCLE reads "
                "CYCLE column, … SET column [TO constant DEFAULT constant] USING column"
            )

    def _name(self) -> str:
        token = self._tokens[self._at] if self._at < len(self._tokens) else None
        quoted = token is not None and token.token_type == T.IDENTIFIER
        if token is None or not (quoted or token.text.isidentifier()):
            self._expect("a name")
        name = self._tokens[self._at].text
        self._at += 1
        return name.lower()  # names match whatever their case

    def _value(self) -> tuple[str, str]:
        token = self._tokens[min(self._at, len(self._tokens) - 1)]
        self._at += 1
        if token.token_type in STRINGS:
            return "string", token.text
        if token.token_type in (T.TRUE, T.FALSE):
            return "boolean", token.text.upper()
        if token.token_type != T.NUMBER:
            raise UnsupportedError("the values of CYCLE … TO … DEFAULT … are constants: texts, numbers, TRUE, FALSE")
        return "number", token.text


def _begins(tokens: list[Token], at: int) -> bool:
    words = [token.text.lower() for token in tokens[at : at + 3]]
    if words[:1] == ["search"]:
        return words[1:] in (["depth", "first"], ["breadth", "first"])
    if words[:1] != ["cycle"]:
        return False
    at += 2  # `(SELECT …) cycle` names a subquery
    while at + 1 < len(tokens) and tokens[at].token_type == T.COMMA:
        at += 2
    return at < len(tokens) and tokens[at].token_type == T.SET


def _refuse_key(tokens: list[Token], at: int) -> None:
    if tokens[at].token_type == T.USING and [t.text.lower() for t in tokens[at + 1 : at + 3]] == ["key", "("]:
        raise QuerySyntaxError("USING KEY is not PostgreSQL's: leave it out")


def _place_of_as(found: list[Token], opening: int) -> int:
    """Return the place of AS before the body of a member of WITH: `t AS (`, `t AS NOT MATERIALIZED (`."""
    place = opening - 1
    while place > max(0, opening - 3) and found[place].token_type != T.ALIAS:
        place -= 1
    return place


def _like(at: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, at.line, at.col, at.start, at.end)
