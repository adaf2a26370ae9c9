"""The SQL texts of a plan, kept from one run of it to the next."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field

from sqlglot import exp

from almanaq.suql.plan.stages import Plan, selects_of
from almanaq.suql.syntax.nodes import nodes_of

_MOST_TEXTS = 16
"""Texts of one tree that are kept: they differ in what links found, and in what became of the tables that it names."""


@dataclass(slots=True)
class _Kept:
    names: tuple[str, ...] = ()
    """The tables that the tree names."""
    texts: dict[Hashable, tuple[str, str]] = field(default_factory=dict)
    """What a text depends on ⇒ the prefix of the session that wrote it, and the text."""


class Statements:
    """The SQL texts of a plan's own trees; that of any other tree is written anew each time.

    Temporary tables have other names in every session, which begin with the session's own random prefix: a text is kept
    with the prefix that it was written under, and given with that of the session that asks for it.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan  # as long as its trees live, no other tree has their ids
        trees = [tree for stage in plan.stages for tree in selects_of(stage)]
        self._kept = {id(tree): _Kept() for tree in (*trees, plan.output.select)}

    def text(
        self, tree: exp.Expr, prefix: str, known: Callable[[Iterable[str]], Hashable], write: Callable[[], str]
    ) -> str:
        """Return the text of a tree, written if it is not kept.

        Args:
            known: gives all that a text depends on besides its tree, the catalog and the session's prefix, for the
                names of the tables in it.
        """
        kept = self._kept.get(id(tree))
        if kept is None:
            return write()
        if not kept.texts:
            kept.names = tuple(sorted({table.name for table in nodes_of(tree, exp.Table)}))
        state = known(kept.names)
        found = kept.texts.get(state)
        if found is None:
            if len(kept.texts) >= _MOST_TEXTS:
                kept.texts.clear()
            found = kept.texts[state] = (prefix, write())
        return found[1].replace(found[0], prefix)
