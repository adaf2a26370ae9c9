"""BARGAIN's filter for precision and recall together, over given scores (package `bargain`, arXiv 2509.02896)."""

from __future__ import annotations

from typing import Any

import numpy as np
from BARGAIN.models.AbstractModels import Oracle, Proxy
from BARGAIN.process.BARGAIN_PR import BARGAIN_PR
from numpy.typing import NDArray

from almanaq import Accuracy


class _Scores(Proxy):
    def __init__(self, scores: NDArray[np.float64]) -> None:
        super().__init__(verbose=False)
        self._scores = (scores - scores.min()) / max(1e-12, float(scores.max() - scores.min()))

    def proxy_func(self, row: Any) -> tuple[int, float]:
        score = float(self._scores[int(row)])
        return int(score > 0.5), max(score, 1 - score)


class _Truth(Oracle):
    def __init__(self, passes: NDArray[np.bool_]) -> None:
        super().__init__(verbose=False)
        self._passes = passes
        self.asked: set[int] = set()

    def oracle_func(self, row: Any, proxy_output: Any = None) -> tuple[bool, Any]:
        self.asked.add(int(row))
        return True, bool(self._passes[int(row)])


def run(
    scores: NDArray[np.float64], passes: NDArray[np.bool_], labels: dict[int, bool], accuracy: Accuracy
) -> tuple[int, NDArray[np.bool_]]:
    """Return the rows asked, those that the scores were learned from included, and which rows are returned."""
    oracle = _Truth(passes)
    method = BARGAIN_PR(
        _Scores(scores), oracle, delta=accuracy.delta, target=accuracy.recall, verbose=False, seed=accuracy.seed
    )
    found = method.process([str(row) for row in range(len(scores))])
    returned = np.zeros(len(scores), bool)
    returned[[int(row) for row in found]] = True
    for row, passed in labels.items():
        returned[row] = passed
    return len(oracle.asked | labels.keys()), returned
