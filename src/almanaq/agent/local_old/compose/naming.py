"""Which column a span means: one of the rows that are named beside it, or that it tells more of."""

from __future__ import annotations

import re
from collections.abc import Sequence

from almanaq.agent.local_old.compose.refusal import NotUnderstood
from almanaq.agent.local_old.joins import paths
from almanaq.agent.local_old.recognize.called import HEADED, OWN
from almanaq.agent.local_old.recognize.spans import Span
from almanaq.agent.local_old.recognize.vocabulary import Vocabulary
from almanaq.agent.local_old.schema_index import Place
from almanaq.suql.catalog.relations import Relation

_ENDING = re.compile("(?P<of>.+?)(?P<kind>name|category|type|code|group|id|abbreviation|class|key|number)")
"""The name of a column that holds one of the names, codes or kinds of something."""


class Naming:
    """The spans of one question, and what they mean beside each other.

    Attributes:
        mentioned: the relations that the question speaks of; `names` theirs, and those of facts of the same things.
        each: the relation by whose rows the others are grouped.
    """

    def __init__(self, spans: Sequence[Span], vocabulary: Vocabulary, mentioned: Sequence[Relation]) -> None:
        self.spans, self.vocabulary = list(spans), vocabulary
        self.mentioned = list(mentioned)
        self.names = {relation.name for relation in mentioned}
        self.names |= vocabulary.of_facts(self.names)
        self.each: Relation | None = None

    def place(self, span: Span, *, numeric: bool = False) -> Place:
        """Return the one column that a span means among the relations spoken of."""
        known: tuple[tuple[Place, float], ...] = span.data
        if (general := self._of_general(span, known)) is not None:
            return general
        within = self._beside(span, known) or self._spoken_of(span, known)
        close = self._nearest(span, [p for p, _ in within])
        within = [(p, quality) for p, quality in within if p in close]
        if (key := _referred(within)) is not None:
            return key
        if numeric:
            within = [(p, quality) for p, quality in within if p.kind == "number" and not p.identifier] or within
        best = max(quality for _, quality in within)
        if best < OWN and (place := self._beside_its_parts(span, within) or self._evident(within)) is not None:
            return place
        if best < OWN and len({p.column.name for p, _ in within}) > 1:
            raise _between([p for p, _ in within])
        return _only(self._of_what_else(self._nearest(span, [p for p, quality in within if quality == best])))

    def places(self, span: Span) -> list[Place]:
        """Return the columns that a span means: the one, or the first and the last name that "names" speaks of."""
        known = [place for place, quality in span.data if quality == span.data[0][1]]
        within = [place for place in known if place.relation.name in self.names] or known
        whole = self.vocabulary.whole_name(within[0].relation)
        return list(whole) if len(whole) > 1 and {*whole} == {*within} else [self.place(span)]

    def _beside_its_parts(self, span: Span, known: Sequence[tuple[Place, float]]) -> Place | None:
        """Return the one of several columns whose name tells of something that is named besides: `candidatevotes`,
        where a candidate is.
        """
        others = [s for s in self.spans if s.kind in "CV" and s is not span]
        beside = {p.stems[0] for s in others for p, _ in s.data if len(p.stems) == 1}
        fit = [place for place, _ in known if any(part & beside for part in self.vocabulary.parts_of(place))]
        return fit[0] if len(fit) == 1 else None

    def _evident(self, known: Sequence[tuple[Place, float]]) -> Place | None:
        """Return the one of several columns that is meant where no more is said: the total, the name, or what the
        words are the head of: `country_of_origin`, and no `country_partner`.
        """
        places = [place for place, _ in known]
        whole = [place for place in places if self.vocabulary.is_whole(place)]
        headed = [place for place, quality in known if quality >= HEADED]
        if len(whole) == 1 and (len(places) > 2 or {"total", "altogether"} & {str(s.data) for s in self.spans}):
            return whole[0]  # the total sleep, of several kinds of it
        return _called(places) or (headed[0] if len(headed) == 1 else None)

    def _of_what_else(self, places: list[Place]) -> list[Place]:
        """Return, of columns named alike, that of the one relation which holds all that the question speaks of."""
        held = [{p.relation.name for p, _ in s.data} for s in self.spans if s.kind in "CV"]
        fit = [p for p in places if all(p.relation.name in each for each in held)]
        return fit if len({p.relation.name for p in fit}) == 1 else places

    def _beside(self, span: Span, known: Sequence[tuple[Place, float]]) -> list[tuple[Place, float]]:
        """Return the columns that a span may mean of what it tells more of, or of the list in which it stands."""
        beside = self._told_of_before(span) | self._listed_with(span)
        return [(p, quality) for p, quality in known if p.relation.name in beside and quality >= OWN]

    def _spoken_of(self, span: Span, known: Sequence[tuple[Place, float]]) -> list[tuple[Place, float]]:
        """Return the columns that a span may mean of the relations spoken of, each with how surely it is named."""
        within = [(p, quality) for p, quality in known if p.relation.name in self.names]
        after = {relation.name for s in self._named_after(span) for relation in s.data}
        within = within or self._of_partners_of(after, known)
        if after and not within:
            raise NotUnderstood(f"{known[0][0].column.name} of {' or '.join(sorted(self.names))}")
        partly = bool(within) and max(quality for _, quality in within) < 1
        if after and partly and not any(p.relation.name in after for p, _ in within):
            raise NotUnderstood(f"{known[0][0].column.name} of {' or '.join(sorted(after))}")
        within = within or [(p, quality) for p, quality in known if quality >= OWN or not self.mentioned]
        if not within:
            raise NotUnderstood(f"{known[0][0].column.name} of {' or '.join(sorted(self.names))}")
        return within

    def _of_partners_of(self, after: set[str], known: Sequence[tuple[Place, float]]) -> list[tuple[Place, float]]:
        """Return columns named whole of rows that each have one of those named after: "paragraph texts for the
        document".
        """
        return [(p, quality) for p, quality in known if quality == 1 and after & self.partners_of([p.relation])]

    def _of_general(self, span: Span, known: Sequence[tuple[Place, float]]) -> Place | None:
        """Return a column of what rows are in general: the name of a poker player, of whom another
        table has numbers.
        """
        for relation in {r.name: r for s in self._named_after(span) for r in s.data}.values():
            own = self.vocabulary.index.places[relation.name]
            bare = not any(p.kind in ("text", "prose") for p in own)
            fit = [p for p, quality in known if quality >= OWN and self.is_single(relation, p.relation)] if bare else []
            if len(fit) == 1 and fit[0].relation != relation and not any(p in own for p, _ in known):
                return fit[0]
        return None

    def _nearest(self, span: Span, places: list[Place]) -> list[Place]:
        """Return the columns of the relation that is named beside a column: "names of singers", "stadium names"."""
        if len({p.relation.name for p in places}) < 2:
            return places
        named = {p.relation.name for p in places}
        before = [s for s in self.spans if s.kind == "R" and s.last == span.first]
        for each in (*before, *self._named_after(span)):
            beside = {relation.name for relation in each.data} & named
            if beside:
                return [p for p in places if p.relation.name in beside]
        own = [p for p in places if p.relation == self.each]  # "for each team, its name and number of players"
        return own or places

    def _told_of_before(self, span: Span) -> set[str]:
        """Return the relations of what a clause tells more of: "who has a cat that is 3 years old"."""
        before = [i for i, each in enumerate(self.spans) if each.last <= span.first and each.kind not in "w"][-1:]
        if not before or self.spans[before[0]].kind not in "RV":
            return set()
        noun = self.spans[before[0]]
        said = {str(each.data) for each in self.spans[before[0] :] if each.last <= span.first}
        held = noun.data if noun.kind == "R" else [place.relation for place, _ in noun.data]
        return {relation.name for relation in held} if said & {"that", "which", "who", "whose"} else set()

    def _listed_with(self, span: Span) -> set[str]:
        """Return the relation of the column that goes on a list: "ids and texts of paragraphs"."""
        at = next((i for i, each in enumerate(self.spans) if each is span), len(self.spans))
        listed = re.match(r"C(?:w*&w*C)+", "".join(each.kind for each in self.spans[at:]))
        after = [each for each in self.spans[at + 1 : at + listed.end()] if each.kind == "C"] if listed else []
        held = [{place.relation.name for place, quality in each.data if quality >= OWN} for each in after]
        return next((names for names in held if len(names) == 1), set())

    def _named_after(self, span: Span) -> list[Span]:
        """Return the relation named after a column and its list: "ids and texts of paragraphs"."""
        for other in (s for s in self.spans if s.first >= span.last):
            if other.kind == "R":
                return [other]
            if other.kind not in "wC&" and not (other.kind == "B" and str(other.data).startswith("for")):
                break
        return []

    def is_single(self, rows: Relation, other: Relation) -> bool:
        """Return whether each row of a relation has at most one row of the other."""
        way = paths(self.vocabulary.hops, rows).get(other.name)
        return way is not None and all(hop.single for hop in way)

    def is_one_to_one(self, rows: Relation, other: Relation) -> bool:
        """Return whether each row of a relation has a row of the other that it shares with none."""
        way = paths(self.vocabulary.hops, rows).get(other.name, ())
        return len(way) == 1 and way[0].single and self.vocabulary.partners.is_unique(rows, [way[0].left_column])

    def partners_of(self, relations: Sequence[Relation]) -> set[str]:
        """Return the relations of which each row of some relations has at most one: the person who a player is."""
        others = self.vocabulary.index.catalog.relations
        return {other.name for other in others if all(self.is_single(relation, other) for relation in relations)}


