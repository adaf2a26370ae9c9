"""Records for clients: those of the command line, with columns described, and what a query is expected to take."""

from __future__ import annotations

import datetime
import hashlib
import io
import json
import re
import urllib.parse
from collections.abc import Sequence
from typing import Any, Literal

import pyarrow as pa
from sqlglot import exp

from almanaq.agent.responder import MORE_BELOW
from almanaq.agent.response import Response
from almanaq.charts.choose import DrawnKind, draw_columns
from almanaq.connection import Connection
from almanaq.display import label_column
from almanaq.encode import CsvWriter, RecordCap, exact_numbers, expected_record, plain
from almanaq.errors import AlmanaqError, UsageError
from almanaq.suql.catalog.lineage import origins
from almanaq.suql.catalog.relations import Catalog
from almanaq.suql.engine import Engine
from almanaq.suql.execution.evidence import CitedTexts
from almanaq.suql.result import Evidence, UnknownAnswer
from almanaq.suql.result_values import python_rows
from almanaq.suql.text_functions import is_model_call
from almanaq.web.problems import NotFound, Refused
from almanaq.web.store import Answer, Columns, read_parquet

CAP = RecordCap(size=1_000_000, cell=16_000, measure=lambda text: len(text.encode("utf-8", "surrogatepass")))
"""What a response may hold; its size is in bytes."""


def count_in_utf16(evidence: dict[str, Any], cited: CitedTexts) -> dict[str, Any]:
    """Return a quote whose start is counted in UTF-16 units."""
    place = (evidence["relation"], evidence["key"], evidence["column"], evidence["passage"])
    return evidence | {"start": cited.moved.get((place, evidence["start"]), evidence["start"])}


MOST_ROWS = 10_000
"""Rows of a record: those beyond are read a page at a time."""
_NAME = 60
"""Characters of the words that name a file."""


def client_record(
    record: dict[str, Any], cited: CitedTexts, columns: Sequence[dict[str, str]], total: int
) -> dict[str, Any]:
    """Return the record of a result or a reply for a client: as many rows as fit, and what was left out.

    Args:
        record: as `result_record` and `response_record` give it, of `total` rows.
        columns: name, type and kind of each.
    """
    capped = CAP.fit(exact_numbers(record["rows"]))
    rows = capped.rows
    evidence = [[count_in_utf16(each, cited) for each in row] for row in record["evidence"][: len(rows)]]
    rest = exact_numbers({name: value for name, value in record.items() if name not in ("rows", "evidence", "columns")})
    if CAP.size_of(rest.get("chart")) > CAP.size:
        rest["chart"] = None
    missing = len(rows) < total or capped.cells_cut > 0 or bool(record["trace"]["partial"])
    return {
        **rest,
        "columns": list(columns),
        "rows": rows,
        "evidence": evidence,
        "truncated": missing,
        "rows_total": total,
        "cells_cut": capped.cells_cut,
    }


_SHOWN_BESIDE = re.compile(r"\s*\d+\. | +“| {3}[^\s*-]|Answer with ")
"""The beginning of a line of a reply that says what the table, the quotes or the buttons of readings show."""


def lead_of(record: dict[str, Any]) -> str:
    """Return a reply without what is shown beside it: rows, quotes, readings, warnings, and what was searched."""
    answer: str = record["answer"]
    if not record["columns"] and not record["readings"]:
        return answer
    lines = [line.rstrip() for line in answer.replace(f"I searched for {record['searched']}.", "").split("\n")]
    beside = {"", *record["trace"]["warnings"]}
    left = [line for line in lines if line not in beside and not _SHOWN_BESIDE.match(line)]
    return re.sub(r":$", ".", "\n".join(left).replace(MORE_BELOW, ""), flags=re.MULTILINE)


