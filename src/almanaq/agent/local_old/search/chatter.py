"""Words of a question that ask for nothing: when the asker goes, and what they tell about themselves."""

from __future__ import annotations

import re

from almanaq.agent.local_old.lexicon import BEING_SOMEWHERE, IGNORED, TELLING, WISHING
from almanaq.agent.local_old.search.links import Links
from almanaq.agent.local_old.words import word_set

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


def drop_chatter(links: Links) -> None:
    """Take the words that ask for nothing as chatter, as long as the question asks for something else."""
    for match in _TIME.finditer(links.question):
        inside = [i for i, w in enumerate(links.tokens) if match.start() <= w.start and w.end <= match.end()]
        if inside and links.free(inside[0], inside[-1] + 1):
            links.drop(inside[0], inside[-1] + 1)
    for value in links.values:
        # "live in Norway" says no more than "in Norway" where Norway is a value.
        place = value.first - 1 if links.folded(value.first - 1) in _WHERE else value.first - 2
        if (
            links.folded(place) in _WHERE
            and links.folded(place - 1) in BEING_SOMEWHERE
            and links.free(place - 1, place)
        ):
            links.take(place - 1, place, "chatter")
    segments = [_words(links, *match.span()) for match in _SEGMENT.finditer(links.question)]
    told = [inside for inside in segments if inside and _tells(links, inside)]
    if len(told) < sum(map(bool, segments)):
        for inside in told:
            links.drop(inside[0], inside[-1] + 1)


def _words(links: Links, start: int, end: int) -> list[int]:
    return [
        i for i, word in enumerate(links.tokens) if start <= word.start and word.end <= end and word.text[0].isalnum()
    ]


def _tells(links: Links, inside: list[int]) -> bool:
    """Return whether a part of the question only tells of the asker: no wish in it, nothing linked, nobody
    to care for.
    """
    spoken = {links.folded(i) for i in inside}
    if links.folded(inside[0]) not in TELLING or spoken & (WISHING | links.domain.companions):
        return False
    linked = any(links.used[i] not in (None, "chatter") for i in inside)
    return not linked and any(links.folded(i) not in IGNORED for i in inside)