def _between(places: Sequence[Place]) -> NotUnderstood:
    return NotUnderstood(f"which of {', '.join(sorted({p.column.name for p in places})[:4])} is meant")


def _called(places: Sequence[Place]) -> Place | None:
    """Return the name of something that has also a code or a category: `language_name`, of a language."""
    parts = {place: _ENDING.fullmatch("".join(place.stems)) for place in places}
    named = [place for place, each in parts.items() if each is not None and each["kind"] == "name"]
    alike = {each["of"] if each is not None else "" for each in parts.values()}
    return named[0] if len(named) == len(alike) == 1 else None


def _only(places: Sequence[Place]) -> Place:
    """Return the one of several columns named alike that tells most: no reference, else the key.

    Raises:
        NotUnderstood: several are left.
    """
    near = list(places)
    if len(near) > 1:
        near = [p for p in near if not p.identifier] or near
    if len({(p.relation.name, p.column.name) for p in near}) != 1:
        near = [p for p in near if p.relation.key == (p.column.name,)] or near
    if len({(p.relation.name, p.column.name) for p in near}) != 1:
        raise _between(near)
    return near[0]


def _referred(named: Sequence[tuple[Place, float]]) -> Place | None:
    """Return the key to which the other columns of a name refer: the code of a country, not that of its cities."""
    sure = [place for place, quality in named if quality >= OWN]
    for key in (place for place in sure if place.relation.key == (place.column.name,)):
        if len(sure) > 1 and all(place is key or _refers(place, key) for place in sure):
            return key
    return None


def _refers(place: Place, key: Place) -> bool:
    own = ((place.column.name,), key.relation.name, (key.column.name,))
    return any((tuple(a), b, tuple(c)) == own for a, b, c in place.relation.foreign_keys)
