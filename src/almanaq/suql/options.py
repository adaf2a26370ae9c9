"""How a query is to be run: every choice a user has, with its default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Options:
    """Choices for running one query; defaults are exact.

    Attributes:
        order: in which order candidates are tried when the query does not say (semantics 9).
        speculation: at most ceil(speculation × rows still needed) rows are under way at once; at least 1.
        max_calls: budget of text calls; None takes the default of 1,000 for a paid model and none otherwise.
        strict: raise on a failed call instead of counting it as unknown.
        link: map literals compared with ENUM columns to the column's values (semantics 11).
        deadline: seconds after which the query is interrupted; None: never.
        passages: read only the best k passages of each document (approximate); None reads all.
        candidates: verify only the k most similar rows (approximate); None considers all.
        concurrency: most text calls under way at once.
    """

    order: Literal["similarity", "table"] = "similarity"
    speculation: float = 2.0
    max_calls: int | None = None
    strict: bool = False
    link: bool = True
    deadline: float | None = None
    passages: int | None = None
    candidates: int | None = None
    concurrency: int = 64
