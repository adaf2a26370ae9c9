"""Calls and misses of filters under targets: `python -m benchmarks.accuracy --reviews Reviews.csv [--out FILE]`.

The reviews are SemBench's Movie reviews, each distinct text once; the model answers by their labelled sentiment. For
each share of rows that pass, target, proxy and method: the share of rows asked (the mean over the seeds), and in how
many of the seeds a target was missed. Ours run as queries through a connection. BARGAIN runs, where the package
`bargain` is installed, over the scores of the same proxy, and the rows asked to learn them are counted as well.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

import almanaq
from almanaq import Accuracy
from almanaq.models.embedders.minilm import LocalEmbedder
from almanaq.suql.accuracy.tails import fitted, margins
from almanaq.testing import FunctionModel

TARGETS = (0.9, 0.95)
DELTA = 0.1
QUESTION = "is the review positive?"


@dataclass(frozen=True)
class Task:
    """Texts, and which of them pass; `vectors` are those of the local embedder."""

    name: str
    texts: list[str]
    passes: NDArray[np.bool_]
    vectors: NDArray[np.float32]


@dataclass(frozen=True)
class Outcome:
    """Rows asked, and which were returned."""

    asked: int
    returned: NDArray[np.bool_]


class KnownVectors:
    """An embedder that has computed all its vectors before."""

    name, remote = "local", False

    def __init__(self, task: Task) -> None:
        self._vectors = dict(zip(task.texts, task.vectors, strict=True))
        self._question = LocalEmbedder().embed([QUESTION])[0]

    def embed(self, texts: Any) -> NDArray[np.float32]:
        return np.stack([self._vectors.get(text, self._question) for text in texts])


def main() -> None:
    """Run all, print JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("--reviews", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    report = {"seeds": given.seeds, "delta": DELTA, "versions": _versions(), "rows": []}
    for task in tasks(given.reviews):
        for name, method in methods(task).items():
            for target in TARGETS:
                report["rows"].append(_measure_method(task, name, method, target, given.seeds))
                print(json.dumps(report["rows"][-1]), flush=True)
    if given.out:
        given.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def tasks(reviews: Path) -> list[Task]:
    """Return the tasks: three quarters, a quarter and a twentieth of the rows pass."""
    found = duckdb.sql(
        f"SELECT reviewText, mode(scoreSentiment) FROM '{reviews}' WHERE length(reviewText) > 0 GROUP BY 1 ORDER BY 1"
    ).fetchall()
    texts, positive = [text for text, _ in found], np.array([said == "POSITIVE" for _, said in found])
    vectors = LocalEmbedder().embed(texts)
    negative = np.random.default_rng(5).permutation(np.flatnonzero(~positive))[:75]
    few = np.sort(np.concatenate([np.flatnonzero(positive), negative]))
    return [
        Task("75 % pass", texts, positive, vectors),
        Task("25 % pass", texts, ~positive, vectors),
        Task("5 % pass", [texts[i] for i in few], ~positive[few], vectors[few]),
    ]


def methods(task: Task) -> dict[str, Callable[[Accuracy], Outcome]]:
    """Return what is compared, by name."""
    noise = {seed: np.random.default_rng(seed).normal(size=len(task.texts)) for seed in range(200)}
    cheap = {seed: noise[seed] + 2.904 * task.passes for seed in noise}  # two normal distributions: AUC 0.98
    found: dict[str, Callable[[Accuracy], Outcome]] = {
        "audited tails, regression": lambda accuracy: _ours(task, accuracy),
        "audited tails, score of AUC 0.98": lambda accuracy: _filter_scores(task, cheap[accuracy.seed], accuracy),
    }
    try:
        importlib.metadata.version("bargain")
    except importlib.metadata.PackageNotFoundError:
        return found
    from benchmarks.accuracy.bargain import run

    found["BARGAIN, regression"] = lambda given: Outcome(*run(*_regression(task, given.seed), given))
    found["BARGAIN, score of AUC 0.98"] = lambda given: Outcome(*run(cheap[given.seed], task.passes, {}, given))
    return found


def _ours(task: Task, accuracy: Accuracy) -> Outcome:
    said = dict(zip(task.texts, task.passes.tolist(), strict=True))
    model = FunctionModel(lambda text, _: "Yes" if said[text] else "No")
    table = {"reviews": {"id": list(range(len(task.texts))), "text": task.texts}}
    with almanaq.connect(table, model=model, embedder=KnownVectors(task), cache=False, order="table") as con:
        result = con.sql(f"SELECT id FROM reviews WHERE answer(text, '{QUESTION}') = 'Yes'", accuracy=accuracy)
    returned = np.zeros(len(task.texts), bool)
    returned[[row[0] for row in result]] = True
    return Outcome(model.calls, returned)


def _filter_scores(task: Task, scores: NDArray[np.float64], accuracy: Accuracy) -> Outcome:
    """Run audited tails over scores that are there already, as a cheaper model's would be."""
    from almanaq.suql.accuracy.tails import AuditedTails

    pilot = np.random.default_rng(accuracy.seed + 1000).permutation(len(scores))[:60]
    returned = np.zeros(len(scores), bool)
    returned[pilot] = task.passes[pilot]
    labels = {int(row): bool(task.passes[row]) for row in pilot}
    audit = AuditedTails(scores, accuracy, labels, seed=accuracy.seed)
    while len(rows := audit.next()):
        audit.tell(rows, task.passes[rows])
        returned[rows] = task.passes[rows]
    returned[audit.accepted()] = True
    return Outcome(audit.certificate().asked, returned)


def _regression(task: Task, seed: int) -> tuple[NDArray[np.float64], NDArray[np.bool_], dict[int, bool]]:
    """Return the scores that our proxy would have given, what passes, and the labels it learned from."""
    rows = np.random.default_rng(seed).permutation(len(task.texts))[:150]
    features = task.vectors.astype(np.float64) * 4
    scores = margins(features, fitted(features[rows], task.passes[rows], 1.0))
    return scores, task.passes, {int(row): bool(task.passes[row]) for row in rows}


def _measure_method(
    task: Task, name: str, method: Callable[[Accuracy], Outcome], target: float, seeds: int
) -> dict[str, Any]:
    asked, missed = [], 0
    for seed in range(seeds):
        done = method(Accuracy(target, target, DELTA, "regression", seed))
        right = int((done.returned & task.passes).sum())
        recall, precision = right / int(task.passes.sum()), right / max(1, int(done.returned.sum()))
        missed += recall < target or precision < target
        asked.append(done.asked / len(task.texts))
    return {
        "task": task.name,
        "rows": len(task.texts),
        "method": name,
        "target": target,
        "asked": round(float(np.mean(asked)), 3),
        "missed": round(missed / seeds, 3),
    }


def _versions() -> dict[str, str]:
    found = {}
    for name in ("almanaq", "bargain", "numpy"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


if __name__ == "__main__":
    main()
