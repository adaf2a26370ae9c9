"""DuckDB's SQL as the compiler needs it: statements checked, trees that say the same, names of results."""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import duckdb
from sqlglot import ErrorLevel, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokenizer_core import TokenType

from almanaq.engines.duckdb.answer_tables import take_apart
from almanaq.engines.duckdb.functions import FunctionCatalog
from almanaq.engines.duckdb.session import binding_error
from almanaq.engines.duckdb.statements import StatementReader
from almanaq.engines.duckdb.trees import (
    flatten_joins,
    has_text,
    needs_split,
    number_groups,
    number_order,
    walk,
    write_null_order,
)
from almanaq.errors import QueryError, UnsupportedError, first_line
from almanaq.suql.catalog.relations import Catalog, Relation, unique_names
from almanaq.suql.language import (
    ROW_OF_ANSWER,
    WORK_SCHEMA,
    Cited,
    Parameters,
    Part,
    SplitStatement,
    Statement,
    parameters_of,
)
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
        owned: whether the instance is ours.
    """

    dialect = "duckdb"
    binds_texts = True

    def __init__(
        self,
        connect: Callable[[], duckdb.DuckDBPyConnection],
        catalog: Callable[[], Catalog],
        views: Callable[[Relation], str | None] = lambda _: None,
        *,
        owned: bool = False,
    ) -> None:
        self._connect, self._catalog, self._views, self._owned = connect, catalog, views, owned
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
                ordered = copy.deepcopy(number_order(statement.tree, lambda: len(self.describe(statement.shown, ()))))
                write_null_order(ordered, *self._order_settings())
                number_groups(ordered, reader.functions.aggregates)
                flatten_joins(ordered)
                if needs_split(ordered) or self._calls_macros(reader, ordered):
                    raise UnsupportedError("a part of the query is not planned beside text functions")
                sql = reader.write(ordered)
        try:
            tree = _parse_written(sql)
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

    def split(self, statement: Statement, prefix: str, parameters: Parameters = ()) -> Iterator[SplitStatement]:
        """Yield a statement taken apart where it is not planned whole: first so that a LIMIT stops it, if one may."""
        if not isinstance(statement.tree, dict) or prefix.count("part_") > 1:
            return
        for stops in (True, False):
            with self._lock:
                reader = self._reader()
                tree = copy.deepcopy(statement.tree)
                write_null_order(tree, *self._order_settings())
                number_groups(tree, reader.functions.aggregates)
                parts = _Parts(self, reader, statement, prefix, parameters)
                made = take_apart(tree, parts, stops=stops)
                used = parts.parameters_in(made.tree)
                sql = reader.shown(made.tree, reader.write(made.tree))
                split = SplitStatement(tuple(parts.made), sql, used, reader.lookups(made.tree), made.cited)
            yield split
            if not parts.kept:
                return

    def part(
        self,
        reader: StatementReader,
        name: str,
        query: dict[str, Any],
        whole: Statement,
        parameters: Parameters,
        documents: Sequence[Cited | None] | None,
        *,
        numbered: bool = True,
    ) -> Part:
        """Return a part with the columns of its table, which stands empty where later parts are described.

        Args:
            numbered: whether rows that have answers have their number, too.
        """
        tree = {"node": query, "named_param_map": []}
        sql = reader.write(tree)
        shown = reader.shown(tree, sql)
        tables = [_relation_of(node, reader) for node in walk(query) if node.get("type") == "BASE_TABLE"]
        relations = tuple(dict.fromkeys(table.name for table in tables if table is not None))
        if documents is None:
            called = {str(node.get("function_name", "")).lower() for node in walk(query)}
            if not called.isdisjoint(reader.functions.own_names):
                tables = list(reader.catalog.relations)
            read = [(table.name, c.name) for table in tables if table is not None for c in table.columns if c.private]
        else:
            read = [(each.relation, each.column) for each in documents if each is not None and each.private]
        private = tuple(dict.fromkeys(".".join(each) for each in read))
        alone = documents[0] if documents is not None and len(documents) == 1 else None
        used, text = tuple(name for name in whole.parameters if name in _parameters_in(query)), has_text(query)
        reads = ((alone.relation, alone.column) if alone is not None else ("", "")) if numbered else None
        if used and not text:
            shown, used = self._with_literals(shown, parameters_of(used, parameters)), ()
        statement = Statement(whole.text, sql, shown, text, relations, used, reader.lookups(tree), tree)
        columns = tuple((str(row[0]), str(row[1])) for row in self.describe(shown, parameters_of(used, parameters)))
        names = unique_names(name for name, _ in columns)
        listed = [f"{quote(name)} {_TEXTS.get(kind, kind)}" for name, (_, kind) in zip(names, columns, strict=True)]
        listed += [f"{ROW_OF_ANSWER} BIGINT"] if text and numbered else []
        assert self._opened is not None
        self._opened[0].execute(f"CREATE OR REPLACE TEMP TABLE {quote(name)} ({', '.join(listed)})")
        return Part(name, statement, columns, private, reads)

    def describe(self, sql: str, parameters: Parameters) -> list[tuple[Any, ...]]:
        """Return the names and types of a query's columns; raises DuckDB's error where it does not bind."""
        assert self._opened is not None
        described = sql.replace(f"{WORK_SCHEMA}.", "temp.main.")
        try:
            return self._opened[0].execute(f"DESCRIBE {described}", parameters).fetchall()
        except duckdb.Error as error:
            if not parameters or not isinstance(error, duckdb.BinderException):
                raise binding_error(error) from error
        return self.describe(self._with_literals(described, parameters), ())  # `GROUP BY f(x, ?)` of `f(x, ?)`

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
            return tuple(str(row[0]) for row in self.describe(statement.shown, bound))

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
            reader = StatementReader(
                connection, self._catalog(), FunctionCatalog.read(connection, owned=self._owned), self._views
            )
            self._opened = connection, reader
        return self._opened[1]


# --- what DuckDB writes of a tree, read by sqlglot


class _WrittenParser(DuckDBParser):
    """Reads lambdas in parentheses: DuckDB writes every lambda, and so every list comprehension, with them."""

    def _parse_lambda(self, alias: bool = False) -> exp.Expr | None:
        start = self._index
        if self._match(TokenType.L_PAREN) and self._curr.text.upper() == "LAMBDA":
            made = self._parse_lambda(alias=alias)
            if made is not None and self._match(TokenType.R_PAREN):
                return made
        self._retreat(start)
        return super()._parse_lambda(alias=alias)


def _parse_written(sql: str) -> exp.Expr:
    """Return the tree of a query that DuckDB wrote.

    Raises:
        SqlglotError: it cannot be parsed.
    """
    dialect = Dialect.get_or_raise("duckdb")
    (tree,) = _WrittenParser(dialect=dialect).parse(dialect.tokenize(sql), sql)
    assert tree is not None
    return tree


# --- parts


class _Parts:
    """The parts of a statement that is taken apart, as they are made."""

    def __init__(
        self, language: DuckDBLanguage, reader: StatementReader, whole: Statement, prefix: str, parameters: Parameters
    ) -> None:
        self._language, self._reader, self._whole = language, reader, whole
        self._prefix, self._parameters = prefix, parameters
        self.made: list[Part] = []
        self.kept = False
        """Whether one is of the rows that a LIMIT keeps."""
        functions = reader.functions
        self.aggregates = functions.aggregates | functions.own_names  # macros may aggregate
        self.volatile, self.own = functions.volatile, functions.own_names

    def parse(self, text: str) -> dict[str, Any]:
        """Return the tree of a query."""
        return self._reader.parse(text)

    def make(
        self, query: dict[str, Any], documents: Sequence[Cited | None] | None = None, *, numbered: bool = True
    ) -> str | None:
        """Make a part; give the name of its table, None where DuckDB does not bind the query."""
        name = f"{self._prefix}{len(self.made) + 1}"
        of = (self._reader, name, query, self._whole, self._parameters, documents)
        try:
            part = self._language.part(*of, numbered=numbered)
        except QueryError:
            return None
        if documents is None:
            read = {node["table_name"] for node in walk(query) if node.get("schema_name") == WORK_SCHEMA}
            held = [column for other in self.made if other.name in read for column in other.private]
            part = replace(part, private=tuple(dict.fromkeys((*part.private, *held))))
        self.made.append(part)
        return name

    def keep(self, query: dict[str, Any]) -> str | None:
        """Make a part of the rows that a LIMIT keeps; give its name, None where DuckDB does not bind the query."""
        name = self.make(query, (), numbered=False)
        self.kept = self.kept or name is not None
        return name

    def row_id(self, item: dict[str, Any]) -> str | None:
        """Return the column that numbers the rows of an item of FROM; None where none does."""
        relation = _relation_of(item, self._reader)
        renamed = item["column_name_alias"] or item["sample"]
        return relation.row_id if relation is not None and not renamed else None

    def place(self, item: dict[str, Any], column: str) -> tuple[Cited, tuple[str, ...]] | None:
        """Return where a column of an item of FROM stands, and the columns that name its rows; None where unknown."""
        relation = _relation_of(item, self._reader)
        known = relation.column(column) if relation is not None and not item["column_name_alias"] else None
        if relation is None or known is None:
            return None
        key = relation.key or ((relation.row_id,) if relation.row_id else ())
        named = "key" if relation.key else "nothing" if not key else "number" if relation.numbered else "address"
        return Cited("", relation.name, known.name, len(key), named, known.private), key

    def names(self, query: dict[str, Any]) -> Sequence[str]:
        """Return what DuckDB calls the columns of a query; none where it does not bind."""
        tree = {"node": query, "named_param_map": []}
        try:
            sql = self._reader.shown(tree, self._reader.write(tree))
            used = parameters_of(self.parameters_in(query), self._parameters)
            return [str(row[0]) for row in self._language.describe(sql, used)]
        except QueryError:
            return ()

    def binds(self, query: dict[str, Any]) -> bool:
        """Return whether DuckDB binds a query."""
        return bool(self.names(query))

    def parameters_in(self, tree: dict[str, Any]) -> tuple[str, ...]:
        """Return the names of the parameters of a tree, in their order in the whole."""
        found = _parameters_in(tree)
        return tuple(name for name in self._whole.parameters if name in found)


def _relation_of(item: dict[str, Any], reader: StatementReader) -> Relation | None:
    """Return the relation that an item of FROM names in full, as checked trees do; a bare name is one of WITH."""
    path = tuple(item["qualified_name"]["path"])
    relation = reader.catalog.find(".".join(path))
    return relation if relation is not None and path in (relation.location, (WORK_SCHEMA, relation.name)) else None


def _parameters_in(tree: dict[str, Any]) -> set[str]:
    return {str(node["identifier"]) for node in walk(tree) if node.get("class") == "PARAMETER"}


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
