"""Measures of short answers: exact match and F1 as SQuAD and HybridQA define them, and mutual substrings.

Answers are compared after folding case and removing punctuation, articles and superfluous white space.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_UNITS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen""".split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_VALUES = {word: value for value, word in enumerate(_UNITS)} | {word: 10 * (n + 2) for n, word in enumerate(_TENS)}
_SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}


@dataclass(frozen=True, slots=True)
class ShortAnswerScores:
    """Means over questions, each from 0 to 1.

    Attributes:
        substring: share of answers that the gold answer contains, or that contain it (Sui et al., 2023).
    """

    questions: int
    exact_match: float
    f1: float
    substring: float


def normalized(answer: str) -> str:
    """Return the form in which answers are compared.

    >>> normalized("The Eiffel Tower!")
    'eiffel tower'
    """
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split())


def exact_match(answer: str, gold: str) -> bool:
    """Tell whether two answers are the same.

    >>> exact_match("the Eiffel tower", "Eiffel Tower")
    True
    """
    return normalized(answer) == normalized(gold)


def f1(answer: str, gold: str) -> float:
    """Return the harmonic mean of precision and recall over words; where one has none: whether neither has.

    >>> f1("Eiffel", "Eiffel Tower")
    0.6666666666666666
    """
    given, wanted = normalized(answer).split(), normalized(gold).split()
    if not given or not wanted:
        return float(given == wanted)
    shared = sum((Counter(given) & Counter(wanted)).values())
    return 2 * shared / (len(given) + len(wanted))


def mutual_substring(answer: str, gold: str) -> bool:
    """Tell whether one answer is part of the other; no answer is part of nothing.

    >>> mutual_substring("Paris, France", "Paris")
    True
    """
    given, wanted = normalized(answer), normalized(gold)
    return bool(given and wanted) and (given in wanted or wanted in given)


def same_number(answer: str, gold: str) -> bool:
    """Tell whether two answers are one number, each in digits or in words ("twenty-one" and "21").

    Exact match, as published, does not know this; it is told apart so that such answers can be counted.

    >>> same_number("1,200", "1200.0")
    True
    """
    given, wanted = _number(answer), _number(gold)
    return given is not None and given == wanted


def _number(text: str) -> float | None:
    words = text.lower().replace("-", " ").replace(",", "").split()
    if len(words) == 1 and re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", words[0]):
        return float(words[0])
    total, part = 0, 0
    for word in (word for word in words if word != "and"):
        if word in _VALUES:
            part += _VALUES[word]
        elif word in _SCALES and word == "hundred":
            part = max(part, 1) * 100
        elif word in _SCALES:
            total, part = total + max(part, 1) * _SCALES[word], 0
        else:
            return None
    return float(total + part) if words else None


def score_short_answers(pairs: Sequence[tuple[str, str]]) -> ShortAnswerScores:
    """Return the means over (answer, gold) pairs; all are 0 where there are none.

    >>> score_short_answers([("the Eiffel tower", "Eiffel Tower"), ("Paris, France", "Paris")])
    ShortAnswerScores(questions=2, exact_match=0.5, f1=0.8333333333333333, substring=1.0)
    """
    count = len(pairs)
    if not count:
        return ShortAnswerScores(0, 0.0, 0.0, 0.0)
    sums = (
        sum(exact_match(answer, gold) for answer, gold in pairs),
        sum(f1(answer, gold) for answer, gold in pairs),
        sum(mutual_substring(answer, gold) for answer, gold in pairs),
    )
    return ShortAnswerScores(count, *(each / count for each in sums))
