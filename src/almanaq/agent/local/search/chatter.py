"""Words of a question that ask for nothing: when the asker goes, and what they tell about themselves."""

from __future__ import annotations

import re

from almanaq.agent.local.lexicon import BEING_SOMEWHERE, IGNORED, TELLING, WISHING
from almanaq.agent.local.search.told import Said
from almanaq.agent.local.words import word_set

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
_WHERE = word_set("in at near from on")


def drop_chatter(said: Said) -> None:
    """Take the words that ask for nothing as chatter, as long as the question asks for something else."""
    for match in _TIME.finditer(said.question):
        inside = [i for i, w in enumerate(said.tokens) if match.start() <= w.start and w.end <= match.end()]
        if inside and said.free(inside[0], inside[-1] + 1):
            said.drop(inside[0], inside[-1] + 1)
    for value in said.values:
        # "live in Norway" says no more than "in Norway" where Norway is a value.
        place = value.first - 1 if said.folded(value.first - 1) in _WHERE else value.first - 2
        if said.folded(place) in _WHERE and said.folded(place - 1) in BEING_SOMEWHERE and said.free(place - 1, place):
            said.take(place - 1, place, "chatter")
    segments = [_words(said, *match.span()) for match in _SEGMENT.finditer(said.question)]
    told = [inside for inside in segments if inside and _tells(said, inside)]
    if len(told) < sum(map(bool, segments)):
        for inside in told:
            said.drop(inside[0], inside[-1] + 1)


def _words(said: Said, start: int, end: int) -> list[int]:
    return [
        i for i, word in enumerate(said.tokens) if start <= word.start and word.end <= end and word.text[0].isalnum()
    ]


def _tells(said: Said, inside: list[int]) -> bool:
    """Return whether a part of the question only tells of the asker: no wish in it, nothing linked, nobody
    to care for.
    """
    spoken = {said.folded(i) for i in inside}
    if said.folded(inside[0]) not in TELLING or spoken & (WISHING | said.domain.companions):
        return False
    linked = any(said.used[i] not in (None, "chatter") for i in inside)
    return not linked and any(said.folded(i) not in IGNORED for i in inside)
