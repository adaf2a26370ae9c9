"""Logistic regression with a ridge, for scores learned from a few labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_STEPS = 30


def fitted(features: Floats, labels: NDArray[np.bool_], ridge: float) -> Floats:
    """Return the weights of a logistic regression, the constant's last; found by Newton's method.

    Args:
        features: one row per label; ridge: the penalty on each squared weight, but the constant's.
    """
    design = _with_constant(features)
    penalty = np.full(design.shape[1], ridge)
    penalty[-1] = 1e-3  # labels of one kind alone have no finite constant
    weights = np.zeros(design.shape[1])
    target = labels.astype(np.float64)
    for _ in range(_STEPS):
        chance = probabilities(design @ weights)
        slope = design.T @ (chance - target) + penalty * weights
        curvature = (design.T * np.maximum(chance * (1 - chance), 1e-9)) @ design + np.diag(penalty)
        step = np.linalg.solve(curvature, slope)
        # Far from the minimum a whole step may overshoot where the curve is flat.
        weights -= step * min(1.0, 5.0 / max(1e-12, float(np.abs(step).max())))
        if float(np.abs(step).max()) < 1e-8:
            break
    return weights


def margins(features: Floats, weights: Floats) -> Floats:
    """Return the log odds of each row of features."""
    found: Floats = _with_constant(features) @ weights
    return found


def probabilities(log_odds: Floats) -> Floats:
    """Return the probabilities of log odds."""
    found: Floats = 1 / (1 + np.exp(-np.clip(log_odds, -40, 40)))
    return found


def _with_constant(features: Floats) -> Floats:
    return np.column_stack([features, np.ones(len(features))])
