"""DuckDB's own tree of a query: read, checked and placed; what runs is written from it, never the text beside it.

DuckDB gives its tree as JSON (`json_serialize_sql`) and writes it back as SQL (`json_deserialize_sql`). Neither binds a
name nor opens a file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import duckdb

from almanaq.engines.duckdb import trees
from almanaq.engines.duckdb.functions import READERS, Function, FunctionCatalog
from almanaq.engines.duckdb.session import binding_error, parse_select
from almanaq.errors import (
    OperationalError,
    PrivateColumnError,
    QueryError,
    QuerySyntaxError,
    QueryTypeError,
    RefusedQueryError,
    UnknownNameError,
    UnsupportedError,
    first_line,
)
from almanaq.suql.catalog.relations import ROW_COLUMN, Catalog, Relation, fold, unique_names
from almanaq.suql.language import WORK_SCHEMA, Parameters, Statement
from almanaq.suql.syntax.limits import check_length, clause_meant, refuse_kind, single_statement
from almanaq.suql.syntax.literals import literal
from almanaq.suql.text_functions import DECLARED, TEXT_FUNCTIONS, check_arity
from almanaq.text.sql_literals import quote

_QUERIES = frozenset(["SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"])
_ITEMS = frozenset(
    ["BASE_TABLE", "SUBQUERY", "JOIN", "TABLE_FUNCTION", "EXPRESSION_LIST", "EMPTY", "PIVOT", "SHOW_REF"]
)
_MODIFIERS = frozenset(["LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER", "ORDER_MODIFIER", "DISTINCT_MODIFIER"])
_ORDERS = frozenset(["ORDER_DEFAULT", "ASCENDING", "DESCENDING"])
_EXPRESSIONS = frozenset(
    [
        *("BETWEEN", "CASE", "CAST", "COLLATE", "COLUMN_REF", "COMPARISON", "CONJUNCTION", "CONSTANT", "FUNCTION"),
        *("LAMBDA", "LAMBDA_REF", "OPERATOR", "PARAMETER", "POSITIONAL_REFERENCE", "STAR", "SUBQUERY", "TYPE"),
        "WINDOW",
    ]
)
_NO_PLACE = 2**63
_SYSTEM_SCHEMAS = {"main", "system", "temp", "pg_catalog", "information_schema"}
_TEXTS = {'"NULL"': "VARCHAR", "NULL": "VARCHAR"}
"""The type of a text function where DuckDB only binds, and what it is."""
_SHOWN = frozenset(["DESCRIBE", "SUMMARY"])
_MULTIPLE = "Only SELECT statements can be serialized to json!"

Node = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Scope:
    members: frozenset[str] = frozenset()
    recurring: frozenset[str] = frozenset()
    """Those that it is the recursive part of, whose rows so far are `recurring.name`."""

    def with_member(self, name: str, *, recurring: bool = False) -> _Scope:
        found = {fold(name, "duckdb", quoted=True)}
        return _Scope(self.members | found, self.recurring | found if recurring else self.recurring)

    def has(self, path: Sequence[str]) -> bool:
        """Return whether a name in FROM is a member's; `a.b` is not the name of a member that is called "a.b"."""
        *before, name = (fold(part, "duckdb", quoted=True) for part in path)
        return name in self.members if not before else before == ["recurring"] and name in self.recurring


