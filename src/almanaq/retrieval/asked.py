"""Indexes that ask an object of somebody else's, and make rankings of what it gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from almanaq.corpus.table import TableId
from almanaq.errors import BenchmarkError
from almanaq.models.embedders.base import normalize
from almanaq.retrieval.protocols import Hit, Ranking
from almanaq.retrieval.ranking import check_k, top_k


@dataclass(frozen=True)
class Asked:
    """An index that asks a function question by question, and makes rankings of what it gives.

    With `pieces` the function finds pieces of tables, and a table counts as its best one; else it gives tables, each
    once.
    """

    ask: Callable[[str, int], Iterable[Any]]
    name: str
    pieces: bool = False

    def search(self, questions: Sequence[str], k: int) -> list[Ranking]:
        """Return the rankings.

        Raises:
            BenchmarkError: it gave something that is no table, a table twice, or a score that is no number.
        """
        check_k(k)
        return [_ranking(self.name, question, self.ask(question, k), k, self.pieces) for question in questions]


@dataclass(frozen=True)
class AskedTogether:
    """An index that hands several questions over at once, to an overridden `retrieve_batch`.

    It is told the questions and running numbers for ids. The gold tables and answers, which the published evaluator
    hands over as well, are empty: a retriever that looked at them would be measured by what it was told.
    """

    ask: Callable[..., Sequence[Any]]
    name: str

    def search(self, questions: Sequence[str], k: int) -> list[Ranking]:
        """Return the rankings. Raises BenchmarkError as `Asked`, and where not every question has its result."""
        check_k(k)
        blank: list[Any] = [[] for _ in questions]
        record = {
            "query_id": list(range(len(questions))), "query": list(questions),
            "database_id": blank, "table_id": blank, "answer": [""] * len(questions),
        }  # fmt: skip
        results = list(self.ask(queries=record, top_k=k))
        if len(results) != len(questions):
            raise BenchmarkError(
                f"retriever {self.name!r}: retrieve_batch gave {len(results)} results for {len(questions)} questions"
            )
        found = [getattr(result, "retrieval_results", result) for result in results]
        return [_ranking(self.name, *each, k, False) for each in zip(questions, found, strict=True)]


@dataclass(frozen=True)
class _Point:
    """A table that the vectors found: `payload` has its `database_id` and `table_id`."""

    payload: Mapping[str, str]
    score: float


@dataclass(frozen=True)
class VectorClient:
    """Holds the vectors of a corpus, and is asked for the nearest as a vector database's client is."""

    ids: Sequence[TableId]
    vectors: NDArray[np.float32]

    def search(self, collection_name: str, query_vector: Any, limit: int = 10, **_: Any) -> list[_Point]:  # noqa: ARG002
        """Return the tables whose vectors are nearest by their cosine."""
        own = normalize(np.atleast_2d(np.ravel(np.asarray(query_vector, dtype=np.float32))))[0]
        scores = (self.vectors @ own).astype(np.float32)
        found = top_k(scores, min(limit, len(self.ids)))
        return [
            _Point({"database_id": self.ids[at].database, "table_id": self.ids[at].table}, float(scores[at]))
            for at in found
        ]


def _ranking(name: str, question: str, found: Iterable[Any], k: int, pieces: bool) -> Ranking:
    listed: dict[TableId, float | None] = {}
    for item in found:
        table, score = _identified(item, name)
        fault = ""
        if score is not None and not np.isfinite(score):
            fault = f"it gave {table} a score that is no number ({score})"
        elif table in listed and not pieces:
            fault = f"it lists {table} twice"
        if fault:
            raise BenchmarkError(f"retriever {name!r}, question {question[:80]!r}: {fault}")
        listed.setdefault(table, score)
    return _best(listed, k)


def _best(listed: Mapping[TableId, float | None], k: int) -> Ranking:
    """Return the first k in their order; scored by rank where scores are missing or rise."""
    best = list(listed.items())[:k]
    scores = [score for _, score in best if score is not None]
    if len(scores) < len(best) or scores != sorted(scores, reverse=True):
        scores = [1.0 / rank for rank in range(1, len(best) + 1)]
    return tuple(Hit(table, score) for (table, _), score in zip(best, scores, strict=True))


def _identified(item: Any, name: str) -> tuple[TableId, float | None]:
    """Return the table and the score of an item: (database_id, table_id), with a score after it, or beside the pair."""
    try:
        if isinstance(item, str):
            raise TypeError
        database, table, *score = item
        if isinstance(database, tuple | list):
            (database, table), score = database, [table]
        return TableId(str(database), str(table)), float(score[0]) if score else None
    except (TypeError, ValueError, LookupError):
        raise BenchmarkError(
            f"retriever {name!r} gave {item!r} for a table: give (database_id, table_id), or with its score after it"
        ) from None
