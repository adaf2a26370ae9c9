"""Measures of rankings against gold tables, for each question and on average, with intervals."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from almanaq.errors import BenchmarkError, UsageError, suggest

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


def _cap_recall(ranks: Ranks, gold: int, k: int) -> float:
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
    "capped_recall": _cap_recall,
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


Item = tuple[str, str]
"""A table: its database and its name."""

Values = NDArray[np.float64]
M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class RankedResult:
    """What a system gave for one query, best first.

    Attributes:
        tables: the ranked tables.
        databases: the databases ranked as a whole, where the system routes; empty where it does not.

    >>> found = RankedResult([("zoo", "animals"), ("zoo", "keepers")])
    >>> query_value(Measure("recall", 1), [("zoo", "keepers")], found)
    0.0
    >>> query_value(Measure("database_recall", 1), [("zoo", "keepers")], found)
    1.0
    """

    tables: Sequence[Item] = ()
    databases: Sequence[str] = ()


NOTHING = RankedResult()


@dataclass(frozen=True, slots=True)
class PerQuery(Generic[M]):
    """The values of measures for each query.

    Attributes:
        measures: what `str` names: ranking measures, or the names of others.
        values: shape (queries, measures).
        weights: what each value counts in its measure's mean: gold items for `recall_micro`, else 1.
    """

    queries: tuple[str, ...]
    measures: tuple[M, ...]
    values: Values
    weights: Values

    def means(self) -> list[float]:
        """Return the value of each measure over all queries.

        >>> values, weights = np.array([[1.0, 1.0], [0.0, 0.25]]), np.array([[1.0, 1.0], [1.0, 4.0]])
        >>> PerQuery(("q1", "q2"), ("recall@5", "recall_micro@5"), values, weights).means()
        [0.5, 0.4]
        """
        weighted = (self.values * self.weights).sum(axis=0) / self.weights.sum(axis=0)
        return [float(value) for value in weighted]


def per_query(
    measures: Sequence[Measure], qrels: Mapping[str, Sequence[Item]], run: Mapping[str, RankedResult]
) -> PerQuery[Measure]:
    """Return the values of each measure for each query of `qrels`.

    A query that is missing from the run counts 0; one that has no gold table is an error, and so is one of the run
    that `qrels` does not know.

    Raises:
        BenchmarkError: there are no queries, one has no gold table, or the run answers an unknown query.

    >>> qrels = {"q1": [("zoo", "animals")], "q2": [("zoo", "keepers")]}
    >>> run = {"q1": RankedResult([("zoo", "animals")])}
    >>> per_query([Measure("recall", 1)], qrels, run).values.tolist()
    [[1.0], [0.0]]
    """
    if not qrels:
        raise BenchmarkError("there are no queries to evaluate")
    unknown = [query for query in run if query not in qrels]
    if unknown:
        raise BenchmarkError(
            f"the run answers {len(unknown)} queries that the data does not hold, first {unknown[0]!r}"
        )
    without = [query for query, gold in qrels.items() if not gold]
    if without:
        raise BenchmarkError(f"{len(without)} queries have no gold table, first {without[0]!r}")
    known: dict[_Places, list[float]] = {}  # thousands of queries have few ways of being right
    values = []
    for query, gold in qrels.items():
        places = _places(gold, run.get(query, NOTHING))
        if places not in known:
            known[places] = _values(measures, places)
        values.append(known[places])
    sizes = np.array([[len(frozenset(gold))] for gold in qrels.values()], dtype=np.float64)
    micro = np.array([measure.name == "recall_micro" for measure in measures])
    weights = np.where(micro, sizes, 1.0)
    return PerQuery(tuple(qrels), tuple(measures), np.array(values, dtype=np.float64), weights)


def evaluate(
    measures: Sequence[Measure], qrels: Mapping[str, Sequence[Item]], run: Mapping[str, RankedResult]
) -> list[float]:
    """Return the value of each measure over all queries of `qrels`; the errors are those of `per_query`.

    >>> qrels = {"q1": [("zoo", "animals")], "q2": [("zoo", "keepers")]}
    >>> evaluate([Measure("recall", 1)], qrels, {"q1": RankedResult([("zoo", "animals")])})
    [0.5]
    """
    return per_query(measures, qrels, run).means()


def query_value(measure: Measure, gold: Sequence[Item], found: RankedResult) -> float:
    """Return the value of a measure for one query."""
    return query_values([measure], gold, found)[0]


def query_values(measures: Sequence[Measure], gold: Sequence[Item], found: RankedResult) -> list[float]:
    """Return the values of measures for one query."""
    return _values(measures, _places(gold, found))


@dataclass(frozen=True, slots=True)
class _Places:
    """All that measures look at: where gold tables and databases stand, and how many there are."""

    tables: tuple[int, ...]
    gold: int
    database: tuple[int, ...]
    routed: tuple[int, ...]
    databases: int


def _places(gold: Sequence[Item], found: RankedResult) -> _Places:
    wanted = frozenset(gold)
    databases = frozenset(database for database, _ in wanted)
    # The cutoff of database_recall counts tables, so several of one database use up several places.
    first = next((rank for rank, item in enumerate(dict.fromkeys(found.tables), 1) if item[0] in databases), None)
    return _Places(
        tuple(ranks_of(wanted, found.tables)),
        len(wanted),
        () if first is None else (first,),
        tuple(ranks_of(databases, found.databases)),
        len(databases),
    )


def _values(measures: Sequence[Measure], places: _Places) -> list[float]:
    values = []
    for measure in measures:
        if measure.name == "database_recall":
            values.append(measure.at(places.database, places.databases))
        elif measure.name == "routed_database_recall":
            values.append(measure.at(places.routed, places.databases))
        else:
            values.append(measure.at(places.tables, places.gold))
    return values
