"""What happens while a question is answered, in order: the events of `Agent.events`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from almanaq.agent.response import Response

if TYPE_CHECKING:
    from almanaq.suql.result import Evidence


@dataclass(frozen=True, slots=True)
class Progress:
    """Work begins that may take a while; `message` says in a few words which."""

    kind: ClassVar[str] = "progress"
    message: str


@dataclass(frozen=True, slots=True)
class TablesChosen:
    """The relations that the query may read."""

    kind: ClassVar[str] = "tables"
    tables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QueryWritten:
    """A query was written: the first, a repaired one, or one with a condition relaxed; `attempt` counts from 1."""

    kind: ClassVar[str] = "query"
    suql: str
    attempt: int


@dataclass(frozen=True, slots=True)
class RowsFound:
    """The rows of the reply, with the quotes that each rests on."""

    kind: ClassVar[str] = "rows"
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    evidence: tuple[tuple[Evidence, ...], ...]


@dataclass(frozen=True, slots=True)
class TextWritten:
    """A piece of the reply's text; all in order are `Response.answer`. A reply that failed has none, but its error."""

    kind: ClassVar[str] = "text"
    text: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event: the whole reply."""

    kind: ClassVar[str] = "response"
    response: Response


Event = Progress | TablesChosen | QueryWritten | RowsFound | TextWritten | Finished
