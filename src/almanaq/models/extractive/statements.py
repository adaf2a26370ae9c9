"""Yes or no of any text: a clause that states what is asked for, or denies it; likeness alone decides nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from almanaq.models.extractive.clauses import Clause, clauses
from almanaq.models.extractive.lexicon import concept
from almanaq.text.words import STOPWORDS, stem, words


def _stems(spoken: str) -> frozenset[str]:
    return frozenset(stem(word) for word in spoken.split())


STOPS = frozenset(stem(word) for word in STOPWORDS)
_OPENING = re.compile(
    r"\s*(?:is|are|was|were|does|do|did|has|have|had|can|could|will|would|should)(?:n't)?\s+"
    r"(?:the|this|that|these|those|our|your|an?|any)\s+([^\W\d_]+)",
    re.IGNORECASE,
)
"""The subject of a question: its noun after the article."""
_SPEAKERS = _stems(
    """ad advert article author applicant buyer caller candidate client comment complaint customer description document
    email employee feedback film guest item letter listing mail message movie narrator note paper passage passenger
    patient person post product purchaser record remark reply report resident response review reviewer sender speaker
    statement story student summary team tenant text ticket traveler traveller tweet user visitor worker writer"""
)
"""Nouns for the row or for whom its text is by: the text itself rarely names them."""
_TELLING = _stems("mention mentioned say says talk discuss refer speak contain")
"""Verbs that ask only whether the text speaks of something."""
_LONGEST_SUBJECT = 4
"""Words before a telling verb that may say whose text it is: "does this drug review mention …"."""
_COMPLAINING = _stems("complain complaint complaints unhappy dissatisfied dissatisfaction upset annoyed")
_AMISS = re.compile(r"\b(?:problem|issue|trouble)s?(?= with\b)", re.IGNORECASE)
_BLAME = re.compile(rf"(?<!\S)(?:{'|'.join(sorted(_COMPLAINING))}|late|delai|damag|lost|wrong)(?!\S)")
_DENIED_AFTER = re.compile(
    r"\S+ (?:is|are|was|were|do|doe|did|has|have|had|can|could|will|would)(?: \S+)? (?:not|never)(?!\S)"
)
_UNSURE = re.compile(r"(?<!\S)(?:should|hope|expect|promis|plan|want|ask|almost|nearli|instead|except)(?!\S)")
"""Stems beside which a thing may not be so."""
_JUDGING = _stems("good great excellent nice bad poor terrible awful happy satisfied pleased positive negative")
_EMPTY = _stems(
    """any anything really there somebody someone anyone something ever actually still yet kind sort serve offer provide
    sell"""
)


@dataclass(frozen=True, slots=True)
class Statement:
    """What a question asks for.

    Attributes:
        keys: the stems that a clause must hold, all of them.
        spoken_of: whether it is enough that the text speaks of them, even to deny them.
        judged: whether the clause must praise (1) or blame (-1) them; 0: it need only state them.
    """

    keys: tuple[str, ...]
    spoken_of: bool = False
    judged: int = 0


@lru_cache(maxsize=1_000)
def statement(question: str) -> Statement | None:
    """Return what a yes-or-no question asks a text for, None where nothing can be looked for.

    >>> statement("Does the customer complain about delivery?")
    Statement(keys=('deliveri',), spoken_of=False, judged=-1)
    >>> statement("was the engine damaged?").keys
    ('engin', 'damag')
    >>> statement("does the review mention parking?")
    Statement(keys=('park',), spoken_of=True, judged=0)
    """
    subject = _OPENING.match(question)
    row = stem(subject[1].lower()) if subject else ""
    tokens = [stem(word) for word in words(_AMISS.sub("complaint", question))]
    keys = [each for each in tokens if each not in STOPS and each not in _EMPTY]
    if row in _SPEAKERS and row in keys:
        keys.remove(row)
    judged = -1 if any(each in _COMPLAINING for each in keys) else 0
    left = [each for each in keys if each not in _COMPLAINING] if judged else keys
    if not judged and (found := [each for each in keys if each in _JUDGING]):
        blamed = any(hit.kind == "no" for hit in concept("positive").hits(" ".join(found))) or "negat" in found
        judged, left = -1 if blamed else 1, [each for each in keys if each not in _JUDGING]
    telling = next((i for i, key in enumerate(left[:_LONGEST_SUBJECT]) if key in _TELLING), None)
    spoken_of = not judged and telling is not None and len(left) > telling + 1
    left = left[telling + 1 :] if spoken_of and telling is not None else left
    negated = any(each in ("not", "no", "without", "never") for each in tokens)
    return None if not left or negated else Statement(tuple(dict.fromkeys(left)), spoken_of, judged)


def stated(passages: Sequence[str], asked: Statement) -> Iterator[tuple[int, Clause, float]]:
    """Yield the clauses that say what is asked for, with their passage: 1 for yes, -1 for no."""
    weigh = _judgement if asked.judged else _assertion
    for number, passage in enumerate(passages):
        for clause in clauses(passage):
            places = _places(clause.stems, asked.keys)
            if places is None or (clause.doubtful and not asked.spoken_of):
                continue
            weight = 1.0 if asked.spoken_of else weigh(clause, places) * (asked.judged or 1)
            if weight:
                yield number, clause, weight


@dataclass(frozen=True, slots=True)
class _Place:
    """A word that was looked for, at its place in a clause's stems; `opposite`: "unfurnished" for "furnished"."""

    at: int
    opposite: bool


def _places(stems: str, keys: Sequence[str]) -> list[_Place] | None:
    """Return where each key stands in a clause, None where one is missing."""
    found = []
    for key in keys:
        match = _word(key).search(stems)
        if match is None:
            return None
        found.append(_Place(match.start(), match[1] is not None))
    return found


@lru_cache(maxsize=5_000)
def _word(key: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\S)(un|non)?{re.escape(key)}{'[a-z]{0,3}' if len(key) > 4 else ''}(?!\S)")


def _assertion(clause: Clause, places: Sequence[_Place]) -> float:
    """Return 1 for a clause that states what it holds, -1 for one that denies it, 0 where that is not clear."""
    if any(clause.negated(place.at) or _DENIED_AFTER.match(clause.stems, place.at) for place in places):
        return 0.0 if any(place.opposite for place in places) else -1.0
    if any(place.opposite for place in places):
        return -1.0
    held = {place.at for place in places}
    doubts = [hit.start for hit in concept("denial").hits(clause.stems)]
    doubts += [match.start() for match in _UNSURE.finditer(clause.stems)]
    return 1.0 if held.issuperset(doubts) else 0.0


def _judgement(clause: Clause, places: Sequence[_Place]) -> float:
    """Return 1 for a clause of praise, -1 for one of blame, 0 for one of neither or both."""
    held = {place.at for place in places}
    cues = [(hit.start, hit.kind == "yes") for hit in concept("sentiment").hits_in(clause) if hit.start not in held]
    blame = [match.start() for match in _BLAME.finditer(clause.stems)]
    cues = [cue for cue in cues if cue[0] not in blame] + [(at, False) for at in blame]
    sides = {good is not clause.negated(at) for at, good in cues}
    return 0.0 if len(sides) != 1 else 1.0 if sides == {True} else -1.0
