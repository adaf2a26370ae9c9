"""LocalParser: question → SUQL by linking words to the schema. There is no language model behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date

from almanaq.agent.history import Turn
from almanaq.agent.local.assemble import Assembler
from almanaq.agent.local.confidence import CONFIDENCE, Judged, account, not_sure, parse_tree
from almanaq.agent.local.lexicon import ADJECTIVES, ENTITY_WORDS, IGNORED, NEGATIONS
from almanaq.agent.local.linker import link
from almanaq.agent.local.links import Links
from almanaq.agent.local.phrases import phrases
from almanaq.agent.local.quantities import SUPERLATIVES, UNITS
from almanaq.agent.local.reading import Reading
from almanaq.agent.local.recognize.vocabulary import Vocabulary
from almanaq.agent.local.schema_index import SchemaIndex, Values
from almanaq.agent.local.understand import understand
from almanaq.agent.local.words import PAST, stem, word_set
from almanaq.agent.parser import Failure, Parsed
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
    """

    name = "local"

    def __init__(
        self, values: Values, today: Callable[[], date] = date.today, *, confidence: float = CONFIDENCE
    ) -> None:
        self._values, self._today, self._confidence = values, today, confidence
        self._indexes: dict[tuple[str, ...], SchemaIndex] = {}
        self._vocabularies: dict[int, Vocabulary] = {}

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
        judged = self.judge(question, catalog)
        if judged is None:
            return Parsed("no_query")
        if not judged.is_sure(self._confidence):
            return Parsed("no_query", reply=not_sure(judged))
        guess = judged.guess
        if guess is None or not _is_reviewed(guess.main, self.index(catalog)):
            return Parsed("query", judged.suql)
        return Parsed("query", judged.suql, unused=guess.unused, corrections=guess.corrections)

    def judge(self, question: str, catalog: Catalog) -> Judged | None:
        """Give the best query for a question with the probability that it is right; None where no word is known.

        A question that is understood whole has one reading; for others there is a guess, which links what it can.
        """
        index = self.index(catalog)
        found = readings(question, index)
        guess = found[0] if found else None
        if guess is not None and _is_reviewed(guess.main, index):
            return Judged(guess.suql(), 1.0, guess.suql(), guess, guess.unused)
        understood = understand(question, self._vocabularies[id(index)], self._today())
        suql = understood.suql or (guess.suql() if guess is not None else None)
        if suql is None:
            return None
        told = account(
            question, parse_tree(suql), index, understood, None if guess is None else parse_tree(guess.suql())
        )
        if understood.suql is None and guess is not None and _repeats(guess):
            return Judged(suql, 0.0, None, guess, (), "of which rows the numbers are put together")
        unknown = (*understood.unknown, *told.unexplained)
        missing = "" if understood.unknown else understood.missing
        strange = tuple(word for word in understood.unknown if not _is_familiar(word))
        return Judged(suql, told.probability, understood.suql, guess, unknown, missing, strange)


def _is_familiar(word: str) -> bool:
    """Say whether the guess knows a word of no table: "earns" is about pay, "undelivered" denies a value."""
    folded = word.casefold()
    known = UNITS.keys() | SUPERLATIVES.keys() | IGNORED | ADJECTIVES | NEGATIONS
    denied = folded.startswith("un") and (folded.endswith("ed") or folded[2:] in PAST)
    return bool({folded, stem(folded)} & (known | _TIMES)) or denied


def _repeats(guess: Reading) -> bool:
    """Say whether an aggregate would count the numbers of another table as often as its rows are joined."""
    computed = [item for item in guess.select if item.place is not None and "(" in item.template]
    return any(
        item.place is not None and item.place.relation != guess.main and guess.counted != item.place.relation
        for item in computed
        if not item.template.startswith(("answer", "summary", "COUNT"))
    )


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
