"""Superlatives and other wishes for an order."""

from __future__ import annotations

from almanaq.agent.local.lexicon import QUALITY
from almanaq.agent.local.links import Links, OrderLink
from almanaq.agent.local.quantities import SUPERLATIVES, UNITS
from almanaq.agent.local.words import word_set

OPPOSITES = {
    "expensive": (("price", True),),
    "popular": (("reviews", True), ("rating", True), ("size", True)),
    "reviewed": (("reviews", True),),
    "recent": (("year", True),),
    "experienced": (("experience", True), ("length", True)),
    "valuable": (("worth", True), ("price", True)),
    "paid": (("pay", True),),
    "rated": (("rating", True),),
    "famous": (("reviews", True), ("rating", True)),
    "populous": (("size", True),),
    "well-known": (("reviews", True),),
}
"""Adjectives after "most" and "least", and what they order by as SUPERLATIVES does; "most" is descending."""
_EARNING = word_set("earn earns earned earning make makes made making get gets paid grossed")
_HEADS = {
    "most": True,
    "highest": True,
    "largest": True,
    "greatest": True,
    "maximum": True,
    "biggest": True,
    "top": True,
}
_LEAST = {"least": False, "lowest": False, "fewest": False, "smallest": False, "minimum": False}
_SORTING = frozenset(("sorted", "ordered", "sort", "order", "ranked", "arranged", "rank"))
_NOT_UNITS = word_set(
    """
    in of for at with that which who the a an and or is are , ? ; place spot one restaurant
    """
)


def link_orders(links: Links) -> None:
    """Find the superlatives, then "sorted by X", then words of mere quality ("good")."""
    _earning(links)
    for i in range(len(links.words)):
        if links.free(i, i + 1):
            _superlative(links, i)
    _last(links)
    for i in range(len(links.words)):
        _sorted_by(links, i)
    if not links.orders:
        _quality(links)


def _superlative(links: Links, i: int) -> None:
    word, after = links.folded(i), links.folded(i + 1)
    direction = _HEADS.get(word, _LEAST.get(word))
    if direction is not None and after in OPPOSITES:
        choices = tuple((role, down == direction) for role, down in OPPOSITES[after])
        _add(links, OrderLink(i, i + 2, choices))
    elif word in ("top", "best", "highest", "worst", "lowest") and after == "rated":
        _add(links, OrderLink(i, i + 2, (("rating", word not in ("worst", "lowest")),)))
    elif direction is not None and after in ("number", "amount") and links.folded(i + 2) == "of":
        _add(links, OrderLink(i, i + 3, (), _units(links, i + 3), direction))
    elif direction is not None and _units(links, i + 1) and after not in _NOT_UNITS and links.folded(i - 1) != "at":
        _add(links, OrderLink(i, i + 1, SUPERLATIVES.get(word, ()), _units(links, i + 1), direction))
    elif word in SUPERLATIVES:
        _add(links, OrderLink(i, i + 1, SUPERLATIVES[word], _units(links, i + 1), SUPERLATIVES[word][0][1]))


def _earning(links: Links) -> None:
    """Link "earns the most", "made the least money", "is paid the most"."""
    for i in range(1, len(links.words) - 1):
        said = ("pay", "revenue") if links.folded(i) in _EARNING else UNITS.get(links.stem(i), ())
        verb = said and links.folded(i + 1) == "the"
        down = {"most": True, "least": False}.get(links.folded(i + 2))
        if verb and down is not None and links.folded(i + 3) in ("", "?", "money", "in", "at", "of", "among"):
            last = i + 3 + (links.folded(i + 3) == "money")
            _add(links, OrderLink(i + 2, last, tuple((role, down) for role in said)))


def _last(links: Links) -> None:
    """Link "last" and "first" at the end of a question, which ask for the latest or earliest: "who was hired last?"."""
    end = next((i for i in range(len(links.words) - 1, 1, -1) if links.words[i].text[0].isalnum()), 0)
    if end and links.folded(end) in ("last", "first") and links.folded(0) in ("who", "which", "what", "when"):
        _add(links, OrderLink(end, end + 1, (("year", links.folded(end) == "last"),)))


def _units(links: Links, i: int) -> tuple[str, ...]:
    """Give up to three stems that may name what is ordered by."""
    found = []
    for k in range(i, min(i + 3, len(links.words))):
        if links.folded(k) in _NOT_UNITS:
            break
        found.append(links.stem(k))
    return tuple(found)


def _add(links: Links, order: OrderLink) -> None:
    links.orders.append(order)
    links.take(order.first, order.last, "order")


def _sorted_by(links: Links, i: int) -> None:
    """Link "sorted by X [descending]", "in descending order of X", "from youngest to oldest"."""
    cued = links.folded(i) in _SORTING and links.folded(i + 1) in ("by", "of")
    if not cued and links.folded(i) == "by" and links.free(i, i + 1):
        # "Sort the names of the staff by age": the word that cues it stands at the beginning.
        cued = any(links.folded(k) in ("sort", "order", "rank", "arrange") for k in range(min(i, 2)))
        by = i
    else:
        by = i + 1
    counted = tuple(links.folded(i + k) for k in range(3)) == ("by", "number", "of")
    if counted and links.free(i, i + 3):
        links.orders.insert(0, OrderLink(i, i + 3, (), _units(links, i + 3), True, superlative=False))
        links.take(i, i + 3, "order")
    if not cued:
        return
    rest = {links.folded(k) for k in range(max(i - 2, 0), len(links.words))}
    descending = bool(rest & {"descending", "desc", "decreasing", "highest", "most"})
    units = tuple(u for u in _units(links, by + 1) if u not in ("the", "their", "its", "his", "her"))
    links.orders.append(OrderLink(i, by + 1, (), units, descending, superlative=False))
    links.take(i, by + 1, "order")
    for k, word in enumerate(links.words):
        if word.folded in ("descending", "ascending", "desc", "asc", "decreasing", "increasing"):
            links.take(k, k + 1, "order")


def _quality(links: Links) -> None:
    """Take "good", "great" without a "for" after it as a wish for well rated rows first."""
    for i, word in enumerate(links.words):
        praised = links.folded(i - 1) in ("with", "has", "have", "having", "serves", "serve", "plus")
        if (
            word.folded in QUALITY
            and not praised
            and links.free(i, i + 1)
            and not (i and word.capitalised)
            and links.folded(i + 1) not in ("for", "at", "with", "to")
        ):
            links.orders.append(OrderLink(i, i + 1, (("rating", True),), superlative=False))
            links.take(i, i + 1, "order")
            return
