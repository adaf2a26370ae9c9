"""Which rows shown earlier a turn speaks of: "the second one", "it", "those"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from almanaq.agent.history import SEARCHES, Shown, Turn
from almanaq.agent.local_old.lexicon import NUMBERS, ORDINALS, cue

_THING = (
    r"(?: (?:one|place|spot|restaurant|person|film|movie|result|option|entry|row|item|guy|lady|man|woman|employee))?"
)
_DONE = r"(?<!\bthey )(?<!\bhe )(?<!\bshe )"
"""Not after who did something: "when did they last order" speaks of no place in a list."""
_ORDINAL = re.compile(rf"{_DONE}\b(?:the |that |this )?({'|'.join(ORDINALS)})\b(?! (?:time|best|rated|name)){_THING}")
_NUMBERED = re.compile(rf"(?:\b(?:number|no\.?|option|result) |#)(\d|{'|'.join(NUMBERS)})\b")
_THERE = re.compile(
    r"(?<!is )(?<!are )(?<!were )(?<!was )(?<!'s )\bthere\b(?! (?:is|are|was|were|any|something|anything))"
)
_ALL = re.compile(r"\b(?:them|these|those|both|all of them|the (?:three|two|four|five))\b")


@dataclass(frozen=True, slots=True)
class Reference:
    """Rows that were shown before, and the words that mean them."""

    shown: Shown
    words: str

    @property
    def names(self) -> str:
        """What the rows are called, as one phrase."""
        names = self.shown.names
        return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def refers(text: str) -> bool:
    """Return whether a turn in lower case speaks of one row (or "they" of the rows) shown before."""
    plain = cue("expletive").sub(" ", text)
    return bool(_ORDINAL.search(plain) or _NUMBERED.search(plain) or cue("one").search(plain) or _THERE.search(plain))


def shown_before(history: Sequence[Turn]) -> bool:
    """Return whether any reply showed rows that can be found again."""
    return any(turn.shown is not None and turn.shown.keys for turn in history)


def resolve(text: str, history: Sequence[Turn]) -> Reference | None:
    """Return the rows that a turn speaks of, None when nothing was shown that it could mean.

    A place in a list means the latest list long enough to have it; anything else the rows of the latest reply with any.
    """
    folded = text.casefold().replace("\u2019", "'")
    place = _place(folded)
    if place is not None:
        position, words = place
        need = 2 if position < 0 else max(position + 1, 2)
        found = _latest(history, need) or _latest(history, 1 if position <= 0 else position + 1)
        return Reference(_rows(found, [position]), words) if found else None
    found = _latest(history, 1)
    match = cue("one").search(folded) or _ALL.search(folded) or _THERE.search(folded)
    return Reference(found, match.group() if match else "") if found else None


def spans(text: str) -> list[tuple[int, int]]:
    """Return where a turn's words stand that mean rows shown before, in order and without overlaps."""
    folded = text.casefold().replace("\u2019", "'")
    found: list[tuple[int, int]] = []
    for pattern in (_NUMBERED, _ORDINAL, cue("one"), _THERE):
        for match in pattern.finditer(folded):
            if not any(start < match.end() and match.start() < end for start, end in found):
                found.append(match.span())
    return sorted(found)


def last_shown(history: Sequence[Turn]) -> Shown | None:
    """Return the rows of the latest reply that showed any."""
    return _latest(history, 1)


def last_search(history: Sequence[Turn]) -> Turn | None:
    """Return the latest turn whose query later ones go on from."""
    return next((t for t in reversed(history) if t.suql and t.kind in SEARCHES and t.status != "failed"), None)


def _place(text: str) -> tuple[int, str] | None:
    """Return the place in a list that a turn names, with its words."""
    numbered = _NUMBERED.search(text)
    if numbered:
        digit = numbered[1]
        return (int(digit) - 1 if digit.isdigit() else NUMBERS[digit]), numbered.group()
    ordinal = _ORDINAL.search(text)
    return (ORDINALS[ordinal[1]], ordinal.group()) if ordinal else None


def _latest(history: Sequence[Turn], least: int) -> Shown | None:
    return next((t.shown for t in reversed(history) if t.shown and len(t.shown.keys) >= least), None)


def _rows(shown: Shown, positions: Sequence[int]) -> Shown:
    return Shown(
        shown.relation,
        shown.columns,
        tuple(shown.keys[i] for i in positions),
        tuple(shown.names[i] for i in positions),
    )
