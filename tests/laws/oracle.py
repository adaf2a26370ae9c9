"""The oracle: DuckDB with `answer`, `summary` and `similarity` as plain Python functions, called row by row.

It shares no code with the compiler. A query is text in the PostgreSQL flavour of semantics 7, without parameters.
"""

from __future__ import annotations

import atexit
import functools
import json
import threading
from collections.abc import Callable, Mapping
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import sqlglot
from sqlglot import exp

from almanaq.models.embedders.base import LexicalEmbedder

from .world import GRADES, MEANINGS, TYPES

Row = tuple[Any, ...]
Reply = Callable[[str, str], "str | None"]

TEXT_FUNCTIONS = ("answer", "summary")
NUMBERS = ("int", "num")
ENUM = "grades"
"""The type of grades in the oracle's database, declared in their order."""
MOST_CALLS = 200_000
"""How many calls an evaluation may make: a few relations joined with themselves have 10^12 rows."""
MOST_ROWS = 30_000
"""How many rows an evaluation may give."""
PATIENCE = 60.0
"""Seconds that an evaluation may take."""


class OracleError(Exception):
    """The oracle's database does not run the query."""


class Oracle:
    """Evaluates queries over Arrow tables naively.

    Args:
        tables: relations by name; dictionary columns are ENUMs in the order of their values.
        reply: called with (text, question); `"summary"` is the question of `summary`.
        optimized: with the database's optimizer, whose rewrites err now and then.
        dialect: the engine whose SQL the queries are in; what it means otherwise than DuckDB is written out.

    Attributes:
        asked: every (text, question) that the database asked since `asked.clear()`.
    """

    def __init__(
        self, tables: Mapping[str, pa.Table], reply: Reply, *, optimized: bool = True, dialect: str = "duckdb"
    ) -> None:
        self.asked: set[tuple[str, str]] = set()
        self.dialect = dialect
        self._calls = 0
        self._reply = reply
        self._tables = tuple(tables)
        self._con = _shared().open(self._answer)
        self._con.execute(f"PRAGMA {'enable' if optimized else 'disable'}_optimizer")
        for name, table in tables.items():
            self._con.register("incoming", _without_dictionaries(table))
            ordered = [f.name for f in table.schema if pa.types.is_dictionary(f.type)]
            made = ", ".join(f"{n}::{_enum(table.column(n))} AS {n}" for n in ordered)
            typed = f" REPLACE ({made})" if made else ""
            self._con.execute(f'CREATE OR REPLACE TABLE "{name}" AS SELECT *{typed} FROM incoming')
            self._con.unregister("incoming")

    def rows(self, tree: exp.Expr) -> list[Row]:
        """Return the rows of a query already translated by `translate`."""
        self._calls = 0
        ended = threading.Timer(PATIENCE, self._con.interrupt)
        ended.start()
        try:
            found = self._con.execute(tree.sql(dialect="duckdb")).fetchmany(MOST_ROWS + 1)
        except (duckdb.Error, RuntimeError) as error:
            too_many = f"more than {MOST_CALLS:,} calls" if self._calls > MOST_CALLS else ""
            raise OracleError(too_many or str(error)) from error
        finally:
            ended.cancel()
        if len(found) > MOST_ROWS:
            raise OracleError(f"more than {MOST_ROWS:,} rows")
        return found

    def columns(self, tree: exp.Expr) -> list[tuple[str, str]]:
        """Return the (name, type) of a translated query's columns."""
        try:
            described = self._con.execute("DESCRIBE " + tree.sql(dialect="duckdb")).fetchall()
        except (duckdb.Error, RuntimeError) as error:
            raise OracleError(str(error)) from error
        return [(row[0], row[1]) for row in described]

    def close(self) -> None:
        """Make room for the next oracle."""
        for name in self._tables:
            self._con.execute(f'DROP TABLE "{name}"')
        _shared().close()

    def _answer(self, document: str | None, question: str | None) -> str | None:
        self._calls += 1
        if self._calls > MOST_CALLS:
            raise OverflowError
        text = document_text(document)
        if text is None or question is None:
            return None
        self.asked.add((text, question))
        return self._reply(text, question)


