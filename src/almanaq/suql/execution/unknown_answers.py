"""The answers that rows of one query lack: which row, which column, what was asked, and why there is none."""

from __future__ import annotations

import heapq

from almanaq.suql.catalog.relations import Catalog
from almanaq.suql.execution.candidates import Candidate
from almanaq.suql.execution.evidence import row_name
from almanaq.suql.plan.stages import RowName, SiteInput
from almanaq.suql.result import UNPLACED, UnknownAnswer

MOST = 200
"""Unknown answers that are named; those beyond are counted."""


class UnknownAnswers:
    """Collects unknown answers while rows are asked about, in any order.

    Args:
        catalog: says which keys are private; None: of a query whose unknown answers are not reported.
    """

    def __init__(self, catalog: Catalog | None = None) -> None:
        self._catalog = catalog
        self._known: dict[int, bool] = {}  # by hash: whether the call failed
        self._first: list[tuple[tuple[int, str], UnknownAnswer]] = []
        relations = catalog.relations if catalog is not None else ()
        self._private = {
            relation.name: frozenset(column.name for column in relation.columns if column.private)
            for relation in relations
        }

    def add(self, item: SiteInput, question: str, candidate: Candidate, reason: str, *, failed: bool) -> None:
        """Take an answer that a row lacks; `failed`: the call did, else its reply is not what was asked for."""
        if item.question_column is not None and any(self._private.values()):
            question = "what is asked of each row"  # made of cells, which may be private ones
        name = UNPLACED if self._has_private_key(item) else row_name(item, candidate.row, candidate.values)
        by_row = item.named is not RowName.KEY
        answer = UnknownAnswer(name, item.column, question, reason, item.relation, by_row)
        identity = hash((answer, candidate.number if name == UNPLACED else 0))
        if identity in self._known:
            return
        self._known[identity] = failed
        self._first.append(((candidate.number, item.site.id), answer))
        if len(self._first) > 2 * MOST:
            self._first = self._least()

    def _has_private_key(self, item: SiteInput) -> bool:
        private = self._private.get(item.relation)
        relation = self._catalog.find(item.relation) if private and self._catalog is not None else None
        return relation is not None and not frozenset(relation.key).isdisjoint(private or ())

    def _least(self) -> list[tuple[tuple[int, str], UnknownAnswer]]:
        return heapq.nsmallest(MOST, self._first, key=lambda each: each[0])

    @property
    def first(self) -> tuple[UnknownAnswer, ...]:
        """The first of them, in the order of the rows."""
        return tuple(answer for _, answer in self._least())

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._known)

    @property
    def unreadable(self) -> int:
        """How many of them were answered, by something else than what was asked for."""
        return len(self._known) - sum(self._known.values())
