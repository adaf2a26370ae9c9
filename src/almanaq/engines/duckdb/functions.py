"""Which functions of DuckDB a query may call: what its own catalog calls harmless, less a few, plus a few."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import duckdb

from almanaq.engines.common import refuse_in_from, refuse_own
from almanaq.errors import RefusedQueryError, UnknownNameError, suggest
from almanaq.suql.text_functions import TEXT_FUNCTIONS

ALLOWED: Mapping[str, str] = {
    **dict.fromkeys(("random", "uuid", "uuidv4", "uuidv7", "gen_random_uuid"), "draws a value, changes nothing"),
    "error": "only ends the query that calls it",
    **dict.fromkeys(
        ("now", "today", "current_date", "get_current_time", "get_current_timestamp", "transaction_timestamp"),
        "reads the clock",
    ),
    **dict.fromkeys(("current_database", "current_schema", "current_schemas", "in_search_path"), "names the source"),
}
"""Functions that are not constant over their arguments, or give rows, and are harmless all the same."""

ALLOWED_IN_FROM: Mapping[str, str] = {
    **dict.fromkeys(("range", "generate_series", "unnest", "repeat", "repeat_row"), "makes rows of its arguments"),
    **dict.fromkeys(("json_each", "json_tree"), "makes rows of its argument"),
}

REFUSED: Mapping[str, str] = {
    "json_serialize_plan": "it plans any statement that its argument holds",
    "json_serialize_sql": "it reads any statement that its argument holds",
    "json_deserialize_sql": "it writes any statement that its argument holds",
    "getenv": "it reads the environment of the process",
    "pg_sleep": "it only waits",
    **dict.fromkeys(("current_query", "get_block_size"), "it tells of the connection, not of its data"),
    **dict.fromkeys(("format_type", "pg_get_viewdef", "pg_get_constraintdef"), "it reads the system's catalog"),
}
"""Functions that the catalog calls constant, or macros of the system, which do more than compute from arguments."""

READERS = frozenset(
    f"{kind}{end}" for kind in ("read_csv", "read_json", "read_json_objects", "read_ndjson") for end in ("", "_auto")
) | {"read_parquet", "parquet_scan", "read_ndjson_objects", "read_text", "read_blob", "glob"}
"""Table functions that read files: refused in queries, and taken in views, whose author chose the files."""

_IN_FROM = frozenset(["table", "table_macro", "pragma"])
_OWN_EXTENSIONS = frozenset(["", "core_functions", "json", "icu", "parquet"])
_CALLED = re.compile(r"(\w+)\(")
_READS_CATALOG = (
    "SELECT lower(function_name), function_type, coalesce(stability, ''), internal, "
    "coalesce(extension_name, ''), macro_definition, alias_of, return_type "
    "FROM duckdb_functions()"
)
_COUNTS_FILES = "SELECT count(*) FROM duckdb_databases() WHERE path IS NOT NULL"


@dataclass(frozen=True, slots=True)
class Function:
    """One entry of the engine's list of functions; a name may have several.

    Attributes:
        kind: scalar, aggregate, window, macro, table, table_macro, pragma.
        own: whether somebody defined it in the database, or it came with an extension that is not DuckDB's own.
    """

    kind: str
    stability: str
    own: bool
    definition: str


class FunctionCatalog:
    """The functions of a DuckDB instance by the rows of `duckdb_functions()`, and which of them queries may call."""

    def __init__(self, rows: Iterable[tuple[Any, ...]], built_in: Container[str] | None = None) -> None:
        self._entries: dict[str, list[Function]] = {}
        self.synonyms: dict[str, str] = {}
        """Built-in functions that are others by another name."""
        types: dict[str, set[str | None]] = {}
        for name, kind, stability, internal, extension, definition, alias, type_ in rows:
            own = not internal or extension not in _OWN_EXTENSIONS
            own = own or (built_in is not None and not extension and name not in built_in)
            self._entries.setdefault(name, []).append(Function(kind, stability, own, definition or ""))
            types.setdefault(name, set()).add(type_)
            if alias and not own:
                self.synonyms[name] = alias.lower()
        plain = self._names_of(lambda entry: entry.kind == "aggregate")
        self.aggregates = plain | self._names_of(
            lambda entry: entry.kind == "macro" and not plain.isdisjoint(_CALLED.findall(entry.definition))
        )
        self.returns = {name: type_ for name, (type_, *others) in types.items() if type_ and not others}
        self.own_names = self._names_of(lambda entry: entry.own)
        self.volatile = self._names_of(lambda entry: entry.stability == "VOLATILE")

    @classmethod
    def read(cls, connection: Any, *, owned: bool) -> FunctionCatalog:
        """Read the functions of an instance; where they are the built-in ones alone, once per process."""
        alone = owned and not connection.execute(_COUNTS_FILES).fetchone()[0]
        if not _built_in and (alone or not owned):  # listing the 3,000 of them takes longer than most queries
            _built_in.append(cls((connection if alone else duckdb.connect()).execute(_READS_CATALOG).fetchall()))
        if alone:
            return _built_in[0]
        # A function of Python that somebody registers is called internal, too.
        return cls(connection.execute(_READS_CATALOG).fetchall(), None if owned else _built_in[0]._entries)

    def _names_of(self, is_it: Callable[[Function], bool]) -> frozenset[str]:
        return frozenset(name for name, entries in self._entries.items() if any(map(is_it, entries)))

    def has(self, name: str) -> bool:
        return name.lower() in self._entries or name.lower() == "unnest"

    def check(
        self, name: str, *, in_from: bool, allowed: frozenset[str], expand: Callable[[Function], None], **place: Any
    ) -> None:
        """Raise an error unless a query may call a function; `expand` checks what an own macro is made of."""
        called = name.lower()
        if called in allowed:
            return
        entries = [entry for entry in self._entries.get(called, ()) if (entry.kind in _IN_FROM) == in_from]
        if not entries and called != "unnest":
            known = (each for each in self._entries if each[0].isalpha())  # operators are functions, too
            raise UnknownNameError(f"no function named {name!r}{suggest(called, [*TEXT_FUNCTIONS, *known])}", **place)
        own = [entry for entry in entries if entry.own]
        for entry in own:
            if entry.kind not in ("macro", "table_macro") or not entry.definition:
                raise RefusedQueryError(refuse_own(name, called), **place)
            expand(entry)
        if own:
            return
        if called == "unnest" or (in_from and called in ALLOWED_IN_FROM):
            return
        if called in REFUSED:
            raise RefusedQueryError(f"the function {name!r} is not allowed in a query: {REFUSED[called]}", **place)
        if in_from:
            raise RefusedQueryError(refuse_in_from(name, ALLOWED_IN_FROM), **place)
        if called not in ALLOWED and not all(map(_computes, entries)):
            raise RefusedQueryError(
                f"the function {name!r} is not allowed in a query: it does not only compute", **place
            )


_built_in: list[FunctionCatalog] = []


def _computes(entry: Function) -> bool:
    return entry.kind in ("aggregate", "window", "macro") or (entry.kind, entry.stability) == ("scalar", "CONSISTENT")
