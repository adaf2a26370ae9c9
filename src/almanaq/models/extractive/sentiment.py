"""Is a text positive or negative: for questions whose options are the two, by the words that praise and blame."""

from __future__ import annotations

from collections.abc import Sequence

from almanaq.models.extractive.lexicon import Concept, concept
from almanaq.models.extractive.polarity import Evidence, evidence_of
from almanaq.models.protocols import Quote
from almanaq.values import canonical

_POSITIVE = frozenset({"positive", "favorable", "favourable", "pos"})
_NEGATIVE = frozenset({"negative", "unfavorable", "unfavourable", "neg"})
_NEUTRAL = frozenset({"neutral", "mixed"})
_CLEAR = 0.3
"""How far one side has to be ahead."""


def sides(options: Sequence[str]) -> tuple[str, str] | None:
    """Return the positive and the negative one of the options; None where they ask for something else."""
    by_canonical = {canonical(option): option for option in options}
    positive = [option for word, option in by_canonical.items() if word in _POSITIVE]
    negative = [option for word, option in by_canonical.items() if word in _NEGATIVE]
    others = [word for word in by_canonical if word not in _POSITIVE | _NEGATIVE | _NEUTRAL]
    return (positive[0], negative[0]) if len(positive) == len(negative) == 1 and not others else None


def sentiment(passages: Sequence[str], options: Sequence[str]) -> tuple[str | None, tuple[Quote, ...]]:
    """Choose the option that most words of the passages speak for; None where neither side is ahead.

    A text that both praises and blames, as much the one as the other, is neutral where that is an option.
    """
    named = sides(options)
    evidence = evidence_of(passages, _praise()) if named is not None else []
    if named is None or not evidence:
        return None, ()
    ahead = sum(item.weight for item in evidence)
    if abs(ahead) < _CLEAR:
        return next((option for option in options if canonical(option) in _NEUTRAL), None), _quotes(evidence)
    agreeing = [item for item in evidence if (item.weight > 0) == (ahead > 0)]
    return named[0] if ahead > 0 else named[1], _quotes(agreeing)


def _praise() -> Concept:
    return concept("sentiment")


def _quotes(evidence: Sequence[Evidence]) -> tuple[Quote, ...]:
    return tuple(dict.fromkeys(item.quote() for item in evidence))[:3]
