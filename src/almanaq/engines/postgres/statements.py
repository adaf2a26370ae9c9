"""PostgreSQL's own syntax tree of a query: read, checked and placed; what runs is written from it, never the text.

The tree is that of PostgreSQL's parser, which postgast holds; no server is asked. What is written of it is read once
more, and has to be the same tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from almanaq.engines.postgres.functions import SYSTEM, TELLS_OF_COLUMNS, FunctionCatalog, Operator
from almanaq.errors import (
    MissingExtraError,
    ParameterError,
    PrivateColumnError,
    QuerySyntaxError,
    RefusedQueryError,
    UnknownNameError,
    UnsupportedError,
    first_line,
)
from almanaq.suql.catalog.relations import ROW_COLUMN, Catalog, Relation
from almanaq.suql.language import Parameters, Statement
from almanaq.suql.syntax.limits import DEEPEST, check_length, clause_meant, refuse_kind, single_statement
from almanaq.suql.text_functions import TEXT_FUNCTIONS, check_arity
from almanaq.text.sql_literals import quote

Tree = Any
"""A message of PostgreSQL's tree; each has the name of a struct of its parser."""

_ALLOWED = frozenset(
    """
    A_ArrayExpr A_Const A_Expr A_Indices A_Indirection A_Star Alias BitString BoolExpr Boolean BooleanTest
    CTECycleClause CTESearchClause CaseExpr CaseWhen CoalesceExpr
    CollateClause ColumnDef ColumnRef CommonTableExpr Float FuncCall
    GroupingFunc GroupingSet Integer JoinExpr JsonAggConstructor JsonArgument JsonArrayAgg JsonArrayConstructor
    JsonArrayQueryConstructor JsonBehavior JsonFormat JsonFuncExpr JsonIsPredicate JsonKeyValue JsonObjectAgg
    JsonObjectConstructor JsonOutput JsonParseExpr JsonReturning JsonScalarExpr JsonSerializeExpr JsonTable
    JsonTableColumn JsonTablePathSpec JsonValueExpr List MinMaxExpr NamedArgExpr NullTest ParamRef RangeFunction
    RangeSubselect RangeTableFunc RangeTableFuncCol RangeTableSample RangeVar ResTarget RowExpr SQLValueFunction
    SelectStmt SortBy String SubLink TypeCast TypeName WindowDef WithClause XmlExpr XmlSerialize
    """.split()
)
"""What a query that reads is made of."""
_VALUES = ("NULL_P", "TRUE_P", "FALSE_P", "END_P", "CURRENT_DATE", "CURRENT_TIMESTAMP", "CURRENT_TIME", "LOCALTIME")
"""Reserved words after which a sign is an operator."""
_BEFORE_VALUES = ("BETWEEN", "BY", "BY_P", "ESCAPE", "LIKE", "ILIKE", "ROWS", "RANGE", "GROUPS", "FIRST_P", "NEXT")
"""Words that are not reserved, and that a value follows all the same."""
_PLANNED = ("unnest", "generate_series")
_SAMPLES = ("system", "bernoulli")
PLACES = frozenset(["location", "list_start", "list_end", "rexpr_list_start", "rexpr_list_end"])
"""Fields that tell where a part of a tree is written."""
_JSON_OPERATORS = ("?", "?|", "?&", "@?")


def parser() -> Any:
    """Return the module postgast; raises MissingExtraError where it is not installed."""
    try:
        import postgast
    except ImportError as error:
        raise MissingExtraError("postgast", "postgres", "PostgreSQL's SQL") from error
    return postgast


def parse(text: str) -> Tree:
    try:
        statements = parser().parse(text).stmts
    except parser().PgQueryError as error:
        start = max(0, int(getattr(error, "cursorpos", 0) or 0) - 1)
        if start >= len(text.rstrip()):  # the end is where something is missing: behind the last word
            start = len(text.rstrip()) - len(text.split()[-1]) if text.split() else start
        place: dict[str, Any] = {"query": text, "start": start, "end": start} if start < len(text) else {}
        meant = clause_meant(text, place.get("start"))
        raise QuerySyntaxError(f"not a query: {first_line(error)}{meant}", **place) from error
    except (ValueError, UnicodeEncodeError) as error:
        raise QuerySyntaxError(f"the query cannot be read: {first_line(error)}") from error
    statement = single_statement(statements).stmt
    kind = statement.WhichOneof("node")
    if kind != "select_stmt":
        raise refuse_kind(str(kind).removesuffix("_stmt").replace("_", " ").upper())
    return statement.select_stmt


