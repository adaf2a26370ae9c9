"""What a command line's habits ask for, DESCRIBE, SHOW TABLES and SUMMARIZE, as a query of VALUES from the catalog."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp

from almanaq.errors import UnsupportedError
from almanaq.suql.catalog.relations import Catalog, Column

_NAME = r"""(?P<name>"(?:[^"]|"")+"(?:\."(?:[^"]|"")+")*|[\w.]+)"""
_TABLES = re.compile(r"\s*(?:show\s+(?:all\s+)?tables|\\dt?|\.tables)\s*;?\s*", re.I)
_COLUMNS = re.compile(
    rf"\s*(?:(?:describe|desc)(?:\s+table)?|show\s+columns\s+(?:from|in)|\\d|\.schema)\s+{_NAME}\s*;?\s*", re.I
)
_SUMMARY = re.compile(rf"\s*summarize(?:\s+table)?\s+{_NAME}\s*;?\s*", re.I)
_BEGINS = re.compile(r"\s*(describe|desc|summarize)\b", re.I)
_SHOWN = ("column", "type", "kind", "description")
_MOST = 5
"""Values and samples of a column that a summary shows."""

Cell = str | int | None


def listing(text: str, catalog: Catalog, dialect: str) -> str | None:
    """Return the query that answers DESCRIBE, SHOW TABLES or SUMMARIZE from what is known; None for any other text.

    Raises:
        UnknownNameError: no such relation; with near names.
        UnsupportedError: DESCRIBE or SUMMARIZE of something that is no relation.
    """
    if tables := list_tables(text, catalog, dialect):
        return tables
    if found := _COLUMNS.fullmatch(text):
        columns = catalog.relation(_relation(found)).columns
        return _query(_SHOWN, [_described(column) for column in columns], dialect)
    if found := _SUMMARY.fullmatch(text):
        relation = catalog.relation(_relation(found))
        summary = [[*_described(column), _values(column), relation.rows] for column in relation.columns]
        return _query((*_SHOWN, "values", "rows"), summary, dialect, whole=("rows",))
    if begun := _BEGINS.match(text):
        keyword = begun[1].upper()
        raise UnsupportedError(
            f"{keyword} takes the name of a relation: {keyword} name; --explain shows what a query does"
        )
    return None


def list_tables(text: str, catalog: Catalog, dialect: str = "duckdb") -> str | None:
    """Return the query that answers SHOW TABLES, from what is known of the relations; None for any other text."""
    if not _TABLES.fullmatch(text):
        return None
    rows: list[list[Cell]] = [[r.name, len(r.columns), r.rows, r.description or None] for r in catalog.relations]
    return _query(("table", "columns", "rows", "description"), rows, dialect, whole=("columns", "rows"))


def _relation(found: re.Match[str]) -> str:
    name = found["name"]
    return name.replace('""', '"').strip('"').replace('"."', ".") if name.startswith('"') else name


def _described(column: Column) -> list[Cell]:
    return [column.name, column.type + ("[]" if column.array else ""), column.kind.value, column.description or None]


def _values(column: Column) -> str | None:
    """Return an ENUM's values, else samples; none of a private column."""
    known = column.values or column.samples
    if column.private or not known:
        return None
    return ", ".join(known[:_MOST]) + (f", … ({len(known)} in all)" if len(known) > _MOST else "")


def _query(names: Sequence[str], rows: Sequence[Sequence[Cell]], dialect: str, whole: Sequence[str] = ()) -> str:
    """Return a query for rows; each cell has its type, so that columns of nothing but NULL have one."""
    kinds = ["bigint" if name in whole else "text" for name in names]
    cells = rows or [[None] * len(names)]
    written = [
        exp.Tuple(expressions=[exp.cast(_literal(cell), kind) for cell, kind in zip(row, kinds, strict=True)])
        for row in cells
    ]
    alias = exp.TableAlias(
        this=exp.to_identifier("listing", quoted=True), columns=[exp.to_identifier(name, quoted=True) for name in names]
    )
    select = exp.select("*").from_(exp.Values(expressions=written, alias=alias))
    return (select if rows else select.where(exp.false())).sql(dialect)


def _literal(cell: Cell) -> exp.Expr:
    if cell is None:
        return exp.null()
    return exp.Literal.number(cell) if isinstance(cell, int) else exp.Literal.string(cell)
