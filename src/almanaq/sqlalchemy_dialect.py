"""A dialect of SQLAlchemy, read-only: `create_engine("almanaq:///shop.duckdb")`, text(), Core selects, reflection.

This is the one module that imports SQLAlchemy (the extra `sqlalchemy`). SQL is compiled as for PostgreSQL, and for
DuckDB with its literals and its division; `answer` and `summary` are ordinary functions, as in
`func.answer(t.c.reviews, "is it romantic?")`.
"""

from __future__ import annotations

import datetime
import json
import uuid
from types import ModuleType
from typing import Any

from sqlalchemy import exc, pool, types
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.dialects.postgresql import base as postgresql
from sqlalchemy.engine.default import DefaultDialect

from almanaq.options import OPTIONS
from almanaq.suql.catalog.relations import Column, Relation
from almanaq.suql.syntax.literals import literal

Record = dict[str, Any]
_SCHEMA = "main"


class _Preparer(postgresql.PGIdentifierPreparer):  # type: ignore[misc]
    """Writes names without the default schema, which tools put before them."""

    def schema_for_object(self, table: Any) -> str | None:
        schema: str | None = table.schema
        return None if schema == _SCHEMA else schema


_TYPED = (bytes, datetime.date, datetime.time, datetime.timedelta, uuid.UUID)
"""Values whose text alone would be a text in SQL."""


class _Compiler(postgresql.PGCompiler):  # type: ignore[misc]
    """Writes values that have no text of their own as the engine reads them."""

    def render_literal_value(self, value: Any, type_: Any) -> str:
        written: str
        if isinstance(value, _TYPED):
            written = literal(value, self.dialect.engine_dialect).sql(self.dialect.engine_dialect)
        elif isinstance(type_, types.JSON) and value is not None:
            written = literal(json.dumps(value)).sql(self.dialect.engine_dialect)
        else:
            written = super().render_literal_value(value, type_)
        return written


