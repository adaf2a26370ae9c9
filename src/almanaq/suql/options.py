"""How a query is to be run: every choice a user has, with its default."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from almanaq.errors import UsageError, suggest
from almanaq.suql.accuracy.estimates import Averaging, Counting, GroupCounting
from almanaq.suql.accuracy.targets import Accuracy

MAX_RESULT_MB = 256
AGENT_DEADLINE = 120.0
"""Seconds that a turn of the agent may take where no deadline was given."""
AGENT_ROWS = 10_000
_COPIED = "(copied)"
"""Marks, among the choices given, that `replace` hands on values that nobody may have given."""


@dataclass(frozen=True, slots=True)
class _Unset:
    """Stands for a choice that was not made, with what it then is."""

    value: Any

    def __repr__(self) -> str:
        return repr(self.value)


def _unset(value: Any) -> Any:
    return _Unset(value)


_NOTHING: Any = _unset(None)


@dataclass(frozen=True, slots=True)
class Options:
    """Choices for running one query; defaults are exact. A query inherits from its connection what is not given.

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
        dialect: the dialect of SQL, as sqlglot calls it, in which the user writes queries: `postgres`, `mysql`, … They
            are carried over to that of the source's engine, or refused. None: the engine's own.
        max_result_mb: most memory that the rows of a result may take, in megabytes of Arrow; None: any.

    >>> import almanaq
    >>> con = almanaq.connect({"dogs": {"about": ["Rex barks.", "Bella bites.", "Milo sleeps."]}})
    >>> careful = almanaq.Options(max_calls=2)
    >>> con.sql("SELECT * FROM dogs WHERE answer(about, 'does it bark?') = 'Yes'", options=careful)
    Traceback (most recent call last):
    almanaq.errors.BudgetExceeded: the query is expected to make about 3 model calls, above the budget of 2: ...
    """

    order: Literal["similarity", "table"] = _unset("similarity")
    speculation: float = _unset(2.0)
    max_calls: int | None = _unset(None)
    max_money: float | None = _unset(None)
    strict: bool = _unset(False)
    link: bool = _unset(True)
    deadline: float | None = _unset(None)
    passages: int | None = _unset(None)
    candidates: int | None = _unset(None)
    concurrency: int = _unset(64)
    accuracy: Accuracy | None = _NOTHING
    counting: Counting | GroupCounting | Averaging | None = _NOTHING
    max_rows: int | None = _unset(None)
    max_result_mb: int | None = _unset(MAX_RESULT_MB)
    confidence: float | None = _unset(None)
    allow_functions: tuple[str, ...] = _unset(())
    dialect: str | None = _unset(None)
    given: frozenset[str] = field(default=frozenset(), repr=False, compare=False, kw_only=True)
    """Names of the choices that were made, rather than left at their defaults."""

    def __post_init__(self) -> None:
        """Put the defaults where nothing was given; of a copy by `replace`, what is no default counts as given."""
        copied, given = _COPIED in self.given, set(self.given) | {_COPIED}
        for one in fields(self):
            if not isinstance(one.default, _Unset):
                continue
            value = getattr(self, one.name)
            if isinstance(value, _Unset):
                object.__setattr__(self, one.name, value.value)
            elif not copied or value != one.default.value:
                given.add(one.name)
        object.__setattr__(self, "given", frozenset(given))

    def over(self, base: Options) -> Options:
        """Return these choices, and those of `base` where none was given here.

        >>> chosen = Options(order="table").over(Options(max_calls=5))
        >>> chosen.order, chosen.max_calls, Options(max_calls=None).over(Options(max_calls=5)).max_calls
        ('table', 5, None)
        """
        names = [one.name for one in fields(self) if isinstance(one.default, _Unset)]
        values = {name: getattr(self if name in self.given else base, name) for name in names}
        return Options(**values, given=self.given | base.given)

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