RowFormat = Literal["json", "csv", "parquet"]
MEDIA = {"json": "application/json", "csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}


def format_rows(rows: bytes, format: RowFormat) -> bytes:
    """Return rows that were kept, in a format; in CSV an apostrophe keeps text from being computed."""
    if format == "parquet":
        return rows
    table = read_parquet(rows)
    if format == "json":
        record = {"columns": table.column_names, "rows": exact_numbers(plain(python_rows(table, exact=True)))}
        return json.dumps(record, allow_nan=False).encode()
    buffer = io.BytesIO()
    writer = CsvWriter(buffer, no_formulas=True)
    writer.write([table.column_names])
    writer.write(python_rows(table, exact=True))
    return buffer.getvalue()


def rows_of(answer: Answer) -> bytes:
    """Return the kept rows of an answer; raises NotFound where it has none."""
    if answer.rows is None:
        raise NotFound("this answer has no rows, because no query ran")
    return answer.rows


def draw_kept(
    answer: Answer, *, kind: DrawnKind, x: str, y: str, colour: str = "", rows: pa.Table | None = None
) -> dict[str, Any]:
    """Return the chart that a person chose of the kept rows of an answer; raises Refused where they make none.

    Args:
        rows: the kept rows, where they have been read already.
    """
    try:
        title = answer.asked if answer.kind == "ask" else ""
        rows = read_parquet(rows_of(answer)) if rows is None else rows
        return draw_columns(rows, kind, x, y, colour, title).spec()
    except UsageError as error:
        raise Refused(422, str(error)) from error


def name_file(words: str, made: float, ending: str) -> dict[str, str]:
    """Return the header that names a download after its words and its day: `price-of-each-dog-2024-05-31.csv`."""
    day = datetime.datetime.fromtimestamp(made, datetime.UTC).date()
    name = "-".join(re.findall(r"[^\W_]+", f"{words[:_NAME]} {day}"))
    return {"content-disposition": f"attachment; filename*=UTF-8''{urllib.parse.quote(name)}.{ending}"}


_NAMES = {
    arrow: name
    for name, types in {
        "text": "string large_string string_view null",
        "boolean": "bool",
        "smallint": "int8 int16 uint8",
        "integer": "int32 uint16",
        "bigint": "int64 uint32",
        "numeric": "uint64",
        "real": "float",
        "double precision": "double",
        "date": "date32[day]",
        "bytea": "binary large_binary",
        "interval": "month_day_nano_interval",
    }.items()
    for arrow in types.split()
}


def bind_query(engine: Engine, suql: str, parameters: Sequence[Any] = ()) -> exp.Expr | None:
    """Return the tree of a query with its names resolved; None for one that cannot be bound any more."""
    try:
        return engine.bound(suql, parameters).tree
    except AlmanaqError:
        return None


def describe_columns(catalog: Catalog, tree: exp.Expr | None, table: pa.Table) -> list[dict[str, str]]:
    """Return name, type and kind of each column: `answer`, `free_text`, `enum` or `structured`.

    `label` is there where the engine made the name of a function: what the column holds, in words.

    Args:
        tree: the query that gave the table, bound; its further columns are no concern of whoever sees the table.
    """
    select = tree
    while isinstance(select, exp.SetOperation | exp.Subquery):
        select = select.this
    items = select.selects[: table.num_columns] if isinstance(select, exp.Select) else []
    found = [_kind(catalog, item) for item in items]
    if len(found) != table.num_columns:
        found = ["structured"] * table.num_columns
    columns = []
    for field, kind in zip(table.schema, found, strict=True):
        label = label_column(field.name)
        named = {"label": label} if label != field.name else {}
        columns.append({"name": field.name, "type": type_name(field.type), "kind": kind, **named})
    return columns


def type_name(kind: pa.DataType) -> str:
    """Return an Arrow type as PostgreSQL calls it."""
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


def _kind(catalog: Catalog, item: exp.Expr) -> str:
    """Return what a column of a bound query is made of."""
    if any(is_model_call(call) for call in item.find_all(exp.Anonymous)):
        return "answer"
    bare = item.unalias()
    if not isinstance(bare, exp.Column):
        return "structured"
    found = {column.kind.value for _, column in origins(bare, catalog)}
    return found.pop() if len(found) == 1 else "structured"


def all_columns(connection: Connection) -> Columns:
    """Return every column that a connection knows: what it gives can show no other."""
    return frozenset(
        (relation.name, column.name) for relation in connection.catalog.relations for column in relation.columns
    )


def columns_read(
    connection: Connection, tree: exp.Expr | None, evidence: Sequence[Sequence[Evidence | UnknownAnswer]] = ()
) -> Columns:
    """Return the columns that a bound query reads in any place, with those that its quotes and unknown answers show.

    A condition counts as well: which rows are there tells of its column.
    """
    catalog = connection.catalog
    if tree is None:
        return all_columns(connection)
    found = {(relation.name, column.name) for relation, column in origins(tree, catalog)}
    for relation, column in {(quote.relation, quote.column) for row in evidence for quote in row}:
        cited = catalog.find(relation) if relation else None
        if cited is not None:
            found |= {(cited.name, name) for name in (column, *cited.key)}
    return frozenset(found)


def columns_of_reply(connection: Connection, response: Response, tree: exp.Expr | None) -> Columns:
    """Return the columns that a reply may show: of anything but the rows of a query, every one there is.

    Args:
        tree: its query as it ran, bound.
    """
    if response.status != "answered" or response.suql is None or response.error is not None:
        return all_columns(connection)
    shown_places: tuple[Sequence[Evidence | UnknownAnswer], ...] = (*response.evidence, response.unknown)
    found = set(columns_read(connection, tree, shown_places))
    for suql in filter(None, (response.meant, response.of)):
        found |= columns_read(connection, bind_query(connection.engine, suql))
    shown = response.shown
    if shown is not None:
        found |= {(shown.relation, name) for name in shown.columns}
        found |= {(shown.relation, name) for row in shown.values for name, _ in row}
    return frozenset(found)


def may_see(connection: Connection, columns: Columns | None) -> bool:
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


def estimate_record(connection: Connection, suql: str, parameters: Sequence[Any] = ()) -> dict[str, Any]:
    """Return the plan of a query: its mark, its stages, and what `expected_record` says."""
    explanation = connection.explain(suql, parameters, dialect=connection.engine.dialect)
    stages = plain(explanation.to_json())
    parts = [suql, plain(list(parameters)), stages, connection.models.name]  # another plan has another mark
    mark = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:24]
    return {"plan": mark, "stages": stages, **expected_record(explanation)}
