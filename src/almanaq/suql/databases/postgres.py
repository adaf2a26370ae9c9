"""PostgreSQL as a Database.

It is spoken to directly and not through ibis, which collects or infers schemas by making views, and so needs to write.
"""

from __future__ import annotations

import re
import threading
import weakref
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from almanaq.errors import SourceError
from almanaq.suql.catalog.infer import ColumnSample, infer_kind
from almanaq.suql.catalog.reading import declared_column, flatten, relation_names, shown_samples
from almanaq.suql.catalog.relations import Catalog, Column, ColumnKind, Relation
from almanaq.suql.catalog.schema_file import ForeignKey, Schema, apply_schema, check_keys
from almanaq.suql.databases.postgres_driver import connect, driver, first_line, is_alive, register_enums
from almanaq.suql.databases.postgres_session import PostgresSession, quote

if TYPE_CHECKING:
    from almanaq.suql.databases.postgres_driver import Connection

_MOST_ENUM_VALUES = 10_000
_COUNTED_PAGES = 1000
"""Relations up to so many pages (8 MB) are counted; of larger ones PostgreSQL's own estimate is given."""
_INFERRED_ROWS, _SHOWN_ROWS = 200, 50
"""Rows at the beginning of a relation that are looked at to infer kinds, and where kinds were declared, for samples."""
_SAMPLE_CHARACTERS = 400
_MOST_IDLE = 4
_TYPES = {
    "character varying": "text",
    "character": "text",
    "citext": "text",
    "name": "text",
    "timestamp without time zone": "timestamp",
    "time without time zone": "time",
}
_DIGITS = re.compile(r"^(character varying|character|timestamp|time|interval|bit|bit varying)\(\d+\)")
_RELATIONS = """
    SELECT c.oid, n.nspname, c.relname, c.relkind, c.reltuples, c.relpages, obj_description(c.oid, 'pg_class')
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
      AND n.nspname NOT LIKE 'pg\\_toast%' AND n.nspname NOT LIKE 'pg\\_temp%' AND NOT c.relispartition
      AND has_table_privilege(c.oid, 'SELECT') AND has_schema_privilege(n.oid, 'USAGE')
    ORDER BY n.nspname, c.relname"""
_COLUMNS = """
    SELECT a.attrelid, a.attname, format_type(coalesce(nullif(b.typbasetype, 0), b.oid), a.atttypmod),
           t.typcategory = 'A', a.attnotnull, col_description(a.attrelid, a.attnum), b.oid
    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
         JOIN pg_type b ON b.oid = CASE WHEN t.typcategory = 'A' THEN t.typelem ELSE t.oid END
    WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attrelid = ANY(%s)
    ORDER BY a.attrelid, a.attnum"""
_ENUMS = "SELECT enumtypid, enumlabel FROM pg_enum ORDER BY enumtypid, enumsortorder"
_CONSTRAINTS = """
    SELECT c.conrelid, c.contype::text, ARRAY(SELECT a.attname::text FROM unnest(c.conkey) WITH ORDINALITY k(n, o)
             JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.n ORDER BY k.o),
           c.confrelid, ARRAY(SELECT a.attname::text FROM unnest(c.confkey) WITH ORDINALITY k(n, o)
             JOIN pg_attribute a ON a.attrelid = c.confrelid AND a.attnum = k.n ORDER BY k.o)
    FROM pg_constraint c WHERE c.contype IN ('p', 'u', 'f') AND c.conrelid = ANY(%s)
    ORDER BY c.conrelid, c.contype = 'u', c.conname"""
_LOCALE = """
    SELECT CASE WHEN to_jsonb(d)->>'datlocprovider' = 'i' THEN 'icu' ELSE lower(datcollate) END, pg_is_in_recovery()
    FROM pg_database d WHERE datname = current_database()"""
_BYTEWISE = ("c", "posix", "c.utf-8", "c.utf8")
_ROW_IDS = {"r": "ctid::text", "m": "ctid::text", "p": "tableoid::text || ctid::text"}


