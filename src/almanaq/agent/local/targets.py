"""What a question asks for: columns, a count, an aggregate, groups, an order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from almanaq.agent.local import sql
from almanaq.agent.local.conditions import Paths
from almanaq.agent.local.lexicon import NEGATIONS, SYNONYMS
from almanaq.agent.local.links import ColumnLink, Links, OrderLink
from almanaq.agent.local.quantities import AGGREGATES, GROUPING
from almanaq.agent.local.reading import Item
from almanaq.agent.local.schema_index import Place
from almanaq.agent.local.spoken import relation_stems
from almanaq.agent.local.words import identifier_stems, stem
from almanaq.suql.catalog.relations import Relation

_WH = (
    (("where",), ("address",)),
    (("how", "much"), ("price", "pay", "revenue")),
    (("how", "old"), ("age", "birth")),
    (("how", "long"), ("length",)),
    (("how", "tall"), ("height",)),
    (("how", "far"), ("distance",)),
    (("how", "big"), ("size",)),
    (("when",), ("hours", "birth", "year")),
    (("what", "time"), ("hours",)),
    (("what", "year"), ("year",)),
)
_DOING = re.compile(r"what (?:does|do|did) .+ do(?: for a living)?[?. ]*$", re.IGNORECASE)
_FACTS = ("rating", "price", "address", "phone", "year")
_PRICE_SCALE = tuple(SYNONYMS[:4])


def link_place(link: ColumnLink, links: Links, main: Relation, paths: Paths) -> Place | None:
    """Give the column that words name, the main relation's before those farther away; None when out of reach."""

    def score(place: Place) -> float:
        if place.relation.name not in paths:
            return -99.0
        beside = any(
            place.relation in r.relations
            and (link.first - 2 <= r.first < link.first or link.last <= r.first <= link.last + 2)
            for r in links.relations
        )
        about = 2.5 if beside and place.relation is not main else 0.0
        return about - 2.0 * len(paths[place.relation.name]) - 1.0 * place.identifier + 0.2 * ("name" in place.roles)

    best = max(link.places, key=score)
    return best if score(best) > -90 else None


def name_place(places: Sequence[Place]) -> Place:
    """Give the column that names a row of a relation: the one that is said to, else the likeliest."""
    said = next((p for p in places if p.column.name == p.relation.named_by), None)
    if said is not None:
        return said
    own = relation_stems(places[0].relation) if places else ()
    for wanted in (("name",), ("title",), ("company",)):
        for place in places:
            if place.stems in (wanted, own) or (
                place.stems[-1:] == wanted and place.stems[:-1] == relation_stems(place.relation)
            ):
                return place
    texts = [p for p in places if p.kind == "text" and not p.column.array and not p.identifier]
    named = [p for p in texts if "name" in p.roles]
    first = [p for p in places[:1] if p.identifier]
    return (named or first or texts or list(places))[0]


def whole_name(places: Sequence[Place]) -> tuple[Place, ...]:
    """Give the column that names a row, and beside a first name the last one."""
    named = name_place(places)
    last = [p for p in places if named.stems[:1] == ("first",) and p.stems == ("last", *named.stems[1:])]
    return (named, *last)


def facts(places: Sequence[Place], mentioned: Iterable[Place], most: int = 5) -> tuple[Place, ...]:
    """Give the columns worth showing of a row that was searched for: its name, what was spoken of, key facts, links."""
    shown = {place.column.name: place for place in whole_name(places)}
    for place in mentioned:
        if place.relation is places[0].relation and place.kind != "prose":
            shown.setdefault(place.column.name, place)
    for role in _FACTS:
        best = next((p for p in places if role in p.roles and p.kind != "prose" and not p.identifier), None)
        if best is not None and len(shown) < most:
            shown.setdefault(best.column.name, best)
    for place in places:
        if len(shown) < most and place.kind != "prose" and not place.identifier:
            shown.setdefault(place.column.name, place)
    for place in places:
        if "site" in place.roles and place.kind == "text":
            shown.setdefault(place.column.name, place)
    return tuple(shown.values())


def wh_places(links: Links, places: Sequence[Place]) -> tuple[Place, ...]:
    """Give the column that a question word asks for: "where" an address, "how much" a price."""
    folded = [w.folded for w in links.words]
    for cue, roles in _WH:
        if tuple(folded[: len(cue)]) == cue and not (
            cue == ("where",) and len(folded) > 1 and folded[1] in ("can", "should", "could", "to", "do", "would")
        ):
            for role in roles:
                found = [p for p in places if role in p.roles and p.kind != "prose" and not p.identifier]
                if found:
                    return (min(found, key=lambda p: (p.stems[-1] != role, len(p.stems))),)
    if _DOING.match(links.question):
        return tuple(p for p in places if "job" in p.roles and p.kind == "text")[:1]
    return ()


def answers_wh(links: Links, place: Place) -> bool:
    """Say whether a column of the kind that the question word asks for: "who" a text, "when" a date."""
    opening = {links.folded(0), links.folded(1)}
    if opening & {"who", "whom"}:
        return place.kind == "text"
    return "when" in opening and place.kind in ("date", "number")


def counted(links: Links) -> int | None:
    """Give the index of the word after "how many" or "number of", None when nothing is counted."""
    for i in range(len(links.words) - 1):
        pair = (links.folded(i), links.folded(i + 1))
        spent = any(o.first <= i < o.last for o in links.orders) or links.used[i] == "column"
        if not spent and (pair == ("how", "many") or pair in (("number", "of"), ("count", "of"))):
            return i + 2
    return 0 if links.folded(0) == "count" else None


