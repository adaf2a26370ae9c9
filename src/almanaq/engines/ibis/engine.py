"""Every engine that ibis reaches and almanaq has learned, as a Database: the one module that imports ibis.

Tables and types are ibis', kinds are inferred from comments and a sample of rows.
"""

from __future__ import annotations

import re
import threading
import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from almanaq.engines.common import ListedFunctions, RelationQueries, Rows, find_secret, hide
from almanaq.engines.ibis.profiles import MARIADB, EngineProfile, find_profile, list_functions
from almanaq.engines.ibis.session import IbisSession, Link, message_of
from almanaq.errors import DatabaseError, MissingExtraError, SourceError, UsageError
from almanaq.suql.catalog.reading import declared_column
from almanaq.suql.catalog.relations import Catalog, ColumnKind, Relation
from almanaq.suql.catalog.schema_file import Schema
from almanaq.suql.language import Parameters
from almanaq.suql.tree_language import TreeLanguage

# --- the catalog ------------------------------------------------------------------------------------------------------

_TYPES = {
    "Int8": "smallint",
    "Int16": "smallint",
    "Int32": "integer",
    "Int64": "bigint",
    "UInt8": "smallint",
    "UInt16": "integer",
    "UInt32": "bigint",
    "UInt64": "numeric(20,0)",
    "Float32": "real",
    "Float64": "double precision",
    "Boolean": "boolean",
    "String": "text",
    "Date": "date",
    "Time": "time",
    "JSON": "jsonb",
    "UUID": "uuid",
    "Binary": "bytea",
    "Interval": "interval",
    "Unknown": "unknown",
}
_MYSQL_COLUMNS = (
    "SELECT table_name, column_name, column_comment, column_type FROM information_schema.columns "
    "WHERE table_schema = DATABASE()"
)
_MYSQL_KEYS = (
    "SELECT table_name, column_name FROM information_schema.key_column_usage "
    "WHERE constraint_name = 'PRIMARY' AND table_schema = DATABASE() ORDER BY table_name, ordinal_position"
)
_MYSQL_TABLES = (
    "SELECT table_name, CASE WHEN table_type = 'BASE TABLE' THEN table_comment ELSE '' END, table_rows "
    "FROM information_schema.tables WHERE table_schema = DATABASE()"
)
_CLICKHOUSE_COLUMNS = "SELECT table, name, comment, type FROM system.columns WHERE database = currentDatabase()"
_LABEL = re.compile(r"'((?:[^']|'')*)'")


