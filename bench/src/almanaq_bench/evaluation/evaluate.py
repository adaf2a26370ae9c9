"""Measures of a whole run: what was found for each query, against its gold tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from almanaq.errors import BenchmarkError
from almanaq_bench.evaluation.measures import Measure, ranks_of

Item = tuple[str, str]
"""A table: its database and its name."""

Values = NDArray[np.float64]
M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class Found:
    """What a system gave for one query, best first.

    Attributes:
        tables: the ranked tables.
        databases: the databases ranked as a whole, where the system routes; empty where it does not.

    >>> found = Found([("zoo", "animals"), ("zoo", "keepers")])
    >>> query_value(Measure("recall", 1), [("zoo", "keepers")], found)
    0.0
    >>> query_value(Measure("database_recall", 1), [("zoo", "keepers")], found)
    1.0
    """

    tables: Sequence[Item] = ()
    databases: Sequence[str] = ()


NOTHING = Found()


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
    measures: Sequence[Measure], qrels: Mapping[str, Sequence[Item]], run: Mapping[str, Found]
) -> PerQuery[Measure]:
    """Return the values of each measure for each query of `qrels`.

    A query that is missing from the run counts 0; one that has no gold table is an error, and so is one of the run
    that `qrels` does not know.

    Raises:
        BenchmarkError: there are no queries, one has no gold table, or the run answers an unknown query.

    >>> qrels = {"q1": [("zoo", "animals")], "q2": [("zoo", "keepers")]}
    >>> run = {"q1": Found([("zoo", "animals")])}
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


def evaluate(measures: Sequence[Measure], qrels: Mapping[str, Sequence[Item]], run: Mapping[str, Found]) -> list[float]:
    """Return the value of each measure over all queries of `qrels`; the errors are those of `per_query`.

    >>> qrels = {"q1": [("zoo", "animals")], "q2": [("zoo", "keepers")]}
    >>> evaluate([Measure("recall", 1)], qrels, {"q1": Found([("zoo", "animals")])})
    [0.5]
    """
    return per_query(measures, qrels, run).means()


def query_value(measure: Measure, gold: Sequence[Item], found: Found) -> float:
    """Return the value of a measure for one query."""
    return query_values([measure], gold, found)[0]


def query_values(measures: Sequence[Measure], gold: Sequence[Item], found: Found) -> list[float]:
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


def _places(gold: Sequence[Item], found: Found) -> _Places:
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
