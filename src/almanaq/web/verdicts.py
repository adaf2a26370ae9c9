"""What people said of answers: right or wrong, of a whole answer, a row, a quote, or a row that is missing."""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass
from itertools import islice
from typing import Any

from almanaq.web.answers import Answer, Columns
from almanaq.web.problems import NotFound
from almanaq.web.store import (
    AnswerStore,
    checksum,
    columns_from_text,
    columns_to_text,
    pack,
    unpack,
    verdicts_of,
    verdicts_on,
)


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
    """The verdicts on the answers of a store; each thing has one, the last that was given.

    A verdict is given where its answer is, and where the columns may be seen that it carries itself.
    """

    def __init__(self, store: AnswerStore) -> None:
        self._store = store

    def put(
        self,
        answer: str,
        about: dict[str, Any],
        verdict: str | None,
        body: dict[str, Any],
        columns: Columns | None = None,
    ) -> None:
        """Keep a verdict, or take it back with None.

        Args:
            columns: those whose values the words of the verdict may hold; None: of one that says nothing beyond the
                answer, else where nobody knows.

        Raises:
            NotFound: the answer is not there; SourceError: the verdict cannot be kept.
        """
        store = self._store
        key = json.dumps(about, sort_keys=True)
        with store.writing() as connection:
            if not store.shows(answer):
                raise NotFound("there is no such answer, or no longer")
            removed = connection.execute("DELETE FROM verdict WHERE answer = ? AND about = ?", (answer, key)).rowcount
            if verdict is not None:
                plain = set(about) == {"kind"} and not set(body) - {"sampled"}
                own = columns_to_text(store.columns(answer) if plain else columns)
                record = (answer, key, pack({"verdict": verdict, "body": body, "columns": own}), time.time())
                connection.execute("INSERT INTO verdict VALUES (?, ?, ?, ?, ?)", (*record, checksum(*record)))
            change = int(verdict is not None) - removed
            store.add(verdicts_of(answer), change)
            store.add(verdicts_on(store.source), change)
            store.make_room(keeping=answer)

    def of(self, answer: str) -> list[Verdict]:
        """Return the verdicts on one answer, the oldest first."""
        return self._found("v.answer = ?", (answer,), verdicts_of(answer)) if self._store.shows(answer) else []

    def all(self) -> list[Verdict]:
        """Return every verdict on an answer over this source, the oldest first."""
        source = self._store.source
        return self._found("a.source = ?", (source,), verdicts_on(source))

    def draw(self, count: int) -> list[Answer]:
        """Return so many turns, drawn at random from those that nobody has reviewed so far."""
        reviewed = {verdict.answer for verdict in self.all() if verdict.body.get("sampled")}
        found = (self._store.get(id) for id in self._store.random_ids("ask") if id not in reviewed)
        return list(islice((answer for answer in found if answer is not None), count))

    def _found(self, where: str, values: tuple[Any, ...], list_: str) -> list[Verdict]:
        store = self._store
        rows = store.read(
            "SELECT v.answer, v.about, v.body, v.made, v.sum FROM verdict v JOIN answer a ON a.id = v.answer"
            f" WHERE {where} ORDER BY v.made, v.about",
            values,
        )
        store.expect(list_, len(rows))
        found = []
        for answer, about, body, made, sum_ in rows:
            store.check(sum_, answer, about, body, made)
            known = unpack(body)
            if store.shows(answer, is_there=True) and store.sees(columns_from_text(known["columns"])):
                found.append(Verdict(answer, json.loads(about), known["verdict"], known["body"], made))
        return found


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
