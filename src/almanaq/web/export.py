"""Verdicts as what can be used: examples for a model's prompt (`SOURCE.examples.toml`), or tests that pytest runs."""

from __future__ import annotations

import json
import re
from typing import Any

from almanaq.agent.history import Turn
from almanaq.web.answers import Answer
from almanaq.web.store import AnswerStore
from almanaq.web.verdicts import Verdict, Verdicts

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


def examples(store: AnswerStore) -> str:
    """Return the questions with their right queries, as a file of examples."""
    found: dict[str, str] = {}
    for verdict in Verdicts(store).all():
        answer = store.get(verdict.answer)
        if answer is None or answer.kind != "ask" or store.turns(answer.conversation)[:1] != (answer.turn,):
            continue  # a follow-up does not stand by itself
        suql = _right_query(verdict, answer)
        if suql:
            found[answer.asked] = suql
    entries = [f"[[example]]\nquestion = {_toml(asked)}\nsuql = {_toml(suql)}\n" for asked, suql in found.items()]
    return "# Questions that people judged, with the right query of each.\n\n" + "\n".join(entries)


def tests(store: AnswerStore, source: str, model: str) -> str:
    """Return a file for pytest: each verdict on a question says what a reply must, or must not, hold."""
    parts = [_HEADER.format(source=repr(source), model=repr(model))]
    for number, verdict in enumerate(Verdicts(store).all(), 1):
        answer = store.get(verdict.answer)
        if answer is None or answer.kind != "ask" or answer.turn is None:
            continue
        checks = _checks(verdict, answer)
        if not checks:
            continue
        asked = ", ".join(repr(turn.question) for turn in _until(store.turns(answer.conversation), answer.turn))
        name = "_".join(re.findall(r"[a-z0-9]+", answer.asked.lower()))[:50] or "question"
        lines = [f"def test_{number:03}_{name}(con):", f"    reply = reply_to(con, {asked})", *checks]
        parts.append("\n".join(lines) + "\n")
    return "\n\n".join(parts)


def _right_query(verdict: Verdict, answer: Answer) -> str | None:
    expected = (verdict.body.get("expected") or {}).get("suql")
    if expected:
        return str(expected)
    whole = verdict.about["kind"] == "answer" and verdict.verdict == "right"
    return answer.record.get("suql") if whole and answer.record.get("status") == "answered" else None


def _checks(verdict: Verdict, answer: Answer) -> list[str]:
    """Return the lines that fail where the reply is not as the verdict says."""
    about, wrong = verdict.about, verdict.verdict == "wrong"
    expected = verdict.body.get("expected") or {}
    lines = [f"    # {line}" for line in str(verdict.body.get("note") or "").splitlines()]
    if about["kind"] in ("row", "missing") and about.get("key"):
        absent = wrong == (about["kind"] == "row")
        return [*lines, f"    assert {'not ' if absent else ''}holds(reply, {about['key']!r})"]
    if about["kind"] == "quote" and about.get("evidence"):
        place = tuple(about["evidence"].get(name) for name in ("relation", "key", "column", "passage", "quote"))
        return [*lines, f"    assert {place!r} {'not in' if wrong else 'in'} quotes(reply)"]
    keys = expected.get("keys") if wrong else answer.record.get("keys")
    if expected.get("suql"):
        return [
            *lines,
            f"    right = con.sql({expected['suql']!r})",
            "    assert sorted(map(str, reply.rows)) == sorted(map(str, right.rows))",
        ]
    if keys is not None:
        return [
            *lines,
            f"    keys = {keys!r}",
            "    assert len(reply.rows) == len(keys)",
            "    assert all(holds(reply, key) for key in keys)",
        ]
    if wrong:
        return [*lines, f"    assert reply.suql != {answer.record.get('suql')!r}"]
    return [*lines, f"    assert reply.status == {answer.record.get('status')!r}"]


def _until(turns: tuple[Turn, ...], last: Turn) -> tuple[Turn, ...]:
    """Return the turns of a conversation up to one of them."""
    return turns[: turns.index(last) + 1] if last in turns else (last,)


def _toml(text: Any) -> str:
    # JSON's strings are TOML's, but for what lies beyond: that stands as it is.
    return json.dumps(str(text), ensure_ascii=False).replace("\x7f", "\\u007f")
