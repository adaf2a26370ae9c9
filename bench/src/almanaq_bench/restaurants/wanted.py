"""What each turn of a conversation wants, as its file says it; a turn that cannot be judged says why."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, get_args

from almanaq.agent.history import TurnKind
from almanaq.errors import SourceError, suggest

Id = int | str
"""What identifies a restaurant."""

EXPECTED = ("some", "all", "top", "count", "none")
COMBINED, STRUCTURED = "combined", "structured"
_SAID, _NEEDS = "Utterance", "Structural Unstructural annotation"
_KINDS: tuple[str, ...] = get_args(TurnKind)
_POINTS = ("detail", "best", "another", "compare")


@dataclass(frozen=True, slots=True)
class ExpectedTurn:
    """One turn: what is said, and what is right.

    Attributes:
        kind: what the asker does (agent/history.py); `where` is a condition in SQL, `attributes` what must hold besides
            by the truth about the texts, `order` and `limit` which come first where `expect` is "top".
        row: for a detail, a place in the last list shown; None: the rows spoken of. `attribute` is what is asked of it.
        column, more: what is compared with every row shown last, and in which direction.
        right: the ids that are right, where a person judged; takes the place of all that.
        text: whether texts have to be read, where `right` is given.
        fault: why the turn cannot be judged; "" where it can.
    """

    say: str
    kind: TurnKind = "new"
    where: str | None = None
    attributes: Mapping[str, bool] = field(default_factory=dict)
    expect: str = "some"
    limit: int = 3
    order: str = ""
    row: int | None = None
    attribute: str = ""
    column: str = ""
    more: bool = False
    right: tuple[Id, ...] | None = None
    text: bool = False
    fault: str = ""

    @property
    def needs(self) -> str:
        """Return whether the columns are enough, or texts have to be read as well."""
        return COMBINED if self.attributes or self.attribute or self.text else STRUCTURED

    @property
    def judged(self) -> bool:
        """Whether the turn itself says what is right, or points at turns that do."""
        return self.right is not None or self.where is not None or self.kind in (*_POINTS, "talk", "world")


@dataclass(frozen=True, slots=True)
class Conversation:
    """Turns in order; a single question is a conversation of one. Its half hangs on `name` alone."""

    id: str
    name: str
    turns: tuple[ExpectedTurn, ...]


def read_conversations(file: Path) -> tuple[Conversation, ...]:
    """Return the conversations of a file of JSON lines.

    A line is `{"name", "turns": […]}` or one turn with `question`. What cannot be read becomes a turn with a `fault`,
    so that it is counted and nothing else is lost. A CSV file is read as the paper's authors published their questions.

    Raises:
        SourceError: the file cannot be read.
    """
    if file.suffix == ".csv":
        return _read_published(file)
    try:
        lines = file.read_bytes().decode("utf-8", errors="replace").splitlines()
    except OSError as error:
        raise SourceError(f"cannot read {file}: {error}") from error
    found = [_conversation(line, number) for number, line in enumerate(lines, 1) if line.strip()]
    ids = [each.id for each in found]
    return tuple(
        replace(each, id=f"{each.id} (line {n})") if ids.count(each.id) > 1 else each for n, each in enumerate(found, 1)
    )


def describe_broken_turns(conversations: Iterable[Conversation]) -> str:
    """Say how many turns cannot be read, and what is wrong with the first; "" where all can."""
    faults = [f"{each.id!r}: {turn.fault}" for each in conversations for turn in each.turns if turn.fault]
    return f"{len(faults)} broken turns are counted and not judged; the first, of {faults[0]}" if faults else ""


def half_of(conversations: Iterable[Conversation], held_out: bool) -> tuple[Conversation, ...]:
    """Return one half: every second one by the SHA-256 of its name."""
    ordered = sorted(conversations, key=lambda each: sha256(each.name.encode()).hexdigest())
    return tuple(ordered[1 if held_out else 0 :: 2])


def _read_published(file: Path) -> tuple[Conversation, ...]:
    """Return the questions of the paper's table of results, of which nobody said which restaurants would be right."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            rows = list(csv.DictReader(lines))
    except (OSError, ValueError, csv.Error) as error:
        raise SourceError(f"cannot read {file}: {error}") from error
    if rows and not {_SAID, _NEEDS} <= set(rows[0]):
        raise SourceError(f"{file} has no columns {_SAID!r} and {_NEEDS!r}, as the published questions have")
    found = []
    for number, row in enumerate(rows, 1):
        utterance = (row[_SAID] or "").strip()
        fault = "" if utterance else f"row {number} has no {_SAID}"
        turn = ExpectedTurn(utterance, text=row[_NEEDS] == "Combination", fault=fault)
        found.append(Conversation(row.get("Unique ID") or str(number), utterance or fault, (turn,)))
    return tuple(found)


