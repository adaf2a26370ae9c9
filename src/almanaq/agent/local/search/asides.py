"""Words of a question that ask for nothing: when the asker goes, and what they tell about themselves."""

from __future__ import annotations

import re

from almanaq.agent.local.search.token_use import TokenUse, search_words

_COMPANY = (
    "(?:girlfriend|boyfriend|wife|husband|partner|fianc[ée]+|friends?|mother|father|mom|dad|sister|brother|colleagues?"
    "|boss|parents)"
)
_TIME = re.compile(
    r"\b(?:(?:for|on|over|by) )?(?:(?:this|next|the|coming|friday|saturday|sunday|monday|tuesday|wednesday|thursday) )*"
    r"(?:weekend|tonight|tomorrow|week|monday|tuesday|wednesday|thursday|friday|saturday|sunday|(?:this|tomorrow) "
    r"(?:morning|afternoon|evening))(?: (?:night|evening|morning|afternoon))?\b"
    r"|\bfor (?:dinner|lunch|supper|a meal|a bite)\b(?! \w+s\b)"
    rf"|\b(?:my|our) {_COMPANY} and (?:i|me)\b|\b(?:me|i) and my {_COMPANY}\b"
    r"|\bas long as\b|\bif possible\b|\bor not\b",
    re.IGNORECASE,
)
_SEGMENT = re.compile(r"[^,;.!?\u2013\u2014]+(?:[.](?=\d)[^,;.!?]*)*")


def drop_asides(use: TokenUse) -> None:
    """Take the words that ask for nothing as asides, as long as the question asks for something else."""
    for match in _TIME.finditer(use.question):
        inside = [i for i, w in enumerate(use.tokens) if match.start() <= w.start and w.end <= match.end()]
        if inside and use.free(inside[0], inside[-1] + 1):
            use.drop(inside[0], inside[-1] + 1)
    segments = [_words(use, *match.span()) for match in _SEGMENT.finditer(use.question)]
    told = [inside for inside in segments if inside and _tells(use, inside)]
    if len(told) < sum(map(bool, segments)):
        for inside in told:
            use.drop(inside[0], inside[-1] + 1)


def _words(use: TokenUse, start: int, end: int) -> list[int]:
    return [
        i for i, word in enumerate(use.tokens) if start <= word.start and word.end <= end and word.text[0].isalnum()
    ]


def _tells(use: TokenUse, inside: list[int]) -> bool:
    """Return whether a part of the question only tells of the asker: no wish in it, nothing linked, nobody
    to care for.
    """
    spoken = {use.folded(i) for i in inside}
    if use.folded(inside[0]) not in search_words().telling or spoken & (search_words().wishing | use.domain.companions):
        return False
    linked = any(use.used[i] not in (None, "dropped") for i in inside)
    return not linked and any(use.folded(i) not in search_words().ignored for i in inside)
