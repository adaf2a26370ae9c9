"""A question cut into tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass

from almanaq.agent.local.words import stem

_TOKEN = re.compile(
    r"\d+(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|[^\W\d_]+(?:['’][^\W\d_]+)?|[^\W_]+|>=|<=|<>|[<>=%$€£]|[^\w\s]"
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
        """The number it writes in digits."""
        try:
            return float(self.text.replace(",", ""))
        except ValueError:
            return None


def tokenize(question: str) -> tuple[Token, ...]:
    """Give the tokens of a question, in order."""
    found: list[Token] = []
    for match in _TOKEN.finditer(question.replace("’", "'")):
        text = match.group()
        glued = bool(found) and question[found[-1].end : match.start()] in ("", "_", "-")
        found.append(Token(text, text.casefold(), stem(text), match.start(), match.end(), glued))
    return tuple(token for token in found if token.text not in ("_", "-", "'"))
