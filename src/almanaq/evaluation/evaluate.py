"""Measures of a whole run: what was found for each query, against its gold tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from almanaq.errors import BenchmarkError
from almanaq.evaluation.measures import Measure

Item = tuple[str, str]
"""A table: its database and its name."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a system gave for one query, best first.

    Attributes:
        tables: the ranked tables.
        databases: the databases ranked as a whole, where the system routes; empty where it does not.
    """

    tables: Sequence[Item] = ()
    databases: Sequence[str] = ()


NOTHING = Found()


def evaluate(measures: Sequence[Measure], qrels: Mapping[str, Sequence[Item]], run: Mapping[str, Found]) -> list[float]:
    """Give the value of each measure over all queries of `qrels`.

    A query that is missing from the run counts 0; one that has no gold table is an error, and so is one of the run
    that `qrels` does not know.

    Raises:
        BenchmarkError: there are no queries, one has no gold table, or the run answers an unknown query.
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
    return [_mean(measure, qrels, run) for measure in measures]


def query_value(measure: Measure, gold: Sequence[Item], found: Found) -> float:
    """Give the value of a measure for one query."""
    if measure.name == "database_recall":
        # The cutoff counts tables, so several of one database use up several places.
        return measure.of({database for database, _ in gold}, _by_rank(found.tables, measure.k))
    if measure.name == "routed_database_recall":
        return measure.of({database for database, _ in gold}, found.databases)
    return measure.of(gold, found.tables)


def _by_rank(tables: Sequence[Item], k: int) -> list[str]:
    return [database for database, _ in list(dict.fromkeys(tables))[:k]]


def _mean(measure: Measure, qrels: Mapping[str, Sequence[Item]], run: Mapping[str, Found]) -> float:
    values = [query_value(measure, gold, run.get(query, NOTHING)) for query, gold in qrels.items()]
    if measure.name == "recall_micro":
        weights = [len(frozenset(gold)) for gold in qrels.values()]
        return sum(value * weight for value, weight in zip(values, weights, strict=True)) / sum(weights)
    return sum(values) / len(values)
