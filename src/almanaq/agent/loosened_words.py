"""Whether what a model says that it loosened may be said to the asker: of the condition, and nothing beside it."""

from __future__ import annotations

import re

from almanaq.text.stopwords import STOPWORDS
from almanaq.text.words import stem, words

_LONGEST = 200
_NO_WORDS = re.compile(r"https?:|www\.|[<>`{}\[\]=_|\\]|\b(?:SELECT|WHERE|ILIKE|DROP|INSERT|UPDATE|DELETE|NULL)\b")
"""What no sentence to a person has: links, marks, code."""

_NAMED = re.compile(r"\d[\d.,:]*\d|\d|(?<=[^.!?“\"'\s] )[“\"']?(?!I\b)[A-Z][\w'’-]*|[“\"][^”\"]+[”\"]")
"""Numbers, names within a sentence, and what it quotes."""


def believed(said: object, condition: str, instead: str, question: str) -> str:
    """Return the sentence that says what was loosened, "" where it is not to be believed.

    It has to speak of the condition, and of what stands `instead` of it where something does: by a word that only this
    has. Its numbers, names and quotes all stand in these two or in the question.
    """
    text = " ".join(said.split()) if isinstance(said, str) else ""
    if not 3 < len(text) <= _LONGEST or _NO_WORDS.search(text) or len(re.findall(r"[.!?](?:\s|$)", text)) > 1:
        return ""
    wanted = _stems(instead) - _stems(condition) or _stems(condition)
    if not _stems(text) & wanted:
        return ""
    everything = _stems(f"{condition} {instead} {question}", all_of_them=True)
    if any(not _stems(name, all_of_them=True) <= everything for name in _NAMED.findall(text)):
        return ""
    text = text[:1].upper() + text[1:]
    return text if text[-1] in ".!?" else text + "."


def _stems(text: str, *, all_of_them: bool = False) -> set[str]:
    return {stem(word) for word in words(text) if all_of_them or (word not in STOPWORDS and len(word) > 1)}
