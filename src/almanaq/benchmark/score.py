"""A run folder's measures: computed from its records alone, as often as wanted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from almanaq.benchmark.config import RunConfig, read_config
from almanaq.benchmark.generation.replies import read_replies
from almanaq.benchmark.generation.score import ReplyScores, score_replies
from almanaq.benchmark.records import (
    CONFIG,
    METRICS,
    RECORDS,
    REPLIES,
    TIMINGS,
    Record,
    read_records,
    whole_lines,
    write_whole,
)
from almanaq.errors import BenchmarkError, UsageError
from almanaq.evaluation.evaluate import Found, PerQuery, per_query
from almanaq.evaluation.measures import MEASURES, Measure
from almanaq.evaluation.significance import intervals
from almanaq.retrieval.ranking import route_databases

_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Scores:
    """A run's measures.

    Attributes:
        queries: how many were asked.
        metrics: by the measures' text form.
        timings: `seconds_per_query`, `index_seconds` and others; no part of what two equal runs share.
        intervals: 95 % bootstrap intervals of the metrics that are means over queries.
        outcomes: how many replies ended how; {} for a task without replies.
        note: what exactly was computed of the replies.
        fault: why the first reply that is none is none; "" where all are usable.
    """

    config: RunConfig
    queries: int
    metrics: dict[str, float]
    timings: dict[str, float]
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    outcomes: Mapping[str, int] = field(default_factory=dict)
    note: str = ""
    fault: str = ""

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
            "intervals": {name: list(bounds) for name, bounds in self.intervals.items()},
            "provenance": _provenance(config) | ({"measures": self.note} if self.note else {}),
        } | ({"outcomes": dict(self.outcomes)} if self.outcomes else {})


def score(run_dir: Path, cutoffs: Sequence[int] = ()) -> Scores:
    """Give the measures of a run folder, at its own cutoffs or at others that it reaches.

    Raises:
        BenchmarkError: it is no run folder, or it is damaged or holds no record.
        UsageError: a cutoff is below 1, or beyond what the run retrieved.
    """
    config, records = read_run(run_dir)
    chosen = cutoffs or config.cutoffs
    if min(chosen) < 1 or max(chosen) > config.depth:
        raise UsageError(f"--k: {run_dir} holds {config.depth} tables per question; give 1 to {config.depth}")
    found = measured(records, chosen)
    bounds = intervals(found.values, found.weights)
    names = [str(measure) for measure in found.measures]
    metrics = dict(zip(names, found.means(), strict=True))
    around = {name: (float(low), float(high)) for name, low, high in zip(names, *bounds, strict=True)}
    replies = list(read_replies(run_dir / REPLIES)) if config.generator else []
    if len({reply.query_id for reply in replies}) < len(replies):
        raise BenchmarkError(f"{run_dir / REPLIES} holds two replies to one question: two runs wrote it at once")
    of_replies = score_replies(replies) if replies else ReplyScores({}, {}, {})
    return Scores(
        config,
        len(records),
        {name: round(value, _DIGITS) for name, value in {**of_replies.metrics, **metrics}.items()},
        read_timings(run_dir / TIMINGS),
        {
            name: (round(low, _DIGITS), round(high, _DIGITS))
            for name, (low, high) in {**of_replies.bounds, **around}.items()
        },
        of_replies.outcomes,
        of_replies.note,
        next((reply.fault for reply in replies if reply.fault), ""),
    )


def unfinished(run_dir: Path) -> str:
    """Say that a run has not ended and what there is of it; "" where it has."""
    if (run_dir / METRICS).exists():
        return ""
    counts = {name: sum(1 for _ in whole_lines(run_dir / name)) for name in (RECORDS, REPLIES)}
    replies = f", {counts[REPLIES]:,} with a reply" if counts[REPLIES] else ""
    return f"{run_dir} is not finished: {counts[RECORDS]:,} questions so far{replies}; go on with --resume"


def keep_score(run_dir: Path) -> Scores:
    """Give the measures of a run folder, and write them into it, timings aside."""
    scores = score(run_dir)
    kept = {"metrics": scores.metrics, "intervals": {name: list(each) for name, each in scores.intervals.items()}}
    write_whole(run_dir / METRICS, json.dumps(kept, indent=1) + "\n")
    return scores


def read_run(run_dir: Path) -> tuple[RunConfig, list[Record]]:
    """Give what a run folder holds. Raises BenchmarkError for one that is none, is damaged, or has no record yet."""
    if not run_dir.is_dir():
        raise BenchmarkError(f"no such run folder: {run_dir}")
    config = read_config(run_dir / CONFIG)
    records = list(read_records(run_dir / RECORDS))
    if not records:
        raise BenchmarkError(f"{run_dir} holds no records yet: finish the run with --resume")
    return config, records


def measured(records: Sequence[Record], cutoffs: Iterable[int]) -> PerQuery[Measure]:
    """Give every measure at every cutoff for every query."""
    measures = [Measure(name, k) for name in MEASURES for k in sorted(set(cutoffs))]
    qrels = {record.query_id: record.gold for record in records}
    if len(qrels) < len(records):
        raise BenchmarkError("a query has more than one record: the run folder was written by two runs at once")
    return per_query(measures, qrels, {record.query_id: _found(record) for record in records})


def read_timings(file: Path) -> dict[str, float]:
    """Give what a run took.

    `index_seconds` and `index_bytes` are of the last start. `seconds_per_query` is the mean of all batches;
    `latency_mean`, `latency_p50` and `latency_p95` are seconds of questions asked one by one, their vectors known.
    """
    stages: dict[str, list[Mapping[str, Any]]] = {"index": [], "search": [], "latency": [], "generate": []}
    for number, line in enumerate(whole_lines(file), 1):
        try:
            timing = json.loads(line)
            stages.setdefault(timing["stage"], []).append(timing)
        except (ValueError, KeyError, TypeError) as error:
            raise BenchmarkError(f"{file}, line {number}: not a timing: {error}") from error
    queries = sum(timing["queries"] for timing in stages["search"])
    seconds = sum(timing["seconds"] for timing in stages["search"])
    index = stages["index"][-1] if stages["index"] else {"seconds": 0.0, "bytes": 0}
    told = {
        "seconds_per_query": round(seconds / queries, 7) if queries else 0.0,
        "index_seconds": round(index["seconds"], 4),
        "index_bytes": index["bytes"],
    }
    if stages["latency"]:
        sample = np.array(stages["latency"][-1]["seconds"])
        told["latency_mean"] = round(float(sample.mean()), 7)
        told |= {f"latency_p{q}": round(float(np.percentile(sample, q)), 7) for q in (50, 95)}
    if stages["generate"]:
        told |= _spent(stages["generate"])
    return told


def _spent(batches: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Give what the generator took: per question, and in all."""
    efficiency = [each for batch in batches for each in batch["efficiency"]]
    told = {
        "seconds_per_reply": round(sum(b["seconds"] for b in batches) / sum(b["queries"] for b in batches), 6),
        **{name: sum(batch[name] for batch in batches) for name in ("calls", "input_tokens", "output_tokens")},
    }
    if all(batch["money"] is not None for batch in batches):
        told["money"] = round(sum(batch["money"] for batch in batches), _DIGITS)
    if any(efficiency):
        told["valid_efficiency_score"] = round(sum(efficiency) / len(efficiency), 4)
    return told


def _found(record: Record) -> Found:
    return Found([hit.id for hit in record.hits], [database for database, _ in route_databases(record.hits)])


def _provenance(config: RunConfig) -> dict[str, Any]:
    return {
        "config": config.hash,
        "asked": config.retriever,
        "embedder": config.embedder or None,
        "generator": config.generator or None,
        "model": config.model or None,
        "context_k": config.context_k or None,
        "evidence": config.evidence,
        "schema": config.schema or None,
        "prompts": dict(config.prompts),
        "note": config.note or None,
        "limit": config.limit,
        "seed": config.seed,
        "tables": config.tables,
        "distractors": config.distractors,
        "distractors_from": config.distractors_from or None,
        "corpus_split": config.corpus_split,
        "counts": config.counts or None,
        "data": dict(config.data),
        "revisions": dict(config.revisions),
        "versions": dict(config.versions),
    }
