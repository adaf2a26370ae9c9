"""LocalDialogue: tells turns apart and reads them by their history, without a language model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from datetime import date
from typing import Any

from almanaq.agent.engine_protocol import QueryEngine
from almanaq.agent.history import Turn, TurnKind
from almanaq.agent.local_old.ambiguity import answered, ask_back, chooses
from almanaq.agent.local_old.confidence import CONFIDENCE
from almanaq.agent.local_old.figures_of import asks_of_which, chosen, left_out
from almanaq.agent.local_old.followups import follow_up
from almanaq.agent.local_old.going_on import going_on, retold
from almanaq.agent.local_old.languages import declined, foreign
from almanaq.agent.local_old.lexicon import cue
from almanaq.agent.local_old.listing import listing
from almanaq.agent.local_old.parser import LocalParser
from almanaq.agent.local_old.references import shown_before
from almanaq.agent.local_old.restated import Words, goes_on
from almanaq.agent.local_old.search.linking import link
from almanaq.agent.local_old.turns import reacts, turn_kind
from almanaq.agent.parser import Failure, Parsed
from almanaq.agent.shots import Examples
from almanaq.agent.small_talk import small_talk
from almanaq.suql.catalog.relations import Catalog

_LONGEST = 2000
_REPLY = 4
"""Most words of an answer to a question back, like "the city"; a longer one stands for itself."""


class LocalDialogue:
    """A TurnClassifier and SemanticParser in one: what a turn is decides how it is read.

    Args:
        engine: gives the values of columns, and those of rows that were shown before.
        today: gives the date that "last year" refers to.
        confidence: the probability of being right below which a question is declined.
        examples: questions with their SUQL, which are known again.
    """

    name = "local"

    def __init__(
        self,
        engine: QueryEngine,
        today: Callable[[], date] = date.today,
        *,
        confidence: float = CONFIDENCE,
        examples: Examples = (),
    ) -> None:
        self._engine = engine
        self._values: dict[tuple[str, str, int], list[str]] = {}
        self._parser = LocalParser(
            self._known_values, today, confidence=confidence, examples=examples, finds=self._finds
        )

    def with_confidence(self, confidence: float | None) -> LocalDialogue:
        """Return one that answers what it is so sure of, and shares with this one what it knows of the source."""
        other = copy(self)
        other._parser = self._parser.with_confidence(CONFIDENCE if confidence is None else confidence)
        return other

    def classify(self, question: str, catalog: Catalog, history: Sequence[Turn] = ()) -> TurnKind:
        """Return the kind of a turn."""
        if foreign(question) is not None:
            return "new"
        return self._heard(question[:_LONGEST], catalog, history)[2]

    def parse(
        self, question: str, catalog: Catalog, history: Sequence[Turn] = (), failures: Sequence[Failure] = ()
    ) -> Parsed:
        """Return the query of a turn; a query that was refused has no second form here."""
        if failures:
            return Parsed("no_query")
        language = foreign(question)
        if language is not None:
            return Parsed("no_query", reply=declined(language))
        question, history, kind = self._heard(question[:_LONGEST], catalog, history)
        going = self._going_on(question, catalog, history)
        if going is not None:
            return going
        if kind not in ("new", "talk", "world"):
            follows = follow_up(question, kind, history, self._parser.vocabulary(catalog), self._lookup)
            if follows is not None:
                return retold(follows, history, self._parser.vocabulary(catalog), self._reader(catalog))
        unclear = ask_back(question, self._parser.vocabulary(catalog))
        if unclear is not None:
            return Parsed("clarify", reply=unclear)
        alone = replace(self._parser.parse(question, catalog, history), asked=question)
        unsaid = left_out(Words(question, self._parser.vocabulary(catalog))) if shown_before(history) else None
        if unsaid is not None and alone.status == "query" and kind == "new":
            return unsaid
        if alone.status == "no_query" and kind in ("narrow", "replace"):
            said = f"I do not know what “{question.strip()}” would change: no column or value here has that name."
            return Parsed("clarify", reply=f"{said} What shall I look for?", kind=kind)
        return alone

    def _heard(self, question: str, catalog: Catalog, history: Sequence[Turn]) -> tuple[str, Sequence[Turn], TurnKind]:
        """Return a turn with its kind; the answer to a question back together with what was asked before."""
        vocabulary = self._parser.vocabulary(catalog)
        if history and (meant := chosen(question, history[-1])) is not None:
            going = self._going_on(meant, catalog, history[:-1]) if meant != history[-1].asked else None
            return meant, history[:-1] if going else (), going.kind if going else "new"
        if (going := self._going_on(question, catalog, history)) is not None:
            return question, history, going.kind
        links = link(question, vocabulary)
        kind = turn_kind(question, links, history)
        if kind in ("world", "talk") and self._parser.is_understood(question, catalog):
            kind = "new"  # whatever its words are about elsewhere, here they are about the tables
        last = history[-1] if history else None
        replies = kind in ("world", "narrow", "replace") or (kind == "new" and len(question.split()) <= _REPLY)
        replies = replies or (kind == "talk" and not reacts(question, links))
        replies = replies or chooses(question)
        if (
            last is None
            or last.status != "clarify"
            or asks_of_which(last)
            or not replies
            or cue("asks").search(question)
        ):
            return question, history, kind
        whole = answered(last, question)
        return whole, history[:-1], turn_kind(whole, link(whole, vocabulary), history[:-1])

    def _going_on(self, question: str, catalog: Catalog, history: Sequence[Turn]) -> Parsed | None:
        """Return what a turn means that goes on from figures; None for others, and for answers to a question back."""
        if not history or small_talk(question) is not None:
            return None
        last = history[-1]
        own = goes_on(question) or listing(question) is not None or asks_of_which(last)
        if last.status == "clarify" and not own:
            return None
        vocabulary = self._parser.vocabulary(catalog)
        return going_on(question, history, vocabulary, self._reader(catalog))

    def _reader(self, catalog: Catalog) -> Callable[[str], Parsed]:
        return lambda whole: self._parser.read(whole, catalog)

    def _known_values(self, relation: str, column: str, limit: int) -> list[str]:
        """Return the values of a column, read once however often its relation is indexed beside others."""
        key = (relation, column, limit)
        if key not in self._values:
            self._values[key] = self._engine.values(relation, column, limit)
        return self._values[key]

    def _finds(self, suql: str) -> bool:
        return bool(self._engine.run(suql).rows)

    def _lookup(self, suql: str) -> Sequence[Any]:
        return [row[0] for row in self._engine.run(suql).rows]
