"""Text as index terms: identifiers split, accents folded, numbers and dates in one form each, words stemmed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator

from almanaq.errors import UsageError, suggest
from almanaq.text.words import INDEX_STOPWORDS

_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_WORD = re.compile(r"\d+(?:\.\d+)+|\d+|[^\W\d_]+")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

_DATE = re.compile(r"(?<!\d)(\d{4})-(\d\d)-(\d\d)(?!\d)")
_MONTHS = "January February March April May June July August September October November December".split()

_REMEMBERED = 1_000_000  # words whose terms are remembered: some 200 MB at most


class Analyzer:
    """Turns texts into terms, the same way for tables and for questions.

    Args:
        language: a Snowball language to stem by; None keeps words whole.

    Raises:
        UsageError: there is no stemmer for the language.
    """

    def __init__(self, language: str | None = "english") -> None:
        self.language = language
        self._stem = _stemmer(language)
        self._known: dict[str, tuple[str, ...]] = {}

    def terms(self, text: str) -> list[str]:
        """Return the terms of a text in order, repeats kept."""
        found: list[str] = []
        known = self._known
        for token in _tokens(text):
            terms = known.get(token)
            if terms is None:  # remembered, as most words of a corpus are repeats
                if len(known) >= _REMEMBERED:
                    known.clear()
                kept = (word for word in _parts(token) if word not in INDEX_STOPWORDS)
                terms = known[token] = tuple(self._stem(word) for word in kept)
            found.extend(terms)
        return found


def words(text: str) -> Iterator[str]:
    """Return the words and numbers of a text in lower case, without accents.

    `num_reviews` gives num, reviews; `numReviews` gives numreviews, num, reviews, so that a name
    written either way is found; `1,234` gives 1234; `1.50` gives 1.5, `3.0` gives 3; and `1950-03-05` gives what
    `5 March 1950` gives, in another order.

    >>> list(words("numReviews")), list(words("1,234 cafés")), list(words("1950-03-05"))
    (['numreviews', 'num', 'reviews'], ['1234', 'cafes'], ['1950', 'march', '5'])
    """
    for token in _tokens(text):
        yield from _parts(token)


def _tokens(text: str) -> list[str]:
    plain = text  # quick for the ASCII that most text is
    if not text.isascii():
        plain = "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))
    if "," in plain:
        plain = _GROUPED.sub(lambda number: number.group().replace(",", ""), plain)
    if "-" in plain:
        plain = _DATE.sub(_date_in_words, plain)
    return _WORD.findall(plain)


def _date_in_words(date: re.Match[str]) -> str:
    year, month, day = date.groups()
    return f"{year} {_MONTHS[int(month) - 1]} {int(day)}" if 1 <= int(month) <= 12 else date.group()


def _parts(token: str) -> Iterator[str]:
    if token.count(".") == 1:
        yield token.rstrip("0").removesuffix(".")
        return
    yield token.lower()
    if not (token.islower() or token.isupper() or token.istitle()):
        parts = _HUMP.split(token)
        if len(parts) > 1:
            yield from (part.lower() for part in parts)


def _stemmer(language: str | None) -> Callable[[str], str]:
    if language is None:
        return str
    import Stemmer

    if language not in Stemmer.algorithms():
        raise UsageError(f"no stemmer for the language {language!r}{suggest(language, Stemmer.algorithms())}")
    stem: Callable[[str], str] = Stemmer.Stemmer(language).stemWord
    return stem
