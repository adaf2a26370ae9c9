"""Text as index terms: identifiers split, accents folded, digit groups joined, words stemmed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_WORD = re.compile(r"\d+(?:\.\d+)+|\d+|[^\W\d_]+")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

_QUESTION_WORDS = """
a an and are as at be been by did do does for from had has have how in into is it its of on or that the their them then
there these they this those to was were what when where which who whom whose why will with
"""

STOPWORDS = frozenset(_QUESTION_WORDS.split())
"""Words of questions that say nothing of a table; dropped because in a small corpus they can look rare."""


class Analyzer:
    """Turns texts into terms, the same way for tables and for questions.

    Args:
        language: a Snowball language to stem by; None keeps words whole.
    """

    def __init__(self, language: str | None = "english") -> None:
        self.language = language
        self._stems: dict[str, str] = {}
        self._stemmer: Any = None

    def terms(self, text: str) -> list[str]:
        """Give the terms of a text in order, repeats kept."""
        return self._stemmed([word for word in words(text) if word not in STOPWORDS])

    def _stemmed(self, found: Sequence[str]) -> list[str]:
        if self.language is None:
            return list(found)
        unknown = [word for word in dict.fromkeys(found) if word not in self._stems]
        if unknown:
            self._stems.update(zip(unknown, self._stem(unknown), strict=True))
        return [self._stems[word] for word in found]

    def _stem(self, found: list[str]) -> list[str]:
        if self._stemmer is None:
            import Stemmer

            self._stemmer = Stemmer.Stemmer(self.language)
        stems: list[str] = self._stemmer.stemWords(found)
        return stems


def words(text: str) -> Iterator[str]:
    """Give the words and numbers of a text in lower case, without accents.

    `num_reviews` gives num, reviews; `numReviews` gives numreviews, num, reviews, so that a name
    written either way is found; `1,234` gives 1234; `1.5` stays whole.
    """
    for match in _WORD.finditer(_GROUPED.sub(lambda number: number.group().replace(",", ""), _plain(text))):
        word = match.group()
        yield word.lower()
        if not (word.islower() or word.isupper() or word.istitle()):
            parts = _HUMP.split(word)
            if len(parts) > 1:
                yield from (part.lower() for part in parts)


def _plain(text: str) -> str:
    """Fold compatibility forms and strip accents; quick for the ASCII that most text is."""
    if text.isascii():
        return text
    return "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))
