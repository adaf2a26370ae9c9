"""A run folder's measures: computed from its records alone, as often as wanted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from almanaq.benchmark.config import RunConfig, read_config
from almanaq.benchmark.records import Record, read_records
from almanaq.errors import BenchmarkError
from almanaq.evaluation.evaluate import Found, evaluate
from almanaq.evaluation.measures import MEASURES, Measure
from almanaq.retrieval.ranking import route_databases

CONFIG, RECORDS, TIMINGS, METRICS = "config.json", "records.jsonl", "timings.jsonl", "metrics.json"


@dataclass(frozen=True, slots=True)
class Scores:
    """A run's measures.

    Attributes:
        queries: how many were asked.
        metrics: by the measures' text form.
        timings: `seconds_per_query`, `index_seconds`.
    """

    config: RunConfig
    queries: int
    metrics: dict[str, float]
    timings: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Give the form that `bench run --json` and `bench score --json` print."""
        config = self.config
        return {
            "task": config.task,
            "dataset": config.dataset,
            "split": config.split,
            "retriever": config.resolved,
            "fields": list(config.fields),
            "queries": self.queries,
            "metrics": {**self.metrics, **self.timings},
            "provenance": _provenance(config),
        }


def score(run_dir: Path) -> Scores:
    """Give the measures of a run folder.

    Raises:
        BenchmarkError: it is no run folder, or it is damaged or holds no record.
    """
    if not run_dir.is_dir():
        raise BenchmarkError(f"no such run folder: {run_dir}")
    config = read_config(run_dir / CONFIG)
    records = list(read_records(run_dir / RECORDS))
    if not records:
        raise BenchmarkError(f"{run_dir} holds no records yet: finish the run with --resume")
    return Scores(config, len(records), measure(records, config.cutoffs), read_timings(run_dir / TIMINGS))


def measure(records: Sequence[Record], cutoffs: Iterable[int]) -> dict[str, float]:
    """Give every measure at every cutoff, by its text form."""
    measures = [Measure(name, k) for name in MEASURES for k in sorted(set(cutoffs))]
    qrels = {record.query_id: record.gold for record in records}
    if len(qrels) < len(records):
        raise BenchmarkError("a query has more than one record: the run folder was written by two runs at once")
    values = evaluate(measures, qrels, {record.query_id: _found(record) for record in records})
    return {str(each): round(value, 6) for each, value in zip(measures, values, strict=True)}


def read_timings(file: Path) -> dict[str, float]:
    """Give index seconds (of the last start) and the mean seconds per query of all parts of a run."""
    seconds, queries, index = 0.0, 0, 0.0
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        timing = json.loads(line)
        if timing["stage"] == "index":
            index = timing["seconds"]
        else:
            seconds, queries = seconds + timing["seconds"], queries + timing["queries"]
    return {"seconds_per_query": round(seconds / queries, 7) if queries else 0.0, "index_seconds": round(index, 4)}


def _found(record: Record) -> Found:
    return Found(
        [(hit.id.database, hit.id.table) for hit in record.hits],
        [database for database, _ in route_databases(record.hits)],
    )


def _provenance(config: RunConfig) -> dict[str, Any]:
    return {
        "config": config.hash,
        "asked": config.retriever,
        "embedder": config.embedder or None,
        "note": config.note or None,
        "limit": config.limit,
        "seed": config.seed,
        "tables": config.tables,
        "corpus_split": config.corpus_split,
        "data": dict(config.data),
        "versions": dict(config.versions),
    }
