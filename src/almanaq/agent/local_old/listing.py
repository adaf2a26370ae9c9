"""Turns that want the rows of the last search once more: all of them ("list them"), or in another order."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp

from almanaq.agent.local_old import trees
from almanaq.agent.local_old.search.wishes import LISTED_LIMIT
from almanaq.agent.local_old.words import word_set

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
_EVERY = re.compile(r"\b(?:all|everything|whole|full|rest|others)\b", re.IGNORECASE)
_PRONOUNS = word_set("list show print display give")


@dataclass(frozen=True, slots=True)
class Listing:
    """What is wanted of the rows that were found.

    Attributes:
        by: the words for the column that they are to be sorted by; "" where they are to be listed.
        down: the largest first.
        every: also those that an earlier query left out for their number.
    """

    by: str = ""
    down: bool = False
    every: bool = False


def listing(question: str) -> Listing | None:
    """Return what a turn wants of the rows found before; None for any other turn."""
    said = " ".join(question.split())
    if found := _SORT.fullmatch(said):
        by = _UP.sub("", _DOWN.sub("", found[1])).casefold().replace("_", " ")
        return Listing(by, down=_DOWN.search(found[1]) is not None)
    if _LIST.fullmatch(said) and said.casefold().strip(" .!?") not in _PRONOUNS:
        return Listing(every=_EVERY.search(said) is not None)
    return None


def unlimited(tree: exp.Select, *, every: bool) -> exp.Select:
    """Return the query without the LIMIT that only keeps a list short; without any, where every row is wanted."""
    kept_short = tree.args.get("order") is None and trees.limit_of(tree) == LISTED_LIMIT
    return trees.limited(tree, None) if every or kept_short else tree


def lists(question: str) -> bool:
    """Return whether a turn wants the rows listed."""
    wanted = listing(question)
    return wanted is not None and not wanted.by


def whole(suql: str, *, sorted_: bool) -> str:
    """Return a query without the LIMIT that only keeps a list short.

    `sorted_`: also one whose order came afterwards.
    """
    tree = trees.read(suql)
    if tree is None:
        return suql
    return trees.write(unlimited(tree, every=sorted_ and trees.limit_of(tree) == LISTED_LIMIT))


def cut_off(tree: exp.Select, found: int) -> exp.Select | None:
    """Return the query that counts all rows, where a LIMIT that nobody asked for kept so many of them; else None."""
    grouped = any(tree.args.get(part) for part in ("group", "having", "distinct", "offset"))
    asked = tree.args.get("order") is not None and found != LISTED_LIMIT
    if grouped or asked or trees.limit_of(tree) != found or tree.find(exp.Anonymous, exp.AggFunc) is not None:
        return None
    return trees.counting(tree)
