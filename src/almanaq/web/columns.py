"""Columns: what those of a result are, which of the source an answer may show, and who may see them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from almanaq.errors import AlmanaqError
from almanaq.suql.catalog.lineage import origins
from almanaq.suql.text_functions import is_model_call

if TYPE_CHECKING:
    import pyarrow as pa

    from almanaq.agent.response import Response
    from almanaq.connection import Connection
    from almanaq.suql.engine import Engine
    from almanaq.suql.result import Evidence
    from almanaq.web.answers import Columns

_NAMES = {
    "string": "text",
    "large_string": "text",
    "string_view": "text",
    "bool": "boolean",
    "int8": "smallint",
    "int16": "smallint",
    "int32": "integer",
    "int64": "bigint",
    "uint8": "smallint",
    "uint16": "integer",
    "uint32": "bigint",
    "uint64": "numeric",
    "float": "real",
    "double": "double precision",
    "date32[day]": "date",
    "binary": "bytea",
    "large_binary": "bytea",
    "null": "text",
    "month_day_nano_interval": "interval",
}


def described(engine: Engine, suql: str, parameters: Sequence[Any], table: pa.Table) -> list[dict[str, str]]:
    """Return name, type and kind of each column: `answer`, `free_text`, `enum` or `structured`.

    Args:
        suql: the query that gave the table; its further columns are no concern of whoever sees the table.
    """
    found = kinds(engine, suql, parameters)[: table.num_columns]
    if len(found) != table.num_columns:
        found = ["structured"] * table.num_columns
    return [
        {"name": field.name, "type": type_name(field.type), "kind": kind}
        for field, kind in zip(table.schema, found, strict=True)
    ]


def type_name(kind: pa.DataType) -> str:
    """Return an Arrow type as PostgreSQL calls it."""
    import pyarrow as pa

    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return type_name(kind.value_type) + "[]"
    if pa.types.is_dictionary(kind):
        return type_name(kind.value_type)
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz is None else "timestamptz"
    if pa.types.is_time(kind):
        return "time"
    if pa.types.is_duration(kind):
        return "interval"
    if pa.types.is_struct(kind):
        return "record"
    return _NAMES.get(str(kind), str(kind))


def kinds(engine: Engine, suql: str, parameters: Sequence[Any] = ()) -> list[str]:
    """Return what each column of a query is made of; () for a query that cannot be bound any more."""
    try:
        tree = engine.bound(suql, parameters).tree
    except AlmanaqError:
        return []
    select: exp.Expr = tree
    while isinstance(select, exp.SetOperation | exp.Subquery):
        select = select.this
    return [_kind(engine, item) for item in select.selects] if isinstance(select, exp.Select) else []


def _kind(engine: Engine, item: exp.Expr) -> str:
    if any(is_model_call(call) for call in item.find_all(exp.Anonymous)):
        return "answer"
    bare = item.unalias()
    if not isinstance(bare, exp.Column):
        return "structured"
    found = {column.kind.value for _, column in origins(bare, engine.catalog)}
    return found.pop() if len(found) == 1 else "structured"


def all_columns(connection: Connection) -> Columns:
    """Return every column that a connection knows: what it gives can show no other."""
    return frozenset(
        (relation.name, column.name) for relation in connection.catalog.relations for column in relation.columns
    )


def columns_read(
    connection: Connection, suql: str, parameters: Sequence[Any], evidence: Sequence[Sequence[Evidence]] = ()
) -> Columns:
    """Return the columns that a query reads in any place, with those that its quotes show.

    A condition counts as well: which rows are there tells of its column.
    """
    catalog = connection.catalog
    try:
        tree = connection.engine.bound(suql, parameters).tree
    except AlmanaqError:
        return all_columns(connection)
    found = {(relation.name, column.name) for relation, column in origins(tree, catalog)}
    for relation, column in {(quote.relation, quote.column) for row in evidence for quote in row}:
        cited = catalog.find(relation) if relation else None
        if cited is not None:
            found |= {(cited.name, name) for name in (column, *cited.key)}
    return frozenset(found)


def columns_of_reply(connection: Connection, response: Response) -> Columns:
    """Return the columns that a reply may show: of anything but the rows of a query, every one there is."""
    if response.status != "answered" or response.suql is None or response.error is not None:
        return all_columns(connection)
    found = set(columns_read(connection, connection.agent.as_run(response.suql), (), response.evidence))
    for suql in filter(None, (response.meant, response.of)):
        found |= columns_read(connection, suql, ())
    shown = response.shown
    if shown is not None:
        found |= {(shown.relation, name) for name in shown.columns}
        found |= {(shown.relation, name) for row in shown.values for name, _ in row}
    return frozenset(found)


def sees(connection: Connection, columns: Columns | None) -> bool:
    """Return whether the clients of a connection may see these columns, by its catalog of this moment.

    Where nothing is withheld they may see all, those too that are gone from the source.
    """
    if not connection.is_public:
        return True
    return columns is not None and all(
        (found := connection.catalog.find(relation)) is not None
        and (column := found.column(name)) is not None
        and not column.private
        for relation, name in columns
    )
