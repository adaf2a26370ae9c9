"""What stands in a conversation: the question that a few words go on from, as a whole, with its query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from almanaq.agent.history import NO_DATA, SEARCHES, Turn
from almanaq.agent.local import trees


@dataclass(frozen=True, slots=True)
class Standing:
    """The question that a conversation is at.

    Attributes:
        question: all of it; "" where its query is an edit of another that no question says.
        of: the query of the rows that its figures are of; None where they are of all.
        tree: its query; None where it was not understood.
    """

    question: str
    of: exp.Select | None
    tree: exp.Select | None

    @property
    def gives_figures(self) -> bool:
        return self.tree is not None and trees.aggregates(self.tree)


def standing(history: Sequence[Turn]) -> Standing | None:
    """Return what a turn goes on from; a follow-up that was not understood leaves it as it was."""
    for turn in reversed(history):
        if turn.status == "failed" or turn.kind in NO_DATA:
            continue
        suql = turn.meant or turn.suql
        if suql and (turn.asked or turn.kind in SEARCHES):
            asked = turn.asked or (turn.question if turn.kind == "new" else "")
            return Standing(asked, trees.read(turn.of) if turn.of else None, trees.read(suql))
        if not suql and turn.kind in ("new", "detail"):
            return Standing(turn.asked or turn.question, None, None)
    return None