def write(select: Tree) -> str:
    """Return the SQL of a tree; raises UnsupportedError where it would be read as another."""
    postgast = parser()
    whole = postgast.pg_query_pb2.ParseResult()
    whole.stmts.add().stmt.select_stmt.CopyFrom(select)
    try:
        text: str = postgast.deparse(whole)
        again = postgast.parse(text).stmts
    except (postgast.PgQueryError, ValueError) as error:
        raise UnsupportedError(f"the query cannot be written from its own tree: {first_line(error)}") from error
    if len(again) != 1 or not same(again[0].stmt.select_stmt, select):
        raise UnsupportedError("a part of the query cannot be written from its own tree")
    return text


def children(node: Tree) -> Iterator[Tree]:
    for descriptor, value in node.ListFields():
        if descriptor.message_type is not None:
            if descriptor.is_repeated:
                yield from value
            else:
                yield value


def walk(node: Tree, *, wrapped: bool = False) -> Iterator[Tree]:
    """Yield a tree and all its parts, each before what it is made of; `wrapped`: those that wrap one of any kind."""
    pending = [node]
    while pending:
        at = pending.pop()
        if (at.DESCRIPTOR.name == "Node") is wrapped:
            yield at
        pending += reversed(list(children(at)))


def same(one: Tree, other: Tree) -> bool:
    """Return whether two trees are the same but for where their parts are written."""
    bare = [copy_tree(one), copy_tree(other)]
    for node in (node for tree in bare for node in walk(tree)):
        for name in PLACES.intersection(node.DESCRIPTOR.fields_by_name):
            node.ClearField(name)
    return bool(bare[0] == bare[1])


def copy_tree(tree: Tree) -> Tree:
    copied = type(tree)()
    copied.CopyFrom(tree)
    return copied


def number_placeholders(text: str) -> str:
    """Return a text with `$1`, `$2`, … for each `?` that stands where a value goes, rather than between two values."""
    if "?" not in text:
        return text
    postgast = parser()
    try:
        tokens = postgast.scan(text).tokens
    except (postgast.PgQueryError, ValueError, UnicodeEncodeError):
        return text  # whoever parses it says what is wrong
    source, made, end, count, after_value = text.encode(), b"", 0, 0, False
    names = postgast.pg_query_pb2.Token.DESCRIPTOR.values_by_number
    reserved = postgast.pg_query_pb2.RESERVED_KEYWORD
    for token in tokens:
        written, kind = source[token.start : token.end].decode(), names[token.token].name
        if kind == "SQL_COMMENT" or kind == "C_COMMENT":
            continue
        value = not after_value and written.startswith("?")
        bound = after_value and written.endswith("?") and written not in _JSON_OPERATORS
        if value or bound:
            count += 1
            at = token.start if value else token.end - 1
            made += source[end:at] + f" ${count} ".encode()
            end = at + 1
            after_value = bound or len(written) == 1
        else:
            ends = written in (")", "]") or kind in ("IDENT", "UIDENT", "PARAM") or kind.endswith("CONST")
            named = written[:1].isalpha() and token.keyword_kind != reserved and kind not in _BEFORE_VALUES
            after_value = ends or named or kind in _VALUES
    return (made + source[end:]).decode()


def bind(connection: Any, text: str, parameters: Parameters) -> str:
    """Return a text with the values of its parameters `$1`, `$2`, …, as the driver writes them for a connection."""
    if not parameters:
        return text
    from psycopg import ProgrammingError
    from psycopg.adapt import Transformer

    values = [*parameters.values()] if isinstance(parameters, Mapping) else [*parameters]
    postgast, transformer = parser(), Transformer(connection)
    source, made, end = text.encode(), b"", 0
    for token in postgast.scan(text).tokens:
        if token.token == postgast.pg_query_pb2.PARAM:
            value = values[int(source[token.start + 1 : token.end]) - 1]
            try:
                written = bytes(transformer.as_literal(value))
            except (ProgrammingError, ValueError) as error:
                raise ParameterError(f"a parameter of type {type(value).__name__}: {first_line(error)}") from error
            made += source[end : token.start] + b" " + written + b" "
            end = token.end
    return (made + source[end:]).decode()


