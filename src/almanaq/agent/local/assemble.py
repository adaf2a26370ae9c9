"""Puts the links of a question together as one reading over a given main relation."""

from __future__ import annotations

import re
from functools import cached_property
from itertools import takewhile

from almanaq.agent.local import sql, targets
from almanaq.agent.local.conditions import (
    boolean_condition,
    date_condition,
    number_conditions,
    value_conditions,
)
from almanaq.agent.local.links import Links, NumberLink, OrderLink, ValueLink
from almanaq.agent.local.money import money_place
from almanaq.agent.local.patterns import pattern_condition
from almanaq.agent.local.periods import PERIODS
from almanaq.agent.local.phrases import content
from almanaq.agent.local.placing import Placed
from almanaq.agent.local.reading import Condition, Item, Reading
from almanaq.agent.local.schema_index import Place
from almanaq.agent.local.spoken import relation_stems
from almanaq.agent.local.words import word_set
from almanaq.suql.catalog.relations import Relation

DEFAULT_LIMIT = 5
SEARCH_LIMIT = 3
LISTED_LIMIT = 100
"""Rows of a relation of which nothing is asked; those of one without prose that a condition chooses are all shown."""
_REFERENCES = 2
"""Most rows referred to of which a name is shown beside a row without a name of its own."""
_ASKING = word_set(
    """
    does do is are can has have did was were how what
    """
)
_CLAUSE = word_set("that which who where with in for on at near , ; ?")
_SUMMARY = re.compile(
    r"\b(summar\w+|tell me (?:more )?about|what(?:'s| is| was) .+ about"
    r"|what do (?:people|they|reviewers) (?:say|think))\b",
    re.IGNORECASE,
)


