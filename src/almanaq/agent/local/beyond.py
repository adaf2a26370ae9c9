"""Comparisons with a row that is named, or with the average: "older than Ann", "more pages than average"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from almanaq.agent.local import sql, targets
from almanaq.agent.local.conditions import Paths, value_template
from almanaq.agent.local.links import BeyondLink, Links, OrderLink, ValueLink
from almanaq.agent.local.numbers import number
from almanaq.agent.local.orders import OPPOSITES
from almanaq.agent.local.quantities import SUPERLATIVES, UNITS
from almanaq.agent.local.reading import Condition
from almanaq.agent.local.schema_index import Place
from almanaq.agent.local.words import word_set

_UP = word_set("more higher greater larger bigger longer later above over after exceed exceeds exceeding")
_DOWN = word_set("less fewer lower smaller shorter earlier below under before")
_IRREGULAR: Mapping[str, str] = {"better": "best", "worse": "worst"}
_AVERAGE = word_set("average mean avg")
_LEADING = word_set("the a an overall its their our all")
_NO_UNIT = word_set("is are was were be been has have had do does did who which that than with in of for and or , ; ?")
_BETWEEN = 3
"""Most words between a comparative and its "than": "more years of experience than"."""


def link_beyond(links: Links) -> None:
    """Find the comparatives that no number follows, and the words that say what they compare."""
    for i in range(len(links.words)):
        if links.used[i] in (None, "value", "column", "relation") and not links.says(i - 1, ("other",)):
            found = _than(links, i) or _average(links, i) or _time(links, i)
            if found is not None:
                links.beyond.append(found)
                links.take(found.first, found.last, "beyond")
                inside = range(found.first, found.last)
                links.columns = [c for c in links.columns if c.first not in inside]
                links.values = [v for v in links.values if v.first not in inside]
                links.relations = [r for r in links.relations if r.first not in inside]


def _than(links: Links, i: int) -> BeyondLink | None:
    """Link "older than", "more pages than", "cost less than"."""
    word = links.folded(i)
    comparative = word in _UP | _DOWN or word in _IRREGULAR or (word.endswith("er") and _superlative(word) is not None)
    than = next((k for k in range(i + 1, i + 2 + _BETWEEN) if links.folded(k) == "than"), None)
    if not comparative or than is None or any(links.folded(k) in _NO_UNIT - {"of"} for k in range(i + 1, than)):
        return None
    after = than + 1
    while links.folded(after) in _LEADING:
        after += 1
    if after >= len(links.words) or number(links.folded(after)) is not None:
        return None
    named = tuple(links.stem(k) for k in range(i + 1, than))
    if links.folded(after) in _AVERAGE:
        return _beyond_average(links, i, after, named)
    return BeyondLink(i, than + 1, _order(links, i, than + 1, named))


def _average(links: Links, i: int) -> BeyondLink | None:
    """Link "above average", "below the average price"."""
    if links.folded(i) not in ("above", "below", "over", "under", "exceeds", "exceed", "exceeding"):
        return None
    after = i + 1
    while links.folded(after) in _LEADING:
        after += 1
    return _beyond_average(links, i, after, ()) if links.folded(after) in _AVERAGE else None


def _time(links: Links, i: int) -> BeyondLink | None:
    """Link "before" and "after" where a value follows: "joined before Tom"."""
    if links.folded(i) not in ("before", "after") or not any(v.first == i + 1 for v in links.values):
        return None
    later = links.folded(i) == "after"
    return BeyondLink(i, i + 1, OrderLink(i, i + 1, (("year", later),), _before(links, i), later))


def _beyond_average(links: Links, i: int, average: int, named: tuple[str, ...]) -> BeyondLink:
    last = average + 1
    while last < min(average + 3, len(links.words)) and links.folded(last) not in _NO_UNIT:
        last += 1
    of_it = tuple(links.stem(k) for k in range(average + 1, last))
    return BeyondLink(i, last, _order(links, i, last, (*named, *of_it)), average=True)


def _order(links: Links, i: int, last: int, named: tuple[str, ...]) -> OrderLink:
    """Give the superlative of a comparative: "older" orders as "oldest" does."""
    word = links.folded(i)
    down = word not in _DOWN
    choices = _superlative(word) or ()
    if named and named[0] in OPPOSITES:
        choices = tuple((role, more == down) for role, more in OPPOSITES[named[0]])
    elif not named:
        before = _before(links, i)
        choices = (*choices, *((role, down) for unit in before for role in UNITS.get(unit, ())))
        named = before
    return OrderLink(i, last, choices, named, choices[0][1] if choices and word not in _UP | _DOWN else down)


def _superlative(word: str) -> tuple[tuple[str, bool], ...] | None:
    return SUPERLATIVES.get(_IRREGULAR.get(word, f"{word[:-1]}st"))


def _before(links: Links, i: int) -> tuple[str, ...]:
    """Give the stems before a comparative that may name what it compares, the nearest first."""
    return tuple(links.stem(k) for k in range(i - 1, max(i - 4, -1), -1) if links.folded(k) not in _NO_UNIT)


def beyond_condition(
    link: BeyondLink, values: Sequence[ValueLink], places: Sequence[Place], paths: Paths
) -> tuple[Condition, tuple[ValueLink, ...]] | None:
    """Give the condition that a link makes, and the values that name the row compared with; None where none is told.

    Args:
        values: those of the question.
        places: the columns in reach, those of the main relation first.
    """
    items = targets.order_items(link.order, places, paths)
    place = items[0][0].place if items else None
    if place is None or items[0][0].template != "{}":
        return None
    table = sql.name(place.relation.name)
    sign = ">" if items[0][1] else "<"
    if link.average:
        return Condition(place, f"{{}} {sign} (SELECT AVG({{}}) FROM {table})"), ()
    named = tuple(_named(link, values, place))
    if not named:
        return None
    rows = [
        value_template(v, m).replace("{}", sql.column(m[0], True))
        for v in named
        for m in v.meanings
        if m[0].relation == place.relation
    ]
    best = "MAX" if sign == ">" else "MIN"
    return Condition(place, f"{{}} {sign} (SELECT {best}({{}}) FROM {table} WHERE {' AND '.join(rows)})"), named


def _named(link: BeyondLink, values: Sequence[ValueLink], place: Place) -> Iterator[ValueLink]:
    """Yield the values in a row after a comparison that name rows of a column's relation."""
    at = link.last
    for value in sorted(values, key=lambda v: v.first):
        if at <= value.first <= at + 2 and any(m[0].relation == place.relation for m in value.meanings):
            yield value
            at = value.last