def _conversation(line: str, number: int) -> Conversation:
    try:
        read = json.loads(line)
    except ValueError as error:
        return _broken_conversation(number, line, f"not JSON: {error}")
    if not isinstance(read, dict):
        return _broken_conversation(number, line, "not a JSON object")
    if "turns" not in read:
        asked = read.get("question")
        turn = _turn({"say": asked, **{k: v for k, v in read.items() if k != "question"}})
        return Conversation(str(number), asked if isinstance(asked, str) else line, (turn,))
    name, turns = read.get("name"), read["turns"]
    if not isinstance(name, str) or not isinstance(turns, list) or not turns:
        return _broken_conversation(number, line, 'a conversation has a "name" and a list of "turns"')
    return Conversation(name, name, tuple(map(_turn, turns)))


def _broken_conversation(number: int, line: str, fault: str) -> Conversation:
    return Conversation(f"line {number}", line, (ExpectedTurn("", fault=f"line {number}: {fault}"),))


def _turn(read: Any) -> ExpectedTurn:
    if not isinstance(read, dict):
        return ExpectedTurn("", fault=f"a turn is a JSON object, not {json.dumps(read)[:60]}")
    say = read.get("say")
    if not isinstance(say, str) or not say.strip():
        return ExpectedTurn("", fault='a turn says something: "say" is missing or empty')
    fault = _fault(read)
    if fault:
        return ExpectedTurn(say, fault=fault)
    right = read.get("right")
    return ExpectedTurn(**{**read, "right": None if right is None else tuple(right)})


_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "where": str, "attributes": dict, "limit": int, "order": str, "row": int, "attribute": str, "column": str,
    "more": bool, "right": list, "text": bool,
}  # fmt: skip


def _fault(read: Mapping[str, Any]) -> str:
    """Say what is wrong with a turn that says something; "" where nothing is."""
    known = [each.name for each in fields(ExpectedTurn) if each.name != "fault"]
    for name, value in read.items():
        if name not in known:
            return f"unknown key {name!r}{suggest(name, known)}"
        if name in _TYPES and not isinstance(value, _TYPES[name]):
            return f"{name} is {json.dumps(value)[:60]}, of the wrong type"
    kind, expect = str(read.get("kind", "new")), str(read.get("expect", "some"))
    if kind not in _KINDS:
        return f"unknown kind {kind!r}{suggest(kind, _KINDS)}"
    if expect not in EXPECTED:
        return f"unknown expect {expect!r}{suggest(expect, EXPECTED)}"
    if (kind == "best" or expect == "top") and not str(read.get("order", "")).endswith((" ASC", " DESC")):
        return 'it asks for the first, and "order" does not say by which column, as in "rating DESC"'
    if kind == "compare" and not read.get("column"):
        return 'it compares, and "column" does not say what'
    if any(not isinstance(i, Id) for i in read.get("right", ())):
        return "right lists ids, which are whole numbers or texts"
    return ""
