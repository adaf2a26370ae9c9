"""What a PostgreSQL database holds: its catalog, its comments, and a look at the first rows of each relation."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from almanaq.engines.common import RelationQueries
from almanaq.engines.postgres.driver import driver
from almanaq.errors import first_line
from almanaq.suql.catalog.reading import declared_column, relation_names
from almanaq.suql.catalog.relations import Catalog, Column, ColumnKind, Relation
from almanaq.text.sql_literals import quote

if TYPE_CHECKING:
    from almanaq.engines.postgres.driver import Connection


_COUNTED_PAGES = 1000
"""Relations up to so many pages (8 MB) are counted; of larger ones PostgreSQL's own estimate is given."""
_INFERRED_ROWS, _SHOWN_ROWS = 200, 50
"""Rows at the beginning of a relation that are looked at to infer kinds, and where kinds were declared, for samples."""
_LOOK_SECONDS = 5.0
"""How long a look at one relation may take: a view may be endless, a table locked."""
_SAMPLE_CHARACTERS = 400
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
    WITH RECURSIVE below (root, oid) AS (
        SELECT inhparent, inhrelid FROM pg_inherits
        UNION SELECT b.root, i.inhrelid FROM below b JOIN pg_inherits i ON i.inhparent = b.oid),
    parts AS (
        SELECT b.root, bool_or(c.relkind = 'f') AS far, sum(c.relpages) AS pages,
               CASE WHEN min(c.reltuples) FILTER (WHERE c.relkind <> 'p') >= 0
                    THEN sum(c.reltuples) FILTER (WHERE c.relkind <> 'p') END AS tuples
        FROM below b JOIN pg_class c ON c.oid = b.oid WHERE c.relkind IN ('r', 'p', 'f') GROUP BY b.root)
    SELECT c.oid, n.nspname, c.relname, c.relkind, p.root IS NOT NULL AS parted, coalesce(p.far, false),
           CASE WHEN p.root IS NULL THEN c.reltuples WHEN c.relkind = 'p' THEN p.tuples
                ELSE c.reltuples + p.tuples END,
           c.relpages + coalesce(p.pages, 0), obj_description(c.oid, 'pg_class'),
           has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT') AS whole,
           has_schema_privilege(n.oid, 'USAGE') AND has_any_column_privilege(c.oid, 'SELECT') AS some
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN parts p ON p.root = c.oid
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
      AND n.nspname NOT LIKE 'pg\\_toast%' AND n.nspname NOT LIKE 'pg\\_temp%' AND NOT c.relispartition
    ORDER BY n.nspname, c.relname"""
_COLUMNS = """
    WITH RECURSIVE domains (domain, base, digits) AS (
        SELECT oid, typbasetype, typtypmod FROM pg_type WHERE typtype = 'd'
        UNION ALL SELECT d.domain, t.typbasetype, greatest(d.digits, t.typtypmod)
                  FROM domains d JOIN pg_type t ON t.oid = d.base AND t.typtype = 'd'),
    plain AS (SELECT d.* FROM domains d JOIN pg_type t ON t.oid = d.base AND t.typtype <> 'd')
    SELECT a.attrelid, a.attname,
           format_type(e.oid, coalesce(nullif(a.atttypmod, -1), nullif(outer_.digits, -1), inner_.digits, -1)),
           t.typcategory = 'A', a.attnotnull, col_description(a.attrelid, a.attnum), e.oid
    FROM pg_attribute a LEFT JOIN plain outer_ ON outer_.domain = a.atttypid
         JOIN pg_type t ON t.oid = coalesce(outer_.base, a.atttypid)
         LEFT JOIN plain inner_ ON t.typcategory = 'A' AND inner_.domain = t.typelem
         JOIN pg_type e ON e.oid = CASE WHEN t.typcategory = 'A' THEN coalesce(inner_.base, t.typelem) ELSE t.oid END
    WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attrelid = ANY(%s)
      AND has_column_privilege(a.attrelid, a.attnum, 'SELECT')
    ORDER BY a.attrelid, a.attnum"""
_ENUMS = "SELECT enumtypid, enumlabel FROM pg_enum ORDER BY enumtypid, enumsortorder"
_CONSTRAINTS = """
    SELECT c.conrelid, c.contype::text, ARRAY(SELECT a.attname::text FROM unnest(c.conkey) WITH ORDINALITY k(n, o)
             JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.n ORDER BY k.o),
           c.confrelid, ARRAY(SELECT a.attname::text FROM unnest(c.confkey) WITH ORDINALITY k(n, o)
             JOIN pg_attribute a ON a.attrelid = c.confrelid AND a.attnum = k.n ORDER BY k.o)
    FROM pg_constraint c WHERE c.contype IN ('p', 'u', 'f') AND c.conrelid = ANY(%s)
    ORDER BY c.conrelid, c.contype = 'u', c.conname"""
_SEQUENCES = """
    SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'S' AND n.nspname NOT LIKE 'pg\\_%' AND has_schema_privilege(n.oid, 'USAGE')
      AND has_table_privilege(c.oid, 'SELECT') AND NOT EXISTS (
          SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid
              AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i'))
    ORDER BY 1, 2"""
_SEQUENCE = (Column("last_value", "bigint"), Column("log_cnt", "bigint"), Column("is_called", "boolean"))
"""What queries may name and no listing shows, beside tables without columns."""
_ADDRESS, _ADDRESS_IN_PART = "ctid::text", "tableoid::text || ctid::text"


@dataclass(frozen=True, slots=True)
class _Found:
    """One row of _RELATIONS.

    Attributes:
        kind: r table, p partitioned table, v view, m materialized view, f foreign table.
        parted: whether rows of other tables are among its own: of partitions, or of tables that inherit from it.
        far: whether some of these are on another server.
        whole, some: whether the role may read all columns and the rows' addresses, or some columns.
    """

    oid: int
    schema: str
    name: str
    kind: str
    parted: bool
    far: bool
    tuples: float | None
    pages: int
    comment: str | None
    whole: bool
    some: bool

    def row_id(self) -> str | None:
        """Return the SQL of a row's address, which is unique within a snapshot; None where the role may not see it."""
        if self.kind not in ("r", "p", "m") or self.far or not self.whole:
            return None
        return _ADDRESS_IN_PART if self.parted or self.kind == "p" else _ADDRESS


@dataclass(frozen=True, slots=True)
class CatalogReader:
    connection: Connection

    def read(self) -> Catalog:
        """Return every table and view that may be read, and the names of the others; some may come without samples."""
        found = [_Found(*row) for row in self._rows(_RELATIONS)]
        path = [schema for (schema,) in self._rows("SELECT unnest(current_schemas(false))")]
        names = relation_names([(f.schema, f.name) for f in found if f.some], path)
        hidden = tuple(f"{f.schema}.{f.name}" for f in found if not f.some)
        shown = [f for f in found if f.some]
        by_oid = {f.oid: names[f.schema, f.name] for f in shown}
        columns, nullable = self._columns(list(by_oid))
        constraints = self._rows(_CONSTRAINTS, [list(by_oid)])
        relations, columnless = [], []
        for f in shown:
            mine = [c for c in constraints if c[0] == f.oid]
            own = tuple(columns.get(f.oid, ()))
            relation = Relation(
                by_oid[f.oid],
                (f.schema, f.name),
                own,
                # A key of the table that others inherit from says nothing of their rows.
                key=() if f.parted and f.kind == "r" else _key(mine, {c.name for c in own}, nullable.get(f.oid, set())),
                row_id=f.row_id(),
                description=f.comment or "",
                foreign_keys=tuple(
                    (tuple(own_key), by_oid[other], tuple(theirs))
                    for _, kind, own_key, other, theirs in mine
                    if kind == "f" and other in by_oid
                ),
            )
            if own:
                relations.append((f, relation))
            else:
                columnless.append(relation)
        declared = any(c.kind is ColumnKind.FREE_TEXT for _, r in relations for c in r.columns)
        self._limit(_LOOK_SECONDS)
        sampled = tuple(self._look_at(f, relation, infer=not declared) for f, relation in relations)
        self._limit(0)
        for schema, name in self._rows(_SEQUENCES):
            bare = schema in path and all(other.name != name for other in columnless)
            columnless.append(Relation(name if bare else f"{schema}.{name}", (schema, name), _SEQUENCE))
        return Catalog(sampled, hidden=hidden, unlisted=tuple(columnless))

    @property
    def queries(self) -> RelationQueries:
        return RelationQueries(self._rows, "postgres", _sample_expression, insists=False)

    def _rows(self, sql: str, parameters: list[Any] | None = None) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql, parameters).fetchall()

    def _limit(self, seconds: float) -> None:
        """Limit each of the next statements, waiting for locks included; 0: not at all."""
        self.connection.execute(f"SET statement_timeout = {int(1000 * seconds)}")
        self.connection.commit()  # so that a rollback leaves the limit as it is

    def _columns(self, oids: list[int]) -> tuple[dict[int, list[Column]], dict[int, set[str]]]:
        values: dict[int, tuple[str, ...]] = {}
        for oid, label in self._rows(_ENUMS):
            values[oid] = (*values.get(oid, ()), label)
        columns: dict[int, list[Column]] = {}
        nullable: dict[int, set[str]] = {}
        for relation, name, written, array, not_null, comment, type_oid in self._rows(_COLUMNS, [oids]):
            labels = values.get(type_oid, ())
            short = _DIGITS.sub(r"\1", written)  # `varchar(20)` is text, `timestamp(3) without time zone` is timestamp
            type_ = "text" if labels else _TYPES.get(short, short)
            column = declared_column(name, type_, array=array, values=labels, comment=comment or "")
            columns.setdefault(relation, []).append(column)
            if not not_null:
                nullable.setdefault(relation, set()).add(name)
        return columns, nullable

    def _look_at(self, found: _Found, relation: Relation, *, infer: bool) -> Relation:
        """Return the relation with its number of rows, samples, and inferred kinds where nothing was declared."""
        try:
            limit = _INFERRED_ROWS if infer else _SHOWN_ROWS
            relation = self.queries.add_samples(relation, infer=infer, limit=limit)
        except driver().Error as error:
            return replace(relation, unread=self._recover_from(error))
        try:
            return replace(relation, rows=self._count(found, relation))
        except driver().Error as error:  # a table that was just filled looks small
            self._recover_from(error)
            return relation

    def _recover_from(self, error: Exception) -> str:
        """Make the connection usable again; give what the server said. Raises the error where it is lost."""
        if self.connection.closed:
            raise error
        self.connection.rollback()
        late = isinstance(error, driver().errors.QueryCanceled)
        return f"no answer within {_LOOK_SECONDS:g} s" if late else first_line(error)

    def _count(self, found: _Found, relation: Relation) -> int | None:
        if found.kind in ("v", "f") or found.far:
            return None
        if found.pages > _COUNTED_PAGES:
            return int(found.tuples) if found.tuples is not None and found.tuples >= 0 else None
        return int(self._rows(f"SELECT count(*) FROM {quote(*relation.location)}")[0][0])


def _key(constraints: Iterable[tuple[Any, ...]], readable: set[str], nullable: set[str]) -> tuple[str, ...]:
    """Return the primary key, else the first unique one none of whose columns may be null."""
    for kind in ("p", "u"):
        for _, found, own, *_ in constraints:
            if found == kind and not nullable & set(own) and readable >= set(own):
                return tuple(own)
    return ()


def _sample_expression(column: Column) -> str:
    name = quote(column.name)
    if column.array and column.type == "text":
        return f"(SELECT array_agg(left(x::text, {_SAMPLE_CHARACTERS})) FROM unnest(({name})[:20]) AS u(x))"
    return "NULL" if column.type == "bytea" else f"left({name}::text, {_SAMPLE_CHARACTERS})"
