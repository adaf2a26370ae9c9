"""Which relation a turn searches, and whether it is a search of rows that have reviews."""

from __future__ import annotations

import re
from dataclasses import replace

from almanaq.agent.local_old.frame import Test
from almanaq.agent.local_old.lexicon import ENTITY_WORDS
from almanaq.agent.local_old.once_a_turn import once_a_turn
from almanaq.agent.local_old.recognize.vocabulary import Vocabulary
from almanaq.agent.local_old.search.linking import link
from almanaq.agent.local_old.search.links import Links
from almanaq.agent.local_old.search.phrases import phrases
from almanaq.agent.local_old.search.wishes import Wishes
from almanaq.agent.local_old.words import word_set
from almanaq.suql.catalog.relations import Relation

_SEEKING = word_set(
    "find recommend recommendation recommendations suggest suggestion suggestions search where looking eat which"
)


@once_a_turn
def searches(question: str, vocabulary: Vocabulary) -> list[Wishes]:
    """Return the searches that a turn may be, one per relation, the best first; [] when no word is known."""
    links = link(question, vocabulary)
    found = [Wishes(links, vocabulary, main) for main in _mains(links, vocabulary)]
    found.sort(key=lambda each: -each.score)
    return found


def searched(question: str, vocabulary: Vocabulary) -> Wishes | None:
    """Return the search of rows that have reviews; None for other questions, and those for figures."""
    if not any(is_reviewed(relation, vocabulary) for relation in vocabulary.index.catalog.relations):
        return None
    links = link(question, vocabulary)
    found = [] if links.computed else searches(question, vocabulary)
    if not found or not is_reviewed(found[0].main, vocabulary):
        return None
    wanted = links.relations or links.values or links.bounds or links.days or links.orders or found[0].phrases
    return found[0] if wanted and found[0].is_whole else None  # "list all cities" asks for no rows


def nearest_search(question: str, vocabulary: Vocabulary) -> str | None:
    """Return a query, to be edited, of a turn read as a search where a table has prose; None where it would mislead.

    It asks prose for one thing at most, no number, and not where the question wants a yes or a no.
    """
    if not any(place.kind == "prose" for place in vocabulary.index.all_places()):
        return None
    found = searches(question, vocabulary)[:1]
    if not found:
        return None
    search, frame = found[0], found[0].frame
    limit = frame.limit if frame.order else search.links.limit
    if not search.phrases:
        told = frame.tests or frame.members or frame.order or search.asked
        return search.suql(replace(frame, limit=limit)) if told else None
    asked = search.phrases[0]
    if len(search.phrases) > 1 or search.asks_yes_or_no or any(letter.isdigit() for letter in asked.words):
        return None
    if not any(asked.question in test.template for test in frame.tests):
        return None
    mention = re.sub(r"^(does this .+?) have\b", r"\1 mention", asked.question)
    tests = [Test(test.term, test.template.replace(asked.question, mention)) for test in frame.tests]
    return search.suql(replace(frame, tests=tests, limit=limit))


def is_reviewed(relation: Relation, vocabulary: Vocabulary) -> bool:
    """Return whether rows have texts of many passages, as reviews are: people search them by what no column says."""
    return any(place.kind == "prose" and place.column.array for place in vocabulary.index.places[relation.name])


def _mains(links: Links, vocabulary: Vocabulary) -> list[Relation]:
    """Return the relations that a turn may be about."""
    named = [relation for span in links.relations for relation in span.data]
    named += [meaning[0].relation for value in links.values for meaning in value.meanings]
    named += [place.relation for span in links.columns for place, _ in span.data]
    if named:
        return list({relation.name: relation for relation in named}.values())
    folded = {token.folded for token in links.tokens}
    seeks = folded & ENTITY_WORDS or folded & _SEEKING
    if not (links.bounds or links.days or (seeks and (phrases(links, "row") or links.orders))):
        return []
    relations = vocabulary.index.catalog.relations
    prose = [r for r in relations if any(p.kind == "prose" for p in vocabulary.index.places[r.name])]
    return prose or list(relations[:1])
