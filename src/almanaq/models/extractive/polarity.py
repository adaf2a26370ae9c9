"""Does a document say yes or no, or praise or blame: evidence clause by clause, weighed over the passages.

A question about a known matter is decided by the matter's words, one about any text by clauses that state what is asked
for, or deny it; likeness alone decides nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from almanaq.models.extractive.clauses import Clause, Concept, Hit, clauses_of, concept, place_stems, triggers
from almanaq.models.extractive.words import WORDS, stem_set
from almanaq.models.protocols import Quote
from almanaq.text.words import STOPWORDS, stem, words
from almanaq.values import canonical

_STOPS = stem_set(STOPWORDS)
_SPEAKERS = stem_set(WORDS["speakers"])
_MENTIONING = stem_set(WORDS["mentioning"])
_TELLING = _MENTIONING | {"say"}
"""Verbs that ask only whether the text speaks of something."""
_LONGEST_SUBJECT = 4
"""Words before a telling verb that may say whose text it is: "does this drug review mention …"."""
_COMPLAINING = stem_set(WORDS["complaining"])
_ROW = re.compile(r"^(\s*[\w'’]+ )this \w+")
"""The row that a question is about, whose texts do not name it: "does this hotel have a pool?"."""
_AMISS = re.compile(r"\b(?:problem|issue|trouble)s?(?= with\b)", re.IGNORECASE)
_BLAME = re.compile(rf"(?<!\S)(?:{'|'.join(sorted(_COMPLAINING))}|late|delai|damag|lost|wrong)(?!\S)")
_DENIED_AFTER = re.compile(
    r" (?:is|are|was|were|do|doe|did|has|have|had|can|could|will|would)(?: \S+)? (?:not|never)(?!\S)(?! onli| just)"
)
_UNSURE = re.compile(r"(?<!\S)(?:should|hope|expect|promis|plan|want|ask|almost|nearli|instead|except)(?!\S)")
"""Stems beside which a thing may not be so."""
_PRAISING = stem_set(WORDS["praising"])
_BLAMING = _COMPLAINING | stem_set(WORDS["blaming"])
_LISTED = re.compile(r",\s*(?:and\s|or\s)?|\s(?:and|or)\s", re.IGNORECASE)
_REPORTING = _MENTIONING | _COMPLAINING | {"prais"}
"""What asks what a text says of a matter, not whether the matter is so."""
_EMPTY = stem_set(WORDS["empty"])


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
def read_statement(question: str) -> Statement | None:
    """Return what a yes-or-no question asks a text for, None where nothing can be looked for."""
    tokens = [stem(word) for word in words(_AMISS.sub("complaint", _ROW.sub(r"\1it", question)))]
    keys = [each for each in tokens if each not in _STOPS and each not in _EMPTY]
    keys = keys[1:] if keys and keys[0] in _SPEAKERS else keys
    left = [each for each in keys if each not in _PRAISING | _BLAMING]
    judged = 0 if len(left) == len(keys) else 1 if _BLAMING.isdisjoint(keys) else -1
    told = next((left[i + 1 :] for i, key in enumerate(left[:_LONGEST_SUBJECT]) if key in _TELLING), [])
    spoken_of, left = bool(told) and not judged, told or left
    negated = any(each in ("not", "no", "without", "never") for each in tokens)
    return None if not left or negated else Statement(tuple(dict.fromkeys(left)), spoken_of, judged)


@lru_cache(maxsize=1_000)
def read_statements(question: str) -> tuple[Statement, ...]:
    """Return what a yes-or-no question asks a text for: several things where it asks whether it speaks of them."""
    whole = read_statement(question)
    first, *others = _LISTED.split(question)
    if whole is None or not whole.spoken_of or (one := read_statement(first)) is None or not one.spoken_of:
        return () if whole is None else (whole,)
    more = (read_statement(f"does it mention {other}?") for other in others)
    return (one, *(other for other in more if other is not None))


def find_statements(passages: Sequence[str], asked: Statement) -> list[Evidence]:
    """Return the clauses that say what is asked for: 1 for yes, -1 for no."""
    weighed = ((number, clause, _weigh(clause, asked)) for number, clause in clauses_of(passages))
    return [Evidence(number, clause, weight) for number, clause, weight in weighed if weight]


def _weigh(clause: Clause, asked: Statement) -> float:
    found = [match for key in asked.keys if (match := _word(key).search(clause.stems))]
    if len(found) < len(asked.keys) or (clause.doubtful and not asked.spoken_of):
        return 0.0
    if asked.spoken_of:
        return 1.0
    return _judge(clause, {match.start() for match in found}) * asked.judged if asked.judged else _assert(clause, found)


@lru_cache(maxsize=5_000)
def _word(key: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\S)(un|non)?{re.escape(key)}{'[a-z]{0,3}' if len(key) > 4 else ''}(?!\S)")


def _assert(clause: Clause, found: Sequence[re.Match[str]]) -> float:
    """Return 1 for a clause that states what was found in it, -1 for one that denies it, 0 where that is not clear."""
    held = {match.start() for match in found}
    opposite = any(match[1] for match in found)  # "unfurnished" for "furnished"
    if any(clause.negated(each.start()) or _DENIED_AFTER.match(clause.stems, each.end()) for each in found):
        return 0.0 if opposite else -1.0
    if opposite:
        return -1.0
    doubts = [hit.start for hit in concept("denial").hits(clause.stems)]
    doubts += [match.start() for match in _UNSURE.finditer(clause.stems)]
    return 1.0 if held.issuperset(doubts) else 0.0


def _judge(clause: Clause, held: set[int]) -> float:
    """Return 1 for a clause of praise, -1 for one of blame, 0 for one of neither or both."""
    cues = [(hit.start, hit.kind == "yes") for hit in concept("sentiment").hits_in(clause) if hit.start not in held]
    blame = [match.start() for match in _BLAME.finditer(clause.stems)]
    cues = [cue for cue in cues if cue[0] not in blame] + [(at, False) for at in blame]
    sides = {good is not clause.negated(at) for at, good in cues}
    return 0.0 if len(sides) != 1 else 1.0 if sides == {True} else -1.0


_GENERIC = stem_set(WORDS["generic"])

_OF_WHAT_IS_SHOWN = re.compile(
    r"\s*(?:is|are|do|does|has|have|can|could|would)\s+(?:it|they|there|you|we|i)\b", re.IGNORECASE
)
"""What asks how a thing is, which it does not name: "is it quiet?", "do they have parking?"."""
_DOUBT = 0.35


@dataclass(frozen=True, slots=True)
class Evidence:
    """A clause that speaks of the matter; `weight` is positive for yes, `strength` says how plainly it speaks."""

    passage: int
    clause: Clause
    weight: float
    strength: float = 0.0


@dataclass(frozen=True, slots=True)
class Polarity:
    """The verdict on a yes-or-no question, None for no information, and the clauses that bear it."""

    verdict: bool | None
    evidence: tuple[Evidence, ...] = ()


def asks_yes_or_no(question: str) -> bool:
    """Return whether a question can be answered by yes or no."""
    if re.search(r"\b(?:is|are) (?:it|this|there)\b.*\bor\b", question, re.IGNORECASE):
        return False
    return not WORDS["asking"].isdisjoint(words(question)[:1])


def polarity(passages: Sequence[str], question: str) -> Polarity:
    """Return whether the document says yes to the question; several matters must all be so (any, with "or")."""
    of_places, of_what = _speaks_of_places((question, *passages)), _OF_WHAT_IS_SHOWN.match(question) is not None
    asked, others = matters(question, of_places or of_what)
    reported = not _REPORTING.isdisjoint(stem(word) for word in words(question))
    if reported or not asked or (others and not of_places and not of_what):
        wanted = read_statements(question)
        found = [_decide(find_statements(passages, each)) for each in wanted]
        other_words = any(evidence_of(passages, concept) for concept, _ in asked)
        if reported and any(each.spoken_of for each in wanted) and not other_words:
            # A text that does not speak of a thing does not mention it.
            found = [Polarity(False) if each.verdict is None else each for each in found]
    else:
        found = [_decide(evidence_of(passages, concept, inverse)) for concept, inverse in asked]
    return _conjunction(found, any_of=" or " in question.lower())


def _speaks_of_places(texts: Iterable[str]) -> bool:
    plainly, together = place_stems()
    held = set[str]()
    for text in texts:
        held.update(stem(word) for word in words(text))
        if held & plainly or len(held & together) > 1:
            return True
    return False


@lru_cache(maxsize=1_000)
def matters(question: str, of_places: bool = True) -> tuple[tuple[tuple[Concept, bool], ...], tuple[str, ...]]:
    """Return the concepts that a question asks about (with whether for the opposite), and its other stems."""
    tokens = [stem(word) for word in words(question)]
    free = [True] * len(tokens)
    found: dict[str, tuple[Concept, bool]] = {}
    for trigger in triggers(of_places):
        for at in range(len(tokens)):
            end = trigger.end_in(tokens, at)
            if end and all(free[at:end]):
                # A weak word ("friendly", "good") asks for its own concept only where no other was asked for.
                if trigger.weak and (found or _keys(tokens, free, skip=at)):
                    continue
                negated = any(t in ("not", "no", "without") for t in tokens[max(0, at - 3) : at])
                found.setdefault(trigger.concept, (concept(trigger.concept), trigger.inverse != negated))
                free[at:end] = [False] * (end - at)
    return tuple(found.values()), tuple(_keys(tokens, free))


def _keys(tokens: Sequence[str], free: Sequence[bool], skip: int = -1) -> list[str]:
    return [t for i, t in enumerate(tokens) if free[i] and i != skip and t not in _STOPS and t not in _GENERIC]


def evidence_of(passages: Sequence[str], matter: Concept, inverse: bool = False) -> list[Evidence]:
    """Return the clauses that hold cues of a matter."""
    found = []
    for number, clause in clauses_of(passages):
        hits = matter.hits_in(clause)
        weight = _cue_weight(clause, matter, hits) if hits else 0.0
        if weight:
            weight *= _DOUBT if clause.doubtful else 1.0
            words = max(clause.stems.count(" ", hit.start, hit.end) for hit in hits)
            found.append(Evidence(number, clause, -weight if inverse else weight, abs(weight) + 0.01 * words))
    return found


def _cue_weight(clause: Clause, matter: Concept, hits: Sequence[Hit]) -> float:
    """Return how far cues say that a matter is so, from -1 to 1; a negation inside one ("no kids' menu") is spent."""
    denials = [hit for hit in concept("denial").hits(clause.stems) if hit.kind == "yes"]
    denied, since = any(not clause.negated(hit.start) for hit in denials), 0
    sides: dict[str, list[float]] = {}
    for hit in hits:
        side = -1.0 if hit.kind in ("no", "blame") else 1.0
        turned = (denied and hit.kind == "yes") or clause.negated(hit.start, since)
        sides.setdefault(hit.kind, []).append(-side if turned else side)
        since = hit.end if hit.kind == "no" else since
    against = sum(sides.get("no", ()))
    if against < 0:
        # Next to a plain no ("no pets, our terrier stayed outside") the bare word only names the matter.
        return -1.0
    if "yes" in sides:
        return _sign(against + sum(sides["yes"]))
    judged = sides.get("praise", []) + sides.get("blame", []) if matter.graded and "topic" in sides else []
    return _sign(against + sum(judged) - 2 * (bool(judged) and denied))


def _sign(score: float) -> float:
    return max(-1.0, min(1.0, score))


def _decide(evidence: Sequence[Evidence]) -> Polarity:
    """Let each passage have one voice, as loud as it is clear; the louder side decides, a draw is a no."""
    by_passage: dict[int, float] = {}
    for item in evidence:
        by_passage[item.passage] = by_passage.get(item.passage, 0.0) + item.weight
    voices = [_sign(weight) for weight in by_passage.values()]
    if not any(voices) or sum(map(abs, voices)) < 0.3:
        return Polarity(None)
    verdict = sum(voices) > 0
    supporting = [item for item in evidence if (item.weight > 0) == verdict]
    return Polarity(verdict, tuple(sorted(supporting, key=lambda item: -item.strength)))


def _conjunction(found: Sequence[Polarity], *, any_of: bool) -> Polarity:
    if len(found) < 2:
        return found[0] if found else Polarity(None)
    verdicts = [item.verdict for item in found]
    if any_of not in verdicts and None in verdicts:
        return Polarity(None)
    verdict = any_of if any_of in verdicts else not any_of
    return Polarity(verdict, tuple(e for item in found if item.verdict == verdict for e in item.evidence[:2]))


_CLEAR = 0.3
"""How far one side has to be ahead."""


def sides(options: Sequence[str]) -> tuple[str, str] | None:
    """Return the positive and the negative one of the options; None where they ask for something else."""
    by_canonical = {canonical(option): option for option in options}
    positive = [option for word, option in by_canonical.items() if word in WORDS["positive"]]
    negative = [option for word, option in by_canonical.items() if word in WORDS["negative"]]
    others = [word for word in by_canonical if word not in WORDS["positive"] | WORDS["negative"] | WORDS["neutral"]]
    return (positive[0], negative[0]) if len(positive) == len(negative) == 1 and not others else None


def sentiment(passages: Sequence[str], options: Sequence[str]) -> tuple[str | None, tuple[Quote, ...]]:
    """Choose the option of a positive and a negative one that most words speak for; None where neither is ahead."""
    named, evidence = sides(options), evidence_of(passages, concept("sentiment"))
    if named is None or not evidence:
        return None, ()
    ahead = sum(item.weight for item in evidence)
    if abs(ahead) < _CLEAR:
        return next((option for option in options if canonical(option) in WORDS["neutral"]), None), quotes_of(evidence)
    return named[ahead < 0], quotes_of(item for item in evidence if (item.weight > 0) == (ahead > 0))


def quotes_of(evidence: Iterable[Evidence]) -> tuple[Quote, ...]:
    """Return the first three quotes, each once."""
    found = (Quote(item.passage, item.clause.start, item.clause.text) for item in evidence)
    return tuple(dict.fromkeys(found))[:3]
