"""What a caller asks of an approximate filter."""

from __future__ import annotations

from dataclasses import dataclass

from almanaq.errors import UsageError


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Targets of a semantic filter that need not ask about every row; without it every row is asked.

    Attributes:
        recall: the share of the exact result's rows that are returned, at least.
        precision: the share of the returned rows that are in the exact result, at least.
        delta: the probability with which either target may be missed.
        proxy: what scores the rows: "local", "regression", or the name of a cheaper model.
        seed: draws the rows that are asked; the same seed gives the same rows.

    Raises:
        UsageError: a number is out of its range.
    """

    recall: float = 0.9
    precision: float = 0.9
    delta: float = 0.1
    proxy: str = "local"
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("recall", "precision"):
            if not 0 < getattr(self, name) <= 1:
                raise UsageError(f"{name} is {getattr(self, name)}: it must be above 0 and at most 1")
        if not 0 < self.delta < 1:
            raise UsageError(f"delta is {self.delta}: it must be between 0 and 1")