class StatementReader:
    """Reads the queries of one source.

    Args:
        connection: of the reader's own; it only parses and describes.
        views: gives the SQL of a view whose author is not known to be us, None of other relations.
        owned: whether nobody else makes functions on the instance.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        catalog: Catalog,
        functions: FunctionCatalog,
        views: Callable[[Relation], str | None] = lambda _: None,
        *,
        owned: bool = True,
    ) -> None:
        self._connection, self.catalog, self.functions, self._views = connection, catalog, functions, views
        self._owned = owned
        self._known_views: dict[str, str | None] = {}

    def read(self, text: str, allowed: frozenset[str] = frozenset()) -> Statement:
        """Return the one query that a text holds, checked; `allowed` are functions that the user vouches for."""
        check_length(text)
        tree = self.parse(text)
        self._name_subqueries(tree)
        check = _Check(self, text, allowed)
        check.query(tree["node"], _Scope())
        check.has_text = check.has_text and (not self._describe_nothing(tree) or trees.has_text(tree))
        sql = written = self.write(tree)
        seen = self.shown(tree, written)
        if self._write_branches(tree):
            sql = self.write(tree)
        if check.methods:
            for node in check.methods:  # `x.lower()` is `lower(x)`
                *before, name = node["qualified_name"]["path"]
                named = {**trees.column(*before), "query_location": node["query_location"]}
                node["arguments"].insert(0, {"name": "", "expression": named})
                node["qualified_name"]["path"], node["schema"], node["catalog"] = [name], "", ""
            sql = self.write(tree)
        relations = tuple(dict.fromkeys(relation.name for _, relation in check.tables))
        parameters = tuple(dict.fromkeys(check.parameters))
        return Statement(text, sql, seen, check.has_text, relations, parameters, self.lookups(tree), tree)

    def _write_branches(self, tree: Node) -> bool:
        """Write `if(c, f(a), b)` as the CASE that it is, which asks only for the branch that a row takes."""
        calls = [node for node in trees.walk(tree) if node.get("class") == "FUNCTION" and node["function_name"] == "if"]
        branches = [call for call in calls if len(call["arguments"]) == 3 and trees.has_text(call)]
        for call in branches:
            made = self.parse("SELECT CASE WHEN a THEN b ELSE c END")["node"]["select_list"][0]
            condition, taken, other = (argument["expression"] for argument in call["arguments"])
            made["case_checks"][0] |= {"when_expr": condition, "then_expr": taken}
            made["else_expr"] = other
            trees.replace_expression(call, made)
        return bool(branches)

    def _describe_nothing(self, tree: Node) -> bool:
        """Let DESCRIBE describe queries in which NULL stands for each text function: it shows no value of them."""
        shown = [node for node in trees.walk(tree) if node.get("show_type") == "DESCRIBE" and trees.has_text(node)]
        for item in shown:
            written, query = item["query"], trees.copy_node(item["query"])
            try:
                names = [name for name, _ in self.describe(self.shown(trees.statement(query)), ())]
                for call in [node for node in trees.walk(query) if trees.is_text_call(node)]:
                    kind = DECLARED[str(call["function_name"]).lower()].type
                    trees.replace_expression(call, self.parse(f"SELECT CAST(NULL AS {kind})")["node"]["select_list"][0])
                item["query"] = trees.select_all(
                    {**trees.subquery(query, "described"), "column_name_alias": unique_names(names)}
                )
                self.describe(self.shown(tree), ())
            except QueryError:  # it has parameters, or reads an answer as a type that it takes from what is beside it
                item["query"] = written
                return False
        return bool(shown)

    def lookups(self, tree: Node) -> tuple[tuple[str, str], ...]:
        """Return the marks of pivots in a placed tree, each with the query of its values."""
        return tuple((mark, self.shown(query)) for mark, query in trees.lookups(tree, self.parse))

    def shown(self, tree: Node, sql: str = "") -> str:
        """Return the SQL of a placed tree whose relations have the columns that may be read."""
        narrowed = {r.location: r for r in self.catalog.relations if r.is_narrowed}
        if not narrowed:
            return sql or self.write(tree)
        copied = trees.copy_node(tree)
        tables = [node for node in trees.walk(copied) if node.get("type") == "BASE_TABLE"]
        for node in tables:
            relation = narrowed.get(tuple(node["qualified_name"]["path"]))
            if relation is not None:
                _narrow(node, relation, self.parse)
        return self.write(copied)

    def _name_subqueries(self, tree: Node) -> None:
        """Give each column that DuckDB calls by a subquery's text that name: no place, and no rule, is to be in it."""
        for node in [node for node in trees.walk(tree) if node.get("type") == "SELECT_NODE"]:
            for item in node["select_list"]:
                if not item["alias"] and any(each.get("type") == "BASE_TABLE" for each in trees.walk(item)):
                    item["alias"] = self.write(trees.statement(trees.select([item], None))).removeprefix("SELECT ")

    def parse(self, text: str) -> Node:
        try:
            ((written,),) = self._ask(parse_select("SELECT json_serialize_sql($1::VARCHAR)"), [text])
        except (duckdb.Error, UnicodeEncodeError) as error:
            raise QuerySyntaxError(f"the query cannot be read: {first_line(error)}") from error
        read: Node = json.loads(written)
        if read["error"] and read["error_message"] == _MULTIPLE and (marked := trees.mark_pivots(text)) != text:
            return self.parse(marked)
        if read["error"]:
            _refuse_unread(read, text)
        statements: list[Node] = read["statements"]
        return single_statement(statements)

    def write(self, tree: Node) -> str:
        whole = json.dumps({"error": False, "statements": [tree]})
        try:
            ((text,),) = self._ask(parse_select("SELECT json_deserialize_sql($1::JSON)"), [whole])
        except duckdb.Error as error:
            raise UnsupportedError(f"DuckDB cannot write this query from its own tree: {first_line(error)}") from error
        return str(text)

    def describe(self, sql: str, parameters: Parameters) -> list[tuple[str, str]]:
        try:
            return self._describe(sql, parameters)
        except QueryTypeError as error:
            if "collat" not in str(error).lower():
                raise
        return self.describe_texts(sql, parameters)

    def describe_texts(self, sql: str, parameters: Parameters) -> list[tuple[str, str]]:
        """Describe a query whose text functions give texts, and not NULL, which takes any type."""
        stub_texts(self._connection, "NULL::VARCHAR")
        try:
            return self._describe(sql, parameters)
        finally:
            stub_texts(self._connection)

    def _describe(self, sql: str, parameters: Parameters) -> list[tuple[str, str]]:
        described = sql.replace(f"{WORK_SCHEMA}.", "temp.main.")
        try:
            if parameters:
                return [(str(row[0]), str(row[1])) for row in self._ask(f"DESCRIBE {described}", parameters)]
            bound = self._connection.sql(parse_select(described))  # which runs nothing; DESCRIBE would bind it twice
            return list(zip(bound.columns, map(str, bound.types), strict=True))
        except duckdb.Error as error:
            if not parameters or not isinstance(error, duckdb.BinderException):
                raise binding_error(error) from error
        return self._describe(self.with_literals(described, parameters), ())  # `GROUP BY f(x, ?)` of `f(x, ?)`

    def with_literals(self, sql: str, parameters: Parameters) -> str:
        named = parameters if isinstance(parameters, Mapping) else {str(i + 1): v for i, v in enumerate(parameters)}
        tree = self.parse(sql)
        for node in [node for node in trees.walk(tree) if node.get("class") == "PARAMETER"]:
            made = self.parse(f"SELECT {literal(named[str(node['identifier'])]).sql('duckdb')}")
            trees.replace_expression(node, made["node"]["select_list"][0])
        return self.write(tree)

    def stand_in(self, name: str, columns: Sequence[tuple[str, str]]) -> None:
        """Let queries that are described name the table of a part, which stands empty."""
        listed = ", ".join(f"{quote(column)} {_TEXTS.get(kind, kind)}" for column, kind in columns)
        self._ask(f"CREATE OR REPLACE TEMP TABLE {quote(name)} ({listed})")

    def order_settings(self) -> tuple[str, str]:
        """Return what ORDER BY means where a query does not say: the order of NULLs, and the direction."""
        read = "SELECT upper(current_setting('default_null_order')), upper(current_setting('default_order'))"
        ((nulls, direction),) = self._ask(read)
        return str(nulls), str(direction)

    def type_names(self) -> dict[str, str]:
        return dict(self._ask("SELECT upper(type_name), logical_type FROM duckdb_types() WHERE internal"))

    def _ask(self, sql: str | duckdb.Statement, parameters: Parameters = ()) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(sql, parameters).fetchall()
        except duckdb.OutOfMemoryException as error:  # of the machine, not of the query: it may be asked again
            raise OperationalError(f"there is no memory to read the query: {first_line(error)}") from error

    def is_own_type(self, name: str) -> bool:
        """Return whether a type was made in the database: one that is an ENUM has its values without any row."""
        made = "SELECT 1 FROM duckdb_types() WHERE NOT internal AND lower(type_name) = lower($1)"
        return bool(self._ask(made, [name]))

    def functions_with(self, name: str) -> FunctionCatalog:
        """Return the functions of the instance, read again where none is of a name: one may have been made since."""
        if not self._owned and not self.functions.has(name):
            self.functions = FunctionCatalog.read(self._connection, owned=False)
        return self.functions

    def view(self, relation: Relation) -> str | None:
        """Return the SQL of a view that has to be looked at before it is read."""
        if relation.name not in self._known_views:
            self._known_views[relation.name] = self._views(relation)
        return self._known_views[relation.name]


