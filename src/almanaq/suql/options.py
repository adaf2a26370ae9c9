"""How a query is to be run: every choice a user has, with its default."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from almanaq.errors import UsageError, suggest
from almanaq.suql.accuracy.estimates import Averaging, Counting, GroupCounting
from almanaq.suql.accuracy.targets import Accuracy

MAX_RESULT_MB = 256
AGENT_DEADLINE = 120.0
"""Seconds that a turn of the agent may take where no deadline was given."""
AGENT_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class Options:
    """Choices for running one query; defaults are exact.

    Attributes:
        order: in which order candidates are tried when the query does not say (semantics 9).
        speculation: at most ceil(speculation × rows still needed) rows are under way at once; at least 1.
        max_calls: budget of text calls; None takes the default of 1,000 for a paid model and none otherwise.
        max_money: budget of US dollars, for a model whose price is known; None: any sum.
        strict: raise on a failed call instead of counting it as unknown.
        link: map literals compared with ENUM columns to the column's values (semantics 11).
        deadline: seconds after which the query is interrupted; None: never.
        passages: read only the best k passages of each document (approximate); None reads all.
        candidates: verify only the k most similar rows (approximate); None considers all.
        concurrency: most text calls under way at once.
        accuracy: targets that a text filter need only reach (approximate); None asks about every row.
        counting: how to estimate what a query would give instead of giving it; for `Connection.estimate` and the like.
        max_rows: most rows of a result; what lies beyond is not read, and the trace says so. None: all.
        confidence: how surely `local` has to have understood a question before it answers, from 0 to 1; below that it
            says what was not clear. None: as it was fitted.
        allow_functions: functions of the database's own that queries may call; the user vouches for what they do.
        max_result_mb: most memory that the rows of a result may take, in megabytes of Arrow; None: any.

    >>> import almanaq
    >>> con = almanaq.connect({"dogs": {"about": ["Rex barks.", "Bella bites.", "Milo sleeps."]}})
    >>> careful = almanaq.Options(max_calls=2)
    >>> con.sql("SELECT * FROM dogs WHERE answer(about, 'does it bark?') = 'Yes'", options=careful)
    Traceback (most recent call last):
    almanaq.errors.BudgetExceeded: the query is expected to make about 3 model calls, above the budget of 2: ...
    """

    order: Literal["similarity", "table"] = "similarity"
    speculation: float = 2.0
    max_calls: int | None = None
    max_money: float | None = None
    strict: bool = False
    link: bool = True
    deadline: float | None = None
    passages: int | None = None
    candidates: int | None = None
    concurrency: int = 64
    accuracy: Accuracy | None = None
    counting: Counting | GroupCounting | Averaging | None = None
    max_rows: int | None = None
    max_result_mb: int | None = MAX_RESULT_MB
    confidence: float | None = None
    allow_functions: tuple[str, ...] = ()

    def for_agent(self) -> Options:
        """Return the options of queries that nobody has written: what is unbounded is bounded.

        >>> Options().for_agent().max_rows, Options(max_rows=5).for_agent().max_rows
        (10000, 5)
        """
        return replace(
            self,
            deadline=AGENT_DEADLINE if self.deadline is None else self.deadline,
            max_rows=AGENT_ROWS if self.max_rows is None else self.max_rows,
        )


def chosen_options(options: Options | None, **named: Any) -> Options:
    """Return the options with those named by themselves in their place; raise UsageError for one out of range."""
    given = {name: value for name, value in named.items() if value is not None}
    chosen = replace(options or Options(), **given)
    check_options(chosen)
    return chosen


def check_options(options: Options) -> None:
    """Raise UsageError for an option that is out of its range."""
    if options.order not in ("similarity", "table"):
        raise UsageError(f"order: {options.order!r} is unknown{suggest(str(options.order), ['similarity', 'table'])}")
    least = {"speculation": 1, "max_calls": 0, "max_money": 0, "passages": 1, "candidates": 1, "concurrency": 1}
    least |= {"max_rows": 1, "max_result_mb": 1}
    for name, bound in least.items():
        value = getattr(options, name)
        if value is not None and not bound <= value < float("inf"):
            raise UsageError(f"{name}: {value!r} is out of range; give a number of {bound} or more")
    if options.confidence is not None and not 0 <= options.confidence <= 1:
        raise UsageError(f"confidence: {options.confidence!r} is out of range; give a number from 0 to 1")
    if options.deadline is not None and not options.deadline > 0:
        raise UsageError(f"deadline: {options.deadline!r} is out of range; give seconds, more than 0")
