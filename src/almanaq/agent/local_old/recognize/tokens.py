"""A question cut into tokens."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from almanaq.agent.local_old.words import stem

MAGNITUDES = {"hundred": 1e2, "thousand": 1e3, "k": 1e3, "million": 1e6, "m": 1e6, "billion": 1e9, "bn": 1e9}
SPELLED = {
    **dict(
        zip(
            "one two three four five six seven eight nine ten eleven twelve thirteen".split(), range(1, 14), strict=True
        )
    ),
    **dict(zip("fourteen fifteen sixteen seventeen eighteen nineteen".split(), range(14, 20), strict=True)),
    **dict(zip("twenty thirty forty fifty sixty seventy eighty ninety".split(), range(20, 100, 10), strict=True)),
    **{"hundred": 100, "thousand": 1000, "million": 1_000_000},
}
_TOKEN = re.compile(
    r"(?<![\w)])-\d+(?:\.\d+)?|\d+(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|[^\W\d_]+\d[^\W_]*|[^\W\d_]+(?:['’][^\W\d_]+)?|[^\W_]+|>=|<=|<>|[<>=%$€£]|[^\w\s]"
)


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a number or a mark of a question.

    Attributes:
        folded: in lower case; `stem` that without a plural ending.
        glued: no white space stands before it: the parts of "dep_delay" and "sub-category".
    """

    text: str
    folded: str
    stem: str
    start: int
    end: int
    glued: bool

    @property
    def number(self) -> float | None:
        """The number it writes in digits, "1.5 million" included."""
        first, _, magnitude = self.text.replace(",", "").partition(" ")
        try:
            known = {"a": 1, **SPELLED}.get(first.casefold()) if magnitude else None
            number = float(first) if known is None else float(known)
        except ValueError:
            return None
        return number * math.prod(MAGNITUDES[word] for word in magnitude.casefold().split())


def tokenize(question: str) -> tuple[Token, ...]:
    """Return the tokens of a question, in order."""
    found: list[Token] = []
    for match in _TOKEN.finditer(question.replace("’", "'")):
        text = match.group()
        glued = bool(found) and question[found[-1].end : match.start()] in ("", "_", "-")
        found.append(Token(text, text.casefold(), stem(text), match.start(), match.end(), glued))
    return tuple(_joined([token for token in found if token.text not in ("_", "-", "'")]))


def runs(tokens: Sequence[Token], longest: int) -> Iterator[tuple[int, int]]:
    """Yield where every run of so many tokens at most begins, and ends."""
    for first in range(len(tokens)):
        for last in range(first + 1, min(first + longest, len(tokens)) + 1):
            yield first, last


def _counts_on(token: Token) -> bool:
    """Return whether a word says how many times a number counts: "2 m" are two metres, "2m" may be two million."""
    return len(token.text) > 1 or token.glued


def _joined(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield the tokens with "2 million" as one."""
    i = 0
    while i < len(tokens):
        last = i + 1
        while last < len(tokens) and tokens[last].folded in MAGNITUDES and _counts_on(tokens[last]):
            last += 1
        first = tokens[i]
        if last > i + 1 and (first.number is not None or first.folded == "a" or first.folded in SPELLED):
            text = " ".join(token.text for token in tokens[i:last])
            yield Token(text, text.casefold(), text.casefold(), first.start, tokens[last - 1].end, first.glued)
            i = last
        else:
            yield first
            i += 1
