"""How a query is to be run: every choice a user has, with its default."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

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
    """

    order: Literal["similarity", "table"] = "similarity"
    speculation: float = 2.0
    max_calls: int | None = None
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
        """Give the options of queries that nobody has written: what is unbounded is bounded."""
        return replace(
            self,
            deadline=AGENT_DEADLINE if self.deadline is None else self.deadline,
            max_rows=AGENT_ROWS if self.max_rows is None else self.max_rows,
        )
