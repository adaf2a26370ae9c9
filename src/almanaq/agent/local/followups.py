"""Follow-ups: the query of a turn that goes on from an earlier one, made from that one's query."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from almanaq.agent.history import Shown, Turn, TurnKind
from almanaq.agent.local import sql, trees
from almanaq.agent.local.again import again, column_of, listed, sorted_by
from almanaq.agent.local.comparisons import Lookup, beyond, order_of, superlative
from almanaq.agent.local.details import detail
from almanaq.agent.local.dropped import to_drop
from almanaq.agent.local.facts import facts
from almanaq.agent.local.fragments import Fragment, compared, excludes, fragment, remainder, single_valued
from almanaq.agent.local.recognize.tokens import SPELLED
from almanaq.agent.local.recognize.vocabulary import Vocabulary
from almanaq.agent.local.references import last_search, last_shown, resolve
from almanaq.agent.local.search.wishes import DEFAULT_LIMIT, SEARCH_LIMIT
from almanaq.agent.parser import Parsed
from almanaq.suql.catalog.relations import Relation

_ONE_MORE = re.compile(
    r"\b(?:another(?: one)?|one more|next|different one|(?:that|this) one|an alternative|a different|second best)\b",
    re.I,
)
_TOTAL = re.compile(r"\b(?:total|sum)\b", re.I)
_SOME_MORE = re.compile(rf"\b(\d+|{'|'.join(w for w in SPELLED if w != 'one')}) (?:more|others?)\b", re.I)


@dataclass(frozen=True, slots=True)
class Base:
    """The earlier query that a turn goes on from: its tree, its main relation, and what its rows were."""

    turn: Turn
    tree: exp.Select
    main: Relation


class FollowUps:
    """Makes queries of follow-ups over one catalog.

    Args:
        lookup: runs a query without text functions, for the values of rows that were shown.
    """

    def __init__(self, vocabulary: Vocabulary, lookup: Lookup) -> None:
        self._vocabulary, self._index, self._lookup = vocabulary, vocabulary.index, lookup

    def parse(self, question: str, kind: TurnKind, history: Sequence[Turn]) -> Parsed | None:
        """Return what a follow-up means; None when it has no meaning here and is better read by itself."""
        if kind == "detail":
            return self._detail(question, history)
        base = self._base(history)
        if base is None:
            return None
        if kind == "again":
            return self._again(question, base, history)
        if kind == "another":
            return self._another(question, base, history)
        if kind == "compare":
            return self._compare(question, base, history)
        if kind == "best":
            return self._best(question, base, history)
        if kind == "drop":
            return to_drop(question, base.tree, base.main, self._vocabulary)
        return self._changed(question, kind, base)

    def _base(self, history: Sequence[Turn]) -> Base | None:
        turn = last_search(history)
        suql = (turn.meant or turn.suql) if turn else None
        tree = trees.read(suql) if suql else None
        main = self._index.catalog.find(".".join(p.name for p in tree.args["from_"].this.parts)) if tree else None
        return Base(turn, tree, main) if turn and tree is not None and main is not None else None

    def _again(self, question: str, base: Base, history: Sequence[Turn]) -> Parsed | None:
        wanted = again(question)
        if wanted is None:
            return None
        tree = self._rows(base)
        if not wanted.by:
            return _query(listed(tree, every=wanted.every), "again")
        place = column_of(wanted.by, self._index.places[base.main.name])
        if place is None:
            return Parsed("clarify", reply=self._by_what(base.main, "sort"), kind="again")
        tree = self._showing(tree, base.main, [place.column.name])
        return _query(sorted_by(tree, place, last_shown(history), down=wanted.down), "again")

    def _detail(self, question: str, history: Sequence[Turn]) -> Parsed | None:
        reference = resolve(question, history)
        if reference is None:
            said = "I have shown nothing yet that this could speak of. What shall I look for?"
            return Parsed("clarify", reply=said, kind="detail")
        main = self._index.catalog.find(reference.shown.relation)
        return None if main is None else detail(question, reference, self._vocabulary, main, history)

    def _another(self, question: str, base: Base, history: Sequence[Turn]) -> Parsed:
        seen = _seen(history, base)
        if not seen:
            return Parsed("clarify", reply="I have shown nothing yet. What shall I look for?", kind="another")
        tree = self._rows(base)
        for shown in seen:
            tree = trees.plus(tree, [trees.none_of(shown, _qualifier(tree))])
        some, limit = _SOME_MORE.search(question), trees.limit_of(tree) or SEARCH_LIMIT
        if some:
            limit = int(some[1]) if some[1].isdigit() else int(SPELLED[some[1].casefold()])
        elif _ONE_MORE.search(question):
            limit = 1
        tree.set("limit", exp.Limit(expression=exp.Literal.number(limit)))
        return _query(tree, "another", keep=[c.sql("postgres") for c in trees.conditions(tree)])

    def _compare(self, question: str, base: Base, history: Sequence[Turn]) -> Parsed:
        reference = resolve(question, history)
        order = order_of(superlative(question), self._vocabulary, base.main)
        shown = reference.shown if reference else last_shown(history)
        if not order or shown is None or shown.relation != base.main.name:
            return Parsed("clarify", reply=self._by_what(base.main, "compare"), kind="compare")
        item, descending = order[0]
        condition = beyond(item, descending, shown, self._lookup)
        if isinstance(condition, str):
            return Parsed("no_result", reply=condition, kind="compare")
        tree = trees.without(self._rows(base), lambda c: trees.leaves_out_rows(c, shown.columns))
        same = compared(condition)
        tree = trees.without(tree, lambda c: not trees.reads_text(c) and compared(c) == same)
        tree = self._showing(trees.plus(tree, [condition]), base.main, sorted(same))
        return _query(tree, "compare", keep=[condition.sql("postgres")])

    def _best(self, question: str, base: Base, history: Sequence[Turn]) -> Parsed:
        order = order_of(superlative(question), self._vocabulary, base.main)
        if not order:
            return Parsed("clarify", reply=self._by_what(base.main, "rank"), kind="best")
        shown = last_shown(history)
        tree = self._rows(base)
        among = shown is not None and (len(shown.keys) > 1 or base.turn.meant is not None)
        if shown is not None and among and shown.relation == base.main.name:
            tree = trees.with_conditions(tree, [trees.only(shown, _qualifier(tree))])
        keys = [(item.key(_qualifier(tree) is not None), down) for item, down in order]
        names = [item.place.column.name for item, _ in order[:1] if item.place]
        return _query(trees.ordered(self._showing(tree, base.main, names), keys, 1), "best")

    def _changed(self, question: str, kind: TurnKind, base: Base) -> Parsed | None:
        """Return the base query with conditions exchanged or added, or its rows counted."""
        text = remainder(question)
        new = fragment(text, self._vocabulary, base.main) if text else None
        if kind == "count":
            measured = [f.this.name for item in base.tree.expressions for f in item.find_all(exp.Avg, exp.Max, exp.Min)]
            if measured and _TOTAL.search(question):
                named = measured[0].replace("_", " ")
                return Parsed("clarify", reply=f"Do you mean how many there are, or the total {named}?", kind="count")
            return self._counted(base, new)
        if new is None or not new.conditions:
            return None
        if any(excludes(old, each) for old in trees.conditions(base.tree) for each in new.conditions):
            kind = "replace"  # "older than 5?", "and younger than 5?": both at once nobody asks for
        keys = base.turn.shown.columns if base.turn.shown else base.main.key
        keep_figures = kind == "replace" and trees.aggregates(base.tree)
        tree = trees.without(base.tree if keep_figures else self._rows(base), lambda c: trees.leaves_out_rows(c, keys))
        tree = trees.with_conditions(tree, _merged(trees.conditions(tree), new.conditions, base.main, kind))
        if not keep_figures:
            tree = self._showing(tree, base.main, [n for c in new.conditions for n in sorted(compared(c))])
        return _query(tree, kind, new=new)

    def _counted(self, base: Base, new: Fragment | None) -> Parsed:
        keys = base.turn.shown.columns if base.turn.shown else base.main.key
        tree = trees.without(base.tree, lambda c: trees.leaves_out_rows(c, keys))
        if new is not None:
            tree = trees.with_conditions(tree, _merged(trees.conditions(tree), new.conditions, base.main, "narrow"))
        return _query(trees.counting(tree), "count", new=new if new and new.conditions else None)

    def _rows(self, base: Base) -> exp.Select:
        """Return the base query as one for rows: the counted ones, where it gives figures."""
        if not trees.aggregates(base.tree):
            # "Another one" asked for one row; what comes after it does not.
            single = base.turn.kind == "another" and trees.limit_of(base.tree) == 1
            kept = base.tree.copy()
            if single:
                kept.set("limit", exp.Limit(expression=exp.Literal.number(SEARCH_LIMIT)))
            return kept
        places = self._index.places[base.main.name]
        shown = [sql.column(p, _qualifier(base.tree) is not None) for p in facts(places, [])]
        tree = trees.showing(base.tree, shown)
        reads = any(trees.reads_text(c) for c in trees.conditions(tree))
        return trees.ordered(tree, [], SEARCH_LIMIT if reads else DEFAULT_LIMIT)

    def _showing(self, tree: exp.Select, main: Relation, names: Sequence[str]) -> exp.Select:
        """Return the query with these columns of the main relation in its SELECT list, after those it has."""
        have = {item.unalias().name for item in tree.expressions}
        places = {p.column.name: p for p in self._index.places[main.name] if p.kind != "prose"}
        more = [sql.column(places[n], _qualifier(tree) is not None) for n in names if n in places and n not in have]
        items = [item.sql("postgres", normalize_functions=False) for item in tree.expressions]
        return trees.showing(tree, [*items, *more]) if more else tree

    def _by_what(self, main: Relation, verb: str) -> str:
        """Ask back by which column to compare or rank."""
        known = [p for p in self._index.places[main.name] if p.kind in ("number", "date") and not p.identifier]
        names = ", ".join(p.column.name.replace("_", " ") for p in known)
        holds = f"What I can {verb} by is: {names}." if names else "Nothing here can be compared."
        return f"No column here tells that. {holds} By what shall I {verb}?"


def _query(tree: exp.Select, kind: TurnKind, *, new: Fragment | None = None, keep: Sequence[str] = ()) -> Parsed:
    unused, corrections = (new.unused, new.corrections) if new else ((), ())
    return Parsed("query", trees.write(tree), unused=unused, corrections=corrections, kind=kind, keep=tuple(keep))


def _qualifier(tree: exp.Select) -> str | None:
    """Return the main table's name where columns must be qualified: the query joins others."""
    return trees.table_name(tree) if tree.args.get("joins") else None


def _seen(history: Sequence[Turn], base: Base) -> list[Shown]:
    """Return the rows shown since the base query, which "another one" leaves out."""
    since = history[max(i for i, turn in enumerate(history) if turn is base.turn) :]
    return [t.shown for t in since if t.shown and t.shown.keys and t.shown.relation == base.main.name][:1]


def _merged(old: Sequence[exp.Expr], new: Sequence[exp.Expr], main: Relation, kind: TurnKind) -> list[exp.Expr]:
    """Return the conditions of a base query with new ones: in the place of those on the same column, or beside them."""
    gone: set[int] = set()
    for condition in new:
        names = compared(condition)
        for i, each in enumerate(old):
            same = compared(each) == names and trees.reads_text(each) == trees.reads_text(condition)
            contradicts = single_valued(condition, main) and single_valued(each, main)
            if same and (kind == "replace" or contradicts):
                gone.add(i)
    texts = [i for i, each in enumerate(old) if trees.reads_text(each)]
    exchanged = kind == "replace" and texts and not gone and all(trees.reads_text(c) for c in new)
    if exchanged:
        gone.add(texts[-1])
    return [each for i, each in enumerate(old) if i not in gone] + list(new)
