"""Ranking measures as values with an exact text form: `recall@10`, `ndcg@10`, `database_recall@1`.

All are binary: a table is gold or not. A table listed twice counts where it stands first. Each measure lies in [0, 1].
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass

from almanaq.errors import UsageError, suggest

Relevance = Sequence[bool]
"""Whether the item at each rank is gold, to the cutoff; shorter where fewer were found."""


@dataclass(frozen=True, slots=True, order=True)
class Measure:
    """A named measure at a cutoff; `str` gives its text form.

    Attributes:
        name: one of MEASURES.
        k: how many of the first items count.
    """

    name: str
    k: int

    def __post_init__(self) -> None:
        if self.name not in MEASURES:
            raise UsageError(f"unknown measure {self.name!r}{suggest(self.name, MEASURES)}")
        if self.k < 1:
            raise UsageError(f"the cutoff of {self.name} must be 1 or more, not {self.k}")

    def __str__(self) -> str:
        return f"{self.name}@{self.k}"

    def of(self, gold: Collection[Hashable], ranking: Sequence[Hashable]) -> float:
        """Give the value for one query.

        Raises:
            ValueError: there is no gold item.
        """
        wanted = frozenset(gold)
        if not wanted:
            raise ValueError("a query without gold items has no measure")
        relevance = [item in wanted for item in list(dict.fromkeys(ranking))[: self.k]]
        return MEASURES[self.name](relevance, len(wanted), self.k)


def parse_measure(text: str) -> Measure:
    """Give the measure of a text form. Raises UsageError for a text that names none."""
    found = re.fullmatch(r"([a-z_]+)@(\d+)", text.strip())
    if not found:
        raise UsageError(f"{text!r} is no measure: write NAME@K, such as recall@10{suggest(text, MEASURES)}")
    return Measure(found.group(1), int(found.group(2)))


def _recall(relevance: Relevance, gold: int, _: int) -> float:
    return sum(relevance) / gold


def _complete(relevance: Relevance, gold: int, _: int) -> float:
    return float(sum(relevance) == gold)


def _capped(relevance: Relevance, gold: int, k: int) -> float:
    return sum(relevance) / min(k, gold)


def _precision(relevance: Relevance, _: int, k: int) -> float:
    return sum(relevance) / k


def _reciprocal_rank(relevance: Relevance, _: int, __: int) -> float:
    return next((1 / rank for rank, is_gold in enumerate(relevance, 1) if is_gold), 0.0)


def _ndcg(relevance: Relevance, gold: int, k: int) -> float:
    gain = sum(1 / math.log2(rank + 1) for rank, is_gold in enumerate(relevance, 1) if is_gold)
    return gain / sum(1 / math.log2(rank + 1) for rank in range(1, min(k, gold) + 1))


def _average_precision(relevance: Relevance, gold: int, _: int) -> float:
    total, found = 0.0, 0
    for rank, is_gold in enumerate(relevance, 1):
        if is_gold:
            found += 1
            total += found / rank
    return total / gold


def _any(relevance: Relevance, _: int, __: int) -> float:
    return float(any(relevance))


MEASURES: Mapping[str, Callable[[Relevance, int, int], float]] = {
    "recall": _recall,
    "recall_micro": _recall,
    "complete_recall": _complete,
    "capped_recall": _capped,
    "precision": _precision,
    "mrr": _reciprocal_rank,
    "ndcg": _ndcg,
    "map": _average_precision,
    "database_recall": _any,
    "routed_database_recall": _any,
}
"""The value of each measure from what is gold at each rank, how many are gold in all, and the cutoff.

`recall` averages found / gold over queries, `recall_micro` divides all found by all gold. `capped_recall` divides by
what k items can hold. `database_recall` asks whether any of the first k tables lies in the gold database (the
TARGET paper's measure), `routed_database_recall` whether that is among the first k of a ranking of databases.
"""
