"""AnswerStore: what was answered, so that a link shows it again and costs nothing; an SQLite file of its owner's alone.

Of several servers over one file each sees the answers over its own source. When the file is full the oldest answers
give way, those that somebody judged last.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from almanaq.agent.history import Turn
from almanaq.errors import SourceError
from almanaq.models.own_sqlite import UNUSABLE, open_sqlite
from almanaq.suql.execution.cited import Place
from almanaq.web.answers import Answer, turn_from_json, turn_to_json

VERSION = 1
MOST_BYTES = 512_000_000
_CELLS_AT_ONCE = 500
_SCHEMA = """
CREATE TABLE IF NOT EXISTS answer (
  id TEXT PRIMARY KEY, source TEXT NOT NULL, conversation TEXT NOT NULL, kind TEXT NOT NULL, asked TEXT NOT NULL,
  model TEXT NOT NULL, made REAL NOT NULL, record BLOB NOT NULL, rows BLOB, turn TEXT, bytes INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS answer_conversation ON answer (conversation);
CREATE TABLE IF NOT EXISTS cell (
  answer TEXT NOT NULL, relation TEXT NOT NULL, key TEXT NOT NULL, column TEXT NOT NULL, passage INTEGER NOT NULL,
  text BLOB NOT NULL, PRIMARY KEY (answer, relation, key, column, passage)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS cell_place ON cell (relation, key, column, passage);
CREATE TABLE IF NOT EXISTS verdict (
  answer TEXT NOT NULL, about TEXT NOT NULL, verdict TEXT NOT NULL, body TEXT NOT NULL, made REAL NOT NULL,
  PRIMARY KEY (answer, about)) WITHOUT ROWID;
"""
_FOUND = "id, conversation, kind, asked, model, record, rows, turn, made"


class AnswerStore:
    """Answers, the texts that their quotes stand in, and what people said of them.

    Args:
        file: made where it does not exist; None keeps everything in memory, for as long as the object lives.
        source: whose answers they are.
        most_bytes: what the answers may take in all.
    """

    def __init__(self, file: Path | None, source: str, *, most_bytes: int = MOST_BYTES) -> None:
        self.file, self.source, self._most = file, source, most_bytes
        self._lock = threading.RLock()
        try:
            self._connection = open_sqlite(file, _SCHEMA, VERSION)
        except (OSError, *UNUSABLE) as problem:
            raise _unusable(file, problem) from problem
        held = self._connection.execute("SELECT coalesce(sum(bytes), 0) FROM answer").fetchone()
        self._held = int(held[0])

    def put(self, answer: Answer, texts: Mapping[Place, str]) -> None:
        """Keep an answer with the texts that its quotes stand in."""
        record = _packed(json.dumps(answer.record, ensure_ascii=False))
        turn = None if answer.turn is None else json.dumps(turn_to_json(answer.turn), ensure_ascii=False)
        cells = [(answer.id, *place, _packed(text)) for place, text in texts.items()]
        size = len(record) + len(answer.rows or b"") + len(turn or "") + sum(len(cell[-1]) for cell in cells)
        values = (answer.id, self.source, answer.conversation, answer.kind, answer.asked, answer.model, answer.made)
        with self.writing() as connection:
            marks = ", ".join("?" * 11)
            connection.execute(f"INSERT INTO answer VALUES ({marks})", (*values, record, answer.rows, turn, size))
            for start in range(0, len(cells), _CELLS_AT_ONCE):
                part = cells[start : start + _CELLS_AT_ONCE]
                marks = ", ".join("(?, ?, ?, ?, ?, ?)" for _ in part)
                connection.execute(f"INSERT OR REPLACE INTO cell VALUES {marks}", tuple(chain(*part)))
            self._held += size
            if self._held > self._most:
                self._make_room(connection, answer.id)

    def get(self, id: str) -> Answer | None:
        """Return an answer over this source; None where it is not, or no longer, there."""
        found = self._read(f"SELECT {_FOUND} FROM answer WHERE id = ? AND source = ?", (id, self.source))
        return _answer(found[0]) if found else None

    def conversation(self, id: str) -> list[Answer]:
        """Return the answers of a conversation, the oldest first."""
        wanted = f"SELECT {_FOUND} FROM answer WHERE conversation = ? AND source = ? ORDER BY made, rowid"
        return [_answer(row) for row in self._read(wanted, (id, self.source))]

    def turns(self, conversation: str) -> tuple[Turn, ...]:
        """Return what a conversation remembers, the oldest turn first."""
        wanted = (
            "SELECT turn FROM answer WHERE conversation = ? AND source = ? AND turn IS NOT NULL ORDER BY made, rowid"
        )
        return tuple(turn_from_json(json.loads(row[0])) for row in self._read(wanted, (conversation, self.source)))

    def forget(self, conversation: str) -> bool:
        """Delete a conversation with all its answers; False where there is none."""
        with self.writing() as connection:
            found = connection.execute(
                "SELECT id FROM answer WHERE conversation = ? AND source = ?", (conversation, self.source)
            ).fetchall()
            self._delete(connection, [row[0] for row in found])
        return bool(found)

    def cell(self, place: Place, answer: str | None = None) -> tuple[str, list[dict[str, int]]] | None:
        """Return a text that evidence points at, and where the quotes in it are, in UTF-16 units.

        Args:
            answer: whose text and quotes are wanted, as the row may have changed; None: those of the last.
        """
        named = "" if answer is None else " AND cell.answer = ?"
        found = self._read(
            "SELECT cell.answer, cell.text, answer.record FROM cell JOIN answer ON answer.id = cell.answer"
            " WHERE relation = ? AND key = ? AND column = ? AND passage = ? AND answer.source = ?"
            f"{named} ORDER BY answer.made DESC LIMIT 1",
            (*place, self.source, *(() if answer is None else (answer,))),
        )
        if not found:
            return None
        return _unpacked(found[0][1]), spans(json.loads(_unpacked(found[0][2])), place)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Give the connection for a change that is made whole or not at all."""
        with self._lock:
            try:
                with self._connection:
                    yield self._connection
            except UNUSABLE as problem:
                raise _unusable(self.file, problem) from problem

    def _read(self, sql: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        with self._lock:
            try:
                return self._connection.execute(sql, values).fetchall()
            except UNUSABLE as problem:
                raise _unusable(self.file, problem) from problem

    read = _read

    def _make_room(self, connection: sqlite3.Connection, newest: str) -> None:
        """Delete the oldest answers until the others fit; never the one that has just come."""
        found = connection.execute(
            "SELECT id FROM answer WHERE id <> ? ORDER BY id IN (SELECT answer FROM verdict), made", (newest,)
        )
        while self._held > self._most and (oldest := found.fetchone()) is not None:
            self._delete(connection, [oldest[0]])

    def _delete(self, connection: sqlite3.Connection, ids: list[str]) -> None:
        for id in ids:
            size = connection.execute("SELECT bytes FROM answer WHERE id = ?", (id,)).fetchone()
            self._held -= int(size[0]) if size else 0
            connection.execute("DELETE FROM answer WHERE id = ?", (id,))
            connection.execute("DELETE FROM cell WHERE answer = ?", (id,))
            connection.execute("DELETE FROM verdict WHERE answer = ?", (id,))


def spans(record: Mapping[str, Any], place: Place) -> list[dict[str, int]]:
    """Return where the quotes of a record stand in one text, in order, each once."""
    relation, key, column, passage = place
    rows = record.get("evidence") or [each["evidence"] for each in record.get("conditions", ())]
    found = {
        (each["start"], each["start"] + len(each["quote"].encode("utf-16-le", "surrogatepass")) // 2)
        for row in rows
        for each in row
        if (each["relation"], each["key"], each["column"], each["passage"]) == (relation, key, column, passage)
    }
    return [{"start": start, "end": end} for start, end in sorted(found)]


def _answer(row: tuple[Any, ...]) -> Answer:
    id, conversation, kind, asked, model, record, rows, turn, made = row
    known = None if turn is None else turn_from_json(json.loads(turn))
    return Answer(id, conversation, kind, asked, model, json.loads(_unpacked(record)), rows, known, made)


def _packed(text: str) -> bytes:
    return zlib.compress(text.encode("utf-8", "surrogatepass"), 1)


def _unpacked(kept: bytes) -> str:
    return zlib.decompress(kept).decode("utf-8", "surrogatepass")


def _unusable(file: Path | None, problem: Exception) -> SourceError:
    return SourceError(
        f"the store of answers {file} cannot be used ({problem}): delete it, set ALMANAQ_CACHE_DIR to another folder,"
        " or start with --no-store"
    )
