"""Conversations played turn by turn, judged, measured, and the stage that lost each wrong one."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Protocol

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from almanaq.connection import Connection, connect
from almanaq.errors import AlmanaqError, BenchmarkError, QueryError
from almanaq.models.protocols import Usage
from almanaq_bench.restaurants.dataset import RestaurantsData
from almanaq_bench.restaurants.gold import Restaurants
from almanaq_bench.restaurants.wanted import COMBINED, STRUCTURED, Conversation, ExpectedTurn, Id
from almanaq_bench.stages import STAGES, Stage, cell_condition, count_stages, failed_casts, reads_texts

MOST = 3
"""Entities of a turn that are judged (paper, section 6.2.2)."""

Judged = Literal["entities", "count", "no data", "skipped", "unjudged", "broken"]


@dataclass(frozen=True, slots=True)
class TurnReply:
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

    def say(self, words: str) -> TurnReply: ...


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


FindStage = Callable[[ExpectedTurn, TurnReply, TurnRecord], Stage]
"""Gives the stage that lost the right reply to a turn."""


def play(
    conversation: Conversation, dialogue: Dialogue, restaurants: Restaurants, find_stage: FindStage | None = None
) -> tuple[list[TurnRecord], Usage]:
    """Say every turn to a system, and give what became of each, with what it cost."""
    records: list[TurnRecord] = []
    usage = Usage()
    shown: list[Sequence[Id]] = []
    search: ExpectedTurn | None = None
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
    turn: ExpectedTurn,
    said: TurnReply,
    restaurants: Restaurants,
    shown: Sequence[Sequence[Id]],
    search: ExpectedTurn | None,
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


def _record(turn: ExpectedTurn, judged: Judged, needs: str = "", **values: Any) -> TurnRecord:
    return TurnRecord(turn.say, turn.kind, judged, needs or turn.needs, **values)


def _impossible(turn: ExpectedTurn, shown: Sequence[Sequence[Id]]) -> bool:
    """Return whether a turn refers to rows that were never shown: the second of one."""
    if turn.kind not in ("another", "compare", "best", "detail") or turn.right is not None:
        return False
    longest = max((len(ids) for ids in shown), default=0)
    return not longest or (turn.kind == "detail" and abs(turn.row or 1) > longest)


NOTE = (
    "turn_accuracy: right restaurants / restaurants given, at most 3 of a turn; "
    "false_negatives: turns that gave none though some are right / turns that search"
)


def score_turns(turns: Sequence[TurnRecord]) -> dict[str, float]:
    """Return the measures; one that has nothing to be measured on is left out."""
    found = _searches(turns, "")
    for needs in (STRUCTURED, COMBINED):
        found |= _searches([turn for turn in turns if turn.needs == needs], f"_{needs}")
    for name, judged in (("count_accuracy", "count"), ("declined", "no data")):
        chosen = [turn for turn in turns if turn.judged == judged]
        if chosen:
            found[name] = sum(turn.good for turn in chosen) / len(chosen)
    found["turns"] = len(turns)
    for judged in ("skipped", "unjudged", "broken"):
        found[f"{judged}_turns"] = sum(turn.judged == judged for turn in turns)
    found["failed_turns"] = sum(bool(turn.fault) and turn.judged != "broken" for turn in turns)
    return {**found, **count_stages(turn.stage for turn in turns)}


def hits(turns: Sequence[TurnRecord]) -> tuple[int, int]:
    """Return how many entities were right, and how many were given."""
    searches = [turn for turn in turns if turn.judged == "entities"]
    return sum(i in turn.right for turn in searches for i in turn.given), sum(len(turn.given) for turn in searches)


def _searches(turns: Sequence[TurnRecord], ending: str) -> dict[str, float]:
    searches = [turn for turn in turns if turn.judged == "entities"]
    right, given = hits(turns)
    found: dict[str, float] = {f"turn_accuracy{ending}": right / given} if given else {}
    if searches:
        empty = sum(not turn.given and bool(turn.right) for turn in searches)
        found[f"false_negatives{ending}"] = empty / len(searches)
    return found | {f"entities{ending}": given, f"search_turns{ending}": len(searches)}


def nearest_stage(turn: ExpectedTurn, said: TurnReply, record: TurnRecord) -> Stage:  # noqa: ARG001
    """Return the stage that lost a turn of the baseline: no query was written, or other rows were nearer to it."""
    if record.judged == "no data":
        return "parse"
    return "format" if record.judged == "count" else "retrieval" if said.query else "parse"


class Analysis:
    """Tells what lost the turns of a system that writes SUQL.

    - parse: no query was accepted; nothing was to be searched; or its conditions are not about all columns that are
      meant, or none is about texts where one is meant.
    - link: they are about the same columns, and leave out right rows or let wrong ones through.
    - text call: they let right rows through, and what was asked of the texts, or read there, lost them or kept wrong
      ones.
    - cast: the same, where an answer could not be read as the type that the query asks for.
    - format: the rows are none of restaurants, or no single number where one is asked for.
    """

    def __init__(self, data: RestaurantsData) -> None:
        self._data, self._lock = data, threading.Lock()

    def find_stage(self, turn: ExpectedTurn, said: TurnReply, record: TurnRecord) -> Stage:
        """Return the first stage that lost a turn, which is wrong."""
        if record.judged == "no data" or not said.query:
            return "parse"
        if said.fault:
            return "text call" if self._binds(said.query) else "parse"
        tree = _parse_query(said.query)
        passed = None if tree is None else self._passing_rows(tree)
        if tree is None:
            return "parse"
        if record.judged == "count":
            return self._of_count(turn, said, tree, passed)
        if not record.given:
            return self._of_empty(turn, said, record, tree, passed)
        wrong = [self._of_wrong(turn, row, tree) for row in record.given if row not in record.right]
        return min(wrong, key=STAGES.index, default="format")

    def _of_empty(
        self, turn: ExpectedTurn, said: TurnReply, record: TurnRecord, tree: exp.Expr, passed: frozenset[Id] | None
    ) -> Stage:
        if passed is not None and not passed & set(record.right):
            return _same_columns(turn, tree)
        if not reads_texts(tree):
            return "format" if tree.find(exp.AggFunc, exp.Group) is not None else "parse"
        return "cast" if failed_casts(said.warnings) else "text call"

    def _of_count(self, turn: ExpectedTurn, said: TurnReply, tree: exp.Expr, passed: frozenset[Id] | None) -> Stage:
        if said.figure is None:
            return "format"
        if turn.attributes and not reads_texts(tree):
            return "parse"
        meant = self._meant(turn)
        if passed is not None and meant is not None and passed != meant:
            return _same_columns(turn, tree)
        if not reads_texts(tree):
            return "parse"
        return "cast" if failed_casts(said.warnings) else "text call"

    def _of_wrong(self, turn: ExpectedTurn, row: Id, tree: exp.Expr) -> Stage:
        """Return the stage that let a wrong row through."""
        meant = self._meant(turn)
        if meant is None:
            return "text call" if turn.needs == COMBINED and reads_texts(tree) else "parse"
        if row not in meant:
            return _same_columns(turn, tree)
        return "text call" if reads_texts(tree) else "parse"

    def _meant(self, turn: ExpectedTurn) -> frozenset[Id] | None:
        """Return the rows that meet what a turn says of columns; None where it says that by other turns or by rows."""
        if turn.where is None:
            return None
        try:
            return frozenset(self._data.restaurants.holding(turn.where, {}))
        except BenchmarkError:
            return None

    def _passing_rows(self, tree: exp.Expr) -> frozenset[Id] | None:
        """Return the rows that meet a query's conditions on columns; None where these cannot be told apart."""
        condition = cell_condition(tree)
        if condition is None:
            return None
        key = exp.column(self._data.restaurants.key, quoted=True)
        relation = self._connection.catalog.relations[0].name
        query = exp.select(key).from_(exp.to_table(relation)).where(condition).sql("duckdb")
        try:
            with self._lock:
                return frozenset(row[0] for row in self._connection.sql(query).rows)
        except AlmanaqError:
            return None

    def _binds(self, query: str) -> bool:
        try:
            with self._lock:
                self._connection.explain(query)
        except QueryError:
            return False
        return True

    @cached_property
    def _connection(self) -> Connection:
        return connect(self._data.source(), model="local", embedder="lexical")


def _parse_query(query: str) -> exp.Expr | None:
    try:
        return sqlglot.parse_one(query, read="duckdb")
    except SqlglotError:
        return None


def _same_columns(turn: ExpectedTurn, tree: exp.Expr) -> Stage:
    """Return "link" where a query's conditions are about all columns that a turn is about, else "parse"."""
    condition = cell_condition(tree)
    meant = _parse_query(f"SELECT 1 FROM restaurants WHERE {turn.where or 'TRUE'}")
    if turn.where is None or condition is None or meant is None:
        return "parse"
    columns = {column.name for column in condition.find_all(exp.Column)}
    return "link" if {column.name for column in meant.find_all(exp.Column)} <= columns else "parse"
