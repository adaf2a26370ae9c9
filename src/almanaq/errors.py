"""Every error that almanaq raises on purpose; each message says what went wrong, where, and what to do.

AlmanaqError
├── UsageError               a flag, setting or name that does not exist (exit 2)
├── MissingExtraError        an optional dependency is not installed; names the extra
├── SourceError              a file, folder, database or corpus cannot be opened or read
├── QueryError               a SUQL query is at fault; may carry a position in its text
│   ├── QuerySyntaxError
│   ├── UnknownNameError     no such relation, column or function; near names suggested
│   ├── QueryTypeError       a value of the wrong type or kind (answer() of a number)
│   ├── RefusedQueryError    not a single read-only SELECT, or a function that is not allowed
│   └── UnsupportedError     the database cannot do what the query asks; never dropped silently
├── DatabaseError            the database failed while running a query
│   └── DeadlineExceeded     the query ran longer than its deadline and was interrupted
├── ModelError               a model cannot be used at all (key, URL, name): the query ends
│   └── ModelCallError       one call failed after its retries; the engine counts it as unknown
├── BudgetExceeded           refused or stopped by a budget (exit 3); `.partial` holds rows that are sure
└── BenchmarkError           a dataset, run folder, record or retriever is at fault
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class AlmanaqError(Exception):
    """The root of every error that almanaq raises on purpose."""

    exit_code = 1


# The root under the name that DB-API 2.0 gives it.
Error = AlmanaqError


class UsageError(AlmanaqError):
    """A flag, setting or name that does not exist."""

    exit_code = 2


class MissingExtraError(AlmanaqError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs the package {package!r}: install it with  pip install 'almanaq[{extra}]'")


class SourceError(AlmanaqError):
    """A file, folder, database or corpus cannot be opened or read."""


class QueryError(AlmanaqError):
    """A SUQL query is at fault.

    Args:
        message: what is wrong and what to do.
        query: the text of the query, when known.
        start: offset of the first faulty character in `query`.
        end: offset of the last faulty character in `query`.
    """

    def __init__(self, message: str, *, query: str | None = None, start: int | None = None, end: int | None = None):
        self.message, self.query, self.start, self.end = message, query, start, end
        super().__init__(message + pointer(query, start, end))


class QuerySyntaxError(QueryError):
    """The query is not SUQL."""


class UnknownNameError(QueryError):
    """The query names a relation, column or function that does not exist."""


class QueryTypeError(QueryError):
    """The query uses a value of the wrong type or kind."""


class RefusedQueryError(QueryError):
    """The query is not a single read-only SELECT, or calls a function that is not allowed."""


class UnsupportedError(QueryError):
    """The database cannot do what the query asks."""


class DatabaseError(AlmanaqError):
    """The database failed while running a query."""


class DeadlineExceeded(DatabaseError):
    """The query ran longer than its deadline and was interrupted."""


class ModelError(AlmanaqError):
    """A model cannot be used at all: wrong key, wrong URL, unknown name."""


class ModelCallError(ModelError):
    """One call to a model failed after its retries."""


class BudgetExceeded(AlmanaqError):
    """A budget refused the work before the first call, or stopped it.

    Attributes:
        partial: the rows that are surely in the full result, or None.
    """

    exit_code = 3

    def __init__(self, message: str, partial: object | None = None) -> None:
        super().__init__(message)
        self.partial = partial


class BenchmarkError(AlmanaqError):
    """A dataset, run folder or record is at fault."""


def suggest(name: str, known: Iterable[str]) -> str:
    """Give the end of a message that offers the known names nearest to `name`, or lists a few of them."""
    names = sorted(set(known))
    near = difflib.get_close_matches(name.lower(), [n.lower() for n in names], n=3, cutoff=0.6)
    if near:
        spelled = {n.lower(): n for n in names}
        return "; did you mean " + " or ".join(repr(spelled[n]) for n in near) + "?"
    if not names:
        return ""
    shown = ", ".join(names[:8]) + (f", … ({len(names)} in all)" if len(names) > 8 else "")
    return f"; known: {shown}"


def pointer(query: str | None, start: int | None, end: int | None) -> str:
    """Draw the line of `query` that holds `start`, with carets under the faulty characters."""
    if query is None or start is None:
        return ""
    line_start = query.rfind("\n", 0, start) + 1
    line_end = query.find("\n", start)
    line = query[line_start : line_end if line_end >= 0 else len(query)]
    number, column = query.count("\n", 0, start) + 1, start - line_start + 1
    width = max(1, min((end if end is not None else start) - start + 1, len(line) - column + 1))
    return f"\n  line {number}, column {column}:\n    {line}\n    {' ' * (column - 1)}{'^' * width}"
