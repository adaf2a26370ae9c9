"""Columns of JSON objects opened up: what a table of documents holds becomes columns, and lists of objects tables."""

from __future__ import annotations

import json
from typing import Any

import duckdb
import pyarrow as pa

from almanaq.corpus.files.records import Opened, open_records
from almanaq.suql.catalog.schema_file import RelationSchema
from almanaq.suql.databases.duckdb import load_table
from almanaq.suql.databases.typed_columns import value_column
from almanaq.text.sql_literals import quote

_LOOKED_AT = 20


def open_documents(
    connection: duckdb.DuckDBPyConnection, place: tuple[str, str, str], key: str
) -> dict[str, RelationSchema]:
    """Open up the columns of a loaded table whose every value is a JSON object; give the tables that this makes.

    Args:
        key: the column by which the new tables refer to the table; "" where it has none, and a number is given.
    """
    made: dict[str, RelationSchema] = {}
    for name in _document_columns(connection, place):
        table: Any = connection.sql(f"SELECT * FROM {quote(*place)}").to_arrow_table()
        texts = table.column(name).to_pylist()
        keys = table.column(key).to_pylist() if key else texts
        rows = [
            {**({key: own} if key else {}), **(json.loads(text) if text else {})}
            for own, text in zip(keys, texts, strict=True)
        ]
        first, *children = open_records(rows, place[2], key=key)
        connection.execute(f"DROP TABLE {quote(*place)}")
        load_table(connection, place, _widened(table, name, first, key))
        called = {place[2]: place[2]}
        for child in children:
            called[child.name] = _free(connection, place, child.name)
            load_table(connection, (*place[:2], called[child.name]), _as_table(child))
            own, parent, theirs = child.parent or ("", place[2], "")
            made[called[child.name]] = RelationSchema(foreign_keys=(((own,), called[parent], (theirs,)),))
        key = key or first.key
    return made


def _free(connection: duckdb.DuckDBPyConnection, place: tuple[str, str, str], name: str) -> str:
    """Return a name that no table beside has."""
    query = "SELECT lower(table_name) FROM duckdb_tables() WHERE database_name = ? AND schema_name = ?"
    taken = {found for (found,) in connection.execute(query, list(place[:2])).fetchall()}
    number, candidate = 2, name
    while candidate.lower() in taken:
        candidate, number = f"{name}_{number}", number + 1
    return candidate


def _document_columns(connection: duckdb.DuckDBPyConnection, place: tuple[str, str, str]) -> list[str]:
    """Return the columns of text that hold JSON objects and nothing else."""
    described = connection.execute(f"DESCRIBE {quote(*place)}").fetchall()
    found = []
    for name in (row[0] for row in described if row[1] == "VARCHAR"):
        column = quote(name)
        begins = f"SELECT {column} AS c FROM {quote(*place)} WHERE {column} IS NOT NULL LIMIT {_LOOKED_AT}"
        ((some, like),) = connection.execute(
            f"SELECT count(*), count(*) FILTER (ltrim(c) LIKE '{{%') FROM ({begins})"
        ).fetchall()
        if some and some == like:
            ((strange,),) = connection.execute(
                f"SELECT count(*) FROM {quote(*place)} WHERE {column} IS NOT NULL AND"
                f" CASE WHEN json_valid({column}) THEN json_type({column}) <> 'OBJECT' ELSE true END"
            ).fetchall()
            found += [] if strange else [name]
    return found


def _widened(table: Any, name: str, opened: Opened, key: str) -> pa.Table:
    """Return a table with the columns that its documents hold in the place of the documents."""
    taken = {each.casefold() for each in table.column_names if each != name}
    columns: dict[str, Any] = {}
    for each in table.column_names:
        if each != name:
            columns[each] = table.column(each)
            continue
        for inner, values in opened.columns.items():
            if inner != key:
                called = inner if inner.casefold() not in taken else f"{name}_{inner}"
                columns[called] = value_column(called, values)[0]
    return pa.table(columns)


def _as_table(opened: Opened) -> pa.Table:
    return pa.table({name: value_column(name, values)[0] for name, values in opened.columns.items()})
