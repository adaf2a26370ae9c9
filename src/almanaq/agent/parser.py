"""The seam to semantic parsers: a question in, SUQL or the reason for none out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from almanaq.agent.history import Turn, TurnKind
from almanaq.agent.readings import Reading
from almanaq.models.protocols import Usage
from almanaq.suql.catalog.relations import Catalog

ParseStatus = Literal["query", "no_query", "clarify", "no_result"]


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a parser made of a question.

    Attributes:
        status: `query` with `suql`; `no_query` when the question needs no data; `clarify` asks back with `reply`;
            `no_result` says with `reply` why no row can be what was asked for.
        reply: what to say when there is no query; "" leaves it to the responder.
        unused: words of the question that the query leaves out.
        corrections: (as written, as understood) for misspelt names and values.
        usage: what the model calls cost.
        kind: what the asker does, where the parser found out more than the classifier said.
        remarks: sentences that say for what unusual words were taken; they come before what was found.
        readings: the queries that are offered where none is sure, the likeliest first.
        notes: sentences that say how references to earlier turns were understood.
        keep: conditions of the query that must not be relaxed, beside those on keys and names.
        asked, of: as in Turn.
    """

    status: ParseStatus
    suql: str | None = None
    reply: str = ""
    unused: tuple[str, ...] = ()
    corrections: tuple[tuple[str, str], ...] = ()
    usage: Usage = field(default_factory=Usage)
    kind: TurnKind = "new"
    remarks: tuple[str, ...] = ()
    readings: tuple[Reading, ...] = ()
    notes: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    asked: str = ""
    of: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """A query that did not bind, and what the compiler said of it."""

    suql: str
    message: str


class SemanticParser(Protocol):
    """Turns questions into SUQL. Raises ModelError when its model fails."""

    def parse(
        self, question: str, catalog: Catalog, history: Sequence[Turn] = (), failures: Sequence[Failure] = ()
    ) -> Parsed:
        """Return a query over `catalog`; `failures` are earlier attempts at the same question that did not bind."""
