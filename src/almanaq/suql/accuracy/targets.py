"""What a caller asks of an approximate filter, and what is told of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from almanaq.errors import UsageError, suggest

_ANY_HINT = re.compile(r"/\*\+\s*accuracy\b", re.IGNORECASE)
_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*")
_HINT = re.compile(r"\s*(?:SELECT|WITH)\s*/\*\+\s*accuracy\s*\(([^()]*)\)\s*\*/", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Targets of a semantic filter that need not ask about every row; without it every row is asked.

    Attributes:
        recall: the share of the exact result's rows that are returned, at least.
        precision: the share of the returned rows that are in the exact result, at least.
        delta: the probability with which either target may be missed.
        proxy: what scores the rows: "local", "regression", or the name of a cheaper model.
        seed: draws the rows that are asked; the same seed gives the same rows.

    Raises:
        UsageError: a number is out of its range.

    >>> import almanaq
    >>> from almanaq.testing import FunctionModel
    >>> about = [f"Dog {n} is {'friendly' if n % 2 else 'shy'}." for n in range(400)]
    >>> model = FunctionModel(lambda text, question: "Yes" if "friendly" in text else "No")
    >>> con = almanaq.connect({"dogs": {"about": about}}, model=model, cache=False)
    >>> query = "SELECT * FROM dogs WHERE answer(about, 'is the dog friendly?') = 'Yes'"
    >>> result = con.sql(query, accuracy=almanaq.Accuracy(recall=0.8, precision=0.8))
    >>> result.trace.text_calls < 400, result.trace.exact
    (True, False)
    """

    recall: float = 0.9
    precision: float = 0.9
    delta: float = 0.1
    proxy: str = "local"
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("recall", "precision"):
            if not 0 < getattr(self, name) <= 1:
                raise UsageError(f"{name} is {getattr(self, name)}: it must be above 0 and at most 1")
        if not 0 < self.delta < 1:
            raise UsageError(f"delta is {self.delta}: it must be between 0 and 1")


def read_accuracy(text: str) -> Accuracy:
    """Return the targets that a text like `recall=0.9,precision=0.9,proxy=local` names; the others have their defaults.

    Raises:
        UsageError: a part is no `name=value`, its name is unknown, or its value is none for it.

    >>> read_accuracy("recall=0.9")
    Accuracy(recall=0.9, precision=0.9, delta=0.1, proxy='local', seed=0)
    """
    known: dict[str, type] = {"recall": float, "precision": float, "delta": float, "proxy": str, "seed": int}
    given: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = (word.strip() for word in part.partition("="))
        if not equals or name not in known:
            raise UsageError(
                f"accuracy: {part.strip()!r} is not understood{suggest(name, list(known))}; "
                "write recall=0.9,precision=0.9 and, if need be, delta=0.1, proxy=local, seed=0"
            )
        try:
            given[name] = known[name](value)
        except ValueError as error:
            raise UsageError(f"accuracy: {name} is {value!r}, which is no number") from error
    return Accuracy(**given)


def hinted(query: str) -> Accuracy | None:
    """Return the targets of a hint that stands behind a query's first word: `SELECT /*+ accuracy(recall=0.9) */ …`.

    >>> hinted("SELECT /*+ accuracy(recall=0.8) */ name FROM dogs")
    Accuracy(recall=0.8, precision=0.9, delta=0.1, proxy='local', seed=0)

    Raises:
        UsageError: a hint stands anywhere else, where it would hold for nothing.
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


_NEARLY_ALL = 0.95


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

    @property
    def saves_little(self) -> bool:
        """Whether nearly every row was expected to be asked, so that the exact query costs no more."""
        return self.expected >= _NEARLY_ALL * self.rows