def select_alone(expression: Tree) -> Tree:
    """Return the query of an expression."""
    alone = parse("SELECT 1")
    alone.target_list[0].res_target.val.CopyFrom(expression)
    return alone


def enum_name(node: Tree, field: str) -> str:
    return str(node.DESCRIPTOR.fields_by_name[field].enum_type.values_by_number[getattr(node, field)].name)


def names_of(parts: Sequence[Tree]) -> tuple[str, ...]:
    """Return the name that a list of texts makes, with what qualifies it."""
    return tuple(part.string.sval for part in parts)


def is_text_call(node: Tree) -> bool:
    if node.DESCRIPTOR.name != "FuncCall":
        return False
    path = names_of(node.funcname)
    return len(path) == 1 and path[0].lower() in TEXT_FUNCTIONS


class StatementReader:
    def __init__(self, catalog: Catalog, functions: Callable[[], FunctionCatalog]) -> None:
        self.catalog, self._functions = catalog, functions
        self.guarded = catalog.is_partial or catalog.has_private
        """Whether the reader may not see all: what the system tells of all columns is then not asked."""
        self.relations: dict[tuple[str, ...], Relation] = {}
        """The relations by their names: PostgreSQL tells names from others by their case."""
        for relation in (*catalog.unlisted, *catalog.relations):
            self.relations[relation.location] = relation
            if relation.name == relation.location[-1]:
                self.relations[relation.location[-1:]] = relation

    @property
    def functions(self) -> FunctionCatalog:
        return self._functions()

    def read(self, text: str, allowed: frozenset[str] = frozenset()) -> Statement:
        """Return the one query that a text holds, checked; the user vouches for the `allowed` functions."""
        check_length(text)
        numbered = number_placeholders(text)
        tree = parse(numbered)
        check = _Check(self, numbered, allowed)
        check.query(tree, frozenset())
        check.settle_operators()
        if check.has_text and check.gives_rows:
            raise UnsupportedError(
                f"{check.gives_rows}() gives rows, and does not stand beside answer(): write it into FROM"
            )
        try:
            sql = write(tree)
        except UnsupportedError as error:
            raise UnsupportedError(str(error), **check.find_unwritten(tree)) from error
        partly = self.functions.partly_readable if check.tables else ()
        narrowed = [(item, r) for item, r in check.tables if r.is_narrowed or r.location in partly]
        for item, relation in narrowed:
            _narrow(item, relation)
        shown = write(tree) if narrowed else sql
        relations = tuple(dict.fromkeys(relation.name for _, relation in check.tables))
        return Statement(text, sql, shown, check.has_text, relations, tuple(dict.fromkeys(check.parameters)))


def computes(body: str, functions: FunctionCatalog) -> bool:
    """Return whether a body in SQL is one SELECT of its arguments that a query could be made of itself."""
    reader = StatementReader(Catalog(()), lambda: functions)
    try:
        tree = parse(body.strip())
        check = _Check(reader, body, frozenset(), strict=True)
        check.query(tree, frozenset())
        check.settle_operators()
    except (RefusedQueryError, UnknownNameError, UnsupportedError, QuerySyntaxError):
        return False
    return True


