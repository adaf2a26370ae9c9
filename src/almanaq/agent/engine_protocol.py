"""The seam to the compiler: what an agent needs of an engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from almanaq.options import Options
from almanaq.suql.catalog.relations import Catalog

if TYPE_CHECKING:
    # pyarrow comes with this module, and importing the agent must stay quick.
    from almanaq.suql.result import Result


class QueryEngine(Protocol):
    """Runs SUQL over one source. Raises QueryError for a faulty query, other AlmanaqErrors when running it fails."""

    @property
    def catalog(self) -> Catalog: ...

    def run(self, query: str, parameters: Sequence[object] = (), *, options: Options | None = None) -> Result: ...

    def check(self, query: str) -> None:
        """Parse and bind only; raises QueryError."""

    def private_columns(self, query: str) -> tuple[str, ...]:
        """Return the private columns whose values the rows of a query, or their quotes, may show."""

    @property
    def dialect(self) -> str:
        """sqlglot's name of the dialect in which queries are written."""

    def values(self, relation: str, column: str, limit: int) -> list[str]:
        """Return distinct values of a text or ENUM column, the most frequent first."""
