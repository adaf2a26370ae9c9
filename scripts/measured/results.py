"""The committed results under experiments/, and Markdown made of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
EXPERIMENTS = ROOT / "experiments"
DATASETS = ("ottqa", "fetaqa", "tabfact", "spider", "bird", "hybridqa")
BY_DATABASE = ("spider", "bird")
RETRIEVERS = ("none", "random", "bm25", "dense", "hybrid-untuned", "hybrid", "rerank", "oracle")


def records(group: str) -> list[dict[str, Any]]:
    """Give the committed results of one kind, those not yet run left out, in the order of DATASETS."""
    found = [json.loads(path.read_text()) for path in sorted((EXPERIMENTS / group).glob("*.json"))]
    done = [record for record in found if record.get("result", True)]
    return sorted(done, key=_rank)


def _rank(record: dict[str, Any]) -> tuple[int, str]:
    result = record.get("result") or {}
    dataset = result.get("dataset", "")
    return (DATASETS.index(dataset) if dataset in DATASETS else len(DATASETS), result.get("retriever", ""))


def by_system(group: str) -> dict[str, dict[str, Any]]:
    """Give the results of one kind by retriever and dataset."""
    found: dict[str, dict[str, Any]] = {}
    for record in records(group):
        result = record["result"]
        found.setdefault(result["retriever"], {})[result["dataset"]] = result
    return found


def ranked(found: dict[str, dict[str, Any]]) -> list[str]:
    """Give the systems in the order of RETRIEVERS, others after them."""
    return sorted(found, key=lambda name: (RETRIEVERS.index(name) if name in RETRIEVERS else len(RETRIEVERS), name))


def figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def markdown(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    if not rows:
        return "*Not measured yet.*\n"
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)
