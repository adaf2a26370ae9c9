"""sqlglot's parser of DuckDB's SQL, with what it lacks to read the SQL that DuckDB writes of a tree."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokenizer_core import TokenType


class _Parser(DuckDBParser):
    """Reads lambdas in parentheses: DuckDB writes every lambda, and so every list comprehension, with them."""

    def _parse_lambda(self, alias: bool = False) -> exp.Expr | None:
        start = self._index
        if self._match(TokenType.L_PAREN) and self._curr.text.upper() == "LAMBDA":
            made = self._parse_lambda(alias=alias)
            if made is not None and self._match(TokenType.R_PAREN):
                return made
        self._retreat(start)
        return super()._parse_lambda(alias=alias)


def parse_written(sql: str) -> exp.Expr:
    """Return the tree of a query that DuckDB wrote.

    >>> parse_written("SELECT list_filter(l, (lambda x: (x > 1))) FROM t").sql("duckdb")
    'SELECT LIST_FILTER(l, LAMBDA x : (x > 1)) FROM t'

    Raises:
        SqlglotError: it cannot be parsed.
    """
    dialect = Dialect.get_or_raise("duckdb")
    (tree,) = _Parser(dialect=dialect).parse(dialect.tokenize(sql), sql)
    assert tree is not None
    return tree