class AlmanaqDialect(DefaultDialect):  # type: ignore[misc]
    """almanaq as SQLAlchemy sees it.

    The URL is `almanaq:///SOURCE?model=…&max_calls=…`: three slashes before a path or another text that `connect`
    takes, and its arguments behind `?`. `create_engine("almanaq://", connect_args={"source": frame})` opens any other.
    """

    name = "almanaq"
    driver = "almanaq"
    default_paramstyle = "qmark"
    supports_statement_cache = True
    supports_native_boolean = supports_native_decimal = supports_native_enum = True
    supports_alter = supports_sane_rowcount = supports_sane_multi_rowcount = False
    supports_comments = True
    requires_name_normalize = False
    max_identifier_length = 9999
    statement_compiler = _Compiler
    type_compiler_cls = postgresql.PGTypeCompiler
    preparer = _Preparer
    ischema_names = postgresql.ischema_names
    colspecs = postgresql.colspecs
    server_version_info = (17, 0)
    _json_serializer = _json_deserializer = None
    _backslash_escapes = False
    div_is_floordiv = False
    supports_native_uuid = True
    engine_dialect = "duckdb"
    """sqlglot's name of the SQL that the source's engine speaks; known once a connection is open."""

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        import almanaq

        return almanaq

    @classmethod
    def get_pool_class(cls, url: Any) -> Any:  # noqa: ARG003
        """Share one connection: to open another would load the source again, and each query is a session of its own."""
        return pool.StaticPool

    def create_connect_args(self, url: Any) -> tuple[list[Any], Record]:
        if url.host:
            raise exc.ArgumentError(f"almanaq://{url.host}… names a host; put three slashes before a path: almanaq:///")
        given = {name: _option(name, str(value)) for name, value in url.query.items()}
        return [], {"source": url.database, **given}

    def initialize(self, connection: Any) -> None:
        self.engine_dialect = connection.connection.driver_connection.engine.dialect
        self.div_is_floordiv = self.engine_dialect != "duckdb"  # whole numbers divided are a fraction there
        super().initialize(connection)

    def _get_default_schema_name(self, connection: Any) -> str:  # noqa: ARG002
        return _SCHEMA

    # --- reflection: what the catalog says

    def get_schema_names(self, connection: Any, **_: Any) -> list[str]:
        relations = connection.connection.driver_connection.catalog.relations
        return sorted({self._get_default_schema_name(connection), *map(_schema_of, relations)})

    def get_table_names(self, connection: Any, schema: str | None = None, **_: Any) -> list[str]:
        relations = connection.connection.driver_connection.catalog.relations
        found = [relation for relation in relations if _schema_of(relation) == (schema or _SCHEMA)]
        return [relation.name if schema in (None, _SCHEMA) else relation.location[-1] for relation in found]

    def get_view_names(self, connection: Any, schema: str | None = None, **_: Any) -> list[str]:  # noqa: ARG002
        return []

    def has_table(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> bool:
        return _find(connection, table_name, schema) is not None

    def get_columns(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> list[Record]:
        relation = _relation(connection, table_name, schema)
        return [
            {
                "name": column.name,
                "type": _type(column, self.engine_dialect),
                "nullable": column.name not in relation.key,
                "default": None,
                "comment": column.description or None,
            }
            for column in relation.columns
        ]

    def get_pk_constraint(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> Record:
        return {"constrained_columns": list(_relation(connection, table_name, schema).key), "name": None}

    def get_foreign_keys(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> list[Record]:
        find = connection.connection.driver_connection.catalog.find
        keys: list[Record] = []
        for own, other, theirs in _relation(connection, table_name, schema).foreign_keys:
            referred = _schema_of(find(other))
            plain = referred == _SCHEMA
            keys.append(
                {
                    "name": None,
                    "constrained_columns": list(own),
                    "referred_schema": schema if plain else referred,
                    "referred_table": other if plain else other.removeprefix(f"{referred}."),
                    "referred_columns": list(theirs),
                    "options": {},
                }
            )
        return keys

    def get_table_comment(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> Record:
        return {"text": _relation(connection, table_name, schema).description or None}

    def get_indexes(self, connection: Any, table_name: str, schema: str | None = None, **_: Any) -> list[Any]:
        _relation(connection, table_name, schema)
        return []

    get_unique_constraints = get_check_constraints = get_indexes


def _option(name: str, text: str) -> Any:
    """Return an argument of `connect` that a URL holds as text."""
    known = {option.name: option for option in OPTIONS.values() if option.is_set_by("url")}
    if name not in known:
        listed = ", ".join(sorted(known))
        raise exc.ArgumentError(f"almanaq:///…?{name}={text} is not an option here; known: {listed}")
    try:
        return known[name].from_text(text)
    except (KeyError, ValueError) as error:
        wanted = "true or false" if known[name].python_type is bool else "a number"
        raise exc.ArgumentError(f"almanaq:///…?{name}={text}: {name} takes {wanted}") from error


def _relation(connection: Any, name: str, schema: str | None) -> Relation:
    if (found := _find(connection, name, schema)) is None:
        raise exc.NoSuchTableError(name if schema is None else f"{schema}.{name}")
    return found


def _find(connection: Any, name: str, schema: str | None) -> Relation | None:
    written = name if schema in (None, _SCHEMA) else f"{schema}.{name}"
    found: Relation | None = connection.connection.driver_connection.catalog.find(written)
    return found if found is not None and _schema_of(found) == (schema or _SCHEMA) else None


def _schema_of(relation: Relation) -> str:
    """Return the schema that stands before the name of a relation, the one default where none does."""
    table = relation.location[-1] if relation.location else relation.name
    return relation.name.removesuffix(f".{table}") if relation.name.endswith(f".{table}") else _SCHEMA


def _type(column: Column, dialect: str) -> Any:
    """Return SQLAlchemy's type of a column; what it has none for is text."""
    written = column.type.partition("(")[0].strip().lower()
    kind = postgresql.ischema_names.get(written, types.Text)
    known = types.Text() if written == "uuid" and dialect != "duckdb" else kind()
    return ARRAY(known) if column.array else known
