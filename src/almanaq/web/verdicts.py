"""What people said of answers: right or wrong, of a whole answer, a row, a quote, or a row that is missing."""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass
from typing import Any

from almanaq.web.answers import Answer
from almanaq.web.problems import NotFound
from almanaq.web.store import AnswerStore


@dataclass(frozen=True, slots=True)
class Verdict:
    """One verdict.

    Attributes:
        about: what it is about; `body` holds `expected`, `note` and `sampled`.
    """

    answer: str
    about: dict[str, Any]
    verdict: str
    body: dict[str, Any]
    made: float

    def record(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {"answer": self.answer, "about": self.about, "verdict": self.verdict, **self.body, "made": self.made}


class Verdicts:
    """The verdicts on the answers of a store; each thing has one, the last that was given."""

    def __init__(self, store: AnswerStore) -> None:
        self._store = store

    def put(self, answer: str, about: dict[str, Any], verdict: str | None, body: dict[str, Any]) -> None:
        """Keep a verdict, or take it back with None; raises NotFound for an answer that is not there."""
        if self._store.get(answer) is None:
            raise NotFound("there is no such answer, or no longer")
        written = json.dumps(about, sort_keys=True, ensure_ascii=False)
        with self._store.writing() as connection:
            connection.execute("DELETE FROM verdict WHERE answer = ? AND about = ?", (answer, written))
            if verdict is not None:
                values = (answer, written, verdict, json.dumps(body, ensure_ascii=False), time.time())
                connection.execute("INSERT INTO verdict VALUES (?, ?, ?, ?, ?)", values)

    def of(self, answer: str) -> list[Verdict]:
        """Return the verdicts on one answer, the oldest first."""
        return self._found("WHERE v.answer = ? AND a.source = ?", (answer, self._store.source))

    def all(self) -> list[Verdict]:
        """Return every verdict on an answer over this source, the oldest first."""
        return self._found("WHERE a.source = ?", (self._store.source,))

    def drawn(self, count: int) -> list[Answer]:
        """Return so many turns, drawn at random from those that nobody has reviewed so far."""
        rows = self._store.read(
            "SELECT id FROM answer WHERE source = ? AND kind = 'ask' AND id NOT IN"
            " (SELECT answer FROM verdict WHERE json_extract(body, '$.sampled')) ORDER BY random() LIMIT ?",
            (self._store.source, count),
        )
        found = (self._store.get(row[0]) for row in rows)
        return [answer for answer in found if answer is not None]

    def _found(self, where: str, values: tuple[Any, ...]) -> list[Verdict]:
        rows = self._store.read(
            "SELECT v.answer, v.about, v.verdict, v.body, v.made FROM verdict v JOIN answer a ON a.id = v.answer"
            f" {where} ORDER BY v.made, v.about",
            values,
        )
        return [
            Verdict(answer, json.loads(about), verdict, json.loads(body), made)
            for answer, about, verdict, body, made in rows
        ]


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How many of the judged turns were right, with a 95 % interval (Wilson's); of none nothing is known."""

    judged: int
    right: int

    @property
    def share(self) -> float | None:
        """The share that was right."""
        return self.right / self.judged if self.judged else None

    def interval(self) -> tuple[float, float] | None:
        """Return the bounds between which the true share lies, in 95 of 100 such cases."""
        if not self.judged:
            return None
        n, p, z = self.judged, self.right / self.judged, 1.959964
        middle = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        return max(0.0, min(p, middle - half)), min(1.0, max(p, middle + half))

    def record(self) -> dict[str, Any]:
        """Return it as JSON."""
        low, high = self.interval() or (None, None)
        return {"judged": self.judged, "right": self.right, "share": self.share, "low": low, "high": high}


def accuracy(verdicts: list[Verdict], *, sampled: bool) -> Accuracy:
    """Return the accuracy of the turns that were judged: a turn is right if it was called so, and no part of it wrong.

    Args:
        sampled: count only turns that were drawn at random; those that people pick to judge choose themselves.
    """
    turns: dict[str, list[str]] = {}
    for each in verdicts:
        if not sampled or each.body.get("sampled"):
            turns.setdefault(each.answer, []).append(each.verdict)
    return Accuracy(len(turns), sum("wrong" not in marks for marks in turns.values()))
