"""Boards: answers pinned together under a title, with texts between them; run again, or written as one HTML file.

A board lies in the store of answers, as one of the kind `board` that carries every column its server knew: it is given,
like an answer, only where all of them may be seen. What it shows of a pinned answer is judged by that answer's own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from almanaq.encode import clip
from almanaq.jobs import Emit, Job
from almanaq.web.problems import Failed, NotFound, Refused
from almanaq.web.records import all_columns, draw_kept
from almanaq.web.store import Answer, Columns, new_id

if TYPE_CHECKING:
    from almanaq.options import Options
    from almanaq.web.service import Service

_ROWS = 200
"""Rows of a pinned answer that a board shows."""
_RUN_ROWS = 10_000
_TITLE = 200


@dataclass(frozen=True, slots=True)
class Board:
    """A board as it is kept.

    Attributes:
        items: `{"text"}`, or `{"answer", "title", "suql", "chart"}`; a chart is one that a person chose.
        columns: those whose values its texts and titles may hold; None: every one that the server knows.
    """

    name: str
    title: str
    items: tuple[dict[str, Any], ...]
    made: float
    columns: Columns | None = None
    id: str = ""


class Boards:
    """The boards of a service's source."""

    def __init__(self, service: Service) -> None:
        self._service, self._store = service, service.store

    def describe_all(self) -> list[dict[str, Any]]:
        """Return name, title and number of items of each board, by name."""
        boards = sorted((_read(answer) for answer in self._kept()), key=lambda board: board.name)
        return [{"name": board.name, "title": board.title, "items": len(board.items)} for board in boards]

    def get(self, name: str) -> Board:
        """Return a board; raises NotFound."""
        found = self._find(name)
        if found is None:
            raise NotFound(f"there is no board {name!r}")
        return _read(found)

    def put(self, name: str, title: str, items: Sequence[dict[str, Any]]) -> None:
        """Keep a board in the place of the one of that name.

        Args:
            items: `{"text"}` or `{"answer", "title", "chart"}`; answers that are gone stay where the board has them.

        Raises:
            NotFound: an answer is not there.
        """
        found = self._find(name)
        before = () if found is None else _read(found).items
        known = {item["answer"]: item for item in before if "answer" in item}
        pinned = [item if "text" in item else self._pin(item, known) for item in items]
        self._write(Board(name, title, tuple(pinned), time.time()))

    def delete(self, name: str) -> None:
        """Delete a board; its answers stay. Raises NotFound."""
        self._store.remove_board(self.get(name).id)

    def record(self, board: Board) -> dict[str, Any]:
        """Return a board with its answers as a client gets it; of one that is gone the record is null."""
        items = [item if "text" in item else item | self._show(item) for item in board.items]
        return {"name": board.name, "title": board.title, "items": items}

    def run(self, name: str, asked: Options) -> Job:
        """Run the queries of a board again; each answer that succeeds takes the place of the one before.

        `failed` of the response holds the problems by the place of their item; those keep their rows and time.
        """

        def work(emit: Emit) -> dict[str, Any]:
            def report(name: str, data: dict[str, Any]) -> None:
                if name == "progress":
                    emit(name, data)

            board, left, failed = self.get(name), asked.max_calls, {}
            items = list(board.items)
            for place, item in enumerate(items):
                if not item.get("suql"):
                    continue
                emit("progress", {"message": f"running “{item['title']}”", "done": place, "total": len(items)})
                options = replace(asked, max_calls=left)
                try:
                    record = self._service.sql(item["suql"], (), _RUN_ROWS, None, options).work(report)
                except Failed as failure:
                    failed[str(place)] = failure.problem
                    continue
                left = None if left is None else max(0, left - record["trace"]["text_calls"])
                if record["id"] is None:
                    raise Refused(503, record["not_kept"])
                items[place] = item | {"answer": record["id"]}
            done = replace(board, items=tuple(items), made=time.time())
            self._write(done)
            return self.record(done) | {"failed": failed}

        return self._service.job(work, asked)

    def _pin(self, item: dict[str, Any], known: dict[str, dict[str, Any]]) -> dict[str, Any]:
        id = item["answer"]
        answer = self._store.get(id)
        if answer is None and id not in known:
            raise NotFound("no such answer (any more): it cannot be pinned")
        pinned = dict(known.get(id) or {"answer": id})
        if answer is not None:
            pinned = {"answer": id, "title": clip(answer.title, _TITLE), "suql": answer.record.get("suql")}
        pinned.pop("chart", None)
        return pinned | {name: each for name, each in item.items() if each}

    def _show(self, item: dict[str, Any]) -> dict[str, Any]:
        answer = self._store.get(item["answer"])
        if answer is None:
            return {"record": None, "made": None}
        record = answer.record
        rows = record.get("rows", [])[:_ROWS]
        cut = {"rows": rows, "evidence": record.get("evidence", [])[:_ROWS]}
        if item.get("chart"):
            with suppress(Refused):  # new rows may make another chart only
                cut["chart"] = draw_kept(answer, **item["chart"])
        truncated = bool(record.get("truncated")) or len(rows) < len(record.get("rows", []))
        return {"record": record | cut | {"truncated": truncated}, "made": answer.made}

    def _kept(self) -> Iterator[Answer]:
        found = map(self._store.get, self._store.random_ids("board"))
        return (answer for answer in found if answer is not None)

    def _find(self, name: str) -> Answer | None:
        return next((answer for answer in self._kept() if answer.asked == name), None)

    def _write(self, board: Board) -> None:
        record = {"title": board.title, "items": list(board.items)}
        connection = self._service.connection
        columns, model = board.columns or all_columns(connection), connection.models.name
        answer = Answer(new_id(), "", "board", board.name, model, record, made=board.made, columns=columns)
        pinned = [item["answer"] for item in board.items if "answer" in item]
        with self._store.writing():
            if (before := self._find(board.name)) is not None:
                self._store.remove_board(before.id)
            self._store.pin(answer.id, pinned)  # before there must be room: what is pinned stays
            self._store.put(answer, {})


def _read(answer: Answer) -> Board:
    items = tuple(answer.record["items"])
    return Board(answer.asked, answer.record["title"], items, answer.made, answer.columns, answer.id)
