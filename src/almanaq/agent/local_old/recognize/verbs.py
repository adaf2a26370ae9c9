"""Columns and relations by the verbs that speak of them: `director` of "directed", `hired_on` of "hired in 2020"."""

from __future__ import annotations

from collections.abc import Sequence

from almanaq.agent.local_old.recognize.called import OWN, Named
from almanaq.agent.local_old.recognize.words import words
from almanaq.agent.local_old.schema_index import Place, SchemaIndex
from almanaq.agent.local_old.spoken import relation_stems
from almanaq.agent.local_old.words import PAST, roots, stem
from almanaq.suql.catalog.relations import Relation

_OF_BIRTH = {"birth", "born", "birthplace"}
_OF_PLACES = {"place", "city", "country", "town", "location", "birthplace"}


class Verbs:
    """Finds what a verb speaks of.

    Args:
        columns: what each column is called.
        index: the catalog.
    """

    def __init__(self, columns: Sequence[Named], index: SchemaIndex) -> None:
        self._columns, self._index = columns, index

    def echoed(self, word: str) -> tuple[tuple[Place, float], ...]:
        """Return the columns that are called by the past of a verb: `Started` of "when did it start"."""
        past = ((n.place, part) for n in self._columns for part in n.place.stems if part.endswith("ed") or part in PAST)
        return tuple((place, OWN) for place, part in past if word in roots(part))

    def kin(self, word: str, *, asked: bool = False) -> tuple[str, ...]:
        """Return the relations that share a root with a verb, in their name or in one of a column's: "conducted" speaks
        of conductors, "directed" of a director; `asked` where "did" or "does" stands before it.
        """
        if (len(word) < (4 if asked else 5) and word not in PAST) or stem(word).endswith(("er", "or")):
            return ()
        said = {root for root in roots(word) if len(root) > 3}
        return tuple(
            relation.name
            for relation in self._index.catalog.relations
            if any(said & roots(part) for part in (*relation_stems(relation), *self._agents(relation)))
        )

    def spoken_by_verb(self, word: str, *, timed: bool) -> tuple[tuple[Place, float], ...]:
        """Return the columns that a verb speaks of: a salary of "earns"; where a time follows, the date of "hired"."""
        meant = words().verbs.get(word, frozenset())
        places = [n.place for n in self._columns if n.place.kind == "number" and any(meant & part for part in n.parts)]
        told = word.endswith("ed") or word in PAST or (timed and word == "born")
        if not places and told:
            places = self._dated_by(word) if timed else self._told_by(word)
        return tuple((place, OWN) for place in places)

    def told_birth(self) -> list[Place]:
        """Return the one column of texts that says where somebody was born."""
        texts = (n.place for n in self._columns if n.place.kind == "text")
        places = [p for p in texts if _OF_BIRTH & {*p.stems} and _OF_PLACES & {*p.stems}]
        return places if len(places) == 1 else []

    def _told_by(self, word: str) -> list[Place]:
        """Return the one column of numbers that has the root of a verb: "scored below 70"."""
        said = {root for root in roots(word) if len(root) > 3}
        numbers = (n.place for n in self._columns if n.place.kind == "number" and not n.place.identifier)
        places = [place for place in numbers if said & {*place.stems}]
        return places if len(places) == 1 else []

    def _dated_by(self, word: str) -> list[Place]:
        """Return the columns that say when what a verb says was: "hired after 2020"."""
        said = roots(word) | ({"birth"} if word == "born" else set())
        dated = (n for n in self._columns if n.place.kind == "date" or "year" in n.place.stems)
        parts = ((n.place, {*n.place.stems}.union(*n.parts)) for n in dated)
        return [place for place, own in parts if any(said & roots(part) for part in own)]

    def agents(self, word: str) -> list[Place]:
        """Return the columns of those who do what a verb says."""
        said = {root for root in roots(word) if len(root) > 3}
        doers = [n.place for n in self._columns if n.place.kind == "text" and n.place.stems[-1:]]
        return [p for p in doers if p.stems[-1].endswith(("er", "or", "by")) and any(said & roots(s) for s in p.stems)]

    def _agents(self, relation: Relation) -> list[str]:
        """Return the words of a relation's columns that name who does something: "director"."""
        places = self._index.places[relation.name]
        return [part for place in places if place.kind == "text" for part in place.stems if part.endswith(("er", "or"))]
