"""What a follow-up adds to an earlier query: its own words, read over that query's main relation."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp

from almanaq.agent.local_old import sql, trees
from almanaq.agent.local_old.lexicon import cue
from almanaq.agent.local_old.recognize.vocabulary import Vocabulary
from almanaq.agent.local_old.search.linking import link
from almanaq.agent.local_old.search.wishes import Wishes
from almanaq.suql.catalog.relations import Relation

_NEGATED_WISH = re.compile(r"\b(?:i|we) (?:do not|don't) want(?: to| an?)?\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Fragment:
    """A follow-up's own words, read.

    Attributes:
        conditions: what it asks of a row of the main relation.
        unused, corrections: as in Parsed.
    """

    conditions: tuple[exp.Expr, ...] = ()
    unused: tuple[str, ...] = ()
    corrections: tuple[tuple[str, str], ...] = ()


def remainder(question: str) -> str:
    """Return a follow-up's words without those that only say that it is one."""
    plain = question.replace("\u2019", "'").strip()
    plain = _NEGATED_WISH.sub("without", plain)
    for _ in range(3):
        plain = cue("said_only").sub(" ", plain).strip(" ,.;")
    return " ".join(plain.split())


def fragment(text: str, vocabulary: Vocabulary, main: Relation) -> Fragment:
    """Return what some words ask of the rows of a relation."""
    wishes = Wishes(link(text, vocabulary), vocabulary, main)
    tree = trees.read(wishes.suql())
    found = trees.conditions(tree) if tree is not None else []
    if tree is not None and tree.args.get("joins") and found:
        found = [_within(tree, main)]
    return Fragment(tuple(found), wishes.unused, wishes.corrections)


def _within(tree: exp.Select, main: Relation) -> exp.Expr:
    """Return conditions that need joins as one on the key of the main relation."""
    own = sql.name(main.key[0]) if len(main.key) == 1 else ""
    if not own:
        return exp.true()
    inner = trees.showing(tree, [f"{sql.name(main.name)}.{own}"])
    for part in ("order", "limit"):
        inner.set(part, None)
    return exp.In(this=exp.column(exp.to_identifier(own)), query=exp.Subquery(this=inner))