class _Shared:
    """One database for all oracles, one at a time: opening one anew for each query takes longer than the query."""

    def __init__(self) -> None:
        self._current: Callable[[str | None, str | None], str | None] | None = None
        self._con = duckdb.connect(config={"threads": 1, "memory_limit": "2GB", "max_temp_directory_size": "0KB"})
        self._con.execute(f"CREATE TYPE {ENUM} AS ENUM ({', '.join(map(repr, GRADES))})")
        options: dict[str, Any] = {"null_handling": "special"}
        self._con.create_function("oracle_answer", self._answer, ["VARCHAR", "VARCHAR"], "VARCHAR", **options)
        self._con.create_function("oracle_summary", self._summary, ["VARCHAR"], "VARCHAR", **options)
        self._con.create_function("oracle_similarity", similarity, ["VARCHAR", "VARCHAR"], "DOUBLE", **options)
        atexit.register(self._con.close)

    def open(self, answer: Callable[[str | None, str | None], str | None]) -> duckdb.DuckDBPyConnection:
        assert self._current is None, "one oracle at a time: close the other first"
        self._current = answer
        return self._con

    def close(self) -> None:
        self._current = None

    def _answer(self, document: str | None, question: str | None) -> str | None:
        assert self._current is not None
        return self._current(document, question)

    def _summary(self, document: str | None) -> str | None:
        return self._answer(document, "summary")


@functools.cache
def _shared() -> _Shared:
    return _Shared()


def similarity(first: str | None, second: str | None) -> float | None:
    """Return the cosine of two documents' vectors of words, each component a multiple of 1/2048, to six decimals."""
    texts = [document_text(first), document_text(second)]
    if any(text is None for text in texts):
        return None
    a, b = (_vector(text or "") for text in texts)
    lengths = np.sqrt(a @ a) * np.sqrt(b @ b)
    return round(float(a @ b / lengths), 6) if lengths else 0.0


@functools.cache
def _vector(text: str) -> np.ndarray:
    return np.rint(LexicalEmbedder().embed([text])[0].astype(float) * 2048) / 2048


def document_text(document: str | None) -> str | None:
    """Return the text of a document from its JSON: the passages that are not blank, joined by a blank line."""
    value = None if document is None else json.loads(document)
    passages = value if isinstance(value, list) else [value]
    kept = [p for p in passages if p is not None and p.strip()]
    return "\n\n".join(kept) if kept else None


def parse(sql: str, dialect: str = "duckdb") -> exp.Query:
    """Parse a query. DuckDB's own grammar knows every PostgreSQL form used here, and puts NULLs last by default.

    PostgreSQL puts them first where it sorts descending, but for keys that hold a text function (semantics 7).
    """
    tree = sqlglot.parse_one(sql, read="duckdb")
    assert isinstance(tree, exp.Query)
    if dialect == "postgres":
        theirs = sqlglot.parse_one(sql, read="postgres").find_all(exp.Ordered)
        for own, other in zip(list(tree.find_all(exp.Ordered)), theirs, strict=True):
            if other.args.get("nulls_first") and not own.args.get("nulls_first") and not _holds_text(own):
                own.set("nulls_first", True)
    return tree


def _holds_text(key: exp.Ordered) -> bool:
    """Tell whether a key of ORDER BY is a text function, or an output that is one."""
    query = key.find_ancestor(exp.Query)
    outputs = _leftmost(query).selects if query is not None and isinstance(key.parent, exp.Order) else []
    shown = key.this
    if isinstance(shown, exp.Literal) and shown.is_int and key.parent is not None and key.parent.parent is query:
        shown = outputs[int(shown.name) - 1]
    elif isinstance(shown, exp.Column) and not shown.table:
        shown = next((output for output in outputs if output.alias == shown.name), shown)
    return has_text(shown)