@dataclass(frozen=True)
class Facts:
    """What an engine's own catalog tells beside ibis.

    Attributes:
        columns: comment and type, by table and column.
        tables: comment and number of rows.
    """

    columns: Mapping[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    keys: Mapping[str, Sequence[str]] = field(default_factory=dict)
    tables: Mapping[str, tuple[str, int | None]] = field(default_factory=dict)


def read_facts(dialect: str, rows: Rows) -> Facts:
    """Return what the catalogs of MySQL and ClickHouse tell; of other engines the schema file has to."""
    query = {"mysql": _MYSQL_COLUMNS, "clickhouse": _CLICKHOUSE_COLUMNS}.get(dialect)
    if query is None:
        return Facts()
    columns = {(table, column): (comment or "", type_) for table, column, comment, type_ in rows(query)}
    if dialect != "mysql":  # ClickHouse's keys need not be unique
        return Facts(columns)
    keys: dict[str, list[str]] = defaultdict(list)
    for table, column in rows(_MYSQL_KEYS):
        keys[table].append(column)
    tables = {table: (comment or "", None if n is None else int(n)) for table, comment, n in rows(_MYSQL_TABLES)}
    return Facts(columns, keys, tables)


def read_catalog(backend: Any, queries: RelationQueries) -> Catalog:
    """Return every table and view of the current database, with kinds inferred where no comment declares any."""
    facts = read_facts(queries.dialect, queries.rows)
    relations = [_read_relation(backend, name, facts) for name in sorted(backend.list_tables())]
    declared = any(c.kind is ColumnKind.FREE_TEXT for r in relations for c in r.columns)
    return Catalog(tuple(queries.add_samples(relation, infer=not declared) for relation in relations))


def _read_relation(backend: Any, name: str, facts: Facts) -> Relation:
    columns = []
    for column, type_ in backend.get_schema(name).items():
        array = type(type_).__name__ == "Array"
        comment, declared = facts.columns.get((name, column), ("", ""))
        labels = _LABEL.findall(declared) if declared.lower().startswith("enum") else []
        values = tuple(label.replace("''", "'") for label in labels)
        written = pg_type(type_.value_type if array else type_)
        columns.append(declared_column(column, written, array=array, values=values, comment=comment))
    description, rows = facts.tables.get(name, ("", None))
    key = tuple(facts.keys.get(name, ()))
    return Relation(name, (name,), tuple(columns), key=key, rows=rows, description=description)


def pg_type(type_: Any) -> str:
    """Return the PostgreSQL name of an ibis type; of one that has none, ibis's own name, whose values come as text."""
    kind = type(type_).__name__
    if kind == "Decimal":
        return f"numeric({type_.precision},{type_.scale or 0})" if type_.precision else "numeric"
    if kind == "Timestamp":
        return "timestamp with time zone" if type_.timezone else "timestamp"
    return _TYPES.get(kind, str(type_).lower())


# --- the database -----------------------------------------------------------------------------------------------------

_MOST_IDLE = 4


class IbisDatabase:
    """A Database over connections that ibis makes.

    Args:
        connect: gives a new ibis backend each time: every session works on a connection of its own.
        schema: what a schema file says, applied over what the engine says; its keys are checked.
    """

    typed = False

    def __init__(self, connect: Callable[[], Any], *, name: str, schema: Schema | None = None) -> None:
        self._connect, self.name, self._schema = connect, name, schema or Schema()
        self._lock = threading.Lock()
        self._idle: list[Link] = []
        self._open = True
        self._catalog: Catalog | None = None
        self._functions: ListedFunctions | None = None
        first = self._connect()
        self._engine = _engine(first)
        self.dialect = self._engine.dialect
        self._give_back(self._link(first), True)

    def catalog(self) -> Catalog:
        with self._lock:
            known = self._catalog
        if known is None:
            with self.session() as session:
                queries = RelationQueries(session.rows, self.dialect, by_key=True)
                known = queries.complete(read_catalog(session.backend, queries), self._schema)
            with self._lock:
                self._catalog = known
        return known

    def session(self, deadline: float | None = None) -> IbisSession:
        with self._lock:
            idle = self._idle.pop() if self._idle else None
        link = idle or self._link(self._connect())
        try:
            return IbisSession(link, self._engine, self._give_back, deadline)
        except DatabaseError:
            self._give_back(link, False)
            if idle is None:
                raise
        return self.session(deadline)  # it was lost while it lay idle

    def language(self, catalog: Catalog) -> TreeLanguage:
        with self._lock:
            functions = self._functions
        if functions is None:
            with self.session() as session:
                functions = list_functions(self.dialect, lambda sql: session.rows(sql))
            with self._lock:
                self._functions = functions
        return TreeLanguage(self.dialect, catalog, functions, self._describe)

    def _describe(self, sql: str, parameters: Parameters) -> list[str]:
        with self.session() as session:
            return session.names(sql, parameters)

    def close(self) -> None:
        with self._lock:
            self._open = False
            idle, self._idle = self._idle, []
        for link in idle:
            link.backend.disconnect()

    def _link(self, backend: Any) -> Link:
        return Link(backend, _canceller(backend, self._connect), _runner(backend))

    def _give_back(self, link: Link, usable: bool) -> None:
        with self._lock:
            if usable and self._open and len(self._idle) < _MOST_IDLE:
                self._idle.append(link)
                return
        try:
            link.backend.disconnect()
        except Exception:  # it is lost already
            return


def open_ibis_url(url: str, *, schema: Schema | None = None) -> IbisDatabase:
    """Open a source by an ibis URL; no error prints the password."""
    scheme = url.partition("://")[0].lower()
    find_profile(scheme)
    secret = find_secret(url)
    try:
        import ibis
    except ImportError as error:
        raise MissingExtraError("ibis", "ibis", f"a source in {scheme}") from error
    one_at_a_time = threading.Lock()  # whoever ignores warnings does so for all threads

    def connect() -> Any:
        try:
            with one_at_a_time, warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # no zone "UTC" in MySQL: the session sets +00:00
                return ibis.connect(url)
        except ImportError as error:
            driver = f"ibis-framework[{scheme}]"
            raise SourceError(f"a source in {scheme} needs its driver: pip install '{driver}'") from error
        except Exception as error:  # drivers have no class of errors in common
            raise SourceError(f"cannot connect to {scheme}: {hide(message_of(error), secret)}") from None

    return IbisDatabase(connect, name=url.rpartition("/")[2].partition("?")[0] or scheme, schema=schema)


def open_ibis_backend(backend: Any, *, schema: Schema | None = None) -> IbisDatabase:
    """Use the server that an ibis backend is connected to, by connections of our own with the same arguments."""
    find_profile(backend.name)
    if not getattr(backend, "_can_reconnect", True):
        raise UsageError("an ibis backend made by from_connection cannot be connected a second time: pass its URL")
    arguments, named = backend._con_args, backend._con_kwargs
    return IbisDatabase(lambda: backend.connect(*arguments, **named), name=backend.name, schema=schema)


def _engine(backend: Any) -> EngineProfile:
    """Return what is known of the engine behind a backend: MariaDB answers to MySQL's name."""
    engine = find_profile(backend.name)
    if engine.dialect == "mysql" and "mariadb" in backend.con.get_server_info().lower():
        return MARIADB
    return engine


def _runner(backend: Any) -> Callable[[str], Any]:
    """Return what runs a SELECT; MySQL's driver is asked not to bring all its rows before the first is read."""
    if backend.name != "mysql" or find_spec("MySQLdb") is None:
        run: Callable[[str], Any] = backend.raw_sql
        return run
    from MySQLdb.cursors import SSCursor

    def unbuffered(sql: str) -> Any:
        cursor = backend.con.cursor(SSCursor)
        cursor.execute(sql)
        return cursor

    return unbuffered


def _canceller(backend: Any, connect: Callable[[], Any]) -> Callable[[], None]:
    """Return what stops the statement that runs on a backend; where its driver cannot, the deadline has to."""
    if backend.name == "postgres":
        backend.con.autocommit = True  # an error leaves the temporary tables alone
        return lambda: backend.con.cancel_safe(timeout=5)
    if backend.name != "mysql":
        return lambda: None
    number = backend.con.thread_id()

    def kill() -> None:
        with suppress(Exception):  # the connection has gone, and its statement with it
            other = connect()
            other.raw_sql(f"KILL QUERY {number}").close()
            other.disconnect()

    return kill
