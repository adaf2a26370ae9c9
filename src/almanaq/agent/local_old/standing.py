"""What stands in a conversation: the question that a few words go on from, as a whole, with its query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from almanaq.agent.history import NO_DATA, SEARCHES, Turn, TurnKind
from almanaq.agent.local_old import trees
from almanaq.agent.parser import Parsed

Reads = Callable[[str], Parsed]
"""Gives the query of a whole question over tables, or why there is none."""


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

    @property
    def lists(self) -> bool:
        return self.tree is not None and not self.gives_figures

    @property
    def ranks(self) -> bool:
        return self.tree is not None and self.tree.args.get("order") is not None


def query_of(tree: exp.Select, kind: TurnKind, asked: str, of: exp.Select | None) -> Parsed:
    """Return a query with the question that it stands for, and the rows that its figures are of."""
    return Parsed("query", trees.write(tree), kind=kind, asked=asked, of=trees.write(of) if of is not None else "")


def tree_of(read: Parsed) -> exp.Select | None:
    """Return the query of a question that was understood."""
    return trees.read(read.suql) if read.status == "query" and read.suql else None


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
