"""Measures of answers in words: sacreBLEU with its signature, and numbers; for short answers see short_answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from almanaq.errors import MissingExtraError

_NUMBER = re.compile(r"(?<![\w.])[-+−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?!\w)")
_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Bleu:
    """A corpus BLEU from 0 to 100, and what exactly was computed."""

    score: float
    signature: str


def check_sacrebleu() -> None:
    """Raise MissingExtraError where sacrebleu is not installed: before anything is paid for that it is to measure."""
    if find_spec("sacrebleu") is None:
        raise MissingExtraError("sacrebleu", "bench", "the measure sacreBLEU")


def sacrebleu(pairs: Sequence[tuple[str, str]]) -> Bleu:
    """Give the corpus BLEU of (answer, gold) pairs, as sacreBLEU computes it by default.

    Raises:
        MissingExtraError: sacrebleu is not installed.
    """
    check_sacrebleu()
    from sacrebleu.metrics import BLEU

    metric = BLEU()
    score = metric.corpus_score([answer for answer, _ in pairs], [[gold for _, gold in pairs]])
    return Bleu(float(score.score), str(metric.get_signature()))


def numbers(text: str) -> list[float]:
    """Give the numbers in a text, thousands separated by commas or not."""
    return [float(found.replace(",", "").replace("−", "-")) for found in _NUMBER.findall(text)]


def is_numeric(gold: str) -> bool:
    """Tell whether a gold answer is a number and little else: a unit, a currency, a percent sign."""
    return len(numbers(gold)) == 1 and len(gold.split()) <= 2


def numeric_match(answer: str, gold: str) -> bool:
    """Tell whether an answer holds the number of the gold answer, and no other number."""
    wanted, given = numbers(gold), numbers(answer)
    return bool(given) and all(
        abs(one - other) <= _TOLERANCE * max(1.0, abs(other)) for one in given for other in wanted
    )
