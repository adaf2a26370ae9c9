"""The seam to engines: what the compiler needs of one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, Self, runtime_checkable

import pyarrow as pa

from almanaq.suql.catalog.relations import Catalog
from almanaq.suql.language import Language, Parameters


class Session(Protocol):
    """One query's dealings with a database: read-only towards the source, with temporary tables of its own.

    Every method raises DatabaseError when the engine refuses or fails, DeadlineExceeded after the deadline.
    SQL is text in the database's own dialect. Several streams may be open at once, and other calls may be made while
    one is. Methods are blocking and may be called from several threads.
    """

    def stream(
        self, sql: str, batch_rows: int = 2048, first_rows: int | None = None, parameters: Parameters = ()
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a SELECT lazily; closing the iterator stops the database's work.

        Args:
            batch_rows: most rows of a batch.
            first_rows: rows that are surely wanted, which an engine that brings rows by number brings at once.
        """

    def fetch(
        self, sql: str, most_bytes: int | None = None, parameters: Parameters = (), most_rows: int | None = None
    ) -> pa.Table:
        """Return all rows of a SELECT; an engine that can stops when they are more than `most_bytes` or `most_rows`.

        Args:
            parameters: values that the driver binds.
        """

    def create(self, name: str, sql: str) -> int:
        """Make the temporary table `name` from a SELECT; return its number of rows."""

    def store(self, name: str, table: pa.Table) -> None:
        """Make the temporary table `name` from Arrow data."""

    def locate(self, name: str) -> tuple[str, ...]:
        """Return the identifiers, outermost first, by which SQL names the temporary table `name`."""

    def order_as_planned(self) -> None:
        """Let ORDER BY mean in every statement what plans take it for, under any settings of the session."""

    def give_grace(self, seconds: float) -> bool:
        """Let what was found before the deadline be read after it, in so many seconds; False where that cannot be."""

    def interrupt(self) -> None:
        """Stop all that runs; safe from any thread and when nothing runs."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None:
        """Drop every temporary table of this session and end its streams."""


@runtime_checkable
class Database(Protocol):
    """An engine with one source attached, read-only: what a package that adds a database has to give.

    >>> import almanaq
    >>> from almanaq.engines.open_source import open_database
    >>> database = open_database({"dogs": {"name": ["Rex"]}})
    >>> isinstance(database, Database), database.dialect
    (True, 'duckdb')
    >>> almanaq.connect(database).sql("SELECT name FROM dogs").rows
    [('Rex',)]
    """

    name: str
    dialect: str
    """sqlglot's name of the engine's dialect."""
    typed: bool
    """Whether the columns of every batch of rows have the Arrow types that those of the whole result have."""

    def catalog(self) -> Catalog: ...

    def language(self, catalog: Catalog) -> Language:
        """Return the engine's SQL over the relations of a catalog: the database's own, or what is left of it."""

    def session(self, deadline: float | None = None) -> Session:
        """Open a session whose work is interrupted `deadline` seconds from now (None: never)."""

    def close(self) -> None: ...
