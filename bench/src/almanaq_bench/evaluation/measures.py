"""Ranking measures as values with an exact text form: `recall@10`, `ndcg@10`, `database_recall@1`.

All are binary: a table is gold or not. A table listed twice counts where it stands first. Each measure lies in [0, 1].
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from almanaq.errors import UsageError, suggest

Ranks = Sequence[int]
"""Where gold items stand, from 1 and rising, none beyond the cutoff."""


@dataclass(frozen=True, slots=True, order=True)
class Measure:
    """A named measure at a cutoff; `str` gives its text form.

    Attributes:
        name: one of MEASURES.
        k: how many of the first items count.

    >>> str(Measure("recall", 10))
    'recall@10'
    >>> Measure("recal", 10)
    Traceback (most recent call last):
    almanaq.errors.UsageError: unknown measure 'recal'; did you mean 'recall'?
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
        """Return the value for one query, from 0 to 1.

        Raises:
            ValueError: there is no gold item.

        >>> Measure("recall", 2).of({"a", "b"}, ["a", "c", "b"]), Measure("recall", 3).of({"a", "b"}, ["a", "c", "b"])
        (0.5, 1.0)
        >>> Measure("mrr", 3).of({"b"}, ["a", "b", "c"])
        0.5
        """
        wanted = frozenset(gold)
        return self.at(ranks_of(wanted, ranking), len(wanted))

    def at(self, ranks: Ranks, gold: int) -> float:
        """Return the value for one query from the ranks of what was found of its `gold` gold items.

        Raises:
            ValueError: there is no gold item.

        >>> Measure("precision", 5).at([1, 3], gold=2)
        0.4
        """
        if not gold:
            raise ValueError("a query without gold items has no measure")
        return MEASURES[self.name]([rank for rank in ranks if rank <= self.k], gold, self.k)


def parse_measure(text: str) -> Measure:
    """Return the measure of a text form. Raises UsageError for a text that names none.

    >>> parse_measure("recall@10")
    Measure(name='recall', k=10)
    """
    found = re.fullmatch(r"([a-z_]+)@(\d+)", text.strip())
    if not found:
        raise UsageError(f"{text!r} is no measure: write NAME@K, such as recall@10{suggest(text, MEASURES)}")
    return Measure(found.group(1), int(found.group(2)))


def ranks_of(gold: frozenset[Any], ranking: Sequence[Hashable]) -> list[int]:
    """Return the ranks of gold items in a ranking; an item that is listed twice takes one place, its first.

    >>> ranks_of(frozenset({"b"}), ["a", "b", "c"])
    [2]
    """
    order = list(dict.fromkeys(ranking))
    return sorted(order.index(item) + 1 for item in gold.intersection(order))


def _recall(ranks: Ranks, gold: int, _: int) -> float:
    return len(ranks) / gold


def _complete(ranks: Ranks, gold: int, _: int) -> float:
    return float(len(ranks) == gold)


def _capped(ranks: Ranks, gold: int, k: int) -> float:
    return len(ranks) / min(k, gold)


def _precision(ranks: Ranks, _: int, k: int) -> float:
    return len(ranks) / k


def _reciprocal_rank(ranks: Ranks, _: int, __: int) -> float:
    return 1 / ranks[0] if ranks else 0.0


def _ndcg(ranks: Ranks, gold: int, k: int) -> float:
    gain = sum(1 / math.log2(rank + 1) for rank in ranks)
    return gain / sum(1 / math.log2(rank + 1) for rank in range(1, min(k, gold) + 1))


def _average_precision(ranks: Ranks, gold: int, _: int) -> float:
    return sum(found / rank for found, rank in enumerate(ranks, 1)) / gold


def _any(ranks: Ranks, _: int, __: int) -> float:
    return float(bool(ranks))


MEASURES: Mapping[str, Callable[[Ranks, int, int], float]] = {
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
"""The value of each measure from where gold items stand, how many are gold in all, and the cutoff.

`recall` averages found / gold over queries, `recall_micro` divides all found by all gold. `capped_recall` divides by
what k items can hold. `database_recall` asks whether any of the first k tables lies in the gold database (the
TARGET paper's measure), `routed_database_recall` whether that is among the first k of a ranking of databases.
"""
