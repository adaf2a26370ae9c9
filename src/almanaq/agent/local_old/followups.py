"""Follow-ups: the query of a turn that goes on from an earlier one, as an edit of that one's query."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from sqlglot import exp

from almanaq.agent.history import Shown, Turn, TurnKind
from almanaq.agent.local_old import sql, trees
from almanaq.agent.local_old.comparisons import Lookup, beyond, order_of, superlative
from almanaq.agent.local_old.details import detail
from almanaq.agent.local_old.dropped import unwanted
from almanaq.agent.local_old.edits import Edit, applied, compared, exchanged, excludes
from almanaq.agent.local_old.facts import facts
from almanaq.agent.local_old.fragments import fragment, remainder
from almanaq.agent.local_old.listing import listing, unlimited
from almanaq.agent.local_old.recognize.tokens import SPELLED
from almanaq.agent.local_old.recognize.vocabulary import Vocabulary
from almanaq.agent.local_old.references import last_search, last_shown, resolve
from almanaq.agent.local_old.schema_index import Place
from almanaq.agent.local_old.search.wishes import DEFAULT_LIMIT, SEARCH_LIMIT
from almanaq.agent.parser import Parsed
from almanaq.suql.catalog.relations import Relation

_ONE_MORE = re.compile(
    r"\b(?:another(?: one)?|one more|next|different one|(?:that|this) one|an alternative|a different|second best)\b",
    re.I,
)
_TOTAL = re.compile(r"\b(?:total|sum)\b", re.I)
_SOME_MORE = re.compile(rf"\b(\d+|{'|'.join(w for w in SPELLED if w != 'one')}) (?:more|others?)\b", re.I)


def follow_up(
    question: str, kind: TurnKind, history: Sequence[Turn], vocabulary: Vocabulary, lookup: Lookup
) -> Parsed | None:
    """Return what a follow-up means; None when it has no meaning here and is better read by itself.

    Args:
        lookup: runs a query without text functions, for the values of rows that were shown.
    """
    if kind == "detail":
        return detail(question, vocabulary, history)
    turn = last_search(history)
    suql = (turn.meant or turn.suql) if turn else None
    tree = trees.read(suql) if suql else None
    main = vocabulary.index.catalog.find(".".join(p.name for p in tree.args["from_"].this.parts)) if tree else None
    if turn is None or tree is None or main is None:
        return None
    edit = _EDITS[kind](FollowUp(question, turn, tree, main, history, vocabulary, lookup))
    if not isinstance(edit, Edit):
        return edit if edit is None else replace(edit, kind=kind)
    places = {p.column.name: p for p in vocabulary.index.places[main.name] if p.kind != "prose"}
    changed = trees.write(applied(edit, places))
    return Parsed("query", changed, unused=edit.unused, corrections=edit.corrections, kind=kind, keep=edit.keep)


@dataclass(frozen=True)
class FollowUp:
    """A turn that goes on from an earlier one; each kind of it is an edit of that one's query, or a question back.

    Attributes:
        turn: the earlier turn, with the `tree` of its query and the `main` relation of that.
    """

    question: str
    turn: Turn
    tree: exp.Select
    main: Relation
    history: Sequence[Turn]
    vocabulary: Vocabulary
    lookup: Lookup

    @cached_property
    def places(self) -> Sequence[Place]:
        return self.vocabulary.index.places[self.main.name]

    @cached_property
    def conditions(self) -> list[exp.Expr]:
        return trees.conditions(self.tree)

    @cached_property
    def shown(self) -> Shown | None:
        """The rows shown last, where they are of the main relation."""
        shown = last_shown(self.history)
        return shown if shown is not None and shown.relation == self.main.name else None

    @cached_property
    def rows(self) -> exp.Select:
        """The query as one for rows: the counted ones, where it gives figures."""
        if trees.aggregates(self.tree):
            shown = [sql.column(p, trees.qualifier(self.tree) is not None) for p in facts(self.places, [])]
            reads = any(map(trees.reads_text, self.conditions))
            return trees.ordered(trees.showing(self.tree, shown), [], SEARCH_LIMIT if reads else DEFAULT_LIMIT)
        # "Another one" asked for one row; what comes after it does not.
        single = self.turn.kind == "another" and trees.limit_of(self.tree) == 1
        return trees.limited(self.tree, SEARCH_LIMIT) if single else self.tree

    @cached_property
    def left_out(self) -> tuple[exp.Expr, ...]:
        """The conditions that only leave out rows that were shown."""
        keys = self.turn.shown.columns if self.turn.shown else self.main.key
        return tuple(c for c in self.conditions if trees.leaves_out_rows(c, keys))

    def listed(self) -> Edit | Parsed | None:
        wanted = listing(self.question)
        if wanted is None:
            return None
        whole = trees.limit_of(unlimited(self.rows, every=wanted.every))
        if not wanted.by:
            return Edit(self.rows, limit=whole)
        place = next((p for p in self.places if p.column.name.casefold().replace("_", " ") == wanted.by), None)
        if place is None:
            return self._by_what("sort")
        # The same rows in another order, where a LIMIT chose among them.
        only = [trees.only(self.shown, trees.qualifier(self.rows))] if whole is not None and self.shown else ()
        order = [(sql.column(place, trees.qualifier(self.rows) is not None), wanted.down)]
        return Edit(self.rows, plus=only, show=[place.column.name], order=order, limit=trees.limit_of(self.rows))

    def another(self) -> Edit | Parsed:
        since = self.history[max(i for i, turn in enumerate(self.history) if turn is self.turn) :]
        seen = (t.shown for t in since if t.shown and t.shown.keys and t.shown.relation == self.main.name)
        shown = next(seen, None)
        if shown is None:
            return Parsed("clarify", reply="I have shown nothing yet. What shall I look for?")
        some, limit = _SOME_MORE.search(self.question), trees.limit_of(self.rows) or SEARCH_LIMIT
        if some:
            limit = int(some[1]) if some[1].isdigit() else int(SPELLED[some[1].casefold()])
        elif _ONE_MORE.search(self.question):
            limit = 1
        plus = [trees.none_of(shown, trees.qualifier(self.rows))]
        keep = tuple(c.sql("postgres") for c in (*self.conditions, *plus))
        return Edit(self.rows, plus=plus, limit=limit, keep=keep)

    def compare(self) -> Edit | Parsed:
        reference = resolve(self.question, self.history)
        order = order_of(superlative(self.question), self.vocabulary, self.main)
        shown = reference.shown if reference else self.shown
        if not order or shown is None or shown.relation != self.main.name:
            return self._by_what("compare")
        condition = beyond(*order[0], shown, self.lookup)
        if isinstance(condition, str):
            return Parsed("no_result", reply=condition)
        same = compared(condition)
        minus = [c for c in self.conditions if not trees.reads_text(c) and compared(c) == same]
        minus += [c for c in self.conditions if trees.leaves_out_rows(c, shown.columns)]
        return Edit(self.rows, minus, [condition], show=sorted(same), keep=(condition.sql("postgres"),))

    def best(self) -> Edit | Parsed:
        order = order_of(superlative(self.question), self.vocabulary, self.main)
        if not order:
            return self._by_what("rank")
        qualifier = trees.qualifier(self.rows)
        keys = [(item.key(qualifier is not None), down) for item, down in order]
        names = [item.place.column.name for item, _ in order[:1] if item.place]
        among = self.shown is not None and (len(self.shown.keys) > 1 or self.turn.meant is not None)
        if self.shown is None or not among:
            return Edit(self.rows, show=names, order=keys, limit=1)
        only = trees.only(self.shown, qualifier)
        return Edit(self.rows, self.conditions, [only], show=names, order=keys, limit=1)

    def drop(self) -> Edit | Parsed:
        gone = unwanted(self.question, self.tree, self.main, self.vocabulary)
        return gone if isinstance(gone, Parsed) else Edit(self.tree, gone)

    def count(self) -> Edit | Parsed:
        figures = [f.this.name for item in self.tree.expressions for f in item.find_all(exp.Avg, exp.Max, exp.Min)]
        if figures and _TOTAL.search(self.question):
            return Parsed(
                "clarify", reply=f"Do you mean how many there are, or the total {figures[0].replace('_', ' ')}?"
            )
        tree = trees.counting(self.tree)
        return self._changed(tree, exchange=False, show=False) or Edit(tree, self.left_out)

    def narrow(self) -> Edit | None:
        return self._changed(self.rows, exchange=False)

    def replace(self) -> Edit | None:
        figures = trees.aggregates(self.tree)
        return self._changed(self.tree if figures else self.rows, exchange=True, show=not figures)

    def _changed(self, tree: exp.Select, *, exchange: bool, show: bool = True) -> Edit | None:
        """Put the turn's own conditions into a query: in the place of those on the same column, or beside them."""
        text = remainder(self.question)
        new = fragment(text, self.vocabulary, self.main) if text else None
        if new is None or not new.conditions:
            return None
        old = [c for c in self.conditions if c not in self.left_out]
        if not exchange and show and any(excludes(each, one) for each in old for one in new.conditions):
            return self.replace()  # "older than 5?", "and younger than 5?": both at once nobody asks for
        gone = [*self.left_out, *exchanged(old, new.conditions, self.main, all_alike=exchange)]
        names = [n for c in new.conditions for n in sorted(compared(c))] if show else ()
        return Edit(tree, gone, new.conditions, show=names, unused=new.unused, corrections=new.corrections)

    def _by_what(self, verb: str) -> Parsed:
        """Ask back by which column to compare or rank."""
        known = [p for p in self.places if p.kind in ("number", "date") and not p.identifier]
        names = ", ".join(p.column.name.replace("_", " ") for p in known)
        holds = f"What I can {verb} by is: {names}." if names else "Nothing here can be compared."
        return Parsed("clarify", reply=f"No column here tells that. {holds} By what shall I {verb}?")


_EDITS: Mapping[TurnKind, Callable[[FollowUp], Edit | Parsed | None]] = {
    "again": FollowUp.listed,
    "another": FollowUp.another,
    "compare": FollowUp.compare,
    "best": FollowUp.best,
    "drop": FollowUp.drop,
    "count": FollowUp.count,
    "narrow": FollowUp.narrow,
    "replace": FollowUp.replace,
}
