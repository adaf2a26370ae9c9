"""DuckDB's SQL as the compiler needs it: statements checked, trees that say the same, names of results."""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Callable, Mapping
from typing import Any

import duckdb
import sqlglot
from sqlglot import ErrorLevel, exp
from sqlglot.errors import SqlglotError

from almanaq.engines.duckdb.functions import FunctionCatalog
from almanaq.engines.duckdb.session import binding_error
from almanaq.engines.duckdb.split import Part as TreePart
from almanaq.engines.duckdb.split import (
    flatten_joins,
    needs_split,
    number_groups,
    number_order,
    split,
    walk,
    write_null_order,
)
from almanaq.engines.duckdb.statements import StatementReader
from almanaq.errors import UnsupportedError, first_line
from almanaq.suql.catalog.relations import Catalog, Relation, unique_names
from almanaq.suql.language import WORK_SCHEMA, Parameters, Part, SplitStatement, Statement, parameters_of
from almanaq.suql.names import MISREAD
from almanaq.suql.syntax.literals import literal
from almanaq.suql.text_functions import DECLARED
from almanaq.text.sql_literals import quote

_PLACES = frozenset(["query_location", "query_location_length", "is_implicit"])
_CALL: Mapping[str, Any] = {
    **{"class": "FUNCTION", "type": "FUNCTION", "schema": "", "catalog": "", "filter": None, "distinct": False},
    **{"order_bys": {"type": "ORDER_MODIFIER", "orders": []}, "is_operator": False, "export_state": False},
}
_TEXTS = {'"NULL"': "VARCHAR", "NULL": "VARCHAR"}
"""The type of a text function where DuckDB only binds, and what it is."""
_STATEMENTS_KEPT = 200
_SAME = {"count_star": "count", "power": "pow", "**": "pow", "^": "pow"}
"""Functions that DuckDB's parser or sqlglot's printer calls otherwise."""


