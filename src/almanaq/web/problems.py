"""What went wrong, as RFC 9457 has it: our class of error, where in the query, near names, and rows that are sure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from almanaq import errors
from almanaq.errors import AlmanaqError, QueryError, near_names
from almanaq.jobs import Busy

MEDIA_TYPE = "application/problem+json"
TITLES = {
    400: "The query is at fault",
    401: "The token is missing or wrong",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    409: "It has changed",
    413: "Too large",
    421: "Another host",
    422: "The request cannot be met",
    429: "Too many requests",
    500: "A bug in almanaq",
    502: "The model failed",
    503: "Not available",
    504: "Out of time",
}
_STATUS: tuple[tuple[int, tuple[type[AlmanaqError], ...]], ...] = (
    # The first line that an error is of counts; any other is 503.
    (429, (Busy,)),
    (403, (errors.PrivateColumnError,)),
    (400, (errors.ParameterError, QueryError, errors.ProgrammingError, errors.NotSupportedError, errors.DataError)),
    (422, (errors.BudgetExceeded, errors.UsageError)),
    (504, (errors.DeadlineExceeded,)),
    (502, (errors.ModelCallError,)),
)


class Refused(AlmanaqError):
    """What the server itself refuses, with the status that says so."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class NotFound(Refused):
    """An answer, a conversation or a text that is not there, or no longer."""

    def __init__(self, message: str) -> None:
        super().__init__(404, message)


class PlanChanged(Refused):
    """The plan that was approved is not the one that would run."""

    def __init__(self) -> None:
        super().__init__(409, "the plan has changed: explain the query again, and check its cost")


class Failed(Exception):
    """Ends a job with a problem that holds more than its error says."""

    def __init__(self, problem: dict[str, Any]) -> None:
        super().__init__(problem.get("detail"))
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Problem:
    """An error as a client gets it.

    Attributes:
        more: members beyond those of every problem.
    """

    status: int
    kind: str
    detail: str
    more: dict[str, Any] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """Return the members of the problem."""
        known = {
            "type": f"urn:almanaq:error:{self.kind}",
            "title": TITLES.get(self.status, "It failed"),
            "status": self.status,
            "detail": self.detail,
        }
        return known | self.more


def problem_of(error: BaseException, *, suql: str | None = None, partial: dict[str, Any] | None = None) -> Problem:
    """Return an error as a problem; of one that nobody foresaw no word, as it may hold anything.

    Args:
        suql: the query, where the error does not hold it.
        partial: the record of the rows that are sure.
    """
    if is_lack_of_memory(error):
        return Problem(
            503, "OperationalError", "the server has too little memory for this: ask for less, or try again later"
        )
    if not isinstance(error, AlmanaqError):
        return Problem(500, type(error).__name__, "a bug in almanaq: please report it; details are in the server's log")
    message = error.message if isinstance(error, QueryError) else str(error)
    position = _position(error, suql)
    more: dict[str, Any] = {"position": position} if position is not None else {}
    if near := near_names(message):
        more["near"] = near
    if partial is not None:
        more["partial"] = partial
    if suql is not None:
        more["suql"] = suql
    status = next((status for status, kinds in _STATUS if isinstance(error, kinds)), 503)
    return Problem(error.status if isinstance(error, Refused) else status, type(error).__name__, message, more)


def is_lack_of_memory(error: BaseException) -> bool:
    """Return whether a piece of work failed because the process may hold no more memory, or begin no more threads."""
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "start new thread" in str(error))


def _position(error: AlmanaqError, suql: str | None) -> dict[str, int] | None:
    """Return where in the query the fault is, in UTF-16 units; the end is behind its last character."""
    query = getattr(error, "query", None) or suql
    start, end = getattr(error, "start", None), getattr(error, "end", None)
    if query is None or not isinstance(start, int):
        return None
    last = start if not isinstance(end, int) else end
    before, upto = query[:start], query[: last + 1]
    return {
        "start": utf16_length(before),
        "end": utf16_length(upto),
        "line": before.count("\n") + 1,
        "column": len(before) - (before.rfind("\n") + 1) + 1,
    }


def from_utf16(text: str, at: int) -> int:
    """Return how many characters the first UTF-16 units of a text are."""
    return len(text.encode("utf-16-le", "surrogatepass")[: 2 * at].decode("utf-16-le", "replace"))


def utf16_length(text: str) -> int:
    """Return the length of a text in UTF-16 units, which JavaScript counts in."""
    return len(text) + sum(character > "\uffff" for character in text)
