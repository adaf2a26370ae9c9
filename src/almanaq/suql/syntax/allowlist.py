"""What a query may contain: one SELECT, relations, and functions that only compute.

Every node of the tree is checked by its class, every function by its name as well, against the lists of `functions.py`;
what sqlglot prints as it is by `arguments.py`. What is not listed is refused. The database's connection is read-only
besides; this list keeps errors early and clear, and files, settings, locks and network out.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NoReturn

from sqlglot import exp

from almanaq.errors import QueryTypeError, RefusedQueryError, UnknownNameError, UnsupportedError, suggest
from almanaq.suql.syntax.arguments import check_arguments, check_unit
from almanaq.suql.syntax.functions import CLASSES, WRITTEN, functions_of, is_allowed
from almanaq.suql.syntax.nodes import nodes_of
from almanaq.suql.text_functions import TEXT_FUNCTIONS, is_text_call

ANSWER_TYPES = ("text", "integer", "bigint", "numeric", "double precision", "date", "timestamp", "time", "boolean")
STRUCTURE = frozenset(
    """
    Add Alias Aliases All And Any Anonymous ArrayContainedBy ArrayContainsAll ArrayOverlaps AtTimeZone
    Between BitString BitwiseAnd BitwiseLeftShift BitwiseNot BitwiseOr BitwiseRightShift BitwiseXor Boolean Bracket
    CTE Case Collate Column Cube DPipe DataType DataTypeParam Distinct Div Dot EQ Escape Except Fetch Filter From GT GTE
    Glob Group GroupingSets Having HexString Identifier ILike In Intersect Interval IntervalSpan Is
    JSONBContains JSONBExtract JSONBExtractScalar JSONKeyValue JSONPath JSONPathKey JSONPathRoot JSONPathSubscript
    Join Kwarg LT LTE Lambda Lateral Like Limit LimitOptions Literal Mul NEQ Neg Not Null NullSafeEQ NullSafeNEQ
    ObjectIdentifier Offset Or Order Ordered Overlaps Paren Parameter Qualify RecursiveWithSearch RegexpILike
    Rollup Select SimilarTo Slice Star Sub Subquery Table TableAlias Tuple Union Values Var Where Window WindowSpec With
    WithinGroup
    """.split()
)
"""Classes of nodes that are no calls of functions."""
POSTGRES_ALONE = frozenset(
    """
    Adjacent ColumnDef Distance ExtendsLeft ExtendsRight JSONBContainsAllTopKeys JSONBContainsAnyTopKeys
    JSONBDeleteAtPath JSONBPathExists MatchAgainst Operator ParseJSON Variadic
    """.split()
)
"""Those of them that only PostgreSQL has."""
_SIGNS = {
    **{"Adjacent": "-|-", "Distance": "<->", "ExtendsLeft": "&<", "ExtendsRight": "&>", "JSONBDeleteAtPath": "#-"},
    **{"JSONBContainsAllTopKeys": "?&", "JSONBContainsAnyTopKeys": "?|", "JSONBPathExists": "@?"},
    **{"ColumnDef": "a list of columns with types", "ParseJSON": "json '…'"},
}
_STATEMENT_NAMES = {"Command": "command"}
_NAME = re.compile(r'"?(\w+)"?')


def check_allowed(found: list[exp.Expr], query: str, engine: str | None = None, own: Collection[str] = ()) -> None:
    """Raise QueryError unless a tree is a SELECT made of allowed parts; point at the faulty place.

    Args:
        found: the tree's nodes, the first that of the whole.
        query: the text that the tree was read from.
        engine: the dialect of the engine that is to run it; None takes what any engine may run.
        own: names of functions of the database's own that may be called besides.
    """
    tree = found[0].unnest() if isinstance(found[0], exp.Subquery) else found[0]
    if not isinstance(tree, exp.Query):
        kind = _STATEMENT_NAMES.get(type(tree).__name__, type(tree).__name__.upper())
        raise RefusedQueryError(f"only a SELECT may run here; this is a {kind} statement")
    for node in found:
        _check_node(node, query, engine, own)


def _check_node(node: exp.Expr, query: str, engine: str | None, own: Collection[str]) -> None:
    if isinstance(node, exp.Into | exp.Lock | exp.DML | exp.DDL | exp.Command) and not isinstance(node, exp.Query):
        raise RefusedQueryError(f"only reading is allowed here; {type(node).__name__.upper()} is refused")
    kind = type(node).__name__
    if kind in ("Anonymous", "AnonymousAggFunc"):
        _check_named(node, query, engine, own if kind == "Anonymous" else ())
    elif kind in CLASSES:
        _check_known(node, kind, query, engine)
    elif kind not in STRUCTURE and not (engine in (None, "postgres") and kind in POSTGRES_ALONE):
        _refuse_class(node, query, engine)
    special = _SPECIAL.get(kind)
    if special is not None:
        special(node, query, engine)
    check_arguments(node)


def _check_named(node: exp.Expr, query: str, engine: str | None, own: Collection[str]) -> None:
    """Check a function that sqlglot has no class for."""
    name = node.name
    if isinstance(node.this, exp.Identifier):
        node.set("this", name)  # a quoted name of a function is none of the database's own
    if name.lower() in TEXT_FUNCTIONS or is_allowed(name, engine) or name.lower() in own:
        if name.lower() == "date_trunc" and engine not in (None, "postgres"):
            check_unit(node)
        return
    if is_allowed(name):
        _refuse_here(node, name, query, engine)
    start, end = _position(node, name, query)
    message = f"no function named {name!r}{suggest(name, [*functions_of(engine), *TEXT_FUNCTIONS])}"
    raise UnknownNameError(message, query=query, start=start, end=end)


def _check_known(node: exp.Expr, kind: str, query: str, engine: str | None) -> None:
    """Check a function that sqlglot has a class for, by the name that it was written under where that is known."""
    name = _written_name(node, query)
    if name is not None:
        node.meta[WRITTEN] = name
    if name is not None and name not in CLASSES[kind]:
        _refuse_function(node, name, query, engine)
    names = CLASSES[kind] if name is None else {name}
    if engine is not None and not any(is_allowed(known, engine) for known in names):
        _refuse_here(node, name or min(names), query, engine)


def _refuse_class(node: exp.Expr, query: str, engine: str | None) -> NoReturn:
    if isinstance(node, exp.MatchAgainst):
        raise UnsupportedError(f"full-text search (@@) is not supported on {engine}: use ILIKE, or ~ with a pattern")
    if type(node).__name__ in POSTGRES_ALONE:
        raise UnsupportedError(f"{_sign(node)} is not supported on {engine}: PostgreSQL alone has it")
    if isinstance(node, exp.Func):
        _refuse_function(node, _written_name(node, query) or node.sql_name().lower(), query, engine)
    raise RefusedQueryError(f"{node.key.upper()} is not allowed in a query")


def _sign(node: exp.Expr) -> str:
    """Return an operator as it is written, or the word for what a node is."""
    if isinstance(node, exp.Operator):
        return str(node.args["operator"]).removeprefix("pg_catalog.")
    return _SIGNS.get(type(node).__name__, node.key.upper())


def _refuse_function(node: exp.Expr, name: str, query: str, engine: str | None) -> NoReturn:
    start, end = _position(node, name, query)
    near = suggest(name, [*functions_of(engine), *TEXT_FUNCTIONS])
    raise RefusedQueryError(f"the function {name!r} is not allowed in a query{near}", query=query, start=start, end=end)


def _refuse_here(node: exp.Expr, name: str, query: str, engine: str | None) -> NoReturn:
    start, end = _position(node, name, query)
    message = f"the function {name.lower()!r} is not available on {engine}"
    raise UnsupportedError(message, query=query, start=start, end=end)


def _written_name(node: exp.Expr, query: str) -> str | None:
    """Return the name that a function was written under, in lower case.

    None for an operator and for a keyword's form.
    """
    start, end = node.meta.get("start"), node.meta.get("end")
    if start is None or end is None or end < start or not isinstance(node, exp.Func):
        return None  # one that is written nowhere was put there by `respelling`
    name = _NAME.fullmatch(query[start : end + 1])
    return name[1].lower() if name is not None else query[start : end + 1].lower()


def _check_window(node: exp.Expr, query: str, engine: str | None) -> None:  # noqa: ARG001
    if is_text_call(node.this):
        start, end = _position(node, node.this.name, query)
        message = f"{node.this.name}() is no window function: it reads one document of each row"
        raise QueryTypeError(message, query=query, start=start, end=end)


def _check_cast(node: exp.Expr, query: str, engine: str | None) -> None:  # noqa: ARG001
    if is_text_call(node.this) and node.args["to"].this == exp.DType.USERDEFINED:
        name = node.args["to"].args["kind"].name
        start, end = _position(node, name, query)
        message = f"no type named {name!r} that an answer is read as{suggest(name, ANSWER_TYPES)}"
        raise QueryTypeError(message, query=query, start=start, end=end)


def _check_dot(node: exp.Expr, query: str, engine: str | None) -> None:  # noqa: ARG001
    if isinstance(node.expression, exp.Func):
        raise RefusedQueryError(f"call {node.expression.name or 'the function'} without the name of a schema")


def _check_table(node: exp.Expr, query: str, engine: str | None) -> None:
    """Tables are relations by name: no files; outside of PostgreSQL no functions but unnest and generate_series."""
    known: tuple[type[exp.Expr], ...] = (exp.GenerateSeries, exp.ExplodingGenerateSeries, exp.Unnest)
    text = is_text_call(node.this)
    if isinstance(node.this, exp.Func) and not isinstance(node.this, known) and (text or engine != "postgres"):
        name = node.this.name if isinstance(node.this, exp.Anonymous) else node.this.sql_name()
        start, end = _position(node.this, name, query)
        raise RefusedQueryError(
            f"the table function {name.lower()!r} is not allowed; FROM takes relations, subqueries, unnest and "
            "generate_series",
            query=query,
            start=start,
            end=end,
        )
    if node.args.get("pivots"):
        raise UnsupportedError("PIVOT is not supported: write aggregates with FILTER (WHERE …)")
    if node.args.get("sample"):
        raise UnsupportedError(
            "TABLESAMPLE is not supported, its rows differ from run to run: use ORDER BY random() LIMIT n"
        )


_SPECIAL = {"Table": _check_table, "Window": _check_window, "Cast": _check_cast, "Dot": _check_dot}


def _position(node: exp.Expr, name: str, query: str) -> tuple[int | None, int | None]:
    """Find where a node stands: functions carry no position, so look for their name followed by a parenthesis."""
    for child in nodes_of(node, exp.Identifier):
        if "start" in child.meta and child.name == name:
            return child.meta["start"], child.meta["end"]
    found = re.search(rf"\b{re.escape(name)}\s*\(|::\s*(?P<type>{re.escape(name)})\b", query, re.IGNORECASE)
    start = -1 if found is None else found.start("type") if found["type"] else found.start()
    return (start, start + len(name) - 1) if start >= 0 else (None, None)
