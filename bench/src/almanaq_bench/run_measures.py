"""A run folder's measures: computed from its records alone, as often as wanted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from almanaq.errors import BenchmarkError, UsageError
from almanaq.retrieval.protocols import Ranking
from almanaq_bench.config import RunConfig, read_config
from almanaq_bench.evaluation.rankings import MEASURES, Measure, PerQuery, RankedResult, per_query
from almanaq_bench.evaluation.significance import intervals
from almanaq_bench.generation.replies import ReplyRecord, ReplyScores, read_replies, score_replies
from almanaq_bench.records import (
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
from almanaq_bench.retrievers.openers import NAMES

_DIGITS = 6
_FINDS_FEW = ("none", "oracle")  # by what they are


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
        warnings: what the figures alone do not show, as questions that got no table, or no usable reply.
    """

    config: RunConfig
    queries: int
    metrics: dict[str, float]
    timings: dict[str, float]
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    outcomes: Mapping[str, int] = field(default_factory=dict)
    note: str = ""
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the form that `bench run --json` and `bench score --json` print."""
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
            "warnings": list(self.warnings),
        } | ({"outcomes": dict(self.outcomes)} if self.outcomes else {})


def score(run_dir: Path, cutoffs: Sequence[int] = ()) -> Scores:
    """Return the measures of a run folder, at its own cutoffs or at others that it reaches.

    Raises:
        BenchmarkError: it is no run folder, it is damaged or holds no record, or records or replies of a finished run
            are missing.
        UsageError: a cutoff is below 1, or beyond what the run retrieved.
    """
    config, records = read_run(run_dir)
    return score_records(run_dir, config, records, read_run_replies(run_dir, config), cutoffs)


def score_records(
    run_dir: Path,
    config: RunConfig,
    records: Sequence[Record],
    replies: Sequence[ReplyRecord],
    cutoffs: Sequence[int] = (),
) -> Scores:
    """Return the measures of a run folder whose content was read already; the errors are those of `score`."""
    chosen = cutoffs or config.cutoffs
    if min(chosen) < 1 or max(chosen) > config.depth:
        raise UsageError(f"--k: {run_dir} holds {config.depth} tables per question; give 1 to {config.depth}")
    found = measure_rankings(records, chosen)
    bounds = intervals(found.values, found.weights)
    names = [str(measure) for measure in found.measures]
    metrics = dict(zip(names, found.means(), strict=True))
    around = {name: (float(low), float(high)) for name, low, high in zip(names, *bounds, strict=True)}
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
        (*_warnings(config, records), *_warnings_of_replies(of_replies.outcomes, replies)),
    )


def _warnings(config: RunConfig, records: Sequence[Record]) -> Iterator[str]:
    """Say how many questions a model did not rank, got no table, or of a retriever of others fewer than were asked for.

    Ours may give fewer: `bm25` lists no table that shares no word with the question.
    """
    if faults := [record.fault for record in records if record.fault]:
        yield (
            f"{len(faults):,} of {len(records):,} questions keep the order that their tables were found in, as the "
            f"reply of {config.resolved} cannot be used; the first: {faults[0]}"
        )
    if config.resolved in _FINDS_FEW:
        return
    found = Counter(len(record.hits) for record in records)
    wanted = min(config.depth, config.tables)
    short = sum(count for size, count in found.items() if 0 < size < wanted)
    if found[0]:
        yield f"{found[0]:,} of {len(records):,} questions got no table from {config.resolved}: they count 0"
    if short and config.resolved not in NAMES:
        least = min(size for size in found if size)
        yield (
            f"{short:,} of {len(records):,} questions got fewer than the {wanted} tables requested, as few as {least}: "
            "unlisted tables count as not found"
        )


def _warnings_of_replies(outcomes: Mapping[str, int], replies: Sequence[ReplyRecord]) -> Iterator[str]:
    """Say how many questions count as wrong for another reason than a wrong reply."""
    if faults := outcomes.get("fault"):
        first = next(reply.fault for reply in replies if reply.fault)
        yield f"{faults:,} of {sum(outcomes.values()):,} replies cannot be used and count 0; the first: {first}"
    if outcomes.get("gold"):
        yield f"{outcomes['gold']:,} gold queries fail: their questions count 0"


def describe_unfinished(run_dir: Path) -> str:
    """Say that a run has not ended and what there is of it; "" where it has."""
    if (run_dir / METRICS).exists():
        return ""
    counts = {name: sum(1 for _ in whole_lines(run_dir / name)) for name in (RECORDS, REPLIES)}
    replies = f", {counts[REPLIES]:,} with a reply" if counts[REPLIES] else ""
    return f"{run_dir} is not finished: {counts[RECORDS]:,} questions so far{replies}; continue with --resume"


def keep_score(run_dir: Path) -> Scores:
    """Return the measures of a run folder, and write them into it, timings aside."""
    config, records = _read_run(run_dir)
    replies = _read_replies(run_dir, config)
    scores = score_records(run_dir, config, records, replies)
    kept = {
        "records": len(records),
        "replies": len(replies),
        "metrics": scores.metrics,
        "intervals": {name: list(each) for name, each in scores.intervals.items()},
    }
    write_whole(run_dir / METRICS, json.dumps(kept, indent=1) + "\n")
    return scores


def read_run(run_dir: Path) -> tuple[RunConfig, list[Record]]:
    """Return what a run folder holds.

    Raises:
        BenchmarkError: it is no run folder, is damaged, has no record yet, or has fewer than when it was finished.
    """
    config, records = _read_run(run_dir)
    _check_whole(run_dir, RECORDS, len(records))
    return config, records


def read_run_replies(run_dir: Path, config: RunConfig) -> list[ReplyRecord]:
    """Return the replies of a run, [] for a task without any; raises BenchmarkError as `read_run` does."""
    replies = _read_replies(run_dir, config)
    _check_whole(run_dir, REPLIES, len(replies))
    return replies


def _read_run(run_dir: Path) -> tuple[RunConfig, list[Record]]:
    if not run_dir.is_dir():
        raise BenchmarkError(f"no such run folder: {run_dir}")
    config = read_config(run_dir / CONFIG)
    records = list(read_records(run_dir / RECORDS))
    if not records:
        raise BenchmarkError(f"{run_dir} holds no records yet: finish the run with --resume")
    return config, records


def _read_replies(run_dir: Path, config: RunConfig) -> list[ReplyRecord]:
    replies = list(read_replies(run_dir / REPLIES)) if config.generator else []
    if len({reply.query_id for reply in replies}) < len(replies):
        raise BenchmarkError(f"{run_dir / REPLIES} holds two replies to one question: two runs wrote it at once")
    return replies


def _check_whole(run_dir: Path, name: str, found: int) -> None:
    """Raise BenchmarkError where a finished run has fewer lines in a file than it had when it was scored."""
    file = run_dir / METRICS
    if not file.exists():
        return
    try:
        finished = json.loads(file.read_text(encoding="utf-8")).get(Path(name).stem, found)
    except (OSError, ValueError, AttributeError) as error:
        raise BenchmarkError(f"{file} is damaged: {error}; delete it and continue with --resume") from error
    if found != finished:
        raise BenchmarkError(
            f"{run_dir / name} holds {found:,} lines, and {finished:,} when the run ended: put it back, or delete "
            f"{METRICS} and continue with --resume"
        )


def measure_rankings(
    records: Sequence[Record], cutoffs: Iterable[int], names: Iterable[str] = tuple(MEASURES)
) -> PerQuery[Measure]:
    """Return every measure, or those named, at every cutoff for every query."""
    at = sorted(set(cutoffs))
    measures = [Measure(name, k) for name in names for k in at]
    qrels = {record.query_id: record.gold for record in records}
    if len(qrels) < len(records):
        raise BenchmarkError("a query has more than one record: the run folder was written by two runs at once")
    return per_query(measures, qrels, {record.query_id: _ranking_of(record) for record in records})


def read_timings(file: Path) -> dict[str, float]:
    """Return what a run took.

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
    timings = {
        "seconds_per_query": round(seconds / queries, 7) if queries else 0.0,
        "index_seconds": round(index["seconds"], 4),
        "index_bytes": index["bytes"],
    }
    if stages["latency"]:
        sample = np.array(stages["latency"][-1]["seconds"])
        timings["latency_mean"] = round(float(sample.mean()), 7)
        timings |= {f"latency_p{q}": round(float(np.percentile(sample, q)), 7) for q in (50, 95)}
    if stages["generate"]:
        timings |= _sum_costs(stages["generate"])
    return timings