class PostgresDatabase:
    """A Database on a PostgreSQL server; sessions read one snapshot each and write nothing but temporary tables."""

    dialect = "postgres"

    def __init__(self, url: str, *, schema: Schema | None = None) -> None:
        self._url, self._schema = url, schema or Schema()
        self._catalog: Catalog | None = None
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
        self._open = True
        weakref.finalize(self, _close_all, self._idle)
        with connect(self._url) as connection:
            self.name = connection.info.dbname
            locale = connection.execute(_LOCALE).fetchone()
            self.collation = None if locale is not None and locale[0] in _BYTEWISE else "C"
            self._standby = locale is not None and bool(locale[1])
            self._enums = connection.execute(
                "SELECT typname, oid, typarray FROM pg_type WHERE typtype = 'e'"
            ).fetchall()
        connection.close()

    def catalog(self) -> Catalog:
        """Give what the user may read, read once; raises SourceError when the schema file does not fit it."""
        with self._lock:
            if self._catalog is None:
                with connect(self._url) as connection:
                    connection.read_only = True
                    try:
                        self._catalog = self._read(_CatalogReader(connection))
                    except driver().Error as error:
                        raise SourceError(f"cannot read the catalog of {self.name}: {first_line(error)}") from error
                connection.close()
            return self._catalog

    def session(self, deadline: float | None = None) -> PostgresSession:
        """Open a session whose work is interrupted `deadline` seconds from now (None: never)."""
        arrays = frozenset(array for _, _, array in self._enums)
        while (connection := self._take_idle()) is not None and not is_alive(connection):
            connection.close()
        if connection is None:
            connection = connect(self._url)
            connection.autocommit = True  # the session writes BEGIN itself
            register_enums(connection, self._enums)
        return PostgresSession(connection, arrays, self._give_back, deadline, standby=self._standby)

    def close(self) -> None:
        """Close the connections that lie idle."""
        with self._lock:
            self._open = False
            _close_all(self._idle)

    def _take_idle(self) -> Connection | None:
        with self._lock:
            return self._idle.pop() if self._idle else None

    def _give_back(self, connection: Connection) -> None:
        """Keep a connection for the next session: a new one has to read the server's catalog again."""
        with self._lock:
            if self._open and not connection.closed and len(self._idle) < _MOST_IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def _read(self, reader: _CatalogReader) -> Catalog:
        catalog = apply_schema(reader.read(), self._schema)
        check_keys(catalog, self._schema, reader.key_holds)
        return Catalog(tuple(reader.with_enum_values(relation) for relation in catalog.relations))


def _close_all(connections: list[Connection]) -> None:
    while connections:
        connections.pop().close()


