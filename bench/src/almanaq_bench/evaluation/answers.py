"""Measures of answers: sacreBLEU of sentences, exact match and F1 of short answers, verdicts on statements."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from almanaq.errors import MissingExtraError

_NUMBER = re.compile(r"(?<![\w.])[-+−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?!\w)")
_TOLERANCE = 1e-9
_ORDER = 4  # BLEU counts sequences of one to so many words

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Bleu:
    """A corpus BLEU from 0 to 100, what exactly was computed, and of what: counts for each pair, to be summed."""

    score: float
    signature: str
    counts: Values = field(repr=False, compare=False)


def check_sacrebleu() -> None:
    """Raise MissingExtraError where sacrebleu is not installed: before anything is paid for that it is to measure."""
    if find_spec("sacrebleu") is None:
        raise MissingExtraError("sacrebleu", "bench", "the measure sacreBLEU")


def sacrebleu(pairs: Sequence[tuple[str, str]]) -> Bleu:
    """Return the corpus BLEU of (answer, gold) pairs, as sacreBLEU computes it by default.

    Raises:
        MissingExtraError: sacrebleu is not installed.
    """
    check_sacrebleu()
    from sacrebleu.metrics import BLEU

    # Sentences are only counted here; without this each would be warned about for being scored alone.
    counter = BLEU(effective_order=True)
    counts = np.zeros((len(pairs), 2 + 2 * _ORDER))
    for row, (answer, gold) in enumerate(pairs):
        found = counter.sentence_score(answer, [gold])
        counts[row] = [found.sys_len, found.ref_len, *found.counts, *found.totals]
    score = float(bleu_of(counts.sum(axis=0, keepdims=True))[0, 0])
    metric = BLEU()
    metric.corpus_score(["a"], [["a"]])  # the signature says how many references there were
    return Bleu(score, str(metric.get_signature()), counts)


def bleu_of(sums: Values) -> Values:
    """Return the corpus BLEU of summed counts, shape (samples, 1) of (samples, columns)."""
    from sacrebleu.metrics import BLEU

    scores = []
    for given, wanted, *rest in sums.astype(int).tolist():
        counts, totals = rest[:_ORDER], rest[_ORDER:]
        scores.append(BLEU.compute_bleu(counts, totals, given, wanted, smooth_method="exp").score)
    return np.array(scores, dtype=np.float64)[:, None]


def numbers(text: str) -> list[float]:
    """Return the numbers in a text, thousands separated by commas or not.

    >>> numbers("3 of 1,200 dogs")
    [3.0, 1200.0]
    """
    return [float(found.replace(",", "").replace("−", "-")) for found in _NUMBER.findall(text)]


def is_numeric(gold: str) -> bool:
    """Tell whether a gold answer is a number and little else: a unit, a currency, a percent sign."""
    return len(numbers(gold)) == 1 and len(gold.split()) <= 2


def numeric_match(answer: str, gold: str) -> bool:
    """Tell whether an answer holds the number of the gold answer, and no other number.

    >>> numeric_match("about 1,200 dogs", "1200")
    True
    """
    wanted, given = numbers(gold), numbers(answer)
    return bool(given) and all(
        abs(one - other) <= _TOLERANCE * max(1.0, abs(other)) for one in given for other in wanted
    )


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


def normalize_answer(answer: str) -> str:
    """Return the form in which answers are compared.

    >>> normalize_answer("The Eiffel Tower!")
    'eiffel tower'
    """
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split())


def exact_match(answer: str, gold: str) -> bool:
    """Tell whether two answers are the same.

    >>> exact_match("the Eiffel tower", "Eiffel Tower")
    True
    """
    return normalize_answer(answer) == normalize_answer(gold)


def f1(answer: str, gold: str) -> float:
    """Return the harmonic mean of precision and recall over words; where one has none: whether neither has.

    >>> f1("Eiffel", "Eiffel Tower")
    0.6666666666666666
    """
    given, wanted = normalize_answer(answer).split(), normalize_answer(gold).split()
    if not given or not wanted:
        return float(given == wanted)
    shared = sum((Counter(given) & Counter(wanted)).values())
    return 2 * shared / (len(given) + len(wanted))


def mutual_substring(answer: str, gold: str) -> bool:
    """Tell whether one answer is part of the other; no answer is part of nothing.

    >>> mutual_substring("Paris, France", "Paris")
    True
    """
    given, wanted = normalize_answer(answer), normalize_answer(gold)
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


LABELS = ("true", "false")
_VERDICTS = (*LABELS, "")
_KINDS = tuple((verdict, gold) for verdict in _VERDICTS for gold in LABELS)


@dataclass(frozen=True, slots=True)
class VerificationScores:
    """Means over statements, each from 0 to 1.

    Attributes:
        precision, recall, f1: of the two labels, weighted by how many statements have each; a verdict that is neither
            label is an unmatched prediction: it lowers recall, and precision is not asked about it.
        recall_answered: of the statements that got a verdict alone.
        coverage: the share of statements that got one.
    """

    precision: float
    recall: float
    f1: float
    recall_answered: float
    coverage: float


def score_verdicts(pairs: Sequence[tuple[str, str]]) -> VerificationScores:
    """Return the means over (verdict, gold label) pairs; all are 0 where there are none.

    >>> scores = score_verdicts([("true", "true"), ("false", "true"), ("not enough", "false")])
    >>> round(scores.coverage, 2), scores.recall_answered
    (0.67, 0.5)
    """
    sums = verdict_counts(pairs).sum(axis=0, keepdims=True)
    return VerificationScores(*map(float, verification_measures(sums)[0]))


def verdict_counts(pairs: Sequence[tuple[str, str]]) -> Values:
    """Return what the measures are computed of, shape (statements, 6): 1 in the column of verdict and gold label."""
    counts = np.zeros((len(pairs), len(_KINDS)))
    for row, (verdict, gold) in enumerate(pairs):
        counts[row, _KINDS.index((verdict if verdict in LABELS else "", gold))] = 1
    return counts


def verification_measures(sums: Values) -> Values:
    """Return the fields of VerificationScores in their order, shape (samples, 5), of summed `verdict_counts`."""
    table = sums.reshape(len(sums), len(_VERDICTS), len(LABELS))
    predicted, held = table.sum(axis=2)[:, : len(LABELS)], table.sum(axis=1)
    right = np.stack([table[:, place, place] for place in range(len(LABELS))], axis=1)
    total, answered = held.sum(axis=1), predicted.sum(axis=1)
    share = _ratio(held, np.broadcast_to(total[:, None], held.shape))
    columns = [
        (share * _ratio(right, predicted)).sum(axis=1),
        (share * _ratio(right, held)).sum(axis=1),
        (share * _ratio(2 * right, predicted + held)).sum(axis=1),
        _ratio(right.sum(axis=1), answered),
        _ratio(answered, total),
    ]
    return np.stack(columns, axis=1)


def _ratio(part: Values, whole: Values) -> Values:
    """Divide; 0 where there is nothing to divide by."""
    found: Values = np.divide(part, whole, out=np.zeros(whole.shape), where=whole > 0)
    return found
