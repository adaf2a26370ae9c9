"""Which models read several texts in one call where nobody says how many."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from almanaq.models.batching import Batching

_MEASURED = ("openai", "azure")


def usual_batching(model: str) -> Batching | None:
    """Return what shares a call of a model where nobody says; None: nothing does.

    The small models of one's own machine read each text alone: what was measured says nothing of them.
    """
    if model.partition(":")[0] not in _MEASURED:
        return None
    from almanaq.models.batching import AGREED

    return AGREED
