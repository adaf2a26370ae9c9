"""Tables with a column for each year: the year of a question chooses among `population_2016` and `population_2021`."""

from __future__ import annotations

import re
from collections import defaultdict
from copy import copy
from dataclasses import replace

from almanaq.agent.local_old.recognize.vocabulary import Vocabulary
from almanaq.agent.local_old.schema_index import Place

_YEAR = r"(?:19|20)\d\d"
_SAID = re.compile(
    rf"(?:\b(?:in|for|during|from|between)(?: the)?(?: years?)? )?\b(?P<first>{_YEAR})"
    rf"(?:(?: to | and | until | through |\s?[-–]\s?)(?P<last>{_YEAR}))?\b",
    re.IGNORECASE,
)


def in_years(question: str, vocabulary: Vocabulary) -> tuple[str, Vocabulary]:
    """Return a question without its year and a vocabulary of that year's columns, where columns are of years."""
    said = list(_SAID.finditer(question))
    years = tuple(filter(None, said[0].groups())) if len(said) == 1 else ()
    if not years or not any(_years(place) == years for place in _of_years(vocabulary)):
        return question, vocabulary
    if years not in vocabulary.of_years:
        vocabulary.of_years[years] = _only(vocabulary, years)
    return " ".join((question[: said[0].start()] + question[said[0].end() :]).split()), vocabulary.of_years[years]


def _of_years(vocabulary: Vocabulary) -> list[Place]:
    """Return the columns that differ from others of their relation in their years alone, or are of two years."""
    alike: dict[tuple[str, tuple[str, ...]], list[Place]] = defaultdict(list)
    for place in vocabulary.index.all_places():
        if _years(place) and (rest := _rest(place)):
            alike[place.relation.name, rest].append(place)
    return [p for places in alike.values() if len(places) > 1 or len(_years(places[0])) > 1 for p in places]


def _only(vocabulary: Vocabulary, years: tuple[str, ...]) -> Vocabulary:
    """Return the vocabulary in which columns of some years are called without them, and those of others are not."""
    yearly, index = _of_years(vocabulary), copy(vocabulary.index)
    index.places = {
        name: tuple(
            replace(place, stems=_rest(place)) if place in yearly else place
            for place in places
            if place not in yearly or _years(place) == years
        )
        for name, places in vocabulary.index.places.items()
    }
    found = Vocabulary(index)
    found.yearly = frozenset(place.column for place in yearly)
    return found


def _years(place: Place) -> tuple[str, ...]:
    return tuple(stem for stem in place.stems if re.fullmatch(_YEAR, stem))


def _rest(place: Place) -> tuple[str, ...]:
    return tuple(stem for stem in place.stems if not re.fullmatch(_YEAR, stem))
