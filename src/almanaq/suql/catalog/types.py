"""Types of a query's expressions; sqlglot takes some parts of dates for integers."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.schema import MappingSchema

from almanaq.suql.catalog.relations import Column, Relation

_WHOLE = frozenset(
    [
        *("array_position", "cardinality", "json_array_length", "jsonb_array_length", "octet_length"),
        *("regexp_count", "width_bucket"),
    ]
)
"""Functions without a class of sqlglot's own that give integers."""


_ASCII_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_FOLD_ALL = ("duckdb", "spark", "databricks", "sqlite", "mysql", "tsql")
"""Dialects in which names match whatever their case, quoted ones too."""


def fold(name: str, dialect: str, *, quoted: bool) -> str:
    """Return a name in the form by which an engine finds it.

    >>> fold("Öl", "duckdb", quoted=False), fold("Id", "duckdb", quoted=True), fold("Id", "postgres", quoted=True)
    ('Öl', 'id', 'Id')
    """
    if dialect in _FOLD_ALL:
        return name.translate(_ASCII_LOWER)
    if dialect == "postgres":
        return name if quoted else name.translate(_ASCII_LOWER)
    identifier = exp.to_identifier(name, quoted=quoted)
    return Dialect.get_or_raise(dialect).normalize_identifier(identifier).name


def schema_of(relations: Iterable[Relation], dialect: str) -> MappingSchema:
    """Return the columns of relations with their types, as sqlglot is told them."""
    types: dict[str, exp.DataType] = {}

    def type_of(column: Column) -> exp.DataType:
        written = column.type + ("[]" if column.array else "")
        return types.get(written) or types.setdefault(written, _read_type(written).copy())

    mapping = {r.name: {fold(c.name, dialect, quoted=True): type_of(c) for c in r.columns} for r in relations}
    return MappingSchema(mapping, dialect=dialect, normalize=False)  # type: ignore[arg-type]


@cache
def _read_type(written: str) -> exp.DataType:
    return exp.DataType.from_str(written, dialect="postgres", udt=True)


def typed(tree: exp.Query, schema: MappingSchema, dialect: str) -> exp.Query:
    """Return a qualified query, which is changed, with the type of every expression that is known."""
    known = Dialect.get_or_raise(dialect).EXPRESSION_METADATA
    own: dict[Any, Any] = {
        exp.Extract: {"returns": exp.DType.DECIMAL},
        exp.Sign: {"returns": exp.DType.DOUBLE},
        exp.RegexpCount: {"returns": exp.DType.INT},
        exp.ArrayPosition: {"returns": exp.DType.INT},
        exp.Anonymous: {"annotator": _annotate_function},
        exp.Sub: {"annotator": _annotate_difference},
    }
    return annotate_types(tree, schema=schema, expression_metadata={**known, **own}, dialect=dialect)


def _annotate_function(annotator: Any, node: exp.Expr) -> exp.Expr:
    whole = node.name.lower() in _WHOLE
    annotator._set_type(node, exp.DType.INT if whole else exp.DType.UNKNOWN)
    return node


def _annotate_difference(annotator: Any, node: exp.Expr) -> exp.Expr:
    """A day less a day is a number of days."""
    annotator._annotate_binary(node)
    if node.this.is_type("date") and node.expression.is_type("date"):
        annotator._set_type(node, exp.DType.INT)
    return node
