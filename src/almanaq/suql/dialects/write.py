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
    own = {"duckdb": write_for_duckdb, "spark": write_for_spark}.get(dialect)
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
