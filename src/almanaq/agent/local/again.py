"""Turns that want the rows of the last search once more: all of them ("list them"), or in another order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from almanaq.agent.history import Shown
from almanaq.agent.local import sql, trees
from almanaq.agent.local.schema_index import Place
from almanaq.agent.local.search.wishes import LISTED_LIMIT
from almanaq.agent.local.words import word_set

_THEM = r"(?:them|these|those|it|everything|the (?:list|rows|results?|table|whole list|full list|rest|others))"
_LIST = re.compile(
    rf"(?:please )?(?:list|show|print|display|give)(?: me| us)?(?: all| all of)?(?: {_THEM})?(?: all)?[.!?]*",
    re.IGNORECASE,
)
_SORT = re.compile(
    rf"(?:please )?(?:sort|order|rank|arrange)(?: {_THEM})?(?: all)? (?:by|on) (?:the |their |its )?(.+?)[.!?]*",
    re.IGNORECASE,
)
_DOWN = re.compile(
    r"[ ,(]+(?:in )?(?:a )?(?:desc|descending(?: order)?|(?:from )?high(?:est)? to low(?:est)?"
    r"|(?:highest|largest|biggest|best|newest|latest|most|longest) first|reversed?|downwards?)\)?$",
    re.IGNORECASE,
)
_UP = re.compile(
    r"[ ,(]+(?:in )?(?:asc|ascending(?: order)?|(?:from )?low(?:est)? to high(?:est)?"
    r"|(?:lowest|smallest|cheapest|oldest|earliest|least|shortest) first|upwards?)\)?$",
    re.IGNORECASE,
)
_PRONOUNS = word_set("list show print display give")


@dataclass(frozen=True, slots=True)
class Again:
    """What is wanted of the rows that were found.

    Attributes:
        by: the words for the column that they are to be sorted by; "" where they are to be listed.
        down: the largest first.
        every: also those that an earlier query left out for their number.
    """

    by: str = ""
    down: bool = False
    every: bool = False


def again(question: str) -> Again | None:
    """Return what a turn wants of the rows found before; None for any other turn."""
    said = " ".join(question.split())
    if found := _SORT.fullmatch(said):
        by = found[1]
        return Again(_UP.sub("", _DOWN.sub("", by)), down=_DOWN.search(by) is not None)
    if _LIST.fullmatch(said) and said.casefold().strip(" .!?") not in _PRONOUNS:
        return Again(every=re.search(r"\b(?:all|everything|whole|full|rest|others)\b", said, re.IGNORECASE) is not None)
    return None


def column_of(by: str, places: Sequence[Place]) -> Place | None:
    """Return the column that words name."""
    wanted = by.casefold().replace("_", " ").split()
    return next((p for p in places if p.column.name.casefold().replace("_", " ").split() == wanted), None)


def listed(tree: exp.Select, *, every: bool) -> exp.Select:
    """Return the query without the LIMIT that only keeps a list short; without any, where every row is wanted."""
    changed = tree.copy()
    if every or (changed.args.get("order") is None and trees.limit_of(changed) == LISTED_LIMIT):
        changed.set("limit", None)
    return changed


def lists(question: str) -> bool:
    """Return whether a turn wants the rows listed."""
    wanted = again(question)
    return wanted is not None and not wanted.by


def whole(suql: str, *, sorted_: bool) -> str:
    """Return a query without the LIMIT that only keeps a list short.

    `sorted_`: also one whose order came afterwards.
    """
    tree = trees.read(suql)
    if tree is None:
        return suql
    return trees.write(listed(tree, every=sorted_ and trees.limit_of(tree) == LISTED_LIMIT))


def cut_off(tree: exp.Select, found: int) -> exp.Select | None:
    """Return the query that counts all rows, where a LIMIT that nobody asked for kept so many of them; else None."""
    grouped = any(tree.args.get(part) for part in ("group", "having", "distinct", "offset"))
    asked = tree.args.get("order") is not None and found != LISTED_LIMIT
    if grouped or asked or trees.limit_of(tree) != found or tree.find(exp.Anonymous, exp.AggFunc) is not None:
        return None
    return trees.counting(tree)


def sorted_by(tree: exp.Select, place: Place, shown: Shown | None, *, down: bool) -> exp.Select:
    """Return the query with its rows in the order of a column: the same rows, where its LIMIT chose among them."""
    whole = listed(tree, every=False)
    qualified = bool(tree.args.get("joins"))
    if trees.limit_of(whole) is not None and shown is not None and shown.keys:
        whole = trees.with_conditions(whole, [trees.only(shown, trees.table_name(whole) if qualified else None)])
    limit = trees.limit_of(tree)
    return trees.ordered(whole, [(sql.column(place, qualified), down)], limit)
