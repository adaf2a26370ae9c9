"""LocalParser: question → SUQL by linking words to the schema. There is no language model behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from datetime import date

from almanaq.agent.history import Turn
from almanaq.agent.local.assemble import Assembler
from almanaq.agent.local.confidence import CONFIDENCE, Judged, not_sure, probability
from almanaq.agent.local.lexicon import ENTITY_WORDS
from almanaq.agent.local.linker import link
from almanaq.agent.local.links import Links
from almanaq.agent.local.once import once
from almanaq.agent.local.phrases import phrases
from almanaq.agent.local.reading import Reading
from almanaq.agent.local.recognize.vocabulary import Vocabulary
from almanaq.agent.local.schema_index import SchemaIndex, Values
from almanaq.agent.local.taught import taught
from almanaq.agent.local.understand import Understanding, understand
from almanaq.agent.local.words import word_set
from almanaq.agent.parser import Failure, Parsed
from almanaq.agent.shots import Examples
from almanaq.agent.small_talk import small_talk
from almanaq.suql.catalog.relations import Catalog, Relation

_SEARCHES = word_set(
    """
    find recommend recommendation recommendations suggest suggestion suggestions search where looking eat which
    """
)


_TIMES = word_set(
    """
    before after since until january february march april may june july august september october november december
    jan feb mar apr jun jul aug sep oct nov dec
    """
)


class LocalParser:
    """A SemanticParser that links words to names and values, and asks the rest of the prose.

    Args:
        values: gives the values of a column (relation, column, limit); asked once per column and catalog.
        today: gives the date that "last year" refers to.
        confidence: the probability of being right below which a question is declined.
        examples: questions with their SUQL, which are known again.
    """

    name = "local"

    def __init__(
        self,
        values: Values,
        today: Callable[[], date] = date.today,
        *,
        confidence: float = CONFIDENCE,
        examples: Examples = (),
    ) -> None:
        self._values, self._today, self._confidence, self._examples = values, today, confidence, examples
        self._indexes: dict[tuple[str, ...], SchemaIndex] = {}
        self._vocabularies: dict[int, Vocabulary] = {}
        self._last: tuple[str, int, date, Understanding] | None = None

    def with_confidence(self, confidence: float) -> LocalParser:
        """Give one that answers what it is so sure of, and shares with this one what was indexed."""
        other = copy(self)
        other._confidence = confidence
        return other

    def index(self, catalog: Catalog) -> SchemaIndex:
        """Give the catalog made searchable; kept for the next question."""
        key = tuple(r.name for r in catalog.relations)
        kept = self._indexes.get(key)
        if kept is None or kept.catalog != catalog:
            kept = self._indexes[key] = SchemaIndex(catalog, self._values, self._today)
            self._vocabularies[id(kept)] = Vocabulary(kept)
        return kept

    def parse(
        self, question: str, catalog: Catalog, history: Sequence[Turn] = (), failures: Sequence[Failure] = ()
    ) -> Parsed:
        """Give the query of the best reading; a failed query has no second form here, and history is not read."""
        del history
        if small_talk(question) is not None or failures:
            return Parsed("no_query")
        index = self.index(catalog)
        known = taught(question, self._examples, self._vocabularies[id(index)])
        if known is not None:
            return Parsed("query", known)
        found = searched(question, index)
        if found is not None:
            return Parsed("query", found.suql(), unused=found.unused, corrections=found.corrections)
        judged = self.judge(question, catalog)
        if judged is None:
            return Parsed("no_query")
        if judged.between is not None and self._confidence >= 0:
            return Parsed("clarify", reply=which(*judged.between))
        if judged.probability < self._confidence:
            return Parsed("no_query", reply=not_sure(judged))
        return Parsed("query", judged.suql)

    def understood(self, question: str, catalog: Catalog) -> Understanding:
        """Give what a question over tables means; read once, whoever asks for it in a turn."""
        index, today = self.index(catalog), self._today()
        if self._last is None or self._last[:3] != (question, id(index), today):
            self._last = (question, id(index), today, understand(question, self._vocabularies[id(index)], today))
        return self._last[3]

    def is_understood(self, question: str, catalog: Catalog) -> bool:
        """Say whether a question is one over tables that would be answered."""
        if taught(question, self._examples, self._vocabularies[id(self.index(catalog))]) is not None:
            return True
        understood = self.understood(question, catalog)
        return understood.suql is not None and probability(understood.told) >= self._confidence

    def judge(self, question: str, catalog: Catalog) -> Judged | None:
        """Give the query for a question over tables, and how surely it is right; None where no word is known."""
        understood = self.understood(question, catalog)
        if understood.suql is not None:
            return Judged(understood.suql, probability(understood.told))
        nearest = _asking_texts(question, self.index(catalog)) or understood.nearest
        if nearest is None:
            return None
        missing = "" if understood.unknown else understood.missing
        return Judged(nearest, 0.0, understood.unknown, missing, understood.between)


def _asking_texts(question: str, index: SchemaIndex) -> str | None:
    """Give the nearest query that asks prose for what no column tells; None where no table has any."""
    if not any(place.kind == "prose" for place in index.all_places()):
        return None
    found = readings(question, index)
    return found[0].suql() if found else None


def which(value: str, names: Sequence[str]) -> str:
    """Ask in which of several columns a value is meant."""
    listed = ", ".join(names[:-1]) + " or " + names[-1]
    return f"By “{value}”, do you mean the {listed}?"


@once
def searched(question: str, index: SchemaIndex) -> Reading | None:
    """Give the reading of a question about things that have reviews; None for questions about other tables."""
    if not any(_is_reviewed(relation, index) for relation in index.catalog.relations):
        return None
    found = readings(question, index)
    return found[0] if found and _is_reviewed(found[0].main, index) else None


def _is_reviewed(relation: Relation, index: SchemaIndex) -> bool:
    """Say whether rows have texts of many passages, as reviews are: people search them by what no column says."""
    return any(place.kind == "prose" and place.column.array for place in index.places[relation.name])


def readings(question: str, index: SchemaIndex) -> list[Reading]:
    """Give the readings of a question, one per main relation, best first; [] when no word links to the data."""
    links = link(question, index)
    mains = _mains(links, index)
    found = [Assembler(links, index, main).reading() for main in mains]
    found.sort(key=lambda r: -r.score)
    return found


def _mains(links: Links, index: SchemaIndex) -> list[Relation]:
    """Give the relations that the question may be about."""
    mains: dict[str, Relation] = {}
    for relation_link in links.relations:
        mains.update({r.name: r for r in relation_link.relations})
    for value in links.values:
        mains.update({m[0].relation.name: m[0].relation for m in value.meanings})
    for column in links.columns:
        mains.update({p.relation.name: p.relation for p in column.places})
    if not mains:
        mains.update({r.name: r for r in links.implied})
    if mains:
        return list(mains.values())
    folded = {w.folded for w in links.words}
    generic = folded & ENTITY_WORDS or folded & _SEARCHES
    if generic and (phrases(links, "row") or links.orders):
        prose = [r for r in index.catalog.relations if any(p.kind == "prose" for p in index.places[r.name])]
        return prose or list(index.catalog.relations[:1])
    return []