def _leftmost(tree: exp.Expr) -> exp.Select:
    while not isinstance(tree, exp.Select):
        tree = tree.this
    return tree


def linked(tree: exp.Query) -> exp.Query:
    """Return the query with the values that a literal means in its place; one that means none equals none."""
    for comparison in _inner_first(tree, exp.EQ, exp.NEQ):
        literal = comparison.expression
        if isinstance(literal, exp.Literal) and literal.is_string and literal.name in MEANINGS:
            values = [exp.Literal.string(value) for value in MEANINGS[literal.name] or (literal.name,)]
            found = exp.In(this=exp.cast(comparison.this.copy(), "text"), expressions=values)
            comparison.replace(exp.not_(found) if isinstance(comparison, exp.NEQ) else found)
    return tree


def translate(tree: exp.Query, dialect: str = "duckdb") -> exp.Query:
    """Return the query for the oracle's database: functions renamed, casts of answers lenient."""
    tree = tree.copy()
    for call in _inner_first(tree, exp.Anonymous):
        if is_text_call(call) and is_condition(call):
            call.replace(_truth(call))
    for node in _inner_first(tree, exp.Unnest, exp.Cast):
        if isinstance(node, exp.Unnest):
            _name_unnested(node)
        elif isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast) and has_text(node.this):
            node.replace(exp.TryCast(this=node.this.copy(), to=node.to.copy()))
    for comparison in _inner_first(tree, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In):
        _type_compared(comparison)
    if dialect == "postgres":
        _mean_as_postgres(tree)
    for call in _inner_first(tree, exp.Anonymous):
        _rename(call)
    for call in _inner_first(tree, exp.Anonymous):
        _compare(call)
    return tree


def is_condition(node: exp.Expr) -> bool:
    """Tell whether PostgreSQL wants a boolean where a node stands."""
    while isinstance(node.parent, exp.Paren):
        node = node.parent
    above = node.parent
    if isinstance(above, exp.If):
        return above.this is node and isinstance(above.parent, exp.Case) and above.parent.this is None
    if isinstance(above, exp.Join):
        return above.args.get("on") is node
    return isinstance(
        above, exp.And | exp.Or | exp.Not | exp.Where | exp.Having | exp.LogicalOr | exp.LogicalAnd
    ) and not isinstance(node, exp.Query)


def _truth(call: exp.Expr) -> exp.Expr:
    """What an answer says as a boolean: true for yes, false for no, and else nothing."""
    said = exp.func("lower", exp.func("trim", call.copy(), exp.Literal.string(" \t\n")))
    means = [exp.If(this=exp.Literal.string(w), true=exp.Boolean(this=w == "yes")) for w in ("yes", "no")]
    return exp.Case(this=said, ifs=means)


def _mean_as_postgres(tree: exp.Expr) -> None:
    """Write out what PostgreSQL means otherwise: NULL arrays, the order of ENUMs, division of integers."""
    for comparison in _inner_first(tree, exp.EQ, exp.NEQ):
        array = comparison.expression.this if isinstance(comparison.expression, exp.Any) else None
        if array is not None and array.find(exp.Column) is not None:  # DuckDB finds nothing in an array that is NULL
            known = exp.not_(exp.Is(this=array.copy(), expression=exp.null()))
            comparison.replace(exp.Case(ifs=[exp.If(this=known, true=comparison.copy())]))
    for comparison in _inner_first(tree, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between):
        for side in list(comparison.iter_expressions()):
            if isinstance(side, exp.Literal) and side.is_string and side.name in GRADES:
                side.replace(exp.cast(side.copy(), exp.DataType.build(ENUM, udt=True)))
    for division in _inner_first(tree, exp.Div):
        if not any(_fractional(side) for side in (division.left, division.right)):
            division.replace(exp.IntDiv(this=division.left.copy(), expression=division.right.copy()))


def _fractional(node: exp.Expr) -> bool:
    if isinstance(node, exp.Paren):
        return _fractional(node.this)
    if isinstance(node, exp.Cast):
        return node.to.this in (exp.DataType.Type.DECIMAL, exp.DataType.Type.DOUBLE, exp.DataType.Type.FLOAT)
    return isinstance(node, exp.Literal) and not node.is_int