class Assembler(Placed):
    """Reads one question over one main relation."""

    def reading(self) -> Reading:
        """Give the reading with its score."""
        conditions = [
            *value_conditions(self.values, self.links),
            *number_conditions(self.numbers, self.links, self.index.today()),
        ]
        conditions += [date_condition(d, p, self.index) for d, p in self.dates]
        conditions += [condition for _, condition, _ in self.beyond]
        conditions += [pattern_condition(link, p) for link, _, p in self.patterns]
        conditions += [*self._boolean(), *self._missing()]
        texts, questions = self._texts()
        order, counted = self._order() if not self._counts_all else ((), None)
        counted = counted or (self.having[0] if self.having and self.count_at is None else None)
        counted = self.counted_noun if self.groups and counted is None else counted
        by_own = counted == self.main
        mentioned = [*(c.place for c in conditions), *(i.place for i, _ in order if i.place)]
        select, group, distinct = self._select(
            mentioned, questions, None if by_own else counted, ranked=by_own or _by_count(order), searches=bool(texts)
        )
        unused = self._unused(bool(order) or counted is not None)
        absent, present = self._absent(), self._present([c.place.relation for c in conditions], counted)
        return Reading(
            self.main,
            self.paths,
            select,
            conditions=(*conditions, *texts),
            group=group,
            period=self.period if self.count_at is not None or self.aggregates or _by_count(order) else None,
            beside=frozenset(
                p.relation.name for p in self.references if Item(p) in select and not (self.asked or group)
            ),
            order=order,
            counted=counted,
            having=count_condition(self.having[1]) if self.having and self.count_at is None else None,
            absent=absent,
            present=present,
            distinct=distinct,
            limit=self._limit(bool(texts), bool(order), bool(conditions or absent or present)),
            unused=unused,
            corrections=tuple((v.text, m[1]) for v, m in self.values if v.corrected),
            score=self._score(len(conditions), bool(order), unused),
        )

    def _missing(self) -> list[Condition]:
        """Give columns that are to hold nothing: "not returned" of a return date, "without an email"."""
        told = [p for _, p in (*self.numbers, *self.dates)]
        found = []
        for link, place in self.placed:
            k = link.first - 1
            k -= self.links.folded(k) in ("a", "an", "any", "been", "yet", "being")
            no = self.links.folded(k) in ("no", "without") and place.kind in ("text", "number", "date")
            undone = place.kind == "date" and link.verb and targets.negated_before(self.links, link.first)
            if (no or undone) and place not in told and not any(meant is place for _, (meant, _) in self.values):
                found.append(Condition(place, "{} IS NULL"))
        return found

    def _boolean(self) -> list[Condition]:
        found = [(c, p) for c, p in self.placed if p.kind == "boolean"]
        return [boolean_condition(p, not targets.negated_before(self.links, c.first)) for c, p in found]

    def _texts(self) -> tuple[list[Condition], list[Item]]:
        """Give text conditions for a search; for a question about one named row, the answers to show instead."""
        whole = self.prose(None)
        if whole is None:
            return [], []
        if self.entity and (_SUMMARY.search(self.links.question) or self._asks_prose()) and not self.phrases:
            return [], [Item(whole, "summary({})")]
        if self.entity and self.phrases and self.links.folded(0) in _ASKING:
            column = self.prose(self.phrases[0]) or whole
            return [], [Item(column, f"answer({{}}, {sql.text(self._about_entity(self.entity))})")]
        conditions = []
        for phrase in self.phrases:
            column = self.prose(phrase) or whole
            wanted = "Yes" if phrase.wanted else "No"
            conditions.append(Condition(column, f"answer({{}}, {sql.text(phrase.question)}) = '{wanted}'"))
        return conditions, []

    def _asks_prose(self) -> bool:
        return any(p.kind == "prose" and not self._spent(c, p) for c, p in self.placed)

    def _about_entity(self, entity: ValueLink) -> str:
        words = self.links.words
        before = self.links.question[: words[entity.first].start]
        after = self.links.question[words[entity.last - 1].end :]
        asked = re.sub(r"\b(the|a) this\b", "this", f"{before}this {self.noun}{after}").strip()
        return asked.rstrip("?.! ")[:1].lower() + asked.rstrip("?.! ")[1:] + "?"

    @cached_property
    def references(self) -> tuple[Place, ...]:
        """What names the rows that a row of the main relation refers to: the member and the book of a loan."""
        single = [
            name for name, way in self.paths.items() if len(way) == 1 and way[0].single and name != self.main.name
        ]
        return tuple(targets.name_place(self.index.places[name]) for name in single[:_REFERENCES])

    def _order(self) -> tuple[tuple[tuple[Item, bool], ...], Relation | None]:
        if self.period is not None and (self.count_at is not None or self.aggregates):
            return ((self.period, False),), None
        for order in self.links.orders:
            if self.period is not None and order.superlative:
                money = money_place(self.own) if self.links.money is not None else None
                return ((Item(money, "SUM({})") if money else Item(None, "COUNT(*)"), order.descending),), None
            items = targets.order_items(order, self.reach, self.paths)
            if items and self._counts_rows(order, items[0][0].place):
                items = ()
            dearest = self._dearest(order) if not items else None
            if dearest is not None:
                return ((Item(dearest), order.descending),), None
            named = (
                bool(order.units)
                and bool(items)
                and bool(set(order.units) & set(items[0][0].place.stems if items[0][0].place else ()))
            )
            counted = None if named else targets.counted_relation(order, self.links, self.main, self.paths)
            if counted is not None:
                return ((Item(None, "COUNT(*)"), order.descending),), counted
            added = self._adds_up(order, items[0][0].place) if items and order.units else None
            if added is not None and not self.aggregates:
                item = Item(items[0][0].place, "SUM({})")
                return ((item, order.descending),), None if added == self.main else added
            if items and not self.aggregates:
                return items, None
            owned = any(self.main in r.relations and _near_order(r.first, order) for r in self.links.relations)
            if owned and order.superlative and order.units and not items and self.asked:
                return ((Item(None, "COUNT(*)"), order.descending),), None
            most = order.units and self.group is None and any(p.stems[-1] in order.units for _, p in self.placed)
            if most and order.superlative and not items:
                return ((Item(None, "COUNT(*)"), order.descending),), None
        return self._by_sum()

    def _by_sum(self) -> tuple[tuple[tuple[Item, bool], ...], Relation | None]:
        """Order by the money that rows of another relation brought: "top 3 customers by total spend"."""
        asked = [r for link in self.links.relations if link.first == self.links.money for r in link.relations]
        if self.aggregates:
            return (), None
        for relation in asked:
            money = money_place(self.index.places[relation.name])
            if money is not None and not all(hop.single for hop in self.paths.get(relation.name, ())):
                down = not any(o.superlative and not o.descending for o in self.links.orders)
                return ((Item(money, "SUM({})"), down),), relation
        return (), None

    def _adds_up(self, order: OrderLink, place: Place | None) -> Relation | None:
        """Give the relation over whose rows "the most" of a column is a sum: the goals of a team's players."""
        if place is None or self.links.folded(order.first) not in ("most", "least", "fewest"):
            return None
        way = self.paths[place.relation.name]
        values = place.relation == self.main and self.asked and targets.name_place(self.own) not in self.asked
        own = values and all(p.kind == "text" and not p.identifier and p.relation == self.main for p in self.asked)
        return place.relation if own or not all(hop.single for hop in way) else None

    def _dearest(self, order: OrderLink) -> Place | None:
        """Give the money of a relation that a superlative of size speaks of: "the highest fine"."""
        sized = self.links.folded(order.first) in ("highest", "largest", "biggest", "lowest", "smallest")
        for link in self.links.relations if sized else ():
            for relation in link.relations if _near_order(link.first, order) else ():
                if relation.name in self.paths:
                    return money_place(self.index.places[relation.name])
        return None

    def _counts_rows(self, order: OrderLink, place: Place | None) -> bool:
        """Say whether a superlative speaks of rows of a relation, and of no column: "the most orders" is no date."""
        named = [r for link in self.links.relations if _near_order(link.first, order) for r in link.relations]
        return (
            place is not None
            and bool(order.units)
            and place.stems != order.units[:1]
            and any(relation_stems(r) == order.units[:1] and r != self.main for r in named)
        )

    def _present(self, told: list[Relation], counted: Relation | None) -> tuple[Relation, ...]:
        """Give the relations of which a row is to have some: "students who have a pet"; of those told of, rows are."""
        found = []
        for link in self.links.relations:
            k = link.first - 1
            k -= self.links.folded(k) in ("a", "an", "any", "some")
            having = self.links.folded(k) in ("have", "has", "having", "with", "own", "owns") and not link.verb
            denied = targets.negated_before(self.links, link.first)
            for relation in link.relations if having and not denied and self.having is None else ():
                way = self.paths.get(relation.name, ())
                shown = any(p.relation == relation for p in self.asked)
                if way and not way[0].single and relation not in (*told, counted) and not shown:
                    found.append(relation)
        return tuple(found)

    def _absent(self) -> tuple[Relation, ...]:
        """Give the relations of which a row is to have none: "members without loans", "products never sold"."""
        found = []
        for link in self.links.relations:
            for relation in link.relations:
                way = self.paths.get(relation.name, ())
                if way and not way[0].single and targets.negated_before(self.links, link.first):
                    found.append(relation)
        never = any(word.folded == "never" and self.links.used[i] is None for i, word in enumerate(self.links.words))
        if never and not found:
            steps = [way for way in self.paths.values() if len(way) == 1 and not way[0].single]
            found = [r for r in self.index.catalog.relations if [w[0].right for w in steps] == [r.name]]
        return tuple(found)

    def _select(
        self, mentioned: list[Place], questions: list[Item], counted: Relation | None, *, ranked: bool, searches: bool
    ) -> tuple[tuple[Item, ...], tuple[Place, ...], bool]:
        """Give the SELECT list, the groups, and whether duplicates are dropped."""
        if self.count_at is not None or self.aggregates:
            computed, grouped = self.aggregates or (self._count(),), tuple(Item(p) for p in self.groups)
            grouped += (self.period,) if self.period else ()
            return (*grouped, *computed), self.groups, False
        named = targets.name_place(self.own)
        empty = [condition.place for condition in self._missing()]
        asked = tuple(place for place in self.asked if place not in empty)
        if counted is None and ranked and self.period is not None:
            return (self.period, *(item for item, _ in self._order()[0])), (), False
        if counted is None and ranked:
            shown = asked or (named,)
            return (*(Item(p) for p in shown), *self._shown_count()), shown, False
        if counted is not None:
            keys = [p for p in self.own if p.column.name in self.main.key and p is not named]
            shown = asked or (named,)
            sums = tuple(item for item, _ in self._order()[0] if item.place is not None)
            items = (*(Item(p) for p in shown), *sums, *self._shown_count())
            return items, tuple(dict.fromkeys((*keys, *shown))), False
        if asked and searches:
            return tuple(Item(p) for p in targets.facts(self.own, [*asked, *mentioned])), (), False
        if asked:
            shown = (named, *asked) if named not in asked and targets.wh_places(self.links, self.own) else asked
            return (*(Item(p) for p in shown), *questions), (), self._distinct(asked)
        shown = targets.facts(self.own, mentioned) if not questions else (named,)
        shown += self.references if named.identifier and not searches and not questions else ()
        return (*(Item(p) for p in shown), *questions), (), False

    def _shown_count(self) -> tuple[Item, ...]:
        """Give the count by which rows are ranked or chosen, where the question asks to see it."""
        asks = targets.counted(self.links) is not None or "times" in {w.folded for w in self.links.words}
        return (Item(None, "COUNT(*)"),) if asks else ()

    def _count(self) -> Item:
        words = {w.folded for w in self.links.words}
        at = self.count_at or 0
        for link, place in self.placed:
            if words & {"different", "distinct", "unique"} and at <= link.first <= at + 2 and place is not self.group:
                return Item(place, "COUNT(DISTINCT {})")
            named = targets.name_place(self.own)
            if link.first == at and not self.links.relations and place.kind == "text" and place is not named:
                return Item(place, "COUNT(DISTINCT {})")
        return Item(None, "COUNT(*)")

    def _distinct(self, asked: tuple[Place, ...]) -> bool:
        if any(p.kind == "prose" for p in asked):
            return False
        words = {w.folded for w in self.links.words}
        return bool(words & {"different", "distinct", "unique"}) or self._lists_values(asked)

    def _lists_values(self, asked: tuple[Place, ...]) -> bool:
        """Say whether only the values of a column are asked for, and no row is named: "what genres are there"."""
        return not self.links.relations and self._asks_for_several() and all(p.kind == "text" for p in asked)

    def _limit(self, searches: bool, ordered: bool, chosen: bool) -> int | None:
        if self.count_at is not None or self.aggregates:
            return None
        superlative = [o for o in self.links.orders if o.superlative and (ordered or self.links.values)]
        if superlative and self.links.limit is None and _by_count(self._order()[0]):
            return SEARCH_LIMIT if self._asks_for_several() else 1
        if superlative or self.links.limit:
            return self.links.limit or (SEARCH_LIMIT if self._plural(superlative[0].last) else 1)
        if searches:
            return SEARCH_LIMIT
        everything = {"all", "every", "each", "list"} & {w.folded for w in self.links.words}
        if self.asked or everything or self.entity:
            return None
        if self.prose(None) is None:
            return None if chosen else LISTED_LIMIT
        return DEFAULT_LIMIT

    def _asks_for_several(self) -> bool:
        return any(
            not link.verb and _in_plural(self.links, link.last - 1) for link, p in self.placed if p in self.asked
        )

    def _plural(self, after: int) -> bool:
        """Say whether the noun of a superlative is in the plural: "the best restaurants"."""
        named = [self.links.words[r.first] for r in self.links.relations if self.main in r.relations]
        ordered = {part for item, _ in self._order()[0] if item.place for part in item.place.stems}
        for word in named[:1] or takewhile(lambda w: w.folded not in _CLAUSE, self.links.words[after : after + 4]):
            plural = word.folded.endswith("s") or word.stem in ("person", "child", "man", "woman")
            if word.folded != word.stem and plural and word.stem not in ordered:
                return True
        return False

    def _unused(self, ordered: bool) -> tuple[str, ...]:
        links = self.links
        known = [*(v for v, _ in self.values), *(v for _, _, named in self.beyond for v in named)]
        found = [*links.dropped, *(v.text for v in links.values if v not in known)]
        understood = [b for b, _, _ in self.beyond]
        found += [links.text(b.first, b.last) for b in links.beyond if b not in understood]
        found += [links.text(n.first, n.last) for n in links.numbers if not self._understood(n)]
        found += [links.text(d.first, d.last) for d in links.dates if d not in [each for each, _ in self.dates]]
        if not ordered and not self.aggregates:
            found += [links.text(o.first, o.last) for o in links.orders if o.superlative]
        if self.prose(None) is None or (self.count_at is not None and not self.phrases):
            found += [links.words[i].text for i in range(len(links.words)) if self._says(i)]
        return tuple(found)

    def _says(self, i: int) -> bool:
        """Say whether a word carries meaning that nothing here took up."""
        return content(self.links, i) and not (self.period is not None and self.links.stem(i) in PERIODS)

    def _understood(self, number: NumberLink) -> bool:
        return any(n is number for n, _ in self.numbers) or bool(self.having and self.having[1] is number)

    def _score(self, conditions: int, ordered: bool, unused: tuple[str, ...]) -> float:
        """Weigh how much of the question is covered, and how directly."""
        score = 2.0 * conditions + 1.5 * ordered - 1.0 * len(unused)
        for rank, link in enumerate(self.links.relations):
            if self.main in link.relations:
                score += 4.0 / len(link.relations) + (2.0 if rank == 0 else 0.0)
                score += 3.0 if self.count_at is not None and 0 <= link.first - self.count_at <= 2 else 0.0
        far = [p for _, p in self.placed] + [m[0] for _, m in self.values]
        far += [p for _, p in self.numbers] + [p for _, p in self.dates]
        score += sum(1.0 - 0.6 * len(self.paths[p.relation.name]) for p in far)
        whole = self.prose(None)
        score += 1.0 if any(item.template.startswith("SUM") for item in self.aggregates) else 0.0
        return score + (0.5 if whole is not None and self.phrases else 0.0) + 2.0 * bool(self.having)


def _near_order(at: int, order: OrderLink) -> bool:
    """Say whether word `at` is among those that a superlative speaks of: "the most employees"."""
    return order.last <= at < order.last + len(order.units)


def _by_count(order: tuple[tuple[Item, bool], ...]) -> bool:
    return any(item.place is None or item.template.startswith("SUM") for item, _ in order)


def count_condition(number: NumberLink) -> str:
    """Write a comparison of the number of rows in a group."""
    texts = [sql.number(n) for n in number.numbers]
    if number.operator == "between":
        return f"COUNT(*) BETWEEN {texts[0]} AND {texts[1]}"
    return f"COUNT(*) {number.operator} {texts[0]}"


def _in_plural(links: Links, at: int) -> bool:
    return links.folded(at) != links.stem(at)
