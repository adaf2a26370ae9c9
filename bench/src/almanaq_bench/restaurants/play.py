"""Plays a conversation with a system and judges its turns by what was really shown before each."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, Protocol

from almanaq.errors import BenchmarkError
from almanaq.models.protocols import Usage
from almanaq_bench.restaurants.gold import Restaurants
from almanaq_bench.restaurants.wanted import Conversation, Id, Wanted
from almanaq_bench.stages import Stage

MOST = 3
"""Entities of a turn that are judged (paper, section 6.2.2)."""

Judged = Literal["entities", "count", "no data", "skipped", "unjudged", "broken"]


@dataclass(frozen=True, slots=True)
class Said:
    """What a system replied to a turn.

    Attributes:
        entities: ids of the restaurants that it gave as fulfilling what was asked.
        shown: ids of all rows that it showed, to which later turns may refer.
        figure: the number that it stated; None where its reply is no single number.
        searched: whether it looked for anything.
        query: as it was meant, where one of its conditions was left out.
        fault: why it failed; "" where it did not.
        warnings: of the query.
    """

    answer: str
    entities: tuple[Id, ...] = ()
    shown: tuple[Id, ...] = ()
    figure: int | None = None
    searched: bool = False
    query: str = ""
    fault: str = ""
    warnings: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)


class Dialogue(Protocol):
    """A system in one conversation. Raises ModelError or BudgetExceeded where no turn can succeed."""

    def say(self, words: str) -> Said: ...


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """What became of a turn.

    Attributes:
        judged: as what. "skipped" refers to rows that were never shown, "unjudged" has nothing to be judged by,
            "broken" cannot be read in its file.
        needs: "structured" or "combined".
        given, right: ids, or for a count the figures.
        fault: of the system or, where it is "broken", of the file.
        stage: what lost the right reply, "right" where nothing did; "" where none was judged.
    """

    say: str
    kind: str
    judged: Judged
    needs: str
    given: tuple[Id, ...] = ()
    right: tuple[Id, ...] = ()
    searched: bool = False
    query: str = ""
    answer: str = ""
    fault: str = ""
    stage: Stage | Literal[""] = ""

    @property
    def good(self) -> bool:
        """Whether nothing is wrong with the reply; for a search: all given are right, and some if any is."""
        if self.judged == "entities":
            return set(self.given) <= set(self.right) and (bool(self.given) or not self.right)
        if self.judged == "count":
            return self.given == self.right
        return not (self.judged == "no data" and self.searched)


FindStage = Callable[[Wanted, Said, TurnRecord], Stage]
"""Gives the stage that lost the right reply to a turn."""


def play(
    conversation: Conversation, dialogue: Dialogue, restaurants: Restaurants, find_stage: FindStage | None = None
) -> tuple[list[TurnRecord], Usage]:
    """Say every turn to a system, and give what became of each, with what it cost."""
    records: list[TurnRecord] = []
    usage = Usage()
    shown: list[Sequence[Id]] = []
    search: Wanted | None = None
    since = 0
    for turn in conversation.turns:
        if not turn.say or _impossible(turn, shown):
            records.append(_record(turn, "skipped" if turn.say else "broken", fault=turn.fault))
            continue
        turn_record = dialogue.say(turn.say)
        usage += turn_record.usage
        if turn.kind not in ("talk", "world", "count") and (turn.where is not None or turn.right is not None):
            search, since = turn, len(shown)
        elif turn.fault or not turn.judged:
            search = None  # what was meant is not known, nor what later turns go on from
        record = _judge(turn, turn_record, restaurants, shown, search, since)
        if find_stage is not None and record.judged in ("entities", "count", "no data"):
            record = replace(record, stage="right" if record.good else find_stage(turn, turn_record, record))
        records.append(record)
        if turn_record.shown and turn.kind != "count":
            shown.append(turn_record.shown)
    return records, usage


def to_text(records: Sequence[TurnRecord]) -> str:
    """Return the turns as JSON, the text of the task's reply."""
    return json.dumps([asdict(record) for record in records], ensure_ascii=False, separators=(",", ":"))


def from_text(text: str) -> list[TurnRecord]:
    """Return the turns of a reply's text. Raises BenchmarkError where it is none."""
    try:
        read: list[dict[str, Any]] = json.loads(text)
        return [TurnRecord(**{**each, "given": tuple(each["given"]), "right": tuple(each["right"])}) for each in read]
    except (ValueError, KeyError, TypeError) as error:
        raise BenchmarkError(f"a reply of the restaurants task holds no turns: {error}") from error


def _judge(
    turn: Wanted,
    said: Said,
    restaurants: Restaurants,
    shown: Sequence[Sequence[Id]],
    search: Wanted | None,
    since: int,
) -> TurnRecord:
    heard: Mapping[str, Any] = {
        "searched": said.searched, "query": said.query, "answer": said.answer, "fault": said.fault,
    }  # fmt: skip
    given = said.entities[:MOST]
    if turn.fault:
        return _record(turn, "broken", given=given, **{**heard, "fault": turn.fault})
    if turn.kind in ("talk", "world"):
        return _record(turn, "no data", given=given, **heard)
    follows = turn.kind in ("another", "compare")
    if turn.right is None and (not turn.judged or (follows and search is None)):
        return _record(turn, "unjudged", given=given, **heard)
    try:
        right = restaurants.right(turn, shown, search, since)
    except BenchmarkError as error:
        return _record(turn, "broken", given=given, **{**heard, "fault": str(error)})
    needs = search.needs if follows and search is not None else turn.needs
    if turn.expect == "count":
        figures = () if said.figure is None else (said.figure,)
        return _record(turn, "count", needs, given=figures, right=(len(right),), **heard)
    return _record(turn, "entities", needs, given=given, right=tuple(right), **heard)


def _record(turn: Wanted, judged: Judged, needs: str = "", **values: Any) -> TurnRecord:
    return TurnRecord(turn.say, turn.kind, judged, needs or turn.needs, **values)


def _impossible(turn: Wanted, shown: Sequence[Sequence[Id]]) -> bool:
    """Return whether a turn refers to rows that were never shown: the second of one."""
    if turn.kind not in ("another", "compare", "best", "detail") or turn.right is not None:
        return False
    longest = max((len(ids) for ids in shown), default=0)
    return not longest or (turn.kind == "detail" and abs(turn.row or 1) > longest)
