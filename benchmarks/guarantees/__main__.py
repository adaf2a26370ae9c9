"""How often what is promised holds: `python -m benchmarks.guarantees [--cases 1000] [--out FILE]`.

Generated tables with good, weak, random, inverted, constant, missing and infinite scores: in how many a target of
audited tails is missed (no more than delta), and how near the calls are to those that were predicted. Then intervals
over as many seeds: how often the exact ones for counts, those for all groups at once, those for means within bounds,
and those narrowed by a proxy hold the truth. Ends with an error where a promise is broken.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.guarantees.scores import KINDS, scores_of

from almanaq import Accuracy
from almanaq.suql.accuracy.estimates import Counting, GroupCounting, Sample, assisted_mean, bounded_mean, exact_interval
from almanaq.suql.accuracy.tails import AuditedTails, fitted, margins, probabilities

DELTA, CONFIDENCE, PILOT = 0.1, 0.95, 60
NEAR = 0.25


def one_case(number: int) -> dict[str, Any]:
    """Run one generated filter."""
    draws = np.random.default_rng([7, number])
    kind = KINDS[number % len(KINDS)]
    size, share = int(draws.integers(80, 1200)), float(draws.choice([0.0, 0.02, 0.2, 0.5, 0.8, 1.0]))
    truth = draws.random(size) < share
    accuracy = Accuracy(float(draws.choice([0.7, 0.9, 0.95])), float(draws.choice([0.7, 0.9, 0.95])), delta=DELTA)
    labels = {int(row): bool(truth[row]) for row in draws.permutation(size)[:PILOT]}
    machine = AuditedTails(scores_of(kind, truth, draws), accuracy, labels, seed=number)
    while len(rows := machine.next()):
        machine.tell(rows, truth[rows])
        labels |= {int(row): bool(truth[row]) for row in rows}
    returned = np.zeros(size, bool)
    returned[machine.accepted()] = True
    for row, said in labels.items():
        returned[row] = said
    right = int((truth & returned).sum())
    missed = right < accuracy.recall * truth.sum() or right < accuracy.precision * returned.sum()
    predicted = min(float(size), machine.thresholds.calls)
    return {"kind": kind, "rows": size, "asked": len(labels), "predicted": predicted, "missed": bool(missed)}


def tails(cases: int) -> dict[str, Any]:
    """Run generated filters; say how many missed a target, and how near their calls were to those predicted."""
    runs = [one_case(number) for number in range(cases)]
    missed = sum(run["missed"] for run in runs)
    near = [abs(run["asked"] - run["predicted"]) <= NEAR * run["asked"] for run in runs]
    return {
        "cases": cases,
        "missed": missed,
        "chance_of_more": round(more_than(missed - 1, cases, DELTA), 4),
        "share_near_prediction": float(np.mean(near)),
        "by_kind": {
            kind: {
                "missed": sum(run["missed"] for run in runs if run["kind"] == kind),
                "share_asked": round(
                    float(np.mean([run["asked"] / run["rows"] for run in runs if run["kind"] == kind])), 3
                ),
                "near": round(float(np.mean([n for n, run in zip(near, runs, strict=True) if run["kind"] == kind])), 3),
            }
            for kind in KINDS
        },
    }


def more_than(count: int, trials: int, chance: float) -> float:
    """Return the probability of more than `count` successes."""
    terms = (math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k) for k in range(count + 1))
    return 1 - math.fsum(terms) if count >= 0 else 1.0


def measure_coverage(seeds: int, holds: Callable[[np.random.Generator], bool]) -> float:
    """Return the share of seeds for which something holds."""
    return float(np.mean([holds(np.random.default_rng([3, seed])) for seed in range(seeds)]))


def exact_holds(draws: np.random.Generator) -> bool:
    """Return whether the exact interval holds a count."""
    size = int(draws.integers(50, 3000))
    sampled, passing = int(draws.integers(10, min(size, 400))), int(size * draws.choice([0.0, 0.01, 0.1, 0.5, 0.9]))
    found = int(draws.hypergeometric(passing, size - passing, sampled))
    interval = exact_interval(size, sampled, found, 1 - CONFIDENCE)
    return interval.low <= passing <= interval.high


def groups_hold(draws: np.random.Generator) -> bool:
    """Return whether the intervals of all groups hold at once."""
    names = ("a", "b", "c", "d")
    values = draws.choice([*names, ""], size=int(draws.integers(100, 1000)), p=draws.dirichlet(np.ones(5)))
    sample: list[str | None] = [value or None for value in draws.permutation(values)[:80].tolist()]
    found = GroupCounting(Counting(calls=80, confidence=CONFIDENCE), names).estimate(Sample(len(values), sample))
    return all(one.low <= int((values == (one.answer or "")).sum()) <= one.high for one in found.groups)


def mean_holds(draws: np.random.Generator) -> bool:
    """Return whether the interval for a mean within bounds holds."""
    values = 100 * draws.beta(*draws.choice([0.3, 1, 4], size=2), size=int(draws.integers(100, 2000)))
    sample = draws.permutation(values)[: int(draws.integers(20, 100))]
    low, high = bounded_mean(sample, len(values), (0, 100), 1 - CONFIDENCE)
    return low <= values.mean() <= high


def assisted_holds(calls: int) -> Callable[[np.random.Generator], bool]:
    """Return what says whether an interval that a learned proxy narrowed holds, for a number of calls."""

    def holds(draws: np.random.Generator) -> bool:
        size = 2000
        truth = draws.random(size) < 0.3
        features = draws.normal(size=(size, 6)) + 0.8 * truth[:, None] * np.array([1, 1, 0, 0, 0, 0])
        rows = draws.permutation(size)[:calls]
        scores = probabilities(margins(features, fitted(features[rows], truth[rows], 1.0)))
        for fold in range(10):
            mine = np.arange(calls) % 10 == fold
            weights = fitted(features[rows[~mine]], truth[rows[~mine]], 1.0)
            scores[rows[mine]] = probabilities(margins(features[rows[mine]], weights))
        _, low, high = assisted_mean(truth[rows], scores[rows], float(scores.mean()), size, 1 - CONFIDENCE)
        return bool(low <= truth.mean() <= high)

    return holds


def main() -> None:
    """Measure, print, and fail where a promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    found = {
        "command": "python -m benchmarks.guarantees",
        "delta": DELTA,
        "confidence": CONFIDENCE,
        "audited_tails": tails(given.cases),
        "coverage": {
            "exact counts": measure_coverage(given.cases, exact_holds),
            "all groups at once": measure_coverage(given.cases, groups_hold),
            "means within bounds": measure_coverage(given.cases, mean_holds),
            "counts with a proxy, 60 calls (refused)": measure_coverage(given.cases, assisted_holds(60)),
            "counts with a proxy, 200 calls": measure_coverage(given.cases, assisted_holds(200)),
            "counts with a proxy, 400 calls": measure_coverage(given.cases, assisted_holds(400)),
        },
    }
    print(json.dumps(found, indent=1))
    if given.out is not None:
        given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    sure = ("exact counts", "all groups at once", "means within bounds")
    if found["audited_tails"]["chance_of_more"] < 0.01:  # type: ignore[index]
        raise SystemExit("targets are missed more often than delta")
    if min(found["coverage"][name] for name in sure) < CONFIDENCE:  # type: ignore[index]
        raise SystemExit("intervals hold less often than they say")


if __name__ == "__main__":
    main()