def stub_texts(connection: duckdb.DuckDBPyConnection, text: str = "NULL") -> None:
    """Let macros stand for the text functions where DuckDB only binds: a text is NULL, which takes any type."""
    for declared in DECLARED.values():
        value = text if declared.type == "text" else f"NULL::{declared.type}"
        least, most = declared.arguments
        bodies = []
        for count in range(least, most + 1):
            arguments = [f"a{i}" for i in range(count)]
            bodies.append(f"({', '.join(arguments)}) AS CASE WHEN {arguments[0]} IS NULL THEN {value} ELSE {value} END")
        connection.execute(f"CREATE OR REPLACE TEMP MACRO {declared.name}{', '.join(bodies)}")


@dataclass
class _Check:
    reader: StatementReader
    text: str
    allowed: frozenset[str]
    tables: list[tuple[Node, Relation]] = field(default_factory=list)
    parameters: list[str] = field(default_factory=list)
    methods: list[Node] = field(default_factory=list)
    """Calls that are written as methods, `x.lower()`."""
    has_text: bool = False
    expanding: tuple[str, ...] = ()
    _views_seen: set[str] = field(default_factory=set)
    _in_view: bool = False

    def query(self, node: Node, scope: _Scope) -> None:
        if node["type"] not in _QUERIES:
            what = str(node["type"]).removesuffix("_NODE").removesuffix("_QUERY").replace("_", " ")
            raise RefusedQueryError(f"only a query that reads may run here, and this one holds {what}")
        for member in node.get("cte_map", {}).get("map", ()):
            body, inside = member["value"], scope
            inner = body.get("query_node") or body.get("query", {}).get("node")
            if inner is None:
                raise UnsupportedError(f"the member {member['key']!r} of WITH cannot be read")
            if inner["type"] == "RECURSIVE_CTE_NODE":
                inside = scope.with_member(member["key"], recurring=True)
            self.query(inner, inside)
            self._parts([part for key, part in body.items() if key not in ("query_node", "query")], scope)
            scope = scope.with_member(member["key"])
        if node["type"] == "RECURSIVE_CTE_NODE" and node.get("cte_name"):
            scope = scope.with_member(node["cte_name"], recurring=True)
        self._parts([part for key, part in node.items() if key != "cte_map"], scope)

    def _parts(self, value: Any, scope: _Scope) -> None:
        if isinstance(value, list):
            for item in value:
                self._parts(item, scope)
        elif isinstance(value, dict):
            self._node(value, scope)

    def _node(self, node: Node, scope: _Scope) -> None:
        kind = node.get("type")
        if "class" in node:
            self._expression(node, scope)
        elif not isinstance(kind, str):  # a list of entries, a value, options of a sample
            self._parts(list(node.values()), scope)
        elif kind in _QUERIES or kind.endswith("_NODE"):
            self.query(node, scope)
        elif kind in _ITEMS:
            self._item(node, scope)
        elif kind in _MODIFIERS or kind in _ORDERS:
            self._parts(list(node.values()), scope)
        else:
            raise RefusedQueryError(f"{kind.replace('_', ' ')} is not allowed in a query")

    def _item(self, node: Node, scope: _Scope) -> None:
        kind = node["type"]
        if kind == "BASE_TABLE":
            self._table(node, scope)
        elif kind == "SHOW_REF" and node["show_type"] not in _SHOWN:
            raise RefusedQueryError(
                "of the statements that show settings and objects only DESCRIBE and SUMMARIZE run here"
            )
        elif kind == "TABLE_FUNCTION":
            self._function(node["function"], in_from=True)
            self._parts(node["function"]["arguments"], scope)
            self._parts(node.get("sample"), scope)
            return
        self._parts([part for key, part in node.items() if key not in ("type", "qualified_name")], scope)

    def _expression(self, node: Node, scope: _Scope) -> None:
        kind = node["class"]
        if kind not in _EXPRESSIONS:
            raise RefusedQueryError(f"{str(kind).replace('_', ' ')} is not allowed in a query")
        if kind in ("FUNCTION", "WINDOW"):
            self._function(node)
        elif kind == "LAMBDA" and trees.has_text(node["expr"]):  # else it is the arrow of JSON
            raise UnsupportedError(
                "text functions inside a lambda or a list comprehension are not supported: unnest the list, and ask "
                "about its elements in rows of their own"
            )
        elif kind == "TYPE" and self.reader.catalog.is_partial and self.reader.is_own_type(str(node["type_name"])):
            message = f"the type {node['type_name']} may tell the values of a private column; leave it out"
            raise PrivateColumnError(message, **_place(node, self.text, len(node["type_name"])))
        elif kind == "PARAMETER":
            self.parameters.append(str(node["identifier"]))
        self._parts([part for key, part in node.items() if key not in ("qualified_name", "literal", "value")], scope)

    def _table(self, node: Node, scope: _Scope) -> None:
        path = node["qualified_name"]["path"]
        name = ".".join(path)
        if scope.has(path):
            return
        catalog = self.reader.catalog
        relation = catalog.find(name)
        if relation is None:
            raise UnknownNameError(catalog.unknown(name), **_place(node, self.text, len(name)))
        if confused := catalog.confused(relation):
            raise UnsupportedError(confused)
        if node.get("at_clause"):
            raise UnsupportedError("AT (VERSION | TIMESTAMP …) is not supported: tables are read as they are")
        _put_place(node, relation, path[-1])
        self.tables.append((node, relation))
        self._view(relation)

    def _view(self, relation: Relation) -> None:
        definition = self.reader.view(relation) if relation.name not in self._views_seen else None
        self._views_seen.add(relation.name)
        if definition is not None:
            state: dict[str, Any] = {"expanding": self.expanding, "_views_seen": self._views_seen, "_in_view": True}
            inner = _Check(self.reader, definition, self.allowed, **state)
            inner.check_definition(f"the view {relation.name!r} cannot be read here")

    def check_definition(self, refusal: str) -> None:
        """Check the text of a view or a macro; raise RefusedQueryError, which begins so, where it may not run."""
        try:
            self.query(self.reader.parse(self.text)["node"], _Scope())
        except (RefusedQueryError, UnknownNameError, UnsupportedError, QuerySyntaxError) as error:
            raise RefusedQueryError(f"{refusal}: {error}") from error

    def _function(self, node: Node, *, in_from: bool = False) -> None:
        path = node["qualified_name"]["path"]
        name = path[-1]
        if len(path) > 1:
            places = {part.lower() for relation in self.reader.catalog.relations for part in relation.location[:-1]}
            if in_from or path[0].lower() in places | _SYSTEM_SCHEMAS:
                raise RefusedQueryError(f"call {name}() without the name of a schema", **_place(node, self.text, 0))
            self.methods.append(node)
        if name.lower() in TEXT_FUNCTIONS and not in_from and not self._in_view:
            self.has_text = True
            check_arity(name, len(node["arguments"]) + (len(path) > 1), **_place(node, self.text, len(name)))
            if node["class"] == "WINDOW":
                message = f"{name}() is no window function: it reads one document of each row"
                raise UnsupportedError(message, **_place(node, self.text, len(name)))
            return
        if in_from and self._in_view and name.lower() in READERS:
            return
        self.reader.functions_with(name).check(
            name,
            in_from=in_from,
            allowed=self.allowed,
            expand=lambda entry: self._macro(name, entry),
            **_place(node, self.text, len(name)),
        )

    def _macro(self, name: str, entry: Function) -> None:
        if name.lower() in self.expanding:
            return
        text = entry.definition if entry.kind == "table_macro" else f"SELECT {entry.definition}"
        inner = _Check(self.reader, text, self.allowed, expanding=(*self.expanding, name.lower()))
        inner.check_definition(f"the macro {name!r} of the database is not called here")
        if any(relation.is_narrowed or any(c.private for c in relation.columns) for _, relation in inner.tables):
            raise RefusedQueryError(f"the macro {name!r} of the database reads columns that are private")


