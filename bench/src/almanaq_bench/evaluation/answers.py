"""Measures of answers in words: sacreBLEU with its signature, and numbers; for short answers see short_answers."""

from __future__ import annotations

import re
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
