"""Where each link of a question stands in the schema, seen from one main relation."""

from __future__ import annotations

from functools import cached_property

from almanaq.agent.local import targets
from almanaq.agent.local.beyond import beyond_condition
from almanaq.agent.local.conditions import number_place, value_meaning
from almanaq.agent.local.dates import date_place
from almanaq.agent.local.joins import paths
from almanaq.agent.local.links import BeyondLink, ColumnLink, DateLink, Links, NumberLink, PatternLink, ValueLink
from almanaq.agent.local.money import summed
from almanaq.agent.local.patterns import pattern_place
from almanaq.agent.local.periods import period
from almanaq.agent.local.phrases import Phrase, phrases
from almanaq.agent.local.reading import Condition, Item
from almanaq.agent.local.schema_index import Meaning, Place, SchemaIndex
from almanaq.agent.local.words import singular, stems
from almanaq.suql.catalog.relations import Relation

_OPENING = 4
"""Most words before the first noun of a question: "what are the different"."""


class Placed:
    """The links of one question over one main relation; every part is worked out once."""

    def __init__(self, links: Links, index: SchemaIndex, main: Relation) -> None:
        self.links, self.index, self.main = links, index, main
        self.paths = paths(index.hops, main)
        self.own = index.places[main.name]
        self.reach = [p for name in sorted(self.paths, key=lambda n: len(self.paths[n])) for p in index.places[name]]

    @cached_property
    def beyond(self) -> list[tuple[BeyondLink, Condition, tuple[ValueLink, ...]]]:
        """Comparisons with a named row or the average: the condition of each, and the values that name the row."""
        values = self.links.values
        found = ((b, beyond_condition(b, values, self.reach, self.paths)) for b in self.links.beyond)
        return [(b, *made) for b, made in found if made is not None]

    @cached_property
    def values(self) -> list[tuple[ValueLink, Meaning]]:
        """What each value means, but for those that only name the row of a comparison."""
        compared = [v for _, _, named in self.beyond for v in named]
        found = ((v, value_meaning(self.links, v, self.paths)) for v in self.links.values if v not in compared)
        return [(v, m) for v, m in found if m is not None]

    @cached_property
    def numbers(self) -> list[tuple[NumberLink, Place]]:
        counts = self.having[1] if self.having else None
        found = ((n, number_place(n, self.reach, self.paths)) for n in self.links.numbers if n is not counts)
        return [(n, p) for n, p in found if p is not None]

    @cached_property
    def having(self) -> tuple[Relation, NumberLink] | None:
        """Give the relation whose partner rows a number counts, as in "singers with at least two concerts"."""
        for number in self.links.numbers:
            for link in self.links.relations:
                if number.last <= link.first <= number.last + 1:
                    for relation in link.relations:
                        way = self.paths.get(relation.name, ())
                        if (way and not all(hop.single for hop in way)) or (relation == self.main and self._sorts):
                            return relation, number
        return None

    @property
    def _sorts(self) -> bool:
        """Whether the question begins with a column of kinds: "which cities have two shops" counts rows by city."""
        named = targets.name_place(self.own)
        first = next((p for c, p in self.placed if c.first <= _OPENING), None)
        return first is not None and first.kind == "text" and first is not named and not first.identifier

    @cached_property
    def placed(self) -> list[tuple[ColumnLink, Place]]:
        found = ((c, targets.link_place(c, self.links, self.main, self.paths)) for c in self.links.columns)
        return [(c, p) for c, p in found if p is not None]

    @property
    def group(self) -> Place | None:
        return self.groups[0] if self.groups else None

    @cached_property
    def period(self) -> Item | None:
        """The years or months by which rows are counted or summed."""
        return period(self.links, self.placed, self.own)

    @cached_property
    def groups(self) -> tuple[Place, ...]:
        """Columns by which a count or an aggregate is grouped."""
        if self.count_at is None and not self.aggregates:
            return ()
        if self.period is not None:
            return ()
        found = targets.grouping(self.links, self.placed, self.index.places, self.paths)
        return (found,) if found else self._beside_count

    @property
    def _beside_count(self) -> tuple[Place, ...]:
        """Columns shown beside a count: "names of the teams and the number of players"."""
        at = self.count_at
        if at is None or not self._words(at - 5, at - 2) & {"and", "with", ","}:
            return ()
        before = [p for c, p in self.placed if c.last < at - 2 and not c.verb and p.kind not in ("boolean", "prose")]
        named = [r for r in self.links.relations if r.first < at - 2 and self.main in r.relations and not r.verb]
        if not before and named and self.counted_noun is not None:
            before = [targets.name_place(self.own)]
        return tuple(dict.fromkeys(before)) if self.counted_noun or all(p.kind == "text" for p in before) else ()

    def _words(self, first: int, last: int) -> set[str]:
        return {self.links.folded(k) for k in range(first, last)}

    @cached_property
    def counted_noun(self) -> Relation | None:
        """The relation whose rows are counted for each row of the main one: "how many books each member has"."""
        at = self.count_at
        for link in self.links.relations:
            if at is not None and at <= link.first <= at + 2 and self.main not in link.relations:
                for relation in link.relations:
                    way = self.paths.get(relation.name, ())
                    if way and not all(hop.single for hop in way):
                        return relation
        return None

    @cached_property
    def patterns(self) -> list[tuple[PatternLink, ColumnLink | None, Place]]:
        """Parts of words that columns are to hold, with what named the column."""
        named = targets.name_place(self.own)
        return [(each, *pattern_place(each, self.placed, named)) for each in self.links.patterns]

    @cached_property
    def aggregates(self) -> tuple[Item, ...]:
        total = summed(self)
        return targets.aggregates(self.links, self.placed) or ((total,) if total else ())

    @cached_property
    def count_at(self) -> int | None:
        """Index of the counted noun when rows are counted; None also when "how many X" asks for a number column X."""
        at = targets.counted(self.links)
        if at is None and not targets.aggregates(self.links, self.placed):
            per = (r.first for r in self.links.relations if self.main in r.relations and not r.verb)
            at = next((i for i in per if self.links.folded(i + 1) == "per"), None)
        if at is None or any(c.first == at and self._spoken_number(p) for c, p in self.placed):
            return None
        return at

    def _spoken_number(self, place: Place) -> bool:
        return place.kind == "number" and not place.identifier

    @property
    def _counts_all(self) -> bool:
        """Whether the reply is one number, which has no order."""
        return self.count_at is not None and self.group is None and self.period is None

    @cached_property
    def asked(self) -> tuple[Place, ...]:
        """Columns that the question asks to see."""
        found: dict[tuple[str, str], Place] = {}
        for link, place in self.placed:
            free = not self._spent(link, place) and place not in self.groups and place.kind not in ("boolean", "prose")
            free = free and (not link.verb or targets.answers_wh(self.links, place))
            if free and not any(item.place is place for item in self.aggregates):
                found.setdefault((place.relation.name, place.column.name), place)
        for place in targets.wh_places(self.links, self.own):
            found.setdefault((place.relation.name, place.column.name), place)
        if self.count_at is None and not self.aggregates:
            for place in targets.beside(self.links, self.main, self.paths, self.index.places):
                named = targets.name_place(self.own)
                found.setdefault((self.main.name, named.column.name), named)
                found.setdefault((place.relation.name, place.column.name), place)
        named = targets.name_place(self.own)
        theirs = any(
            self.main in r.relations and not r.verb and self.links.says(r.first + k, ("their",))
            for r in self.links.relations
            for k in (1, 2)
        )
        if found and theirs and self.count_at is None and not self.aggregates:
            found = {(self.main.name, named.column.name): named, **found}
        at = targets.counted(self.links)
        if not found and at is not None and self.count_at is None:
            found.update({(p.relation.name, p.column.name): p for c, p in self.placed if c.first == at})
        return tuple(found.values())

    def _spent(self, link: ColumnLink, place: Place) -> bool:
        """Say whether words that name a column only lead up to a value, a number or an order."""
        for value, (meant, _) in self.values:
            if meant.column.name == place.column.name and (
                value.first - 4 <= link.first < value.first or value.last <= link.first <= value.last + 1
            ):
                return True
        told = [*(meant for _, meant in self.dates), *(condition.place for _, condition, _ in self.beyond)]
        if any(meant is place for meant in told) or any(link is named for _, named, _ in self.patterns):
            return True
        for number, meant in self.numbers:
            near = number.first - 4 <= link.first <= number.last + 2
            if near and (meant is place or set(meant.stems) & set(place.stems)):
                return True
        orders = self.links.orders
        return any(
            o.superlative and 0 <= link.first - o.last <= 2 and set(link_stems(link)) & set(o.units) for o in orders
        ) or any(not o.superlative and o.units and link.first >= o.last for o in orders)

    @cached_property
    def phrases(self) -> tuple[Phrase, ...]:
        return phrases(self.links, self.noun)

    @cached_property
    def noun(self) -> str:
        named = next((r for r in self.links.relations if self.main in r.relations), None)
        return self.links.stem(named.first) if named else singular(self.main.name)

    def prose(self, phrase: Phrase | None) -> Place | None:
        """Give the column of prose that a phrase is best asked of."""
        found = [p for p in self.reach if p.kind == "prose"]
        if not found:
            return None

        def score(place: Place) -> float:
            words = set(stems(phrase.words)) if phrase else set()
            dishes = "dishes" in place.roles
            taste = 2.0 if phrase and phrase.dish else -2.0
            overlap = len(words & (set(place.stems) | place.about))
            return (
                overlap
                + taste * dishes
                + 0.8 * ("reviews" in place.roles)
                + 0.5 * place.column.array
                - 1.5 * len(self.paths[place.relation.name])
            )

        return max(found, key=score)

    @cached_property
    def entity(self) -> ValueLink | None:
        """The row that the question is about, when it names one."""
        named = targets.name_place(self.own)
        return next((v for v, m in self.values if m[0] is named and not v.negated), None)

    @cached_property
    def dates(self) -> list[tuple[DateLink, Place]]:
        found = ((d, date_place(d, self.links, self.reach, self.paths)) for d in self.links.dates)
        return [(d, p) for d, p in found if p is not None]


def link_stems(link: ColumnLink) -> tuple[str, ...]:
    """Give the words of the name that a column link spells."""
    return link.places[0].stems
