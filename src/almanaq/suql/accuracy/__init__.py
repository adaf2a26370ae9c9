"""Fewer calls with a guarantee: the targets of an approximate filter, and the report on it.

Which rows need not be asked is worked out here without a model or a database.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from almanaq.errors import UsageError
from almanaq.options import Accuracy, read_accuracy

_ANY_HINT = re.compile(r"/\*\+\s*accuracy\b", re.IGNORECASE)
_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*")
_HINT = re.compile(r"\s*(?:SELECT|WITH)\s*/\*\+\s*accuracy\s*\(([^()]*)\)\s*\*/", re.IGNORECASE)


def read_hint(query: str) -> Accuracy | None:
    """Return the targets of a hint that stands behind a query's first word: `SELECT /*+ accuracy(recall=0.9) */ …`.

    >>> read_hint("SELECT /*+ accuracy(recall=0.8) */ name FROM dogs")
    Accuracy(recall=0.8, precision=0.9, delta=0.1, proxy='local', seed=0)
    """
    found = _HINT.match(query)
    if len(_ANY_HINT.findall(_QUOTED.sub("", query))) > (found is not None):
        raise UsageError(
            "accuracy: the hint holds for a whole query, and stands behind its first word alone, not in a part of it:"
            " SELECT /*+ accuracy(recall=0.9) */ …"
        )
    return None if found is None else read_accuracy(found[1])


@dataclass(frozen=True, slots=True)
class Certificate:
    """What is known of a filter's rows at some moment.

    Attributes:
        asked: rows that the model was asked about; accepted, rejected: rows that the proxy decided.
        found: rows that passed when asked.
        wrongly_accepted, wrongly_rejected: the most errors among the rows that the proxy decided.
        recall, precision: what the rows surely reach, with the probability asked for.
        certified: both targets are reached.
    """

    asked: int
    found: int
    accepted: int
    rejected: int
    wrongly_accepted: int
    wrongly_rejected: int
    recall: float
    precision: float
    certified: bool


@dataclass(frozen=True, slots=True)
class Inference:
    """What an approximate filter did.

    Attributes:
        targets: what the caller asked for.
        rows: rows that only the model could decide.
        expected: rows that were expected to be asked, once the thresholds were chosen.
    """

    targets: Accuracy
    rows: int
    expected: int
    certificate: Certificate
