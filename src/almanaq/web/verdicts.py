"""What people said of answers, right or wrong, and its export as examples for a prompt or as tests for pytest."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from almanaq.connection import Connection
from almanaq.errors import QueryError
from almanaq.web.problems import NotFound
from almanaq.web.store import (
    Answer,
    AnswerStore,
    Columns,
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
                raise NotFound("no such answer (any more)")
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
        return self._find_verdicts("v.answer = ?", (answer,), verdicts_of(answer)) if self._store.shows(answer) else []

    def all(self) -> list[Verdict]:
        """Return every verdict on an answer over this source, the oldest first."""
        source = self._store.source
        return self._find_verdicts("a.source = ?", (source,), verdicts_on(source))

    def draw(self, count: int) -> list[Answer]:
        """Return so many turns, drawn at random from those that nobody has reviewed so far."""
        reviewed = {verdict.answer for verdict in self.all() if verdict.body.get("sampled")}
        found = (self._store.get(id) for id in self._store.random_ids("ask") if id not in reviewed)
        return list(islice((answer for answer in found if answer is not None), count))

    def _find_verdicts(self, where: str, values: tuple[Any, ...], list_: str) -> list[Verdict]:
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


def teach(
    connection: Connection, store: AnswerStore, id: str, verdict: str | None, expected: Mapping[str, Any], by: str
) -> bool:
    """Keep the query that a verdict calls right for its question, or forget it; return whether one is kept.

    None is kept of a follow-up, whose words mean nothing without the turns before it, nor one that cannot run.
    """
    answer = store.get(id)
    if answer is None or answer.kind != "ask" or store.turns(answer.conversation)[:1] != (answer.turn,):
        return False
    answered = answer.record.get("suql") if verdict == "right" and answer.record.get("status") == "answered" else None
    suql = expected.get("suql") or answered
    try:
        if suql:
            connection.confirm(answer.asked, str(suql), by=by)
            return True
    except QueryError:
        return False
    if any(each.question == answer.asked for each in connection.checked.all()):
        connection.checked.remove(answer.asked)
    return False


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


def measure_accuracy(verdicts: list[Verdict], *, sampled: bool) -> Accuracy:
    """Return the accuracy of the turns that were judged: a turn is right if it was called so, and no part of it wrong.

    Args:
        sampled: count only turns that were drawn at random; those that people pick to judge choose themselves.
    """
    turns: dict[str, list[str]] = {}
    for each in verdicts:
        if not sampled or each.body.get("sampled"):
            turns.setdefault(each.answer, []).append(each.verdict)
    return Accuracy(len(turns), sum("wrong" not in marks for marks in turns.values()))


_HEADER = '''"""Questions that people judged, as tests: pytest THIS_FILE. Exported by `almanaq serve`."""

import os

import almanaq
import pytest

SOURCE = os.environ.get("ALMANAQ_SOURCE", {source})
MODEL = os.environ.get("ALMANAQ_MODEL", {model})


@pytest.fixture(scope="module")
def con():
    with almanaq.connect(SOURCE, model=MODEL) as connection:
        yield connection


def reply_to(con, *questions):
    """Give the reply to the last of the questions, asked in one conversation."""
    chat = con.chat()
    for question in questions:
        reply = chat.ask(question)
    return reply


def holds(reply, key):
    """Say whether a reply has a row of that key: by the keys of its rows, else by its columns."""
    shown = [dict(zip(reply.shown.columns, each)) for each in reply.shown.keys] if reply.shown else []
    rows = [dict(zip(reply.columns, row)) for row in reply.rows]
    return any(all(str(row.get(name)) == str(value) for name, value in key.items()) for row in (*shown, *rows))


def quotes(reply):
    return {{(e.relation, e.key, e.column, e.passage, e.quote) for row in reply.evidence for e in row}}
'''


def export_tests(store: AnswerStore, source: str, model: str) -> str:
    """Return a file for pytest: each verdict on a question says what a reply must, or must not, hold."""
    parts = [_HEADER.format(source=repr(source), model=repr(model))]
    for number, verdict in enumerate(Verdicts(store).all(), 1):
        answer = store.get(verdict.answer)
        if answer is None or answer.kind != "ask" or answer.turn is None:
            continue
        turns = store.turns(answer.conversation)
        turns = turns[: turns.index(answer.turn) + 1] if answer.turn in turns else (answer.turn,)
        asked = ", ".join(repr(turn.question) for turn in turns)
        name = "_".join(re.findall(r"[a-z0-9]+", answer.asked.lower()))[:50] or "question"
        lines = [f"def test_{number:03}_{name}(con):", f"    reply = reply_to(con, {asked})", *_checks(verdict, answer)]
        parts.append("\n".join(lines) + "\n")
    return "\n\n".join(parts)


def _checks(verdict: Verdict, answer: Answer) -> list[str]:
    """Return the lines that fail where the reply is not as the verdict says."""
    about, wrong = verdict.about, verdict.verdict == "wrong"
    expected = verdict.body.get("expected") or {}
    if about["kind"] in ("row", "missing") and about.get("key"):
        absent = wrong == (about["kind"] == "row")
        checks = [f"assert {'not ' if absent else ''}holds(reply, {about['key']!r})"]
    elif about["kind"] == "quote" and about.get("evidence"):
        place = tuple(about["evidence"].get(name) for name in ("relation", "key", "column", "passage", "quote"))
        checks = [f"assert {place!r} {'not in' if wrong else 'in'} quotes(reply)"]
    elif expected.get("suql"):
        same = "assert sorted(map(str, reply.rows)) == sorted(map(str, right.rows))"
        checks = [f"right = con.sql({expected['suql']!r})", same]
    elif (keys := expected.get("keys") if wrong else answer.record.get("keys")) is not None:
        all_there = "assert all(holds(reply, key) for key in keys)"
        checks = [f"keys = {keys!r}", "assert len(reply.rows) == len(keys)", all_there]
    elif wrong:
        checks = [f"assert reply.suql != {answer.record.get('suql')!r}"]
    else:
        checks = [f"assert reply.status == {answer.record.get('status')!r}"]
    notes = (f"# {line}" for line in str(verdict.body.get("note") or "").splitlines())
    return [f"    {line}" for line in (*notes, *checks)]