@dataclass
class _Check:
    """One walk over a tree: refuses what no query may do, and writes where each relation is.

    Attributes:
        strict: whether nothing may be called but what the system has and calls immutable or stable.
        gives_rows: the name of a function that gives rows outside of FROM, which the planner does not know.
    """

    reader: StatementReader
    text: str
    allowed: frozenset[str]
    strict: bool = False
    tables: list[tuple[Tree, Relation]] = field(default_factory=list)
    parameters: list[str] = field(default_factory=list)
    has_text: bool = False
    depth: int = 0
    _operators: list[tuple[Any, tuple[str, ...]]] = field(default_factory=list)
    _types: set[str] = field(default_factory=set)
    _calls_others: bool = False
    _in_from: set[int] = field(default_factory=set)
    gives_rows: str = ""

    def query(self, select: Tree, members: frozenset[str]) -> None:
        if select.HasField("into_clause"):
            raise RefusedQueryError("only a query that reads may run here; INTO makes a table")
        if select.locking_clause:
            raise RefusedQueryError("only a query that reads may run here; FOR UPDATE and FOR SHARE lock rows")
        if select.HasField("with_clause"):
            members = self._members(select.with_clause, members)
        for part in children(select):
            if part.DESCRIPTOR.name != "WithClause":
                self._part(part, members)

    def _members(self, with_: Tree, members: frozenset[str]) -> frozenset[str]:
        ctes = [node.common_table_expr for node in with_.ctes]
        if with_.recursive:
            members |= {cte.ctename for cte in ctes}
        for cte in ctes:
            if cte.ctequery.WhichOneof("node") != "select_stmt":
                raise RefusedQueryError(
                    f"only a query that reads may run here; the member {cte.ctename!r} of WITH writes"
                )
            for part in children(cte):
                self._part(part, members)
            members |= {cte.ctename}
        return members

    def _part(self, node: Tree, members: frozenset[str]) -> None:
        kind = node.DESCRIPTOR.name
        if kind == "Node":
            if node.WhichOneof("node") == "range_var":
                self._relation(node, members)
            for inner in children(node):
                self._part(inner, members)
            return
        if kind not in _ALLOWED:
            raise RefusedQueryError(f"{kind} is not allowed in a query", **self._place(node))
        if kind == "SelectStmt":
            self.depth += 1
            if self.depth > 3 * DEEPEST:
                raise UnsupportedError("the query is too large: its queries lie too deep within each other")
            self.query(node, members)
            self.depth -= 1
            return
        check = getattr(self, f"_{kind.lower()}", None)
        if check is not None:
            check(node)
        for part in children(node):
            self._part(part, members)

    def _relation(self, item: Tree, members: frozenset[str]) -> None:
        node = item.range_var
        if not node.schemaname and node.relname in members:
            return
        path = tuple(part for part in (node.catalogname, node.schemaname, node.relname) if part)
        relation = None if self.strict else self.reader.relations.get(path)
        if relation is not None:
            node.schemaname, node.relname = relation.location
            self.tables.append((item, relation))
        elif (
            not (self.reader.guarded or self.strict or node.catalogname)
            and node.schemaname in ("", *SYSTEM)
            and self.reader.functions.finds_relation(node.schemaname, node.relname)
        ):
            node.schemaname = node.schemaname or "pg_catalog"
        else:
            name = ".".join(path)
            raise UnknownNameError(self.reader.catalog.unknown(name), **self._place(node, len(name)))

    def _funccall(self, node: Tree) -> None:
        path = names_of(node.funcname)
        if is_text_call(node) and not self.strict:
            self.has_text = True
            if node.HasField("over"):
                message = f"{path[0]}() is no window function: it reads one document of each row"
                raise UnsupportedError(message, **self._place(node, len(path[0])))
            if node.agg_star or node.agg_distinct or node.agg_order or node.HasField("agg_filter"):
                raise UnsupportedError(f"{path[0]}() is no aggregate: it reads one document of each row")
            if node.func_variadic or any(argument.HasField("named_arg_expr") for argument in node.args):
                raise UnsupportedError(f"{path[0]}() takes its arguments by their order, without names or VARIADIC")
            check_arity(path[0], len(node.args), **self._place(node, len(path[0])))
            return
        functions = self.reader.functions
        if self.strict and not functions.is_steady(path):
            raise RefusedQueryError(f"{path[-1]}() may do anything")
        if (self.strict or self.reader.guarded) and TELLS_OF_COLUMNS.fullmatch(path[-1]):
            message = f"{path[-1]}() may tell of columns that are private"
            raise PrivateColumnError(message, **self._place(node, len(path[-1])))
        if path[-1] in functions.gives_rows and path[-1] not in _PLANNED and node.location not in self._in_from:
            self.gives_rows = self.gives_rows or path[-1]
        placed = functions.check(path, self.allowed, **self._place(node, len(path[-1])))
        self._calls_others = self._calls_others or not functions.is_steady(path)
        if placed != path:
            _set_names(node.funcname, placed)

    def _rangefunction(self, node: Tree) -> None:
        for part in node.functions:
            called = part.list.items[0]
            if called.WhichOneof("node") == "func_call" and is_text_call(called.func_call):
                name = names_of(called.func_call.funcname)[0]
                message = f"{name}() gives a value, not rows: write it into SELECT or WHERE"
                raise UnsupportedError(message, **self._place(called.func_call, len(name)))
            self._in_from.add(called.func_call.location)

    def _rangetablesample(self, node: Tree) -> None:
        if names_of(node.method)[-1] not in _SAMPLES:
            raise RefusedQueryError(f"TABLESAMPLE takes {' or '.join(_SAMPLES).upper()}")

    def _a_expr(self, node: Tree) -> None:
        path = names_of(node.name)
        kind = enum_name(node, "kind")
        if kind.startswith("AEXPR_BETWEEN"):
            path = ("<=",)
        self._operators.append((node.name if kind in ("AEXPR_OP", "AEXPR_OP_ANY", "AEXPR_OP_ALL") else None, path))

    def _sublink(self, node: Tree) -> None:
        if node.HasField("testexpr"):
            self._operators.append((node.oper_name or None, names_of(node.oper_name) or ("=",)))

    def _sortby(self, node: Tree) -> None:
        if node.use_op:
            self._operators.append((node.use_op, names_of(node.use_op)))

    def _joinexpr(self, node: Tree) -> None:
        if node.using_clause or node.is_natural:
            self._operators.append((None, ("=",)))

    def _caseexpr(self, node: Tree) -> None:
        if node.HasField("arg"):
            self._operators.append((None, ("=",)))

    def settle_operators(self) -> None:
        """Check the operators, once it is known what values the query has; write which are the system's."""
        for written, path in self._operators:
            placed = self.reader.functions.check_operator(path, self.allowed, self._uses)
            if placed == path:
                continue
            if written is None or self.strict:
                raise RefusedQueryError(
                    f"the database has an operator {path[-1]} of its own that may do anything, and it may be meant"
                )
            _set_names(written, placed)

    def _uses(self, operator: Operator) -> bool:
        read = {".".join(relation.location) for _, relation in self.tables}
        met = operator.types & self._types or operator.relations & read
        return bool(not operator.types or self._calls_others or met)

    def _typename(self, node: Tree) -> None:
        if node.pct_type:
            raise RefusedQueryError("name a type, not that of a column (%TYPE)")
        self._types.add(names_of(node.names)[-1])
        self.reader.functions.check_type(names_of(node.names)[-1], **self._place(node))

    def _columnref(self, node: Tree) -> None:
        last = node.fields[-1]
        if len(node.fields) > 1 and last.WhichOneof("node") == "string":
            self.reader.functions.check_field(last.string.sval, self.allowed)

    def _a_indirection(self, node: Tree) -> None:
        for part in node.indirection:
            if part.WhichOneof("node") == "string":
                self.reader.functions.check_field(part.string.sval, self.allowed)

    def _paramref(self, node: Tree) -> None:
        self.parameters.append(str(node.number))

    def find_unwritten(self, tree: Tree) -> Mapping[str, Any]:
        """Return the place of the smallest expression that is written as another."""
        place: Mapping[str, Any] = {}
        for part in walk(tree, wrapped=True):
            if part.HasField("a_expr"):
                try:
                    write(select_alone(part))
                except UnsupportedError:
                    place = self._place(part.a_expr)
        return place

    def _place(self, node: Tree, length: int = 1) -> Mapping[str, Any]:
        """Return where a node is written, for an error: PostgreSQL counts bytes."""
        location = getattr(node, "location", 0)
        start = len(self.text.encode()[:location].decode(errors="ignore"))
        return {"query": self.text, "start": start, "end": start + max(length, 1) - 1}


def _set_names(parts: Any, path: Sequence[str]) -> None:
    del parts[:]
    for name in path:
        parts.add().string.sval = name


def _narrow(item: Tree, relation: Relation) -> None:
    """Put a subquery of the columns that queries may read in the place of a relation in FROM."""
    columns = ", ".join(quote(column.name) for column in relation.columns if column.name != ROW_COLUMN)
    source = f"({relation.definition}) AS part" if relation.definition else "part"
    made = parse(f"SELECT * FROM (SELECT {columns} FROM {source}) AS part").from_clause[0]
    node = made.range_subselect
    if not relation.definition:
        table = node.subquery.select_stmt.from_clause[0].range_var
        table.CopyFrom(item.range_var)
        table.ClearField("alias")
    node.alias.CopyFrom(item.range_var.alias)
    node.alias.aliasname = node.alias.aliasname or relation.location[-1]
    item.CopyFrom(made)
