"""A query in another dialect of SQL → the same in the engine's; what cannot be carried over is refused, never dropped.

sqlglot reads and writes. It knows what many functions, types and operators are called elsewhere, and passes on what it
does not know as it is: the engine then says that it has no such function. What it is known to lose is counted here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TypeVar

import sqlglot
from sqlglot import ErrorLevel, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify
from sqlglot.tokenizer_core import TokenType

from almanaq.errors import ParameterError, QuerySyntaxError, UnsupportedError, UsageError, first_line, suggest
from almanaq.suql.catalog.relations import Catalog, schema_of
from almanaq.suql.names import MISREAD
from almanaq.suql.syntax.limits import as_query, check_length, check_tokens, single_statement
from almanaq.suql.text_functions import is_text_call
from almanaq.suql.tree_language import name_placeholders, read_dialect

_LONG = {"postgresql": "postgres", "pg": "postgres", "sparksql": "spark"}
_WHOLE = exp.DataType.INTEGER_TYPES
_UNKNOWN = (exp.DType.UNKNOWN, exp.DType.NULL)
_TRUNCATING = frozenset(["clickhouse", "databricks", "hive", "spark", "spark2", "sqlite", "tsql"])
"""Dialects in which a cast to a whole number leaves the fraction out."""
_ROUNDING = frozenset(["duckdb", "postgres"])
_ROW_IDS = frozenset(["rowid", "_rowid_", "oid"])
E = TypeVar("E", bound=exp.Expr)
_NUMBERED = frozenset(["duckdb", "postgres"])
"""Dialects of engines that call a parameter by its number, `$1`."""
_CLAUSES = (
    *("with_", "distinct", "joins", "laterals", "where", "group", "having", "qualify", "windows", "order", "limit"),
    *("offset", "sample", "locks", "into", "match", "connect", "prewhere", "cluster", "sort", "distribute", "settings"),
    *("format", "operation_modifiers", "kind", "pivots", "by_name", "exclude"),
)
_COUNTED = (exp.Select, exp.SetOperation, exp.Join, exp.Ordered, exp.Window, exp.Filter, exp.CTE, exp.TableSample)
_PARTS: Mapping[type[exp.Expr], tuple[str, ...]] = {
    exp.Distinct: ("on",),
    exp.Group: ("rollup", "cube", "grouping_sets", "totals", "all"),
    exp.Join: ("side", "method", "on", "using"),
    exp.Limit: ("expressions",),
    exp.LimitOptions: ("with_ties", "percent"),
    exp.Ordered: ("desc",),
    exp.Table: ("only", "version", "when", "ordinality"),
    exp.TableSample: ("percent", "rows", "size", "seed"),
    exp.Unnest: ("offset",),
    exp.WindowSpec: ("exclude",),
    exp.With: ("recursive", "search"),
}
"""Parts of clauses that generators are known to leave out silently."""


def transpile(text: str, read: str, write: str, catalog: Catalog) -> str:
    """Return a query of one dialect in another.

    >>> transpile("SELECT to_char(day, 'YYYY') FROM t LIMIT $1", "postgres", "duckdb", Catalog(()))
    "SELECT STRFTIME(day, '%Y') FROM t LIMIT $1"
    """
    check_length(text)
    tree = _parse(text, read)
    for hint in list(tree.find_all(exp.Hint)):
        hint.pop()  # targets of accuracy are read from the text; others change no row
    _check_divisions(tree, read, write, catalog)
    _truncate_casts(tree, read, write, catalog)
    if read == "sqlite":
        _write_sqlite(tree, write, catalog)
    before = Counter(_contents(tree))
    for placeholder in list(tree.find_all(exp.Placeholder, exp.Parameter)):
        name = placeholder.name
        name = name.removeprefix("_") if name[1:].isdigit() else name  # a `?` is called `_1` now
        if write in _NUMBERED:
            placeholder.replace(exp.Parameter(this=exp.Literal.number(name) if name.isdigit() else exp.var(name)))
        else:
            placeholder.replace(exp.Placeholder(this=f"_{name}" if name.isdigit() else name))
    try:
        written = tree.sql(write, comments=False, normalize_functions=False, unsupported_level=ErrorLevel.RAISE)
        made = sqlglot.parse_one(written, read=write)
    except (SqlglotError, *MISREAD) as error:
        raise _not_carried(read, write, first_line(error)) from error
    lost = before - Counter(_contents(made))
    if lost:
        raise _not_carried(read, write, f"{' and '.join(sorted(lost)[:3])} would be lost")
    return written


def dialect_named(name: str) -> str:
    """Return sqlglot's name of a dialect; raise UsageError where there is none.

    >>> dialect_named("PostgreSQL")
    'postgres'
    """
    known = sorted(each for each in Dialect.classes if each)
    called = name.strip().lower()
    called = _LONG.get(called, called)
    if called not in known:
        raise UsageError(f"dialect: {name!r} is unknown{suggest(called, known)}")
    return called


def _not_carried(read: str, write: str, what: str) -> UnsupportedError:
    return UnsupportedError(
        f"the query cannot be carried over from {read} to {write}: {what}; write it in the dialect of the source"
    )


def _parse(text: str, reader: str) -> exp.Query:
    dialect = read_dialect(reader)
    try:
        tokens = dialect.tokenize(text)
        check_tokens(tokens)
        named = list(name_placeholders(tokens))
        if len(named) > len(tokens) and any(token.token_type == TokenType.PARAMETER for token in tokens):
            raise ParameterError("a query has either ? or numbered parameters, not both")
        trees = dialect.parser(error_level=ErrorLevel.RAISE).parse(named, text)
    except SqlglotError as error:
        said = first_line(error).partition(" but got <Token")[0]
        raise QuerySyntaxError(f"the query is no {reader}: {said}", query=text) from error
    return as_query(single_statement([tree for tree in trees if tree is not None]))


def _check_divisions(tree: exp.Expr, reader: str, write: str, catalog: Catalog) -> None:
    """Tell divisions the types of what they divide; refuse those that dialects do otherwise where these are unknown."""
    if Dialect.get_or_raise(reader).TYPED_DIVISION == Dialect.get_or_raise(write).TYPED_DIVISION:
        return
    for division, known in reversed(_with_types(tree, exp.Div, reader, catalog)):  # those within others first
        kinds: list[exp.DType] = []
        for side in ("left", "right"):
            kind = getattr(known, side).type
            if kind is None or kind.this in _UNKNOWN:
                what = division.sql(reader)
                raise _not_carried(
                    reader, write, f"of {what} it is not known whether whole numbers are divided: cast one to say it"
                )
            getattr(division, side).type = kind
            kinds.append(kind.this)
        if _WHOLE.issuperset(kinds) and Dialect.get_or_raise(reader).TYPED_DIVISION and write == "duckdb":
            division.replace(exp.IntDiv(this=division.left.copy(), expression=division.right.copy()))


def _with_types(tree: exp.Expr, kind: type[E], reader: str, catalog: Catalog) -> list[tuple[E, E]]:
    """Return the nodes of a kind, each with one whose parts have types as far as they are known."""
    found = list(tree.find_all(kind))
    if not found:
        return []
    try:
        schema = schema_of(catalog.relations, reader)
        bound = annotate_types(qualify(tree.copy(), schema=schema, dialect=reader), schema=schema)
        typed = list(bound.find_all(kind))
    except (SqlglotError, *MISREAD):
        typed = []
    return list(zip(found, typed if len(typed) == len(found) else found, strict=True))


def _truncate_casts(tree: exp.Expr, reader: str, write: str, catalog: Catalog) -> None:
    """Write `CAST(x AS INTEGER)` as `CAST(TRUNC(x) AS INTEGER)` where the engine would round."""
    if reader not in _TRUNCATING or write not in _ROUNDING:
        return
    for cast, known in reversed(_with_types(tree, exp.Cast, reader, catalog)):
        if cast.to.this not in _WHOLE:
            continue
        if reader == "sqlite":
            cast.set("to", exp.DataType.build("bigint"))
        value, kind = cast.this, known.this.type.this if known.this.type is not None else None
        if is_text_call(value.unnest()) or isinstance(value, exp.Boolean) or kind in (*_WHOLE, exp.DType.BOOLEAN):
            continue
        if kind in exp.DataType.TEXT_TYPES:
            value = type(cast)(this=value.copy(), to=exp.DataType.build("decimal(38, 10)"))
        cast.set("this", exp.func("trunc", value.copy()))


def _write_sqlite(tree: exp.Expr, write: str, catalog: Catalog) -> None:
    """Write what SQLite alone means otherwise: LIKE in any case of letters, IS of values, max() of one row."""
    columns = {c.name.lower() for relation in catalog.relations for c in relation.columns}
    columns |= {alias.alias.lower() for alias in tree.find_all(exp.Alias)}
    for node in list(tree.walk()):
        if isinstance(node, exp.Column) and node.name.lower() in _ROW_IDS - columns:
            raise _not_carried("sqlite", write, f"{node.name} is another number there: name the key")
        if isinstance(node, exp.Date) and node.args.get("zone") is not None:
            raise _not_carried("sqlite", write, f"date() with the modifier {node.args['zone'].sql('sqlite')}")
        if isinstance(node, exp.Format):  # of its own kind elsewhere
            node.replace(exp.Anonymous(this="printf", expressions=[node.this, *node.expressions]))
        elif type(node) is exp.Like:
            node.replace(exp.ILike(**node.args))
        elif isinstance(node, exp.Is) and not isinstance(node.expression, exp.Null | exp.Boolean):
            node.replace(exp.NullSafeEQ(this=node.this, expression=node.expression))
        elif isinstance(node, exp.Max | exp.Min) and node.expressions:
            values = [node.this, *node.expressions]
            unknown = exp.or_(*(value.is_(exp.null()) for value in values))
            kind = exp.Greatest if isinstance(node, exp.Max) else exp.Least
            known = kind(this=node.this, expressions=node.expressions, ignore_nulls=True)
            node.replace(exp.Case(ifs=[exp.If(this=unknown, true=exp.null())], default=known))


def _contents(tree: exp.Expr) -> Iterator[str]:
    for node in tree.walk():
        if isinstance(node, exp.Query):
            yield from (name.strip("_").upper() for name in _CLAUSES if node.args.get(name))
        if isinstance(node, _COUNTED):
            yield node.key.upper()
        parts = _PARTS.get(type(node), ())
        yield from (f"{node.key} {name}".replace("_", " ").upper() for name in parts if node.args.get(name))
        if isinstance(node, exp.Join) and node.kind in ("SEMI", "ANTI"):
            yield f"{node.kind} JOIN"
        if isinstance(node, exp.Table | exp.Column) and not isinstance(node.this, exp.Star | exp.Func):
            yield f"{node.key} {node.name.lower()}"
        elif is_text_call(node):
            yield f"{node.name.lower()}()"
        elif isinstance(node, exp.Placeholder | exp.Parameter):
            yield "a parameter"
