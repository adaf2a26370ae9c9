"""What bounds a result: how many rows, and how much memory they take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from sqlglot import exp

from almanaq.engines.protocols import Session
from almanaq.errors import BudgetExceeded, OperationalError
from almanaq.suql.plan.native import NativeQuery


def limited(select: exp.Query | NativeQuery, rows: int | None) -> exp.Query | NativeQuery:
    """Return a query that gives one row more than `rows` at most, so that it shows whether there are more."""
    if rows is None or not isinstance(select, exp.Select | exp.SetOperation):
        return select
    limit = select.args.get("limit")
    if limit is not None:
        count = limit.args.get("expression") or limit.args.get("count")
        if not isinstance(count, exp.Literal) or count.is_string or int(count.name) <= rows:
            return select
    bounded = select.copy()
    bounded.set("limit", exp.Limit(expression=exp.Literal.number(rows + 1)))
    return bounded


def refuse_if_larger(table: pa.Table, megabytes: int | None) -> None:
    """Raise BudgetExceeded for rows that take more memory than they may."""
    if megabytes is not None and table.nbytes > megabytes * 1_000_000:
        raise BudgetExceeded(
            f"the result takes more than {megabytes} MB, the most that a result may hold in memory: narrow it or give "
            "it a LIMIT, write it as it comes with --out FILE.csv or FILE.parquet, or raise --max-result-mb"
        )


@contextmanager
def interrupted_at_errors(session: Session) -> Iterator[None]:
    """Stop what a session runs when an error ends the work with it; rows beyond the memory are an OperationalError."""
    try:
        yield
    except MemoryError as error:  # Arrow's is one of these
        session.interrupt()
        message = "the rows do not fit into the memory that is there: ask for fewer, or for shorter ones"
        raise OperationalError(message) from error
    except BaseException:
        session.interrupt()
        raise
