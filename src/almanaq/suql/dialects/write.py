"""Where engines differ from PostgreSQL, written out so that a query means the same on each (semantics 7)."""

from __future__ import annotations

from functools import partial

from sqlglot import exp

from almanaq.errors import UnsupportedError
from almanaq.suql.dialects.aggregates import refuse_outer_aggregate
from almanaq.suql.dialects.duckdb import write_for_duckdb
from almanaq.suql.dialects.json_paths import write_path
from almanaq.suql.dialects.others import write_for_others
from almanaq.suql.dialects.patterns import refuse_backspace
from almanaq.suql.dialects.spark import write_for_spark
from almanaq.suql.dialects.spark_select import merge_members
from almanaq.suql.syntax.normal_forms import COMPARISONS, rewritten
from almanaq.suql.syntax.recursion import with_written_clauses
from almanaq.suql.syntax.respelling import MISREAD
from almanaq.suql.syntax.templates import TEMPLATED, as_written

_DROPPED = ((exp.Length, "encoding", "length"), (exp.CurrentTime, "this", "current_time"))


def write_differences(tree: exp.Expr, dialect: str) -> exp.Expr:
    """Return a PostgreSQL tree, which is changed, as an engine has to be told it.

    Raises:
        UnsupportedError: the engine has nothing that means the same.
    """
    own = {"postgres": _for_postgres, "duckdb": write_for_duckdb, "spark": write_for_spark}.get(dialect)
    write = own or partial(write_for_others, dialect=dialect)

    def portable(node: exp.Expr) -> exp.Expr:
        refuse_backspace(node)
        if dialect != "postgres" and isinstance(node, exp.Anonymous) and node.name.lower() in MISREAD:
            raise UnsupportedError(f"{node.name.lower()} in this form is not supported on {dialect}")
        if dialect != "postgres":
            _refuse_dropped(node, dialect)
        if dialect != "postgres" and isinstance(node, exp.AggFunc):
            refuse_outer_aggregate(node)
        if isinstance(node, exp.JSONExtract | exp.JSONExtractScalar):
            return write_path(node, dialect)
        return write(node if dialect == "postgres" else _hexadecimal(node))

    written = rewritten(tree, portable)
    return merge_members(written) if dialect == "spark" else written


def _refuse_dropped(node: exp.Expr, dialect: str) -> None:
    """Refuse an argument that the printers of other engines leave out."""
    for kind, key, name in _DROPPED:
        if isinstance(node, kind) and node.args.get(key) is not None:
            raise UnsupportedError(f"{name} with that argument is not supported on {dialect}: leave it out")


def _hexadecimal(node: exp.Expr) -> exp.Expr:
    r"""Write `'\x6162'::bytea`, which other engines would read as other bytes, as the bytes of `6162`."""
    if isinstance(node, exp.Cast) and node.is_type("varbinary") and isinstance(node.this, exp.Literal):
        if node.this.name.startswith("\\x"):
            return exp.Unhex(this=exp.Literal.string(node.this.name[2:]))
    return node


def _for_postgres(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.IntDiv):
        return exp.Div(this=node.this, expression=node.expression, typed=True)
    if isinstance(node, exp.Join) and not any(node.args.get(key) for key in ("kind", "side", "on", "using", "method")):
        node.set("kind", "CROSS")  # a comma binds less than JOIN: later conditions would not see the item before it
    elif isinstance(node, exp.AnyValue):  # there since PostgreSQL 16
        known = exp.Filter(
            this=exp.ArrayAgg(this=node.this),
            expression=exp.Where(this=exp.not_(exp.Is(this=node.this.copy(), expression=exp.null()))),
        )
        return exp.Bracket(this=exp.paren(known), expressions=[exp.Literal.number(1)], offset=1)
    elif isinstance(node, COMPARISONS):
        return _compare_as_text(_by_address(node))
    elif isinstance(node, TEMPLATED):
        return as_written(node)
    elif isinstance(node, exp.Anonymous) and node.name.lower() in MISREAD:
        return exp.Dot(this=exp.to_identifier("pg_catalog"), expression=node.copy())  # read again, it is what it is
    elif isinstance(node, exp.CTE):
        return with_written_clauses(node)
    elif isinstance(node, exp.CurrentTime) and node.this is None:
        return exp.var("CURRENT_TIME")  # not a call there
    elif isinstance(node, exp.Hex):
        return exp.Anonymous(this="to_hex", expressions=[node.this])
    return node


def _by_address(node: exp.Expr) -> exp.Expr:
    """Write `x = t.ctid::text` so that PostgreSQL goes to the row instead of reading the relation through."""
    for other, cast in ((node.this, node.expression), (node.expression, node.this)):
        if isinstance(cast, exp.Cast) and isinstance(cast.this, exp.Column) and cast.this.name == "ctid":
            address = exp.Cast(this=other, to=exp.DataType.build("tid", dialect="postgres", udt=True))
            return exp.EQ(this=cast.this, expression=address)
    return node


def _compare_as_text(node: exp.Expr) -> exp.Expr:
    """Compare both sides as text where one is: an ENUM is cast where it is known as one, but not above a subquery."""
    for key, other in (("this", node.expression), ("expression", node.this)):
        side = node.args[key]
        if isinstance(other, exp.Cast) and other.is_type("text") and isinstance(side, exp.Column):
            node.set(key, exp.cast(side.copy(), "text"))
    return node
