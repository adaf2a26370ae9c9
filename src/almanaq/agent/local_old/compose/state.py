"""What is known while the spans of a question are put together: which are used, and what they make."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from almanaq.agent.local_old import sql
from almanaq.agent.local_old.compose.naming import Naming
from almanaq.agent.local_old.compose.refusal import NotUnderstood
from almanaq.agent.local_old.facts import facts
from almanaq.agent.local_old.frame import Frame, Term, Test
from almanaq.agent.local_old.recognize.spans import Span
from almanaq.agent.local_old.recognize.vocabulary import Vocabulary, is_year
from almanaq.agent.local_old.recognize.words import words
from almanaq.agent.local_old.schema_index import Meaning, Place
from almanaq.agent.local_old.spoken import relation_stems
from almanaq.agent.local_old.words import PAST, roots
from almanaq.suql.catalog.relations import Relation

TOGETHER = ("in total", "in all", "altogether", "total number of")
"""Words that say that numbers are added up."""
_WITHIN = {"episode": ("series", "season"), "chapter": ("book", "volume"), "week": ("year", "season")}
"""What begins anew within something else."""
_DOWNWARDS = re.compile("desc|decr|^(?:from )?(?:the )?(?:sorted from )?(?:high|old|large|most|big|long)")
"""How an order begins that goes down: "highest first", but not "from lowest to highest"."""


@dataclass(frozen=True, slots=True)
class Superlative:
    """What is extreme: a column or the number of rows, in which direction, and how many rows are wanted.

    Attributes:
        amount: how many rows are wanted; -2 for the second one alone.
        common: the most common value of a column is asked for.
        function: how the numbers of a group are put together first.
        adjective: it was told by an adjective: "heaviest" speaks of rows, "highest weight" of the number.
    """

    down: bool
    amount: int | None
    place: Place | None = None
    counts: bool = False
    common: bool = False
    function: str = ""
    adjective: bool = False


class State(Naming):
    """The spans of one question, with what has been made of them.

    Attributes:
        kinds: the kind of each span; "w" once it is used.
        compared: for each comparison, by its place, the column compared.
        both: both extremes are asked for, "the cheapest and the dearest".
        compared_values: the column of the two values between which one is chosen.
        counts: rows are counted; `counted` the column whose values are, `counted_relation` whose rows.
        having_of: the relation whose rows are compared in number.
        kin: for each verb that shares its root with relations, their names.
    """

    def __init__(self, spans: Sequence[Span], vocabulary: Vocabulary, mentioned: Sequence[Relation]) -> None:
        super().__init__(spans, vocabulary, mentioned)
        self.frame = Frame()
        self.kinds = [span.kind for span in spans]
        self.superlative: Superlative | None = None
        self.both = False
        self.compared_values: Place | None = None
        self.counted: Place | None = None
        self.counts = False
        self.compared: dict[int, Place] = {}
        self.aggregates: list[tuple[str, Place]] = []
        self.counted_relation: Relation | None = None
        self.having_of: Relation | None = None
        self.kin: list[tuple[str, ...]] = [span.data for span in self.spans if span.kind == "r"]

    def use(self, match: re.Match[str], *groups: str) -> Literal[True]:
        """Take the spans of named groups away; all but the values of a match when none is named."""
        for group in groups or (0,):
            for i in range(*match.span(group)):
                if self.kinds[i] not in ("w&|" if groups else "w&|V"):
                    self.kinds[i] = "w"
        return True

    def silence(self, first: int, last: int) -> Literal[True]:
        """Take spans away, whatever they are."""
        self.kinds[first:last] = "w" * (last - first)
        return True

    def test(self, place: Place, template: str) -> None:
        """Ask of a column what a template says."""
        self.frame.tests.append(Test(Term("", place), template))

    def one(self, match: re.Match[str], group: str) -> Span | None:
        """Return the span of a named group of one letter, if it took part."""
        return self.spans[match.start(group)] if match.group(group) else None

    def measured(self, meant: Sequence[tuple[str, bool]] | None, near: Sequence[Relation] = ()) -> tuple[Place, bool]:
        """Return the one column that an adjective measures, with the direction.

        It is one of the rows `near` it, where those have one.
        """
        known = self.of_partners(meant, near) if near and meant else None
        known = known or (self.vocabulary.measured_by(meant, self.names) if meant else None)
        if known is None:
            raise NotUnderstood("what is compared")
        return known

    def of_partners(self, meant: Sequence[tuple[str, bool]], near: Sequence[Relation]) -> tuple[Place, bool] | None:
        """Return what an adjective measures of some rows; where they have no such column, of what they are: the person
        who a player is, and nobody else.
        """
        names = {relation.name for relation in near}
        known = self.vocabulary.measured_by(meant, names | self.vocabulary.of_facts(names))
        hops = [hop for relation in near for hop in self.vocabulary.hops.get(relation.name, ()) if hop.single]
        catalog, partners = self.vocabulary.index.catalog, self.vocabulary.partners
        same = {hop.right for hop in hops if partners.is_unique(catalog.relation(hop.left), [hop.left_column])}
        return known or (self.vocabulary.measured_by(meant, same) if same else None)

    def rows_before(self, at: int) -> list[Relation]:
        """Return the relation whose rows are named just before a span."""
        before = [span for span in self.spans[:at] if span.kind != "w"][-1:]
        return [relation for span in before if span.kind == "R" for relation in span.data]

    def noun_before(self, at: int) -> list[Relation]:
        """Return the relation whose rows are named last before a span, where something says more of them: "students
        who are older than 20".
        """
        nouns = [span for span in self.spans[:at] if span.kind == "R"][-1:]
        return [relation for span in nouns for relation in span.data]

    def time_column(self, of: Sequence[Relation] = ()) -> Place:
        """Return the column of the relations spoken of that says when: a year, or the one date."""
        years = [p for r in self.mentioned for p in self.vocabulary.index.places[r.name] if "year" in p.stems]
        return years[0] if len(years) == 1 and years[0].kind == "number" else self.date_column(of)

    def date_column(self, of: Sequence[Relation] = ()) -> Place:
        spoken = self._spoken_relations()
        own = [p for r in spoken for p in self.vocabulary.index.places[r.name]]
        days = [p for p in own if p.kind == "date"] or [p for p in own if is_year(p)]
        if len(days) > 1:
            days = [p for p in days if p.relation in of] or days
        if len({p.relation.name for p in days}) > 1:  # what happened, and not those to whom it did
            days = [p for p in days if all(self.is_single(p.relation, other) for other in spoken)] or days
        if len(days) > 1:
            days = self._told_of(days) or days
        if len(days) > 1:
            days = [p for p in days if set(p.stems) & set(relation_stems(p.relation))]
        if len(days) != 1:
            raise NotUnderstood("which date is meant")
        return days[0]

    def _told_of(self, days: Sequence[Place]) -> list[Place]:
        """Return the dates that a verb of the question speaks of: the year of conviction of "convicted after 2005"."""
        named = {i: s.data[0][0] for i, s in enumerate(self.spans) if s.kind == "C" and s.data}
        found = [p for p in days if p in named.values() and p.stems[-1].endswith("ed")]
        self.kinds = ["w" if named.get(i) in found else kind for i, kind in enumerate(self.kinds)]
        done = {root for s in self.spans if s.kind in "vr" for root in roots(s.said or str(s.data)) if len(root) > 3}
        return found or [p for p in days if any(done & roots(part) for part in p.stems)]

    def date_of(self, verb: Span) -> Place | None:
        """Return the day on which the one relation that shares its root with a verb says that it was done."""
        named = [relation for name in verb.data if (relation := self.vocabulary.index.catalog.find(name)) is not None]
        days = [p for relation in named for p in self.vocabulary.index.places[relation.name] if p.kind == "date"]
        if len(days) > 1:
            days = [p for p in days if set(p.stems) & set(relation_stems(p.relation))]
        return days[0] if len(named) == len(days) == 1 else None

    def _spoken_relations(self) -> list[Relation]:
        """Return the relations that a question names, and those of columns and values that no other one has."""
        held = [{p[0].relation.name: p[0].relation for p in s.data} for s in self.spans if s.kind in "CV"]
        alone = [relation for each in held if len(each) == 1 for relation in each.values()]
        return list({relation.name: relation for relation in (*self.mentioned, *alone)}.values())

    def meaning(self, span: Span) -> Meaning:
        """Return the one column in which a value stands, and the value."""
        meanings: tuple[Meaning, ...] = span.data
        near = [m for m in meanings if m[0].relation.name in self.names] or list(meanings)
        named = [[place for place, _ in s.data] for s in self.spans if s.kind == "C" and _is_beside(s, span)]
        near = [m for m in near if any(m[0] in places for places in named)] or near
        whole = [m for m in near if self.vocabulary.distinct(m[0]) >= 0.8 * (m[0].relation.rows or 0)]
        near = whole if len(near) > 1 and len(whole) == 1 else near
        near = [m for m in near if m[0].relation.name in self.partners_of(self.mentioned[:1])] or near
        near = self.vocabulary.of_same_rows(near) or near
        if (key := self._key_of(near)) is not None:
            return key
        near = self._where_the_rest_is(near)
        if len({(m[0].relation.name, m[0].column.name) for m in near}) != 1:
            names = tuple(dict.fromkeys(" ".join(m[0].stems) for m in near))
            if len(names) == 1:
                names = tuple(f"{names[0]} of {' '.join(relation_stems(m[0].relation))}" for m in near)
            raise NotUnderstood("in which column " + near[0][1] + " is meant", (near[0][1], names))
        return near[0]

    def _key_of(self, near: Sequence[Meaning]) -> Meaning | None:
        """Return the key of text that a value is of one row, where another column refers to rows by it."""
        finds = self.vocabulary.index.finds
        if finds is None or len({place for place, _ in near}) != 1:
            return None
        for one, value in near:
            own = self.vocabulary.index.places[one.relation.name]
            named = {("id",), (*relation_stems(one.relation), "id")}
            keys = (p for p in own if p.identifier and p.kind == "text" and p.stems in named and p is not one)
            for key in keys:
                held = f"{sql.column(key, False)} = {sql.text(value)}"
                if finds(f"SELECT 1 FROM {sql.name(one.relation.name)} WHERE {held} LIMIT 1"):
                    return key, value
        return None

    def _where_the_rest_is(self, near: list[Meaning]) -> list[Meaning]:
        """Return the meaning in the relation that a question needs anyway: the only one that has a column it names."""
        held = [{p.relation.name for p, _ in s.data} for s in self.spans if s.kind == "C"]
        needed = {name for names in held for name in names if len(names) == 1}
        there = [m for m in near if m[0].relation.name in needed]
        return there if len(there) == len(needed) == 1 else near

    def mention(self, relations: Sequence[Relation]) -> Relation:
        """Note that the question names a relation, and give it."""
        self.frame.nouns.append(self.one_of(relations))
        return self.frame.nouns[-1]

    def one_of(self, relations: Sequence[Relation]) -> Relation:
        """Return the one relation of several of one name that holds what else the question speaks of."""
        if len(relations) > 1:
            spoken = {p[0].relation.name for s in self.spans if s.kind in "CV" for p in s.data}
            dated = "D" in self.kinds
            relations = [relation for relation in relations if relation.name in spoken or dated]
        if len(relations) > 1:
            relations = self._leading_to_all(relations)
        if len(relations) != 1:
            raise NotUnderstood("which table is meant")
        return relations[0]

    def _leading_to_all(self, relations: Sequence[Relation]) -> list[Relation]:
        """Return the relations each of whose rows has at most one of all that is spoken of; of these the ones that hold
        most of it themselves.
        """
        said = [{place.relation.name for place, _ in span.data} for span in self.spans if span.kind in "CV"]
        days = {p.relation.name for p in self.vocabulary.index.all_places() if p.kind == "date" or is_year(p)}
        said += [days] if "D" in self.kinds else []
        fit = {}
        for relation in relations:
            near = self.partners_of([relation]) | {relation.name}
            if all(names & near for names in said):
                fit[relation.name] = sum(relation.name in names for names in said)
        return [relation for relation in relations if fit.get(relation.name, -1) == max(fit.values(), default=0)]

    def name_of(self, relations: Sequence[Relation]) -> Place:
        named = self.vocabulary.row_name(relations[0]) if len(relations) == 1 else None
        if named is None:
            raise NotUnderstood("what names " + " or ".join(relation.name for relation in relations))
        return named

    def names_of(self, relation: Relation) -> list[Place]:
        return list(self.vocabulary.whole_name(relation)) or [self.name_of([relation])]

    def ranked_names(self) -> list[Place]:
        """Return what names the rows that are ranked: those of the relation named first that is not itself counted."""
        ranked = [r for r in self.nouns_in_order() if r != self.counted_relation]
        if not ranked:
            raise NotUnderstood("rows of what are ranked")
        return self.names_of(ranked[0])

    def nouns_in_order(self) -> list[Relation]:
        return [span.data[0] for span in self.spans if span.kind == "R" and len(span.data) == 1]

    def subject(self) -> Relation | None:
        """Return the relation whose rows a question names first, or calls by the column that names them."""
        for span in self.spans:
            if span.kind == "R":
                return span.data[0] if len(span.data) == 1 else None
            if span.kind == "C":
                place, quality = span.data[0]
                named = len(span.data) == 1 and quality == 1 and self.vocabulary.row_name(place.relation) is place
                return place.relation if named else next(iter(self.nouns_in_order()), None)
        return None

    def begins_with(self, kind: str, meant: Relation | Place) -> bool:
        """Return whether the first thing that a question names are the rows of a relation, or a column."""
        first = next((span for span in self.spans if span.kind not in "w&U"), None)
        if first is None or first.kind != kind:
            return False
        return meant in (first.data if kind == "R" else [place for place, _ in first.data])

    def is_agent(self, at: int) -> bool:
        """Return whether the "by" of a span follows a verb in the passive: "owned by students" makes no groups."""
        before = self.spans[at - 1] if at and self.spans[at - 1].kind != "H" else None
        passive = before is not None and (before.kind in "vr" or str(before.data).endswith(("ed", "en", "wn")))
        passive = passive or (before is not None and before.data in PAST)  # "won by", of a verb that asks for nothing
        passive = passive or (before is not None and before.kind == "C" and before.data[0][0].kind == "boolean")  # paid
        return self.spans[at].data == "by" and passive and before is not None and before.data not in words().grouping

    def tells_rows(self, place: Place) -> bool:
        """Return whether a column names single rows: a name, a key, a date of a row."""
        return place.kind == "date" or self.vocabulary.names_rows(place)

    def within(self, place: Place) -> list[Place]:
        """Return the column without which a number says little: the series of an episode, the year of a week."""
        around = _WITHIN.get(place.stems[-1], ()) if place.kind == "number" and place.stems else ()
        own = [p for p in self.vocabulary.index.places[place.relation.name] if p.stems[-1:] and p.stems[-1] in around]
        told = [test.term.place for test in self.frame.tests]
        return [p for p in own[:1] if p not in told]

    def listed_beside(self) -> bool:
        """Return whether a column stands in a list with an aggregate: "each city and the number of its shops"."""
        kinds = "".join(span.kind for span in self.spans)
        return bool(re.search(r"C[wRE]*&[wU]*[HA]|[HA][wURC]*&[w]*C", kinds))

    def named_by(self) -> list[Place]:
        """Return the columns by which one row is asked for: by its name."""
        tested = [t.term.place for t in self.frame.tests if t.term.place is not None and t.template.startswith("{} = ")]
        whole = {place for each in tested[:1] for place in self.vocabulary.whole_name(each.relation)}
        return tested if len(whole) > 1 and whole <= {*tested} else [p for p in tested if self.vocabulary.names_rows(p)]

    def shown(self, relation: Relation, first: Place | None = None) -> list[Term]:
        """Return what is shown of rows: their name and what was spoken of; every column where none is a name."""
        places = self.vocabulary.index.places[relation.name]
        named = self.vocabulary.whole_name(relation)
        if not named:
            tested = {test.term.place for test in self.frame.tests}  # what was looked for in a text is to be seen
            return [Term("", place) for place in places if place.kind != "prose" or place in tested]
        spoken = [test.term.place for test in self.frame.tests if test.term.place in places]
        mentioned = [*([first] if first else []), *filter(None, spoken)]
        return [Term("", place) for place in dict.fromkeys([*named, *facts(places, mentioned)])]

    def adds_up(self, place: Place) -> bool:
        """Return whether the numbers of a column make a sum: sales and `RoomsLocked` do, prices do not."""
        parts = set(place.stems)
        whole = place.column.name.casefold()
        done = len(place.stems) > 1 and place.stems[-1].endswith("ed") and whole.startswith(place.stems[0] + "s")
        done = done or place.stems[:2] == ("number", "of")
        return (done or bool(parts & words().additive)) and not parts & words().rates

    def descending(self) -> bool:
        return any(_DOWNWARDS.search(str(span.data)) for span in self.spans if span.kind == "E")


def _is_beside(column: Span, value: Span) -> bool:
    """Return whether a column is named right before or after a value; two words may stand between."""
    return value.first - 2 <= column.last <= value.first or column.first == value.last