def aggregate(links: Links, placed: Sequence[tuple[ColumnLink, Place]]) -> Item | None:
    """Give AVG, MAX, MIN or SUM of the number column named after a word for it."""
    for i, word in enumerate(links.words):
        function = AGGREGATES.get(word.folded)
        if function is None or links.used[i] in ("beyond", "column"):
            continue
        for link, place in placed:
            if i < link.first <= i + 4 and place.kind in ("number", "date") and not place.identifier:
                return Item(place, f"{function}({{}})")
    return None


def aggregates(links: Links, placed: Sequence[tuple[ColumnLink, Place]]) -> tuple[Item, ...]:
    """Give every aggregate asked for of one column: "the average, minimum and maximum age"."""
    first = aggregate(links, placed)
    if first is None:
        return ()
    functions = dict.fromkeys(
        AGGREGATES[w.folded]
        for w, used in zip(links.words, links.used, strict=True)
        if w.folded in AGGREGATES and used not in ("beyond", "column")
    )
    return tuple(Item(first.place, f"{function}({{}})") for function in functions)


def grouping(
    links: Links, placed: Sequence[tuple[ColumnLink, Place]], index_places: dict[str, tuple[Place, ...]], paths: Paths
) -> Place | None:
    """Give the column after "per", "by" or "for each", by which a count or an aggregate is grouped."""
    for cue in GROUPING:
        for i in range(len(links.words) - len(cue)):
            if tuple(links.folded(i + k) for k in range(len(cue))) != cue:
                continue
            after = i + len(cue)
            for link, place in placed:
                if after <= link.first <= after + 2:
                    return place
            for link_r in links.relations:
                if after <= link_r.first <= after + 1:
                    reach = [r for r in link_r.relations if r.name in paths]
                    if reach:
                        return name_place(index_places[reach[0].name])
    return None


def order_items(order: OrderLink, places: Sequence[Place], paths: Paths) -> tuple[tuple[Item, bool], ...]:
    """Give what a superlative orders by: the column that its words name, else that of a fitting role; () when none."""
    by_words = _by_words(order, places, paths)
    if by_words is not None:
        return ((_ranked(by_words), order.descending),)
    for role, descending in order.choices:
        found = [
            p
            for p in places
            if (role in p.roles or (role == "year" and p.kind == "date" and "birth" not in p.roles))
            and p.kind in ("number", "date", "text")
            and not p.identifier
            and not paths[p.relation.name]
        ]
        found = [p for p in found if p.kind != "text" or (role == "price" and _scale(p))]
        if role in ("size", "length", "rating", "reviews", "year", "age", "height", "pay"):
            found = [p for p in found if p.kind != "text"]
        if role == "year":
            found.sort(key=lambda p: p.kind != "date" and "year" not in p.stems)
        if found:
            tie = [
                p
                for p in places
                if role == "rating"
                and "reviews" in p.roles
                and p.kind == "number"
                and p is not found[0]
                and p.relation is found[0].relation
            ]
            return ((_ranked(found[0]), descending), *((Item(p), descending) for p in tie[:1]))
    return ()


def _by_words(order: OrderLink, places: Sequence[Place], paths: Paths) -> Place | None:
    def score(place: Place) -> float:
        if place.kind not in ("number", "date") or place.identifier:
            return 0.0
        hits = sum(1.0 for u in order.units if u in place.stems)
        return (
            hits
            + 0.5 * (place.stems == order.units[: len(place.stems)])
            - 0.6 * len(paths[place.relation.name]) * bool(hits)
        )

    best = max(places, key=score, default=None)
    return best if best is not None and order.units and score(best) > 0 else None


def counted_relation(order: OrderLink, links: Links, main: Relation, paths: Paths) -> Relation | None:
    """Give the relation whose rows a superlative counts: "the most concerts"."""
    for unit in order.units:
        for relation_name, way in sorted(paths.items(), key=lambda each: identifier_stems(each[0]) != (unit,)):
            if (
                relation_name != main.name
                and stem(unit) in identifier_stems(relation_name)
                and not all(h.single for h in way)
            ):
                return next((r for link in links.relations for r in link.relations if r.name == relation_name), None)
    return None


def _scale(place: Place) -> bool:
    return place.column.kind.value == "enum" and bool(place.column.values)


def _ranked(place: Place) -> Item:
    """Give a number as it is, and an ENUM of price words as ranks from cheap to dear."""
    if place.kind != "text":
        return Item(place)
    ranks = [(_rank(v, i), v) for i, v in enumerate(place.column.values)]
    cases = " ".join(f"WHEN {sql.text(v)} THEN {rank}" for rank, v in sorted(ranks))
    return Item(place, f"CASE {{}} {cases} END")


def _rank(value: str, position: int) -> int:
    folded = value.casefold()
    if set(folded) <= set("$€£"):
        return len(folded)
    return next((i for i, group in enumerate(_PRICE_SCALE, 1) if folded in group), position + 1)


def beside(links: Links, main: Relation, paths: Paths, index_places: dict[str, tuple[Place, ...]]) -> tuple[Place, ...]:
    """Give what names the rows of relations that are to be shown beside each row: "teams with their coaches"."""
    found = []
    for link in links.relations:
        with_their = links.folded(link.first - 1) == "their" and links.folded(link.first - 2) in ("with", "and")
        theirs = with_their and links.stem(link.first) in {
            stem(part) for r in link.relations for part in relation_stems(r)
        }
        for relation in link.relations if theirs and not link.verb else ():
            if relation != main and paths.get(relation.name):
                found.append(name_place(index_places[relation.name]))
    return tuple(found[:1])


def negated_before(links: Links, i: int) -> bool:
    """Say whether a negation stands in the three words before word i."""
    out = links.folded(i - 1) == "of" and links.folded(i - 2) == "out"
    return out or any(links.folded(k) in NEGATIONS for k in range(max(0, i - 3), i))
