"""Boards: answers pinned together under a title, with texts between them; run again, or written as one HTML file.

A board lies in the store of answers, as one of the kind `board` that carries every column its server knew: it is given,
like an answer, only where all of them may be seen. What it shows of a pinned answer is judged by that answer's own. Its
`asked` is its name; its record holds its title and its items: `{"text"}` or `{"answer", "title", "suql", "chart"}`, the
chart one that a person chose.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from almanaq.encode import clip
from almanaq.jobs import Emit, Job
from almanaq.options import Options
from almanaq.web.problems import Failed, NotFound, Refused
from almanaq.web.records import all_columns, draw_kept
from almanaq.web.service import Service
from almanaq.web.store import Answer, Columns, new_id

_ROWS = 200
"""Rows of a pinned answer that a board shows."""
_RUN_ROWS = 10_000
_TITLE = 200


class Boards:
    """The boards of a service's source."""

    def __init__(self, service: Service) -> None:
        self._service, self._store = service, service.store

    def describe_all(self) -> list[dict[str, Any]]:
        """Return name, title and number of items of each board, by name."""
        boards = sorted(self._kept(), key=lambda board: board.asked)
        return [{"name": each.asked, **each.record, "items": len(each.record["items"])} for each in boards]

    def get(self, name: str) -> Answer:
        """Return a board; raises NotFound."""
        found = self._find(name)
        if found is None:
            raise NotFound(f"there is no board {name!r}")
        return found

    def put(self, name: str, title: str, items: Sequence[dict[str, Any]]) -> None:
        """Keep a board in the place of the one of that name.

        Args:
            items: `{"text"}` or `{"answer", "title", "chart"}`; answers that are gone stay where the board has them.

        Raises:
            NotFound: an answer is not there.
        """
        found = self._find(name)
        before = () if found is None else found.record["items"]
        known = {item["answer"]: item for item in before if "answer" in item}
        self._write(name, title, [item if "text" in item else self._pin(item, known) for item in items])

    def delete(self, name: str) -> None:
        """Delete a board; its answers stay. Raises NotFound."""
        self._store.remove_board(self.get(name).id)

    def record(self, board: Answer) -> dict[str, Any]:
        """Return a board with its answers as a client gets it; of one that is gone the record is null."""
        items = [item if "text" in item else item | self._show(item) for item in board.record["items"]]
        return {"name": board.asked, "title": board.record["title"], "items": items}

    def run(self, name: str, asked: Options) -> Job:
        """Run the queries of a board again; each answer that succeeds takes the place of the one before.

        `failed` of the response holds the problems by the place of their item; those keep their rows and time.
        """

        def work(emit: Emit) -> dict[str, Any]:
            def report(name: str, data: dict[str, Any]) -> None:
                if name == "progress":
                    emit(name, data)

            board, left, failed = self.get(name), asked.max_calls, {}
            items = list(board.record["items"])
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
            return self.record(self._write(name, board.record["title"], items, board.columns)) | {"failed": failed}

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

    def _write(self, name: str, title: str, items: list[dict[str, Any]], columns: Columns | None = None) -> Answer:
        """Keep a board; `columns`: those whose values its words may hold, None: every one that the server knows."""
        connection, record = self._service.connection, {"title": title, "items": items}
        columns, model = columns or all_columns(connection), connection.models.name
        board = Answer(new_id(), "", "board", name, model, record, columns=columns)
        with self._store.writing():
            if (before := self._find(name)) is not None:
                self._store.remove_board(before.id)
            pinned = [item["answer"] for item in items if "answer" in item]
            self._store.pin(board.id, pinned)  # before there must be room: what is pinned stays
            self._store.put(board, {})
        return board
