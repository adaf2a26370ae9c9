"""understand: a question → one reading, with what it rests on; or why there is none. The whole way on one screen."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from almanaq.agent.local_old.compose import NotUnderstood, compose
from almanaq.agent.local_old.compose.features import features
from almanaq.agent.local_old.compose.rows import main_of, mentioned_by
from almanaq.agent.local_old.frame import Frame, write
from almanaq.agent.local_old.joining import bring
from almanaq.agent.local_old.joins import paths
from almanaq.agent.local_old.nearest import is_telling, sketch
from almanaq.agent.local_old.once_a_turn import once_a_turn
from almanaq.agent.local_old.recognize.context import in_context
from almanaq.agent.local_old.recognize.heard import heard
from almanaq.agent.local_old.recognize.readings import readings
from almanaq.agent.local_old.recognize.spans import Span, best_cover, silenced
from almanaq.agent.local_old.recognize.tokens import Token
from almanaq.agent.local_old.recognize.vocabulary import Vocabulary
from almanaq.agent.local_old.recognize.words import words
from almanaq.agent.local_old.recognize.years import in_years
from almanaq.agent.local_old.schema_index import SchemaIndex

_IN_YEAR = ("month", "quarter", "week")
"""Parts of a date that come again every year."""


@dataclass(frozen=True, slots=True)
class Understanding:
    """What was made of a question.

    Attributes:
        suql: the query; None where the question was not understood whole.
        unknown: the words of which nothing is known.
        missing: what was not understood, in words; "" where all was.
        told: what tells sure readings from doubtful ones (`compose.features`).
        nearest: a query of what was understood, to edit; None where that is too little.
        named: the relations that are named, or hold what is.
        readings: sentences that say for what unusual words were taken.
        between: a value and the names of the columns between which it leaves open what is meant.
    """

    suql: str | None
    unknown: tuple[str, ...] = ()
    missing: str = ""
    told: Mapping[str, float] = field(default_factory=dict)
    nearest: str | None = None
    named: tuple[str, ...] = ()
    readings: tuple[str, ...] = ()
    between: tuple[str, tuple[str, ...]] | None = None


@once_a_turn
def understand(question: str, vocabulary: Vocabulary) -> Understanding:
    """Return the one reading of a question that uses every word that means something."""
    question, vocabulary = in_years(question, vocabulary)
    tokens, recognized = heard(question, vocabulary)
    spans = best_cover(recognized, len(tokens))
    known = words().people
    unknown = tuple(str(s.data) for s in spans if s.kind == "?" and str(s.data).casefold() not in known)
    if unknown and (respelled := _respelled(question, unknown, vocabulary)) is not None:
        return respelled
    missing, between = "the words " + ", ".join(f"“{word}”" for word in unknown), None
    if not unknown:
        try:
            return _read(tokens, spans, vocabulary)
        except NotUnderstood as error:
            missing, between = str(error.args[0]), error.args[1] if len(error.args) > 1 else None
    held = [relation for span in spans if span.kind == "R" for relation in span.data]
    held = held or [place.relation for span in spans if span.kind in "CV" for place, _ in span.data]
    named = tuple(dict.fromkeys(relation.name for relation in held))
    return Understanding(
        None, unknown, missing, nearest=_nearest(tokens, spans, vocabulary), named=named, between=between
    )


def _respelled(question: str, unknown: Sequence[str], vocabulary: Vocabulary) -> Understanding | None:
    """Return what a question means with its unknown words spelled as the nearest known ones, if it means anything."""
    near = {word: vocabulary.misspelt(word) for word in unknown}
    for word, known in near.items():
        question = re.sub(rf"\b{re.escape(word)}\b", known or word, question)
    found = understand(question, vocabulary) if all(near.values()) else None
    if found is None or found.suql is None:
        return None
    return replace(
        found, readings=(*(f"I read “{word}” as “{known}”." for word, known in near.items()), *found.readings)
    )


def _read(tokens: Sequence[Token], spans: Sequence[Span], vocabulary: Vocabulary) -> Understanding:
    """Return what one cover of the words asks for.

    Raises:
        NotUnderstood: a word fits nothing, or fits several things.
    """
    spans = in_context(spans, vocabulary)
    mentioned = mentioned_by(spans, vocabulary)
    state = compose(spans, vocabulary, mentioned)
    main = main_of(state)
    if vocabulary.yearly and not any(place.column in vocabulary.yearly for place in state.frame.places):
        raise NotUnderstood("to which column the year belongs")
    ways = paths(vocabulary.hops, main)
    bring(state.frame, main, ways, vocabulary)
    suql = write(state.frame, main, ways)
    told = features(spans, state.frame, main, mentioned)
    said = (*readings(tokens, spans, state.frame.places), *_of_calendar(state.frame, vocabulary.index))
    return Understanding(suql, told=told, readings=said)


def _nearest(tokens: Sequence[Token], spans: Sequence[Span], vocabulary: Vocabulary) -> str | None:
    """Return a query of what was understood of a question, to be edited; None where that is a table's name alone."""
    if not is_telling(spans):
        return None
    try:
        return _read(tokens, [silenced(span) if span.kind in "?vrk" else span for span in spans], vocabulary).suql
    except NotUnderstood:
        return sketch(spans, vocabulary)


def _of_calendar(frame: Frame, index: SchemaIndex) -> tuple[str, ...]:
    """Return what is to be known of parts of the calendar: all Januaries are one month."""
    parts = {term for term in frame.groups if term.function in _IN_YEAR and term.place is not None}
    chosen = {test.term.place for test in frame.tests if "NOT NULL" not in test.template}
    yearly = {term.place for term in frame.groups if term.function == "year"}
    found = []
    for term in parts:
        if term.place is None or term.place in chosen | yearly:
            continue
        years = index.years(term.place)
        if len(years) > 1:
            found.append(f"The same {term.function} of different years counts as one here ({years[0]} to {years[-1]}).")
    return tuple(found)