@dataclass(frozen=True, slots=True)
class _CatalogReader:
    """Reads the catalog over one connection."""

    connection: Connection

    def read(self) -> Catalog:
        """Give every table and view that may be read."""
        found = self._rows(_RELATIONS)
        names = relation_names([(schema, name) for _, schema, name, *_ in found])
        by_oid = {oid: names[schema, name] for oid, schema, name, *_ in found}
        columns, nullable = self._columns(list(by_oid))
        constraints = self._rows(_CONSTRAINTS, [list(by_oid)])
        relations = []
        for oid, schema, name, kind, tuples, pages, comment in found:
            mine = [c for c in constraints if c[0] == oid]
            relation = Relation(
                by_oid[oid],
                (schema, name),
                tuple(columns.get(oid, ())),
                key=_key(mine, nullable.get(oid, set())),
                row_id=_ROW_IDS.get(kind),
                description=comment or "",
                foreign_keys=tuple(_foreign_key(c, by_oid) for c in mine if c[1] == "f" and c[3] in by_oid),
            )
            relations.append(replace(relation, rows=self._count(relation, kind, tuples, pages)))
        declared = any(c.kind is ColumnKind.FREE_TEXT for r in relations for c in r.columns)
        return Catalog(tuple(self._sampled(relation, infer=not declared) for relation in relations))

    def key_holds(self, relation: Relation, key: tuple[str, ...]) -> bool:
        """Tell whether a key is unique and never null."""
        names, place = ", ".join(map(quote, key)), quote(*relation.location)
        null = " OR ".join(f"{quote(name)} IS NULL" for name in key)
        faults = (
            f"SELECT 1 FROM {place} WHERE {null} UNION ALL SELECT 1 FROM {place} GROUP BY {names} HAVING count(*) > 1"
        )
        return not self._rows(f"{faults} LIMIT 1")

    def with_enum_values(self, relation: Relation) -> Relation:
        """Give the values that the rows hold to the ENUM columns that were declared without."""
        return replace(relation, columns=tuple(self._with_values(relation, c) for c in relation.columns))

    def _with_values(self, relation: Relation, column: Column) -> Column:
        if column.kind is not ColumnKind.ENUM or column.values:
            return column
        picked = f"unnest({quote(column.name)})" if column.array else quote(column.name)
        rows = self._rows(
            f"SELECT v FROM (SELECT {picked}::text AS v FROM {quote(*relation.location)}) q WHERE v IS NOT NULL"
            f" GROUP BY v ORDER BY count(*) DESC, v LIMIT {_MOST_ENUM_VALUES + 1}"
        )
        if len(rows) > _MOST_ENUM_VALUES:
            raise SourceError(
                f"{relation.name}.{column.name} is declared ENUM and has more than {_MOST_ENUM_VALUES:,} distinct "
                "values: declare it structured, or list its values in the schema file"
            )
        return replace(column, values=tuple(value for (value,) in rows))

    def _rows(self, sql: str, parameters: list[Any] | None = None) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql, parameters).fetchall()

    def _columns(self, oids: list[int]) -> tuple[dict[int, list[Column]], dict[int, set[str]]]:
        """Give the columns of each relation, and the names of those that may be null."""
        values: dict[int, tuple[str, ...]] = {}
        for oid, label in self._rows(_ENUMS):
            values[oid] = (*values.get(oid, ()), label)
        columns: dict[int, list[Column]] = {}
        nullable: dict[int, set[str]] = {}
        for relation, name, written, array, not_null, comment, type_oid in self._rows(_COLUMNS, [oids]):
            labels = values.get(type_oid, ())
            type_ = "text" if labels else _type(written)
            column = declared_column(name, type_, array=array, values=labels, comment=comment or "")
            columns.setdefault(relation, []).append(column)
            if not not_null:
                nullable.setdefault(relation, set()).add(name)
        return columns, nullable

    def _count(self, relation: Relation, kind: str, tuples: float, pages: int) -> int | None:
        if kind in ("v", "f"):
            return None
        if kind == "p" or pages > _COUNTED_PAGES:
            return int(tuples) if tuples >= 0 else None
        return int(self._rows(f"SELECT count(*) FROM {quote(*relation.location)}")[0][0])

    def _sampled(self, relation: Relation, *, infer: bool) -> Relation:
        """Give the relation with samples, and with inferred kinds where nothing was declared."""
        if not relation.columns:
            return relation
        picked = ", ".join(_sample_expression(column) for column in relation.columns)
        limit = _INFERRED_ROWS if infer else _SHOWN_ROWS
        rows = self._rows(f"SELECT {picked} FROM {quote(*relation.location)} LIMIT {limit}")
        columns = []
        for position, column in enumerate(relation.columns):
            values = flatten(row[position] for row in rows)
            inferred = infer_kind(column, ColumnSample(values)) if infer else column
            columns.append(replace(inferred, samples=shown_samples(values)))
        return replace(relation, columns=tuple(columns))


def _type(written: str) -> str:
    """Give a type's short name: `varchar(20)` is text, `timestamp(3) without time zone` is timestamp."""
    name = _DIGITS.sub(r"\1", written)
    return _TYPES.get(name, name)


def _key(constraints: list[tuple[Any, ...]], nullable: set[str]) -> tuple[str, ...]:
    """Give the primary key, else the first unique one none of whose columns may be null."""
    for kind in ("p", "u"):
        for _, found, own, *_ in constraints:
            if found == kind and not nullable & set(own):
                return tuple(own)
    return ()


def _foreign_key(constraint: tuple[Any, ...], names: dict[int, str]) -> ForeignKey:
    _, _, own, other, theirs = constraint
    return tuple(own), names[other], tuple(theirs)


def _sample_expression(column: Column) -> str:
    name = quote(column.name)
    if column.array and column.type == "text":
        return f"(SELECT array_agg(left(x::text, {_SAMPLE_CHARACTERS})) FROM unnest(({name})[:20]) AS u(x))"
    return "NULL" if column.type == "bytea" else f"left({name}::text, {_SAMPLE_CHARACTERS})"
