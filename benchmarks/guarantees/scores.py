"""Scores of a proxy, from good to useless, for filters whose truth is known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

KINDS = ("good", "weak", "random", "inverted", "constant", "missing", "infinite")


def scores_of(kind: str, truth: NDArray[np.bool_], draws: np.random.Generator) -> NDArray[np.float64]:
    """Return a score for each row: one of KINDS."""
    noise = draws.normal(size=len(truth))
    made: dict[str, NDArray[np.float64]] = {
        "good": noise + 2.9 * truth,
        "weak": noise + 0.7 * truth,
        "random": noise,
        "inverted": noise - 2.9 * truth,
        "constant": np.zeros(len(truth)),
        "missing": np.where(draws.random(len(truth)) < 0.3, np.nan, noise + 2 * truth),
        "infinite": np.where(noise > 1, np.inf, noise + truth),
    }
    return made[kind]
