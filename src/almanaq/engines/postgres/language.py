"""PostgreSQL's SQL as the compiler needs it: statements checked, trees that say the same, names of results."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from almanaq.engines.postgres.functions import FunctionCatalog
from almanaq.engines.postgres.rewriting import rewrite
from almanaq.engines.postgres.statements import (
    PLACES,
    StatementReader,
    Tree,
    copy_tree,
    enum_name,
    is_text_call,
    names_of,
    parse,
    parser,
    select_alone,
    walk,
    write,
)
from almanaq.engines.rendering import write_for_postgres
from almanaq.errors import DatabaseError, QueryTypeError, UnsupportedError
from almanaq.suql.catalog.relations import Catalog
from almanaq.suql.language import Parameters, SplitStatement, Statement
from almanaq.suql.names import MISREAD
from almanaq.suql.syntax.nodes import nodes_of
from almanaq.suql.text_functions import DECLARED
from almanaq.text.sql_literals import is_plain, quote

# --- trees in the shape that the compiler reads -----------------------------------------------------------------------

_DEFAULTS = {"SORTBY_ASC": "SORTBY_DEFAULT"}
_NEGATED: Mapping[tuple[str, ...], tuple[str, str]] = {
    ("AEXPR_IN", "<>"): ("AEXPR_IN", "="),
    **{("AEXPR_OP", f"!{operator}"): ("AEXPR_OP", operator) for operator in ("~", "~*", "~~", "~~*")},
    ("AEXPR_NOT_BETWEEN", "NOT BETWEEN"): ("AEXPR_BETWEEN", "BETWEEN"),
    ("AEXPR_NOT_BETWEEN_SYM", "NOT BETWEEN SYMMETRIC"): ("AEXPR_BETWEEN_SYM", "BETWEEN SYMMETRIC"),
}
"""Operators that negate others: `a NOT IN (…)` is `NOT a IN (…)`."""
_OPERATORS = ("AEXPR_LIKE", "AEXPR_ILIKE", "AEXPR_SIMILAR")
"""Words for operators: `a LIKE b` is `a ~~ b`."""
_TYPES = {
    **{"int": "int4", "integer": "int4", "bigint": "int8", "smallint": "int2", "decimal": "numeric", "real": "float4"},
    **{"boolean": "bool", "character varying": "varchar", "float": "float8", "double precision": "float8"},
}


def normalize(node: Tree) -> Any:
    """Return the form of a tree: tuples of names and parts, without where they are written."""
    kind = node.DESCRIPTOR.name
    if kind == "Node":
        which = node.WhichOneof("node")
        return normalize(getattr(node, which)) if which is not None else None
    own = _FORMS.get(kind)
    made = own(node) if own is not None else None
    return made if made is not None else _plain(node)


def _plain(node: Tree, without: frozenset[str] = frozenset()) -> Any:
    parts: list[Any] = [node.DESCRIPTOR.name]
    for descriptor, value in node.ListFields():
        if descriptor.name in PLACES or descriptor.name in without:
            continue
        if descriptor.message_type is not None:
            form = tuple(map(normalize, value)) if descriptor.is_repeated else normalize(value)
        elif descriptor.enum_type is not None:
            name = descriptor.enum_type.values_by_number[value].name
            form = _DEFAULTS.get(name, name)
        else:
            form = value
        parts.append((descriptor.name, form))
    return tuple(parts)


def _function(node: Tree) -> Any:
    """A function of the grammar's, `extract(…)`, is one of pg_catalog's; so is one that is written as such."""
    path = names_of(node.funcname)
    name = path[-1].lower() if len(path) == 1 or path[0] == "pg_catalog" else ".".join(path)
    return ("FuncCall", name, *_plain(node, frozenset(["funcname", "funcformat"]))[1:])


def _type(node: Tree) -> Any:
    path = names_of(node.names)
    name = path[-1].lower() if len(path) == 1 or path[0] == "pg_catalog" else ".".join(path)
    return ("TypeName", _TYPES.get(name, name), *_plain(node, frozenset(["names"]))[1:])


def _expression(node: Tree) -> Any:
    path = names_of(node.name)
    if path[:1] == ("pg_catalog",):
        path = path[1:]
    path = ("<>",) if path == ("!=",) else path
    kind = enum_name(node, "kind")
    kind = "AEXPR_OP" if kind in _OPERATORS else kind
    plain = _NEGATED.get((kind, *path))
    if plain is not None:
        kind, path = plain[0], plain[1:]
    made = ("A_Expr", path, kind, *_plain(node, frozenset(["name", "kind"]))[1:])
    return made if plain is None else ("BoolExpr", "NOT_EXPR", (made,))


def _test(node: Tree) -> Any:
    """`x IS NOT TRUE` is `NOT x IS TRUE`, `x IS UNKNOWN` is `x IS NULL`."""
    kind = enum_name(node, "booltesttype")
    if kind.endswith("UNKNOWN"):
        tested = kind.replace("UNKNOWN", "NULL")
        return ("NullTest", ("arg", normalize(node.arg)), ("nulltesttype", tested))
    made = ("BooleanTest", kind.replace("IS_NOT_", "IS_"), normalize(node.arg))
    return ("BoolExpr", "NOT_EXPR", (made,)) if kind.startswith("IS_NOT_") else made


def _float(node: Tree) -> Any:
    return ("Float", f"0{node.fval}" if node.fval.startswith(".") else node.fval)


def _sort(node: Tree) -> Any:
    """NULLs come last ascending and first descending, unless it is said otherwise."""
    nulls, descending = enum_name(node, "sortby_nulls"), enum_name(node, "sortby_dir") == "SORTBY_DESC"
    if nulls == "SORTBY_NULLS_DEFAULT" and not node.use_op:
        nulls = "SORTBY_NULLS_FIRST" if descending else "SORTBY_NULLS_LAST"
    return ("SortBy", descending, nulls, *_plain(node, frozenset(["sortby_dir", "sortby_nulls"]))[1:])


def _window(node: Tree) -> Any:
    """A frame `ROWS n PRECEDING` is one BETWEEN (16, in the parser's options) that and the current row."""
    return ("WindowDef", node.frame_options | 16, *_plain(node, frozenset(["frame_options"]))[1:])


def _bool(node: Tree) -> Any:
    """AND and OR take any number of arguments, however they are nested."""
    operator = enum_name(node, "boolop")
    arguments: list[Any] = []
    for argument in node.args:
        form = normalize(argument)
        same = operator != "NOT_EXPR" and isinstance(form, tuple) and form[:2] == ("BoolExpr", operator)
        arguments += form[2] if same else [form]
    return ("BoolExpr", operator, tuple(arguments))


_FORMS = {
    "FuncCall": _function,
    "TypeName": _type,
    "A_Expr": _expression,
    "SortBy": _sort,
    "BoolExpr": _bool,
    "BooleanTest": _test,
    "Float": _float,
    "WindowDef": _window,
}


# --- the language -----------------------------------------------------------------------------------------------------

_APART = "almanaq_apart_"
_OF_CONDITIONS = ("bool_and", "bool_or", "every")
_OPERANDS = {
    **{"A_Expr": ("lexpr", "rexpr"), "BoolExpr": ("args",), "BooleanTest": ("arg",), "CaseExpr": ("arg",)},
    **{"CaseWhen": ("expr",), "FuncCall": ("agg_filter",), "JoinExpr": ("quals",)},
    "SelectStmt": ("where_clause", "having_clause"),
}
"""Where a text call, or a text, takes its type from what stands beside it."""


class PostgresLanguage:
    """What PostgreSQL makes of a text; `describe` gives the names of a result's columns, and runs nothing."""

    dialect = "postgres"
    binds_texts = False

    def __init__(
        self,
        catalog: Catalog,
        functions: Callable[[], FunctionCatalog],
        describe: Callable[[str, Parameters], tuple[str, ...]],
    ) -> None:
        self._reader = StatementReader(catalog, functions)
        self._describe = describe

    @property
    def aggregates(self) -> frozenset[str]:
        return self._reader.functions.aggregates

    @property
    def returns(self) -> Mapping[str, str]:
        return self._reader.functions.returns

    def read(self, text: str, allowed: frozenset[str] = frozenset()) -> Statement:
        return self._reader.read(text, allowed)

    def tree(self, statement: Statement, width: int) -> exp.Expr:  # noqa: ARG002
        given = parse(statement.sql)
        named = {node.name for node in walk(given) if node.DESCRIPTOR.name == "ResTarget"}
        for node in walk(given):
            _refuse_clauses(node)
            column = names_of(node.fields)[-1] if node.DESCRIPTOR.name == "ColumnRef" else ""
            if column in _SYSTEM_COLUMNS and column not in named:
                raise UnsupportedError(f"the system column {column} is not supported beside text functions")
        rewrite(given, self._reader.functions.columns, self._reader.relations.get)
        tree = _read_same(given)
        if tree is None:
            changed = copy_tree(given)
            kept = keep_as_written(changed)
            tree = _read_same(changed)
            if tree is not None:
                _put_back(tree, kept)
            if tree is None or normalize(parse(tree.sql("postgres", comments=False))) != normalize(given):
                raise UnsupportedError(f"not supported beside text functions: {_find_unread(given)}")
        return tree

    def split(self, statement: Statement, prefix: str, parameters: Parameters = ()) -> Iterable[SplitStatement]:  # noqa: ARG002
        """Return nothing: a statement that is not planned whole is refused by name."""
        return ()

    def check_types(self, tree: exp.Query) -> None:
        try:
            self._describe(write_for_postgres(tree).sql("postgres", comments=False), ())
        except QueryTypeError:
            raise
        except (SqlglotError, DatabaseError, *MISREAD):
            return

    def names(self, statement: Statement, parameters: Parameters = ()) -> tuple[str, ...]:
        efforts = (0, 1, 2) if statement.has_text else (0, 1)
        for effort in efforts[:-1]:
            try:
                return self._describe(_stub(statement.shown, effort), parameters)
            except DatabaseError:
                continue
        return self._describe(_stub(statement.shown, efforts[-1]), parameters)


_KEPT = "almanaq_kept_"
_PLANNED = ("unnest",)
_UNSUPPORTED = {
    **{"CTESearchClause": "SEARCH and CYCLE are", "CTECycleClause": "SEARCH and CYCLE are"},
    **{"RangeTableSample": "TABLESAMPLE is"},
}
_SYSTEM_COLUMNS = ("ctid", "tableoid", "xmin", "xmax", "cmin", "cmax")
_EXPRESSION = re.compile(
    r"(?!join|range|com)\w+_(expr|call|cast|link|indirection|function|test|const|clause|constructor)"
)


def _refuse_clauses(node: Tree) -> None:
    kind = node.DESCRIPTOR.name
    what = _UNSUPPORTED.get(kind, "")
    if kind == "SortBy" and node.use_op:
        what = "ORDER BY … USING (write ASC or DESC) is"
    elif kind == "RangeFunction" and node.is_rowsfrom:
        what = "ROWS FROM is"
    elif kind == "JoinExpr" and node.HasField("join_using_alias"):
        what = f"JOIN … USING (…) AS {node.join_using_alias.aliasname} is"
    if what:
        raise UnsupportedError(f"{what} not supported beside text functions")


def _read_same(given: Tree) -> exp.Expr | None:
    """Return sqlglot's tree where it says the same as PostgreSQL's, else None."""
    reader = Dialect.get_or_raise("postgres")
    reader.INDEX_OFFSET = 0
    try:
        tree = _read(reader, given)
        for bracket in nodes_of(tree, exp.Bracket):
            bracket.set("offset", 1)  # subscripts stay as they are written
        made = parse(tree.sql("postgres", comments=False))
    except (SqlglotError, *MISREAD, DatabaseError):
        return None
    return tree if normalize(given) == normalize(made) else None


def _is_read(part: Tree) -> bool:
    return _read_same(select_alone(part)) is not None


def keep_as_written(given: Tree) -> Mapping[str, Tree]:
    """Put a call of its own name for each call and operator that sqlglot would write as another; return these."""
    kept: dict[str, Tree] = {}
    pb = parser().pg_query_pb2
    for part in reversed(list(walk(given, wrapped=True))):  # those within another before it
        call, operation = part.func_call, part.a_expr
        is_call = part.HasField("func_call") and not is_text_call(call) and names_of(call.funcname)[-1] not in _PLANNED
        is_operation = part.HasField("a_expr") and operation.kind == pb.AEXPR_OP
        if not (is_call or is_operation) or _is_read(part):
            continue
        name = f"{_KEPT}{len(kept)}"
        kept[name] = copy_tree(part.func_call if is_call else part.a_expr)
        if is_operation:
            operands = [getattr(operation, side) for side in ("lexpr", "rexpr") if operation.HasField(side)]
            part.func_call.CopyFrom(pb.FuncCall(args=operands))
        del part.func_call.funcname[:]
        part.func_call.funcname.add().string.sval = name
        part.func_call.funcformat = pb.COERCE_EXPLICIT_CALL
    return kept


def _put_back(tree: exp.Expr, kept: Mapping[str, Tree]) -> None:
    for call in list(nodes_of(tree, exp.Anonymous)):
        node = kept.get(call.name)
        if node is None:
            continue
        if node.DESCRIPTOR.name == "FuncCall":
            path = names_of(node.funcname)
            call.set("this", path[-1] if is_plain(path[-1]) else exp.to_identifier(path[-1], quoted=True))
            if len(path) > 1:
                placed = call.replace(exp.Dot(this=exp.to_identifier(path[0], quoted=True), expression=exp.null()))
                placed.set("expression", call)
            continue
        path = names_of(node.name)
        operator = ".".join([*map(quote, path[:-1]), path[-1]])
        *left, right = [exp.paren(operand, copy=False) for operand in call.expressions]
        made = exp.Operator(this=left[0] if left else exp.Var(this=""), operator=operator, expression=right)
        call.replace(exp.paren(made, copy=False))


def _find_unread(given: Tree) -> str:
    """Return the SQL of the smallest expression that is not read, or which clause is not."""
    for part in reversed(list(walk(given, wrapped=True))):
        if _EXPRESSION.fullmatch(part.WhichOneof("node") or "") and not _is_read(part):
            return write(select_alone(part)).removeprefix("SELECT ")
    return "a clause of the query"


def _read(reader: Dialect, given: Tree) -> exp.Expr:
    """Return sqlglot's tree; what it would misread is read alone: expressions in grouping sets, `(a = b) IS NULL`."""
    given = copy_tree(given)
    apart: dict[str, Tree] = {}
    for node in walk(given):
        for item in _find_misread(node):
            name = f"{_APART}{len(apart)}"
            apart[name] = select_alone(item)
            item.ClearField(item.WhichOneof("node"))
            item.column_ref.fields.add().string.sval = name
    text = write(given)
    tree = reader.parser().parse(reader.tokenize(text), text)[0]
    assert tree is not None
    for escaped in nodes_of(tree, exp.ByteString):  # `E'a\\b'`, which sqlglot writes as another text
        escaped.replace(exp.Literal.string(escaped.name))
    for column in nodes_of(tree, exp.Column) if apart else ():
        if column.name in apart:
            made = _read(reader, apart[column.name]).expressions[0]
            column.replace(exp.paren(made, copy=False) if isinstance(column.parent, exp.Is) else made)
    return tree


def _find_misread(node: Tree) -> list[Tree]:
    """Return the operands of a part of a tree that sqlglot does not read as such."""
    kind = node.DESCRIPTOR.name
    if kind == "GroupingSet":
        return [i for i in node.content if i.WhichOneof("node") not in ("column_ref", "grouping_set", "row_expr")]
    # `(a = b) IS NULL` is written without parentheses.
    tested = kind in ("BooleanTest", "NullTest") and node.arg.WhichOneof("node") == "a_expr"
    return [node.arg] if tested else []


def _stub(text: str, effort: int) -> str:
    """Return a query with a subquery for each text call, which has its name and mentions its arguments.

    Args:
        effort: 1 writes NULL of no type for calls and texts that are operands or conditions: `answer(…) >= 0` compares
            no texts, and a text compared with an ENUM may be none of its values; 2 mentions no arguments, either.
    """
    tree = parse(text)
    if effort:
        for node in walk(tree):
            for item in _operands(node):
                kind = item.WhichOneof("node")
                is_text = kind == "a_const" and item.a_const.HasField("sval")
                if is_text or (kind == "func_call" and is_text_call(item.func_call)):
                    item.ClearField(kind)
                    item.a_const.isnull = True
    for part in reversed(list(walk(tree, wrapped=True))):  # those within a call before it
        if part.WhichOneof("node") == "func_call" and is_text_call(part.func_call):
            _put_null(part, mentions=effort < 2)
    return write(tree)


def _operands(node: Tree) -> list[Tree]:
    found: list[Tree] = []
    if node.DESCRIPTOR.name == "FuncCall" and names_of(node.funcname)[-1] in _OF_CONDITIONS:
        found += node.args
    for name in _OPERANDS.get(node.DESCRIPTOR.name, ()):
        value = getattr(node, name)
        repeated = node.DESCRIPTOR.fields_by_name[name].is_repeated
        found += value if repeated else [value] if node.HasField(name) else []
    return [part for item in found for part in (item.list.items if item.WhichOneof("node") == "list" else [item])]


def _put_null(item: Tree, *, mentions: bool) -> None:
    """`answer(x, 'q')` becomes `(SELECT NULL::text AS answer WHERE x IS NULL AND 'q' IS NULL)`."""
    call = item.func_call
    name = names_of(call.funcname)[0]
    kind = "text" if DECLARED[name.lower()].type == "text" else "float8"
    mentioned = (*call.args, *call.args[:1]) if mentions else ()  # AND takes two at least
    where = f" WHERE {' AND '.join(['NULL IS NULL'] * len(mentioned))}" if mentioned else ""
    made = parse(f"SELECT (SELECT NULL::{kind} AS {quote(name)}{where})").target_list[0].res_target.val
    tests = made.sub_link.subselect.select_stmt.where_clause.bool_expr.args
    for test, argument in zip(tests, mentioned, strict=True):
        test.null_test.arg.CopyFrom(argument)
    item.CopyFrom(made)