def _inner_first(tree: exp.Expr, *kinds: type[exp.Expr]) -> list[exp.Expr]:
    """Return the nodes of some kinds, those inside others first, so that each can be replaced in turn."""
    return list(tree.find_all(*kinds))[::-1]


def is_text_call(node: exp.Expr | None) -> bool:
    """Tell whether a node is `answer(…)` or `summary(…)`."""
    return isinstance(node, exp.Anonymous) and str(node.this).lower() in TEXT_FUNCTIONS


def has_text(node: exp.Expr | None) -> bool:
    """Tell whether a text function stands somewhere in a node."""
    return node is not None and any(is_text_call(n) for n in node.find_all(exp.Anonymous))


def _rename(call: exp.Anonymous) -> None:
    if is_text_call(call):
        document, *question = call.expressions[:2]
        name = "oracle_" + str(call.this).lower()
        renamed = exp.func(name, exp.func("to_json", document.copy()), *(q.copy() for q in question))
        call.replace(_one_of(renamed, call.expressions[2].expressions) if len(call.expressions) > 2 else renamed)


def _compare(call: exp.Anonymous) -> None:
    if str(call.this).lower() == "similarity":
        call.replace(exp.func("oracle_similarity", *(exp.func("to_json", text.copy()) for text in call.expressions)))


def _one_of(answer: exp.Expr, options: list[exp.Expr]) -> exp.Expr:
    """Return an answer as one of its options, NULL where it is none of them (semantics 3)."""
    if len(options) == 1 and isinstance(options[0], exp.Query):
        said = exp.EQ(this=exp.func("lower", exp.column("o")), expression=exp.func("lower", answer))
        values = exp.Subquery(this=options[0].copy(), alias=exp.TableAlias(this="p", columns=[exp.to_identifier("o")]))
        return exp.Subquery(this=exp.select(exp.Min(this=exp.column("o"))).from_(values).where(said))
    return exp.Case(
        this=exp.func("lower", answer), ifs=[exp.If(this=exp.func("lower", o.copy()), true=o.copy()) for o in options]
    )


def _name_unnested(node: exp.Unnest) -> None:
    """PostgreSQL: the alias of an unnest names its one column too."""
    alias = node.args.get("alias")
    if alias is not None and alias.this is not None and not alias.args.get("columns"):
        alias.set("columns", [alias.this.copy()])


def _type_compared(node: exp.Expr) -> None:
    """An answer takes the type of what it is compared with (semantics 3)."""
    sides = list(node.iter_expressions())
    kinds = {kind for side in sides if (kind := _kind(side)) is not None}
    target = "DATE" if "date" in kinds else "DECIMAL(18, 3)" if kinds & set(NUMBERS) else None
    if target is None:
        return
    for side in sides:
        if is_text_call(side):
            side.replace(exp.TryCast(this=side.copy(), to=exp.DataType.build(target, dialect="duckdb")))


def _kind(node: exp.Expr) -> str | None:
    if isinstance(node, exp.Paren | exp.Neg):
        return _kind(node.this)
    if isinstance(node, exp.Column):
        kind = TYPES.get(node.name.rstrip("_0123456789"))  # a renamed column has a number behind its name
        return kind if kind in ("int", "num", "date") else None
    if isinstance(node, exp.Literal):
        return None if node.is_string else "num"
    if isinstance(node, exp.Cast):
        return {"DATE": "date", "INT": "int", "DECIMAL": "num"}.get(node.to.this.value)
    return None


def _enum(column: pa.ChunkedArray) -> str:
    values = column.combine_chunks().dictionary.to_pylist()
    return ENUM if tuple(values) == GRADES else f"ENUM ({', '.join(map(repr, values))})"


def _without_dictionaries(table: pa.Table) -> pa.Table:
    fields = [pa.field(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type) for f in table.schema]
    return table.cast(pa.schema(fields))
