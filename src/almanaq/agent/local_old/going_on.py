"""Turns that go on from figures, or ask for figures of the rows found before: each is read as the whole question."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from sqlglot import exp

from almanaq.agent.history import Turn, TurnKind
from almanaq.agent.local_old import trees
from almanaq.agent.local_old.anew import anew
from almanaq.agent.local_old.edits import excludes
from almanaq.agent.local_old.figures_of import of_rows, of_which
from almanaq.agent.local_old.listing import listing
from almanaq.agent.local_old.recognize.vocabulary import Vocabulary
from almanaq.agent.local_old.restated import Words, core, goes_on, is_fragment, lessened, restated
from almanaq.agent.local_old.rows_before import main_relation, restricted
from almanaq.agent.local_old.standing import Reads, Standing, query_of, standing, tree_of
from almanaq.agent.parser import Parsed

_OWN_QUESTION = re.compile(
    r"(?:which|who|whom|whose|where|when|why|list|show|give|find|is|are|do|does|did|has|have|can|could)\b", re.I
)
_COUNTS = re.compile(r"how (?:many|much)\b", re.IGNORECASE)
_SHORT = 12
"""Most words of a turn that goes on from another."""


def going_on(question: str, history: Sequence[Turn], vocabulary: Vocabulary, reads: Reads) -> Parsed | None:
    """Return what a turn means that goes on from figures or asks for some of rows; None for any other turn."""
    stands = standing(history)
    if stands is None:
        return None
    once_more = anew(question, stands)
    if once_more is not None and history[-1].suql is None and once_more.suql is not None:
        return replace(once_more, readings=(f"I go on from “{stands.question}”.",))  # not from what I declined
    if once_more is not None or listing(question) is not None:
        return once_more
    words = Words(question, vocabulary)
    return of_rows(words, stands, history, reads) or _restated(words, stands, reads) or of_which(words, stands, reads)


def _restated(words: Words, stands: Standing, reads: Reads) -> Parsed | None:
    """Return what a question becomes with a few words more, or others: "only in 2024", "and by city?"."""
    said, opened = Words(core(words.text), words.vocabulary), goes_on(words.text)
    if not said.text or _OWN_QUESTION.match(said.text) or (_COUNTS.match(said.text) and not opened):
        return None
    kinds = said.kinds.strip("w&")
    if kinds == "C" and stands.gives_figures and not opened:
        return _unclear(said, stands)
    if not (opened and len(said.text.split()) < _SHORT) and not is_fragment(said):
        return None
    if not stands.question:
        return _unclear(said, stands) if stands.gives_figures else None
    if stands.lists and not (opened and kinds == "S" and stands.ranks):
        return _of_other_days(said, stands, reads)
    return _first_read(said, stands, reads)


def _first_read(said: Words, stands: Standing, reads: Reads) -> Parsed:
    """Return the first of the whole questions that is understood; else why the likeliest is not."""
    others = _other_rows(said, stands.of)
    rows, why = others or stands.of, ""
    for text in (stands.question,) if others else restated(said, Words(stands.question, said.vocabulary)):
        read = reads(text)
        tree = tree_of(read)
        limited = restricted(tree, rows, said.vocabulary) if tree is not None and rows is not None else tree
        if limited is not None and not _contradicts(limited):
            kind: TurnKind = "narrow" if text.startswith(stands.question.rstrip("?.! ")) else "replace"
            found = query_of(_in_order(limited, stands.tree), kind, text, rows)
            return replace(found, readings=(f"I read it as “{text}”.", *read.readings))
        why = why or (f"I read it as “{text}”. {read.reply}" if read.reply else "")
    return Parsed("no_query", reply=why, kind="replace") if why else _unclear(said, stands)


def _unclear(said: Words, stands: Standing) -> Parsed:
    changed = f"“{stands.question}”" if stands.question else "the last query"
    reply = f"I do not understand how “{said.text}” changes {changed}, so I ran nothing. Ask it as a whole question."
    return Parsed("no_query", reply=reply, kind="replace")


def retold(follows: Parsed, history: Sequence[Turn], vocabulary: Vocabulary, reads: Reads) -> Parsed:
    """Return figures without a condition together with the question that now asks for them, if one does."""
    stands = standing(history)
    if stands is None or not stands.gives_figures or not stands.question or not follows.suql:
        return follows
    for text in lessened(Words(stands.question, vocabulary)):
        read = reads(text)
        if read.suql is not None and _same(read.suql, follows.suql):
            return replace(follows, asked=text)
    return follows


def _same(one: str, other: str) -> bool:
    """Return whether two queries differ in the order of their conditions, and in parentheses, at most."""
    told = []
    for tree in (trees.read(one), trees.read(other)):
        if tree is None:
            return False
        told.append((trees.write(trees.with_conditions(tree, [])), {trees.write(c) for c in _parts(tree)}))
    return bool(told[0] == told[1])


def _parts(tree: exp.Select) -> Iterator[exp.Expr]:
    for condition in trees.conditions(tree):
        yield from condition.unnest().flatten() if isinstance(condition.unnest(), exp.And) else (condition,)


def _of_other_days(said: Words, stands: Standing, reads: Reads) -> Parsed | None:
    """Return the rows of a list that are of some days; None where their column is not certain."""
    if said.kinds.strip("w&") != "D" or not stands.question:
        return None
    whole = restated(said, Words(stands.question, said.vocabulary))
    read = next((read for read in map(reads, whole) if read.suql), None)
    return None if read is None or read.status != "query" else replace(read, kind="replace")


def _contradicts(tree: exp.Select) -> bool:
    """Return whether no row can fulfil two of the conditions."""
    return any(excludes(one, other) for one, other in combinations(trees.conditions(tree), 2))


def _other_rows(said: Words, of: exp.Select | None) -> exp.Select | None:
    """Return rows chosen by another value of the column by which those before were chosen: "and in Basel?"."""
    if of is None or said.kinds.strip("w&") != "V":
        return None
    main = main_relation(of, said.vocabulary.index.catalog)
    values = {place.column.name: value for place, value in said.value if place.relation == main}
    kept = trees.conditions(of)
    for i, old in enumerate(kept):
        if isinstance(old, exp.EQ) and old.this.name in values:
            kept[i] = exp.EQ(this=old.this.copy(), expression=trees.literal(values[old.this.name]))
            return trees.with_conditions(of, kept)
    return None


def _in_order(tree: exp.Select, before: exp.Select | None) -> exp.Select:
    """Return a query in the order that an earlier one was put in, where it shows what that is by."""
    order = before.args.get("order") if before is not None else None
    if before is None or order is None or tree.args.get("order") is not None:
        return tree
    shown = {trees.write(item) for item in tree.expressions}
    if any(trees.write(each.this) not in shown for each in order.expressions):
        return tree
    changed = trees.limited(tree, trees.limit_of(before))
    changed.set("order", order.copy())
    return changed