class DuckDBLanguage:
    """What DuckDB makes of a text.

    Args:
        connect: opens a connection that only parses and describes.
        catalog: gives the relations that queries may name.
        views: gives the SQL of a view whose author is not known to be us.
    """

    dialect = "duckdb"

    def __init__(
        self,
        connect: Callable[[], duckdb.DuckDBPyConnection],
        catalog: Callable[[], Catalog],
        views: Callable[[Relation], str | None] = lambda _: None,
    ) -> None:
        self._connect, self._catalog, self._views = connect, catalog, views
        self._lock = threading.Lock()
        self._statements: dict[tuple[str, frozenset[str]], Statement] = {}
        self._forms: _Normalizer | None = None
        self._opened: tuple[duckdb.DuckDBPyConnection, StatementReader] | None = None

    def read(self, text: str, allowed: frozenset[str] = frozenset()) -> Statement:
        """Return the one query that a text holds, checked; raises QueryError."""
        with self._lock:
            known = self._statements.get((text, allowed))
            if known is None:
                known = self._reader().read(text, allowed)
                if len(self._statements) >= _STATEMENTS_KEPT:
                    self._statements.pop(next(iter(self._statements)))
                self._statements[text, allowed] = known
            return known

    @property
    def aggregates(self) -> frozenset[str]:
        """Names of the functions that aggregate."""
        with self._lock:
            return self._reader().functions.aggregates

    def tree(self, statement: Statement) -> exp.Expr:
        """Return sqlglot's tree of a statement, which says the same to DuckDB as the statement does.

        Raises:
            UnsupportedError: sqlglot reads or writes it as something else.
        """
        sql = statement.sql
        with self._lock:
            if isinstance(statement.tree, dict):
                reader = self._reader()
                ordered = copy.deepcopy(number_order(statement.tree, lambda: len(self._describe(statement.shown, ()))))
                write_null_order(ordered, *self._order_settings())
                number_groups(ordered, reader.functions.aggregates)
                flatten_joins(ordered)
                if needs_split(ordered) or self._calls_macros(reader, ordered):
                    raise UnsupportedError("a part of the query is not planned beside text functions")
                sql = reader.write(ordered)
        try:
            tree = sqlglot.parse_one(sql, read="duckdb")
            written = tree.sql("duckdb", comments=False, unsupported_level=ErrorLevel.RAISE)
        except SqlglotError as error:
            raise UnsupportedError(f"the query cannot be planned beside text functions: {first_line(error)}") from error
        except MISREAD as error:
            raise UnsupportedError("a form of the query is not supported beside text functions") from error
        with self._lock:
            reader = self._reader()
            given, made = (self._normalizer(reader).form(reader.parse(sql)) for sql in (sql, written))
        if given != made:
            where = _difference(given, made)
            raise UnsupportedError(f"a part of the query is not supported beside text functions{where}")
        return tree

    def _order_settings(self) -> tuple[str, str]:
        """Return what ORDER BY means where a query does not say: the order of NULLs, and the direction."""
        assert self._opened is not None
        read = "SELECT upper(current_setting('default_null_order')), upper(current_setting('default_order'))"
        ((nulls, direction),) = self._opened[0].execute(read).fetchall()
        return str(nulls), str(direction)

    @staticmethod
    def _calls_macros(reader: StatementReader, tree: dict[str, Any]) -> bool:
        """Return whether a query calls a macro of the database's own, which may aggregate."""
        names = (str(node["function_name"]) for node in walk(tree) if node.get("class") == "FUNCTION")
        return any(reader.functions.is_own(name) for name in names if name.lower() not in DECLARED)

    def split(self, statement: Statement, prefix: str, parameters: Parameters = ()) -> SplitStatement | None:
        """Return a statement taken apart where it is not planned whole; None where that cannot be done."""
        if not isinstance(statement.tree, dict):
            return None
        with self._lock:
            reader = self._reader()
            made = split(statement.tree, prefix, self._columns_of, again="part_" in prefix.removesuffix("part_"))
            if made is None:
                return None
            parts = tuple(self._part(reader, part, statement, parameters) for part in made.parts)
            left = {str(node["identifier"]) for node in walk(made.tree) if node.get("class") == "PARAMETER"}
            used = tuple(name for name in statement.parameters if name in left)
            sql = reader.shown(made.tree, reader.write(made.tree))
            return SplitStatement(parts, sql, used, reader.lookups(made.tree))

    def _part(self, reader: StatementReader, part: TreePart, whole: Statement, parameters: Parameters) -> Part:
        """Return a part with the columns of its table, which stands empty where later parts are described."""
        tree = {"node": part.tree, "named_param_map": []}
        sql = reader.write(tree)
        shown = reader.shown(tree, sql)
        tables = [
            reader.catalog.find(".".join(node["qualified_name"]["path"]))
            for node in walk(part.tree)
            if node.get("type") == "BASE_TABLE"
        ]
        relations = tuple(dict.fromkeys(table.name for table in tables if table is not None))
        private = any(column.private for table in tables if table is not None for column in table.columns)
        written = {str(node["identifier"]) for node in walk(part.tree) if node.get("class") == "PARAMETER"}
        used = tuple(name for name in whole.parameters if name in written)
        if used and not part.has_text:
            shown, used = self._with_literals(shown, parameters_of(used, parameters)), ()
        statement = Statement(whole.text, sql, shown, part.has_text, relations, used, reader.lookups(tree), tree)
        columns = tuple((str(row[0]), str(row[1])) for row in self._describe(shown, parameters_of(used, parameters)))
        names = unique_names(name for name, _ in columns)
        listed = [f"{quote(name)} {_TEXTS.get(kind, kind)}" for name, (_, kind) in zip(names, columns, strict=True)]
        assert self._opened is not None
        self._opened[0].execute(f"CREATE OR REPLACE TEMP TABLE {quote(part.name)} ({', '.join(listed)})")
        return Part(part.name, statement, columns, private)

    def _columns_of(self, item: Mapping[str, Any]) -> frozenset[str] | None:
        if item["type"] != "BASE_TABLE":
            return None
        relation = self._catalog().find(".".join(item["qualified_name"]["path"]))
        return None if relation is None else frozenset(column.name.lower() for column in relation.columns)

    def _describe(self, sql: str, parameters: Parameters) -> list[tuple[Any, ...]]:
        assert self._opened is not None
        described = sql.replace(f"{WORK_SCHEMA}.", "temp.main.")
        try:
            return self._opened[0].execute(f"DESCRIBE {described}", parameters).fetchall()
        except duckdb.Error as error:
            if not parameters or not isinstance(error, duckdb.BinderException):
                raise binding_error(error) from error
        return self._describe(self._with_literals(described, parameters), ())  # `GROUP BY f(x, ?)` of `f(x, ?)`

    def _with_literals(self, sql: str, parameters: Parameters) -> str:
        """Return a query with its parameters written out."""
        named = parameters if isinstance(parameters, Mapping) else {str(i + 1): v for i, v in enumerate(parameters)}
        reader = self._reader()
        tree = reader.parse(sql)
        for node in [node for node in walk(tree) if node.get("class") == "PARAMETER"]:
            made = reader.parse(f"SELECT {literal(named[str(node['identifier'])]).sql('duckdb')}")
            written = {**made["node"]["select_list"][0], "alias": node["alias"]}
            node.clear()
            node.update(written)
        return reader.write(tree)

    def names(self, statement: Statement, parameters: Parameters = ()) -> tuple[str, ...]:
        """Return what DuckDB calls the columns of a statement's result; raises its error where it does not bind."""
        with self._lock:
            self._reader()
            bound = parameters_of(statement.parameters, parameters)
            return tuple(str(row[0]) for row in self._describe(statement.shown, bound))

    def _normalizer(self, reader: StatementReader) -> _Normalizer:
        if self._forms is None:
            assert self._opened is not None
            types = self._opened[0].execute("SELECT upper(type_name), logical_type FROM duckdb_types() WHERE internal")
            self._forms = _Normalizer(reader.functions.synonyms, dict(types.fetchall()))
        return self._forms

    def _reader(self) -> StatementReader:
        if self._opened is None:
            connection = self._connect()
            for declared in DECLARED.values():
                connection.execute(_stub(declared.name, *declared.arguments, declared.type))
            reader = StatementReader(connection, self._catalog(), FunctionCatalog.read(connection), self._views)
            self._opened = connection, reader
        return self._opened[1]


