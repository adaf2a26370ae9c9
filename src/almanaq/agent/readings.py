"""Reading: one query that a question may mean, offered where none is sure enough to be the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from almanaq.errors import UsageError

if TYPE_CHECKING:
    from almanaq.suql.result import Result


@dataclass(frozen=True, slots=True)
class Reading:
    """A query that a question may mean.

    Attributes:
        words: what it searches, as a person says it.
        suql: the query; nothing has run it yet.
        probability: how surely it is what was asked, from 0 to 1.
    """

    words: str
    suql: str
    probability: float
    runs: Callable[[str], Result] | None = field(default=None, repr=False, compare=False)

    def run(self) -> Result:
        """Return the rows of the query; raises the errors of `con.sql`."""
        if self.runs is None:
            raise UsageError("this reading came without a connection: run its query with con.sql(reading.suql)")
        return self.runs(self.suql)

    def as_dict(self) -> dict[str, Any]:
        """Return the keys of `ask --json`."""
        return {"words": self.words, "suql": self.suql, "probability": round(self.probability, 3)}