def _sum_costs(batches: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return what the generator took: per question, and in all."""
    efficiency = [each for batch in batches for each in batch["efficiency"]]
    spent = {
        "seconds_per_reply": round(sum(b["seconds"] for b in batches) / sum(b["queries"] for b in batches), 6),
        **{name: sum(batch[name] for batch in batches) for name in ("calls", "input_tokens", "output_tokens")},
    }
    if all(batch["money"] is not None for batch in batches):
        spent["money"] = round(sum(batch["money"] for batch in batches), _DIGITS)
    if any(efficiency):
        spent["valid_efficiency_score"] = round(sum(efficiency) / len(efficiency), 4)
    return spent


def _ranking_of(record: Record) -> RankedResult:
    return RankedResult([hit.id for hit in record.hits], [database for database, _ in route_databases(record.hits)])


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


def route_databases(ranking: Ranking) -> tuple[tuple[str, float], ...]:
    """Return the databases of a ranking, best first, by the pooled scores of their tables.

    A question that joins tables finds several of one database among its hits, so each hit adds its share to
    its database: its score above the last hit's, discounted by rank. Ties keep the order of first appearance.
    """
    if not ranking:
        return ()
    floor = ranking[-1].score
    pooled: dict[str, float] = {}
    for rank, hit in enumerate(ranking, 1):
        pooled[hit.id.database] = pooled.get(hit.id.database, 0.0) + (hit.score - floor) / rank
    return tuple(sorted(pooled.items(), key=lambda entry: -entry[1]))