def _refuse_unread(read: Node, text: str) -> NoReturn:
    message = str(read["error_message"])
    if message == _MULTIPLE:
        kinds = ", ".join(dict.fromkeys(str(s.type.name) for s in duckdb.extract_statements(text)))
        raise refuse_kind(kinds)
    position = str(read.get("position"))
    place = {"start": int(position), "end": int(position)} if position.isdigit() else {}
    raise QuerySyntaxError(message.splitlines()[0] + clause_meant(text, place.get("start")), query=text, **place)


def _place(node: Node, text: str, length: int) -> dict[str, Any]:
    start = node.get("query_location", _NO_PLACE)
    if start >= _NO_PLACE:
        start = node.get("function", {}).get("query_location", _NO_PLACE) if "function" in node else _NO_PLACE
    if start >= _NO_PLACE or start >= len(text.encode()):
        return {}
    start = len(text.encode()[:start].decode(errors="ignore"))
    return {"query": text, "start": start, "end": start + max(length, 1) - 1}


def _put_place(node: Node, relation: Relation, called: str) -> None:
    """Write where a relation is; columns may still be named after what the query calls it."""
    node["qualified_name"]["path"] = list(relation.location)
    places = ["", "", *relation.location][-3:]
    node["catalog_name"], node["schema_name"], node["table_name"] = places
    if not node["alias"] and called.lower() != relation.location[-1].lower():
        node["alias"] = called


def _narrow(node: Node, relation: Relation, parse: Callable[[str], Node]) -> None:
    inner = {**node, "alias": "", "sample": None, "column_name_alias": []}
    if relation.definition:
        inner = parse(f"SELECT * FROM ({relation.definition}) AS part")["node"]["from_table"]
    query = trees.select([trees.column(each.name) for each in relation.columns if each.name != ROW_COLUMN], inner)
    same = ("sample", "column_name_alias", "query_location", "query_location_length")  # of places, where it has one
    kept = {key: node[key] for key in same if key in node}
    made = {**trees.subquery(query, node["alias"] or node["table_name"]), **kept}
    node.clear()
    node.update(made)
