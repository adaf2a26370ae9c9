"""Words of a text, their stems and offsets: the ground of every lexical part."""

from __future__ import annotations

import re
import threading
from functools import lru_cache
from typing import Any

from almanaq.text.stopwords import STOPWORDS

_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?")
_stemmers = threading.local()


def words(text: str) -> list[str]:
    """Return the words of a text, case folded, in order.

    >>> words("The Dogs, and a bowl")
    ['the', 'dogs', 'and', 'a', 'bowl']
    """
    return [match[0].casefold().replace("\u2019", "'") for match in _WORD.finditer(text)]


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return the stem of an English word (Porter 2): "dogs" and "dog" are one.

    >>> stem("dogs"), stem("walking")
    ('dog', 'walk')
    """
    stemmer: Any = getattr(_stemmers, "english", None)
    if stemmer is None:
        import Stemmer

        # A stemmer keeps state while it works: one for each thread.
        stemmer = _stemmers.english = Stemmer.Stemmer("english")
    return str(stemmer.stemWord(word.removesuffix("'s")))


def stems(text: str) -> list[str]:
    """Return the stems of the words of a text that carry meaning, in order.

    >>> stems("Which dogs are walking?")
    ['dog', 'walk']
    """
    return [stem(word) for word in words(text) if word not in STOPWORDS]
