"""DuckDB's SQL as the compiler needs it: statements checked, trees that say the same, names of results."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import duckdb
from sqlglot import ErrorLevel, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from almanaq.bounded_dict import BoundedDict
from almanaq.engines.duckdb import trees
from almanaq.engines.duckdb.answer_tables import Parts
from almanaq.engines.duckdb.functions import FunctionCatalog
from almanaq.engines.duckdb.statements import StatementReader, stub_texts
from almanaq.engines.duckdb.taking_apart import take_apart
from almanaq.engines.duckdb.trees import Node
from almanaq.errors import DatabaseError, UnsupportedError, first_line
from almanaq.suql.catalog.relations import Catalog, Relation
from almanaq.suql.language import Parameters, SplitStatement, Statement, parameters_of
from almanaq.suql.names import MISREAD
from almanaq.suql.syntax.nodes import copy_tree, nodes_of
from almanaq.suql.text_functions import DECLARED

_PLACES = frozenset(["query_location", "query_location_length", "is_implicit"])
_CALL: Mapping[str, Any] = {
    **{"class": "FUNCTION", "type": "FUNCTION", "schema": "", "catalog": "", "filter": None, "distinct": False},
    **{"order_bys": {"type": "ORDER_MODIFIER", "orders": []}, "is_operator": False, "export_state": False},
}
_FORM: Mapping[str, Any] = {"comments": False, "normalize_functions": "lower", "unsupported_level": ErrorLevel.RAISE}
"""How sqlglot is to write a tree: as DuckDB does."""
_MISTYPED = re.compile("No function matches|No matching|Cannot (mix|compare) values")
_STATEMENTS_KEPT = 200
_NOT_SHOWN = (None, "COLUMN_REF", "CONSTANT", "TYPE")
_SAME = {"count_star": "count", "power": "pow", "**": "pow", "^": "pow"}
"""Functions that DuckDB's parser or sqlglot's printer calls otherwise."""


class DuckDBLanguage:
    """What DuckDB makes of a text.

    Args:
        connect: opens a connection that only parses and describes.
        views: gives the SQL of a view whose author is not known to be us.
    """

    dialect = "duckdb"
    binds_texts = True

    def __init__(
        self,
        connect: Callable[[], duckdb.DuckDBPyConnection],
        catalog: Catalog,
        views: Callable[[Relation], str | None],
        *,
        owned: bool,
    ) -> None:
        self._connect, self._catalog, self._views, self._owned = connect, catalog, views, owned
        self._lock = threading.Lock()
        self._statements = BoundedDict[tuple[str, frozenset[str]], Statement](_STATEMENTS_KEPT)
        self._forms: _Normalizer | None = None
        self._opened: StatementReader | None = None
        self._settings: tuple[str, str] | None = None

    def read(self, text: str, allowed: frozenset[str] = frozenset()) -> Statement:
        with self._lock:
            known = self._statements.get((text, allowed))
            if known is None:
                known = self._reader().read(text, allowed)
                self._statements[text, allowed] = known
            return known

    @property
    def aggregates(self) -> frozenset[str]:
        with self._lock:
            return self._reader().functions.aggregates

    @property
    def returns(self) -> Mapping[str, str]:
        with self._lock:
            return self._reader().functions.returns

    def tree(self, statement: Statement, width: int) -> exp.Expr:
        with self._lock:
            reader, given = self._reader(), statement.tree
            ordered = trees.copy_node(given)
            trees.number_order(ordered, width)
            trees.write_null_order(ordered, *self._order_settings())
            trees.number_groups(ordered, reader.functions.aggregates)
            trees.write_numbers(ordered)
            trees.flatten_joins(ordered)
            called = trees.functions_in(node for node in trees.walk(ordered) if node.get("class") == "FUNCTION")
            own = called & reader.functions.own_names - DECLARED.keys()
            if trees.needs_split(ordered) or own:  # a macro of the database's own may aggregate
                raise UnsupportedError("a part of the query is not planned beside text functions")
            sql = statement.sql if ordered == given else reader.write(ordered)
        try:
            tree = _parse_written(sql)
            written = copy_tree(tree).sql("duckdb", copy=False, **_FORM)
        except SqlglotError as error:
            raise UnsupportedError(f"the query cannot be planned beside text functions: {first_line(error)}") from error
        except MISREAD as error:
            raise UnsupportedError("a form of the query is not supported beside text functions") from error
        if written != sql:  # the same text is the same query
            self._check_same(ordered, sql, written)
        return tree

    def _check_same(self, ordered: Node, sql: str, written: str) -> None:
        """Raise UnsupportedError where what sqlglot read is another query than what it wrote of it, to DuckDB."""
        with self._lock:
            reader = self._reader()
            forms = self._forms = self._forms or _Normalizer(reader.functions.synonyms, reader.type_names())
            made = forms.form(reader.parse(written))
            same = forms.form(ordered) == made
            given = made if same else forms.form(reader.parse(sql))  # a tree is not always read back as it was
        if given != made:
            part = _find_difference(given, made)
            with self._lock:
                shown = reader.write(trees.statement(trees.select([part], None))) if part else "a part of the query"
            raise UnsupportedError(f"not supported beside text functions: {shown.removeprefix('SELECT ')}")

    def split(self, statement: Statement, prefix: str, parameters: Parameters = ()) -> Iterator[SplitStatement]:
        """Yield a statement taken apart where it is not planned whole: first so that a LIMIT stops it, if one may."""
        if prefix.count("part_") > 1:
            return
        if "alias" in trees.functions_in(trees.walk(statement.tree)):
            raise UnsupportedError("alias() tells how a query is written: it is not supported beside text functions")
        for stops in (True, False):
            with self._lock:
                reader = self._reader()
                tree = trees.copy_node(statement.tree)
                trees.write_null_order(tree, *self._order_settings())
                trees.number_groups(tree, reader.functions.aggregates)
                parts = Parts(reader, statement, prefix, parameters)
                made, cited = take_apart(tree, parts, stops=stops)
                used, sql = parts.parameters_in(made), reader.shown(made)
                split = SplitStatement(tuple(parts.made), sql, used, reader.lookups(made), cited)
            yield split
            if not parts.kept:
                return

    def names(self, statement: Statement, parameters: Parameters = ()) -> tuple[str, ...]:
        with self._lock:
            bound = parameters_of(statement.parameters, parameters)
            return tuple(name for name, _ in self._reader().describe(statement.shown, bound))

    def check_types(self, tree: exp.Query) -> None:
        try:
            with self._lock:
                self._reader().describe(tree.sql("duckdb", copy=False, **_FORM), ())
        except (SqlglotError, DatabaseError, *MISREAD) as error:
            if _MISTYPED.match(str(error)):
                raise

    def _order_settings(self) -> tuple[str, str]:
        if self._settings is None or not self._owned:  # those of an instance of our own are locked
            self._settings = self._reader().order_settings()
        return self._settings

    def _reader(self) -> StatementReader:
        if self._opened is None:
            connection = self._connect()
            stub_texts(connection)
            functions = FunctionCatalog.read(connection, owned=self._owned)
            self._opened = StatementReader(connection, self._catalog, functions, self._views, owned=self._owned)
        return self._opened


# --- what DuckDB writes of a tree, read by sqlglot


def _parse_written(sql: str) -> exp.Expr:
    """Return sqlglot's tree; DuckDB writes every lambda in parentheses, without which sqlglot reads them.

    They are left out of the tokens: no class can inherit from a parser of sqlglot's compiled form.
    """
    dialect = Dialect.get_or_raise("duckdb")
    tokens: list[Token] = []
    opened: list[bool] = []
    written = dialect.tokenize(sql)
    for token, after in zip(written, [*written[1:], None], strict=True):
        left_out = False
        if token.token_type is TokenType.L_PAREN:
            left_out = after is not None and after.token_type is TokenType.VAR and after.text.upper() == "LAMBDA"
            opened.append(left_out)
        elif token.token_type is TokenType.R_PAREN and opened:
            left_out = opened.pop()
        if not left_out:
            tokens.append(token)
    (tree,) = dialect.parser().parse(tokens, sql)
    assert tree is not None
    for node in nodes_of(tree, exp.IgnoreNulls):
        if isinstance(node.this, exp.AnyValue):  # what DuckDB's any_value does by itself
            node.replace(node.this)
    return tree


# --- trees that say the same


def _uncast(node: dict[str, Any]) -> dict[str, Any]:
    boolean = node.get("class") == "CAST" and node["type_expr"].get("type_name") == "BOOLEAN"
    return node["child"] if boolean else node


class _Normalizer:
    """Trees of DuckDB in one form for each of the forms that say the same, without where their parts are written."""

    def __init__(self, synonyms: Mapping[str, str], types: Mapping[str, str]) -> None:
        self._synonyms, self._types = {**synonyms, **_SAME}, types

    def form(self, node: Any) -> Any:
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
            made |= {"type": "OPERATOR_NOT", "children": [{**made, "type": "OPERATOR_IS_NULL", "alias": ""}]}
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
            made["children"] = [trees.without_places(trees.integer(18)), trees.without_places(trees.integer(3))]
        made["qualified_name"] = {"path": [made["type_name"]]}

    @staticmethod
    def _join(made: dict[str, Any]) -> None:
        condition = made.get("condition") or {}
        always = condition.get("class") == "CONSTANT" and condition.get("literal", {}).get("text") == "true"
        if made.get("ref_type") in ("CROSS", "REGULAR") and (always or made.get("condition") is None):
            if not made.get("using_columns") and made.get("join_type") in (None, "INNER"):
                made |= {"condition": None, "ref_type": "CROSS", "join_type": "INNER"}


def _find_difference(given: Any, made: Any) -> Node | None:
    """Return the smallest expression of a tree that is otherwise in another, and more than a column or a constant."""
    if isinstance(given, dict) and isinstance(made, dict):
        key = next((key for key in given if given[key] != made.get(key)), "")
        inner = _find_difference(given.get(key), made.get(key))
        return given if inner is None and given.get("class") not in _NOT_SHOWN else inner
    if isinstance(given, list) and isinstance(made, list) and len(given) == len(made):
        return next(
            (_find_difference(one, other) for one, other in zip(given, made, strict=True) if one != other), None
        )
    return None
