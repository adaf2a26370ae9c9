"""LocalParser: question → SUQL by linking words to the schema. There is no language model behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from datetime import date
from typing import Self

from almanaq.agent.describe import words
from almanaq.agent.engine_protocol import QueryEngine
from almanaq.agent.history import Turn
from almanaq.agent.local_old.confidence import CONFIDENCE, Judged, not_sure, probability
from almanaq.agent.local_old.recognize.vocabulary import Vocabulary
from almanaq.agent.local_old.schema_index import Finds, SchemaIndex, Values
from almanaq.agent.local_old.search.searches import nearest_search, searched
from almanaq.agent.local_old.taught import taught
from almanaq.agent.local_old.understand import Understanding, understand
from almanaq.agent.parser import Failure, Parsed
from almanaq.agent.responder import holds
from almanaq.agent.shots import Examples
from almanaq.agent.small_talk import small_talk
from almanaq.suql.catalog.relations import Catalog

_LISTED = 12
"""Most columns that a reply names."""


class LocalParser:
    """A SemanticParser that links words to names and values, and asks the rest of the prose.

    Args:
        values: gives the values of a column (relation, column, limit); asked once per column and catalog.
        today: gives the date that "last year" refers to.
        confidence: the probability of being right below which a question is declined.
        examples: questions with their SUQL, which are known again.
        finds: says whether a query finds a row: whether a key repeats is looked up before it joins; where nothing says
            so, only keys that are declared do.
    """

    name = "local"

    def __init__(
        self,
        values: Values,
        today: Callable[[], date] = date.today,
        *,
        confidence: float = CONFIDENCE,
        examples: Examples = (),
        finds: Finds | None = None,
    ) -> None:
        self._values, self._today, self._confidence, self._examples = values, today, confidence, examples
        self._finds = finds
        self._vocabularies: dict[tuple[str, ...], Vocabulary] = {}

    @classmethod
    def over(cls, engine: QueryEngine, today: Callable[[], date] = date.today, confidence: float = CONFIDENCE) -> Self:
        """Return a parser of questions about what an engine holds."""
        return cls(engine.values, today, confidence=confidence, finds=lambda query: bool(engine.run(query).rows))

    def with_confidence(self, confidence: float) -> LocalParser:
        """Return one that answers what it is so sure of, and shares with this one what was indexed."""
        other = copy(self)
        other._confidence = confidence
        return other

    def vocabulary(self, catalog: Catalog) -> Vocabulary:
        """Return the catalog made searchable; kept for the next question."""
        key = tuple(r.name for r in catalog.relations)
        kept = self._vocabularies.get(key)
        if kept is None or kept.index.catalog != catalog:
            index = SchemaIndex(catalog, self._values, self._today, self._finds)
            kept = self._vocabularies[key] = Vocabulary(index)
        return kept

    def parse(
        self, question: str, catalog: Catalog, history: Sequence[Turn] = (), failures: Sequence[Failure] = ()
    ) -> Parsed:
        """Return the query of the best reading; a failed query has no second form here, and history is not read."""
        del history
        if small_talk(question) is not None or failures:
            return Parsed("no_query")
        vocabulary = self.vocabulary(catalog)
        known = taught(question, self._examples, vocabulary)
        if known is not None:
            return Parsed("query", known)
        found = searched(question, vocabulary)
        if found is not None:
            return Parsed("query", found.suql(), unused=found.unused, corrections=found.corrections)
        return self.read(question, catalog)

    def read(self, question: str, catalog: Catalog) -> Parsed:
        """Return the query of a question over tables that was understood whole, or why there is none."""
        judged = self.judge(question, catalog)
        if judged is None:
            return Parsed("no_query")
        if judged.between is not None and self._confidence >= 0:
            return Parsed("clarify", reply=which(*judged.between))
        if judged.suql is None or judged.probability < self._confidence:
            return Parsed("no_query", reply=not_sure(judged, _held(catalog, judged.named)))
        return Parsed("query", judged.suql, readings=judged.readings)

    def understood(self, question: str, catalog: Catalog) -> Understanding:
        """Return what a question over tables means; read once, whoever asks for it in a turn."""
        return understand(question, self.vocabulary(catalog))

    def is_understood(self, question: str, catalog: Catalog) -> bool:
        """Return whether a question is one over tables that would be answered."""
        if taught(question, self._examples, self.vocabulary(catalog)) is not None:
            return True
        understood = self.understood(question, catalog)
        return understood.suql is not None and probability(understood.told) >= self._confidence

    def judge(self, question: str, catalog: Catalog) -> Judged | None:
        """Return the query for a question over tables, and how surely it is right; None where no word is known."""
        understood = self.understood(question, catalog)
        if understood.suql is not None:
            return Judged(understood.suql, probability(understood.told), readings=understood.readings)
        nearest = nearest_search(question, self.vocabulary(catalog)) or understood.nearest
        if nearest is None and not understood.named:
            return None
        missing = "" if understood.unknown else understood.missing
        return Judged(nearest, 0.0, understood.unknown, missing, understood.between, understood.named)


def _held(catalog: Catalog, named: Sequence[str]) -> str:
    """Say what columns the relations have that a question names; of several, what the source holds."""
    if len(named) != 1:
        return holds(catalog)
    columns = [words(column.name) for column in catalog.relation(named[0]).columns]
    more = f" and {len(columns) - _LISTED} more" if len(columns) > _LISTED else ""
    return f"The columns of {words(named[0])} are {', '.join(columns[:_LISTED])}{more}."


def which(value: str, names: Sequence[str]) -> str:
    """Ask in which of several columns a value is meant."""
    listed = ", ".join(names[:-1]) + " or " + names[-1]
    return f"By “{value}”, do you mean the {listed}?"
