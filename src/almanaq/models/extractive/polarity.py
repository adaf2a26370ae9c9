"""Does a document say yes or no to a question: evidence clause by clause, weighed over the passages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from almanaq.models.extractive.clauses import Clause, clauses
from almanaq.models.extractive.lexicon import Concept, concepts, triggers
from almanaq.models.protocols import Quote
from almanaq.models.words import STOPWORDS, stem, words

_ASKING = re.compile(
    r"\s*(?:is|are|was|were|does|do|did|has|have|had|can|could|will|would|should|may|might|am|isn't|aren't|doesn't|"
    r"don't|didn't|hasn't|haven't|can't|won't)\b",
    re.IGNORECASE,
)
_GENERIC_WORDS = """restaurant place spot location establishment venue food serve offer provide good great nice best
    available allow allowed really any there people customer reviewer review mention say talk find get go make
    someone one know known suitable option options eat dine meal bring welcome like movie film document text passage
    friendly quality excellent bad easy"""
_GENERIC = frozenset(stem(word) for word in _GENERIC_WORDS.split())
"""Words that nearly every text of the kind holds: they do not tell what is asked for."""

_DOUBT = 0.35


@dataclass(frozen=True, slots=True)
class Evidence:
    """A clause that speaks of the matter; `weight` is positive for yes."""

    passage: int
    clause: Clause
    weight: float

    def quote(self) -> Quote:
        """Give the clause as a quote."""
        return Quote(self.passage, self.clause.start, self.clause.text)


@dataclass(frozen=True, slots=True)
class Polarity:
    """The verdict on a yes-or-no question, None for no information, and the clauses that bear it."""

    verdict: bool | None
    evidence: tuple[Evidence, ...] = ()


def asks_yes_or_no(question: str) -> bool:
    """Say whether a question can be answered by yes or no."""
    if re.search(r"\b(?:is|are) (?:it|this|there)\b.*\bor\b", question, re.IGNORECASE):
        return False
    return _ASKING.match(question) is not None


def polarity(passages: Sequence[str], question: str) -> Polarity:
    """Give whether the document says yes to the question; several matters in it must all be so (any, with "or")."""
    matters, rest = _matters(question)
    if not matters:
        return _decide(_overlap_evidence(passages, rest))
    found = [_decide(_cue_evidence(passages, concept, inverse)) for concept, inverse in matters]
    return found[0] if len(found) == 1 else _conjunction(found, any_of=" or " in question.lower())


def _matters(question: str) -> tuple[list[tuple[Concept, bool]], list[str]]:
    """Give the concepts that a question asks about (with whether it asks for the opposite), and its other stems."""
    tokens = [stem(word) for word in words(question)]
    free = [True] * len(tokens)
    found: dict[str, tuple[Concept, bool]] = {}
    for trigger in triggers():
        width = len(trigger.stems)
        for at in range(len(tokens) - width + 1):
            if all(free[at : at + width]) and tuple(tokens[at : at + width]) == trigger.stems:
                # A weak word ("friendly", "good") asks for its own concept only where no other was asked for.
                if trigger.weak and (found or _keys(tokens, free, skip=at)):
                    continue
                negated = any(t in ("not", "no", "without") for t in tokens[max(0, at - 3) : at])
                found.setdefault(trigger.concept, (concepts()[trigger.concept], trigger.inverse != negated))
                free[at : at + width] = [False] * width
    return list(found.values()), _keys(tokens, free)


def _keys(tokens: Sequence[str], free: Sequence[bool], skip: int = -1) -> list[str]:
    stops = {stem(word) for word in STOPWORDS}
    return [t for i, t in enumerate(tokens) if free[i] and i != skip and t not in stops and t not in _GENERIC]


def _cue_evidence(passages: Sequence[str], concept: Concept, inverse: bool) -> list[Evidence]:
    found = []
    for number, passage in enumerate(passages):
        for clause in clauses(passage):
            weight = _cue_weight(clause, concept)
            if weight:
                found.append(Evidence(number, clause, -weight if inverse else weight))
    return found


def _cue_weight(clause: Clause, concept: Concept) -> float:
    against = list(concept.no.finditer(clause.stems))
    covered = [match.span() for match in (*against, *concept.other.finditer(clause.stems))]
    weight = sum(1.0 if clause.negated(match.start()) else -1.0 for match in against)
    if weight < 0:
        # Next to a plain no ("no pets, our terrier stayed outside") the bare word only names the matter.
        return weight * _DOUBT if clause.doubtful else weight
    for match in concept.yes.finditer(clause.stems):
        # Words inside a longer cue ("hot dog", "no parking") are spent.
        if not any(start < match.end() and match.start() < end for start, end in covered):
            weight += -1.0 if clause.negated(match.start()) else 1.0
    return weight * _DOUBT if clause.doubtful else weight


def _overlap_evidence(passages: Sequence[str], keys: Sequence[str]) -> list[Evidence]:
    """Give clauses that hold most of the words asked for; a negation before them speaks against."""
    if not keys:
        return []
    found = []
    for number, passage in enumerate(passages):
        for clause in clauses(passage):
            held = set(clause.stems.split())
            hits = [key for key in set(keys) if key in held]
            if len(hits) * 3 >= len(set(keys)) * 2:
                at = min(f" {clause.stems} ".index(f" {hit} ") for hit in hits)
                weight = -1.0 if clause.negated(at) or _denied_after(clause, hits) else 1.0
                found.append(Evidence(number, clause, weight * (_DOUBT if clause.doubtful else 1.0)))
    return found


def _denied_after(clause: Clause, hits: Sequence[str]) -> bool:
    """Say whether what was asked for is itself denied: "seating outdoors is not available"."""
    last = "|".join(re.escape(hit) for hit in hits)
    denial = rf"(?<!\S)(?:{last}) (?:is|are|was|were|do|doe|did|has|have|had) (?:not|never)(?!\S)"
    return re.search(denial, clause.stems) is not None


def _decide(evidence: Sequence[Evidence]) -> Polarity:
    """Let each passage have one voice, as loud as it is clear; the louder side decides, a draw is a no."""
    by_passage: dict[int, float] = {}
    for item in evidence:
        by_passage[item.passage] = by_passage.get(item.passage, 0.0) + item.weight
    voices = [max(-1.0, min(1.0, weight)) for weight in by_passage.values()]
    if not any(voices) or sum(map(abs, voices)) < 0.3:
        return Polarity(None)
    verdict = sum(voices) > 0
    supporting = [item for item in evidence if (item.weight > 0) == verdict]
    return Polarity(verdict, tuple(sorted(supporting, key=lambda item: -abs(item.weight))))


def _conjunction(found: Sequence[Polarity], *, any_of: bool) -> Polarity:
    verdicts = [item.verdict for item in found]
    decisive = any_of
    if decisive in verdicts:
        verdict: bool | None = decisive
    else:
        verdict = None if None in verdicts else not decisive
    bearing = [item for item in found if item.verdict == verdict and item.evidence]
    return Polarity(verdict, tuple(e for item in bearing for e in item.evidence[:2]) if verdict is not None else ())
