"""The index on disk: its costs, and others beside it."""

from __future__ import annotations

import json
from typing import Any

from measured.results import ROOT, figure, markdown

WAYS = {
    "lexical": "`bm25`",
    "lexical_anew": "`hybrid`, no vectors",
    "hybrid_untuned": "`hybrid-untuned`, static vectors",
    "hybrid": "`hybrid`, static vectors",
}
"""The ways in which an index is searched, as the results and as people name them."""


def index_scale() -> str:
    """The index on disk by size: what building it takes, and how quick and sure it is, by words and with vectors."""
    searched = [part for name in WAYS.values() for part in (f"{name}: CPU p50 / p95 ms", "R@1 / @10")]
    head = ("tables", "build CPU s", "build GB", "on disk GB", "update writes", *searched)
    rows = []
    for run in json.loads((ROOT / "benchmarks/retrieval/results/scale.json").read_text())["runs"]:
        found = [part for kind in WAYS for part in _searched(run.get(kind))]
        built = (f"{run['build_cpu_seconds']:.0f}", f"{run['peak_memory_gb']:.2f}", f"{run['index_gb']:.3f}")
        rows.append((f"{run['tables']:,}", *built, f"{run['update_writes_share']:.2%}", *found))
    return markdown(head, rows)


def _searched(told: dict[str, Any] | None) -> tuple[str, str]:
    if told is None:
        return "–", "–"
    recalls = f"{figure(told['recall@1'])} / {figure(told['recall@10'])}"
    return f"{told['cpu_p50_ms']:.1f} / {told['cpu_p95_ms']:.1f}", recalls


def index_yardsticks() -> str:
    """Our index beside bm25s and tantivy, called bare on the same text."""
    head = ("tables", "", "build CPU s", "GB while building", "on disk GB", "CPU p50 / p95 ms", "R@10")
    rows = []
    for run in json.loads((ROOT / "benchmarks/retrieval/results/yardsticks.json").read_text())["runs"]:
        for name in ("ours", "bm25s", "tantivy"):
            told = run[name]
            times = f"{told['cpu_p50_ms']:.1f} / {told['cpu_p95_ms']:.1f}"
            built = (f"{told['build_cpu_seconds']:.0f}", f"{told['peak_memory_gb']:.2f}", f"{told['index_gb']:.3f}")
            rows.append((f"{run['tables']:,}", name, *built, times, figure(told["recall@10"])))
    return markdown(head, rows)


TABLES = {
    "index-scale": index_scale,
    "index-yardsticks": index_yardsticks,
}