def _uncast(node: dict[str, Any]) -> dict[str, Any]:
    """Return what is cast to a boolean; another expression as it is."""
    boolean = node.get("class") == "CAST" and node["type_expr"].get("type_name") == "BOOLEAN"
    return node["child"] if boolean else node


def _constant(text: str) -> dict[str, Any]:
    literal = {"kind": "INTEGER", "text": text}
    return {"class": "CONSTANT", "type": "VALUE_CONSTANT", "alias": "", "literal": literal}


def _stub(name: str, least: int, most: int, kind: str) -> str:
    """Return the macro that stands for a text function where DuckDB only binds: NULL, which takes any type."""
    bodies = []
    for count in range(least, most + 1):
        arguments = [f"a{i}" for i in range(count)]
        value = "NULL" if kind == "text" else f"NULL::{kind}"
        bodies.append(f"({', '.join(arguments)}) AS CASE WHEN {arguments[0]} IS NULL THEN {value} ELSE {value} END")
    return f"CREATE OR REPLACE TEMP MACRO {name}{', '.join(bodies)}"


class _Normalizer:
    """Trees of DuckDB in one form for each of the forms that say the same, without where their parts are written.

    Args:
        synonyms: functions that are others by another name; types: names of types and what they stand for.
    """

    def __init__(self, synonyms: Mapping[str, str], types: Mapping[str, str]) -> None:
        self._synonyms, self._types = {**synonyms, **_SAME}, types

    def form(self, node: Any) -> Any:
        """Return the form of a tree."""
        if isinstance(node, list):
            return [self.form(part) for part in node]
        if not isinstance(node, dict):
            return node
        made = {key: self.form(part) for key, part in node.items() if key not in _PLACES}
        kind = made.get("class") or made.get("type")
        if kind in ("FUNCTION", "WINDOW") and "function_name" in made:
            name = made["function_name"].lower()
            name = self._synonyms.get(name, name)
            made |= {"function_name": name, "qualified_name": {"path": [name]}, "is_operator": False}
            if name in ("bool_or", "bool_and"):  # whose argument sqlglot casts to what it has to be
                made["arguments"] = [{**one, "expression": _uncast(one["expression"])} for one in made["arguments"]]
        elif kind == "TYPE":
            self._type(made)
        elif made.get("type") == "ARRAY_CONSTRUCTOR":
            arguments = [{"name": "", "expression": child} for child in made["children"]]
            made = {**_CALL, "alias": made["alias"], "function_name": "list_value", "arguments": arguments}
            made["qualified_name"] = {"path": ["list_value"]}
        elif made.get("type") == "OPERATOR_IS_NOT_NULL":
            inner = {**made, "type": "OPERATOR_IS_NULL", "alias": ""}
            made = {**made, "type": "OPERATOR_NOT", "children": [inner]}
        elif kind == "JOIN":
            self._join(made)
        elif kind == "COLUMN_REF":
            made["column_names"] = [name.lower() for name in made["column_names"]]
        if made.get("null_order") == "NULLS LAST":
            made["null_order"] = "ORDER_DEFAULT"
        if made.get("type") == "ASCENDING":
            made["type"] = "ORDER_DEFAULT"
        return made

    def _type(self, made: dict[str, Any]) -> None:
        name = str(made.get("type_name", "")).upper()
        made["type_name"] = self._types.get(name, name)
        if made["type_name"] == "VARCHAR":  # whose length DuckDB ignores
            made["children"] = []
        elif made["type_name"] == "DECIMAL" and not made.get("children"):
            made["children"] = [_constant("18"), _constant("3")]
        made["qualified_name"] = {"path": [made["type_name"]]}

    @staticmethod
    def _join(made: dict[str, Any]) -> None:
        condition = made.get("condition") or {}
        always = condition.get("class") == "CONSTANT" and condition.get("literal", {}).get("text") == "true"
        if made.get("ref_type") in ("CROSS", "REGULAR") and (always or made.get("condition") is None):
            if not made.get("using_columns") and made.get("join_type") in (None, "INNER"):
                made |= {"condition": None, "ref_type": "CROSS", "join_type": "INNER"}


def _difference(given: Any, made: Any) -> str:
    """Return where two trees differ, for a message."""
    if isinstance(given, dict) and isinstance(made, dict):
        for key in given:
            if given.get(key) != made.get(key):
                return _difference(given.get(key), made.get(key)) + f" ({key})"
    if isinstance(given, list) and isinstance(made, list) and len(given) == len(made):
        for one, other in zip(given, made, strict=True):
            if one != other:
                return _difference(one, other)
    return f": {json.dumps(given, ensure_ascii=False)[:120]} became {json.dumps(made, ensure_ascii=False)[:120]}"
