"""Arrow tables as tables of a cluster: Parquet files in a folder, and a schema that names them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from sqlglot import exp

from almanaq.engines.spark.driver import Remote, read_spark_url
from almanaq.engines.spark.engine import SparkDatabase
from almanaq.engines.spark.folder import quote_name, string_literal
from almanaq.suql.catalog.relations import ColumnKind
from almanaq.suql.catalog.schema_file import ColumnSchema, RelationSchema, Schema

from .processes import Cluster

_NUMBERS = count(1)


class Tables:
    """Makes schemas on a running cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.remote = Remote(read_spark_url(cluster.url))

    def source(
        self, tables: Mapping[str, pa.Table], comments: Mapping[tuple[str, str], str] | None = None, *, files: int = 1
    ) -> str:
        """Return the address of a new schema that holds the tables."""
        schema = f"made_{next(_NUMBERS)}"
        self.remote.command(f"CREATE SCHEMA {schema}", "tests")
        for name, table in tables.items():
            self.add(schema, name, table, comments or {}, files)
        return f"{self.cluster.url};schema={schema}"

    def add(
        self, schema: str, name: str, table: pa.Table, comments: Mapping[tuple[str, str], str], files: int = 1
    ) -> None:
        """Write a table's rows into so many files and name them."""
        folder = self.cluster.folder / "tables" / schema / name
        folder.mkdir(parents=True)
        plain = [c.cast(pa.string()) if pa.types.is_dictionary(c.type) else c for c in table.columns]
        written = pa.Table.from_arrays(plain, names=table.column_names)
        rows = -(-max(written.num_rows, 1) // files)
        for number in range(files):
            pq.write_table(written.slice(number * rows, rows), folder / f"part-{number}.parquet")
        columns = ", ".join(
            f"{quote_name(field.name)} {spark_type(field.type)}"
            + (f" COMMENT {string_literal(comments[name, field.name])}" if (name, field.name) in comments else "")
            for field in written.schema
        )
        place = string_literal(str(folder))
        self.remote.command(
            f"CREATE TABLE {schema}.{quote_name(name)} ({columns}) USING parquet LOCATION {place}", "tests"
        )

    def views(self, schema: str, tables: Mapping[str, pa.Table]) -> None:
        """Name rows that are written out, which takes a cluster no files to read."""
        for name, table in tables.items():
            types = [spark_type(pa.string() if pa.types.is_dictionary(f.type) else f.type) for f in table.schema]
            columns = [
                [
                    exp.convert(value)
                    for value in (c.cast(pa.string()) if pa.types.is_dictionary(c.type) else c).to_pylist()
                ]
                for c in table.columns
            ]
            rows = list(zip(*columns, strict=True)) or [[exp.null()] * len(types)]
            written = ", ".join("(" + ", ".join(value.sql("spark") for value in row) + ")" for row in rows)
            shown = ", ".join(
                f"CAST(c{i} AS {type_}) AS {quote_name(column)}"
                for i, (column, type_) in enumerate(zip(table.column_names, types, strict=True))
            )
            names = ", ".join(f"c{i}" for i in range(len(types)))
            none = "" if table.num_rows else " WHERE false"
            query = f"SELECT {shown} FROM VALUES {written} AS v({names}){none}"
            self.remote.command(f"CREATE VIEW {schema}.{quote_name(name)} AS {query}", "tests")

    def database(self, tables: Mapping[str, pa.Table], *, files: bool = True) -> SparkDatabase:
        """Return a database of the tables; a column of dictionaries is an ENUM with its values in their order."""
        said = {}
        for name, table in tables.items():
            enums = {
                field.name: ColumnSchema(
                    kind=ColumnKind.ENUM,
                    values=tuple(table.column(field.name).combine_chunks().dictionary.to_pylist()),
                )
                for field in table.schema
                if pa.types.is_dictionary(field.type)
            }
            said[name] = RelationSchema(columns=enums)
        if files:
            return SparkDatabase(self.source(tables), schema=Schema(said))
        url = self.source({})
        self.views(url.rpartition("=")[2], tables)
        return SparkDatabase(url, schema=Schema(said))


def spark_type(type_: Any) -> str:
    """Return the name of an Arrow type in Spark."""
    if pa.types.is_list(type_):
        return f"array<{spark_type(type_.value_type)}>"
    if pa.types.is_map(type_):
        return f"map<{spark_type(type_.key_type)}, {spark_type(type_.item_type)}>"
    if pa.types.is_struct(type_):
        return "struct<" + ", ".join(f"{field.name}: {spark_type(field.type)}" for field in type_) + ">"
    if pa.types.is_decimal(type_):
        return f"decimal({type_.precision},{type_.scale})"
    if pa.types.is_timestamp(type_):
        return "timestamp" if type_.tz else "timestamp_ntz"
    names = {
        "int64": "bigint", "int32": "int", "int16": "smallint", "double": "double", "float": "float", "bool": "boolean",
        "string": "string", "date32[day]": "date", "binary": "binary", "int8": "tinyint",
    }  # fmt: skip
    return names[str(type_)]
