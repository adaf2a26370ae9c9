"""AnswerStore: what was answered, so that a link shows it again and costs nothing; an SQLite file of its owner's alone.

Servers over one source share it, although their clients may see different columns: each answer carries the columns that
it shows, and is given only where all of them may be seen at that moment. Every record has a checksum, and every list a
count of what belongs to it: what was damaged is refused, never given. When the file is full the oldest answers give
way, boards and those that somebody judged or pinned last.
"""

from __future__ import annotations

import hashlib
import io
import json
import secrets
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from almanaq.agent.history import Shown, Turn
from almanaq.encode import plain
from almanaq.errors import SourceError
from almanaq.models.private_files import UNUSABLE, open_sqlite
from almanaq.suql.execution.evidence import Place
from almanaq.web.problems import NotFound

Columns = frozenset[tuple[str, str]]
"""Columns of a source: (relation, column)."""
MOST_ROWS_BYTES = 256_000_000
MOST_KEPT_BYTES = 64_000_000
"""What the rows of one answer may take: in memory, where they are read again, and where they are kept."""


@dataclass(frozen=True)
class Answer:
    """One answer.

    Attributes:
        kind: `ask`, or `sql` for a query that somebody wrote.
        asked: the question, or the query.
        record: as it was given to the client.
        rows: all rows, as Parquet; None where no query ran.
        turn: what its conversation remembers; None of a query.
        made: seconds since 1970.
        columns: those whose values any part of it may show; None: not known.
    """

    id: str
    conversation: str
    kind: str
    asked: str
    model: str
    record: dict[str, Any]
    rows: bytes | None = None
    turn: Turn | None = None
    made: float = field(default_factory=time.time)
    columns: Columns | None = None

    @property
    def title(self) -> str:
        """What was asked; of an edited query what was changed, and the question before."""
        of = self.record.get("of") or {}
        return f"{of['title']}: {of['question']}" if of.get("question") else self.asked

    @property
    def rows_missing(self) -> bool:
        """Whether fewer rows are kept than there were: `rows_kept` of the record says how many."""
        return "rows_kept" in self.record


def new_id() -> str:
    """Return an identifier that cannot be guessed: the link alone lets one read the answer."""
    return secrets.token_urlsafe(12)


def turn_to_json(turn: Turn) -> dict[str, Any]:
    """Return a turn as plain values."""
    return asdict(turn)


def turn_from_json(kept: dict[str, Any]) -> Turn:
    """Return the turn that `turn_to_json` wrote."""
    shown = kept["shown"]
    if shown is not None:
        keys = tuple(tuple(key) for key in shown["keys"])
        values = tuple(tuple(map(tuple, row)) for row in shown.get("values", ()))
        shown = Shown(shown["relation"], tuple(shown["columns"]), keys, tuple(shown["names"]), values)
    entities = tuple((name, value) for name, value in kept["entities"])
    lists = {name: tuple(kept.get(name, ())) for name in ("offered", "marks")}
    lists["values"] = tuple(tuple(map(tuple, row)) for row in kept.get("values", ()))
    return replace(Turn(kept["question"]), **{**kept, "entities": entities, "shown": shown, **lists})


def pack_rows(table: pa.Table) -> tuple[bytes, int]:
    """Return rows as Parquet, and how many they are: fewer than there were where all would take too much.

    Types that Parquet lacks become text.
    """
    for number, one in enumerate(table.schema):
        if one.type == pa.month_day_nano_interval() or pa.types.is_duration(one.type):
            texts = pa.array([plain(value) for value in table.column(number).to_pylist()], pa.string())
            table = table.set_column(number, one.name, texts)
    while (table.nbytes > MOST_ROWS_BYTES or len(data := write_parquet(table)) > MOST_KEPT_BYTES) and table.num_rows:
        table = table.slice(0, table.num_rows // 2)
    return data, table.num_rows


def write_parquet(table: pa.Table) -> bytes:
    """Return a table as Parquet."""
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def read_parquet(rows: bytes) -> pa.Table:
    """Return the rows that `pack_rows` wrote."""
    import pyarrow.parquet as pq

    return pq.read_table(io.BytesIO(rows))


VERSION = 2
MOST_BYTES = 512_000_000
_SCHEMA = """
CREATE TABLE IF NOT EXISTS answer (
  id TEXT PRIMARY KEY, source TEXT NOT NULL, conversation TEXT NOT NULL, kind TEXT NOT NULL, made REAL NOT NULL,
  columns TEXT NOT NULL, body BLOB NOT NULL, sum BLOB NOT NULL, rows BLOB, rows_sum BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS answer_conversation ON answer (source, conversation, made);
CREATE INDEX IF NOT EXISTS answer_made ON answer (made);
CREATE TABLE IF NOT EXISTS cell (
  answer TEXT NOT NULL, relation TEXT NOT NULL, key TEXT NOT NULL, column TEXT NOT NULL, passage INTEGER NOT NULL,
  text BLOB NOT NULL, sum BLOB NOT NULL, PRIMARY KEY (answer, relation, key, column, passage)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS cell_place ON cell (relation, key, column, passage);
CREATE TABLE IF NOT EXISTS verdict (
  answer TEXT NOT NULL, about TEXT NOT NULL, body BLOB NOT NULL, made REAL NOT NULL, sum BLOB NOT NULL,
  PRIMARY KEY (answer, about)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS pin (board TEXT NOT NULL, answer TEXT NOT NULL, PRIMARY KEY (board, answer)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tally (list TEXT PRIMARY KEY, count INTEGER NOT NULL, sum BLOB NOT NULL) WITHOUT ROWID;
"""
_HEAD = "id, source, conversation, kind, made, columns, body, sum"
Sees = Callable[[Columns | None], bool]
"""Returns whether the reader may see values of these columns; None: columns that are not known."""


class AnswerStore:
    """Answers, the texts that their quotes stand in, and what people said of them.

    Args:
        file: made where it does not exist; None keeps everything in memory, for as long as the object lives.
        source: whose answers they are.
        most_bytes: what all of it may take in the file.
        sees: what its readers may see, asked whenever something is read; None: everything.
    """

    def __init__(
        self, file: Path | None, source: str, *, most_bytes: int = MOST_BYTES, sees: Sees | None = None
    ) -> None:
        self.file, self.source, self._most = file, source, most_bytes
        self.sees = sees or (lambda _: True)
        self._lock = threading.RLock()
        try:
            self._connection = open_sqlite(file, _SCHEMA, VERSION)
            # What is deleted is written over, not only let go.
            self._connection.execute("PRAGMA secure_delete = ON")
            self._page = int(self._connection.execute("PRAGMA page_size").fetchone()[0])
        except (OSError, *UNUSABLE) as problem:
            raise self._unusable(problem) from problem

    def of_source(self, source: str, sees: Sees) -> AnswerStore:
        """Return a store in the same file, or in memory of its own, for other readers."""
        return AnswerStore(self.file, source, most_bytes=self._most, sees=sees)

    def put(self, answer: Answer, texts: Mapping[Place, str], *, goes_on: bool = False) -> None:
        """Keep an answer with the texts that its quotes stand in.

        Args:
            goes_on: its conversation has begun before, and must be there still.

        Raises:
            NotFound: the conversation was deleted in the meantime; SourceError: the answer cannot be kept.
        """
        body = {
            "asked": answer.asked,
            "model": answer.model,
            "record": answer.record,
            "turn": None if answer.turn is None else turn_to_json(answer.turn),
        }
        columns = columns_to_text(answer.columns)
        head = (answer.id, self.source, answer.conversation, answer.kind, float(answer.made), columns, pack(body))
        sums = checksum(*head), checksum(answer.id, answer.rows)
        cells = [(answer.id, *place, pack(text)) for place, text in texts.items()]
        turns = self._turns(answer.conversation)
        with self.writing() as connection:
            if goes_on and not self.count(turns):
                raise NotFound("the conversation was deleted in the meantime")
            values = (*head, sums[0], answer.rows, sums[1])
            connection.execute("INSERT INTO answer VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
            connection.executemany(
                "INSERT INTO cell VALUES (?, ?, ?, ?, ?, ?, ?)", ((*cell, checksum(*cell)) for cell in cells)
            )
            if answer.conversation:
                self.add(turns, 1)
            self.make_room(keeping=answer.id)

    def get(self, id: str) -> Answer | None:
        """Return an answer over this source; None where it is not, or no longer, there, or may not be seen."""
        head = self._head(id)
        if head is None:
            return None
        found = self.read("SELECT id, rows, rows_sum FROM answer WHERE id = ?", (id,))
        if not found:
            return None
        self.check(found[0][2], id, found[0][1])
        return _read_answer(head, found[0][1])

    def shows(self, id: str, *, is_there: bool = False) -> bool:
        """Return whether an answer is there and may be seen.

        Args:
            is_there: something else that is kept belongs to it: where it is not found, the store is damaged.
        """
        if is_there and not self.read("SELECT 1 FROM answer WHERE id = ?", (id,)):
            raise self._unusable("some of its records are missing")
        return self._head(id) is not None

    def columns(self, id: str) -> Columns | None:
        """Return the columns that an answer carries; None where nobody knows them."""
        head = self._head(id)
        return None if head is None else columns_from_text(head[5])

    def random_ids(self, kind: str) -> list[str]:
        """Return the answers of a kind in a random order."""
        wanted = "SELECT id FROM answer WHERE source = ? AND kind = ? ORDER BY random()"
        return [row[0] for row in self.read(wanted, (self.source, kind))]

    def conversation(self, id: str) -> list[Answer]:
        """Return the answers of a conversation without rows, the oldest first; [] where one may not be seen."""
        with self._lock:
            found = self.read(
                f"SELECT {_HEAD} FROM answer WHERE source = ? AND conversation = ? ORDER BY made, rowid",
                (self.source, id),
            )
            self.expect(self._turns(id), sum(row[2] == id for row in found))
        seen = [head for row in found if (head := self._check_head(row)) is not None]
        return [_read_answer(head, None) for head in seen] if len(seen) == len(found) else []

    def has_conversation(self, id: str) -> bool:
        """Return whether a conversation is kept, also one that may not be seen."""
        return self.count(self._turns(id)) > 0

    def turns(self, conversation: str) -> tuple[Turn, ...]:
        """Return what a conversation remembers, the oldest turn first."""
        return tuple(answer.turn for answer in self.conversation(conversation) if answer.turn is not None)

    def forget(self, conversation: str) -> bool:
        """Delete a conversation with all its answers; False where there is none that may be seen."""
        with self.writing() as connection:
            found = self.conversation(conversation)
            for answer in found:
                self._delete(connection, answer.id, conversation)
        if found:  # write it over in the log of changes too; where somebody reads just now, the next time
            self.read("PRAGMA wal_checkpoint(TRUNCATE)", ())
        return bool(found)

    def pin(self, board: str, answers: Iterable[str]) -> None:
        """Keep answers for as long as others give way, because a board shows them."""
        with self.writing() as connection:
            connection.executemany("INSERT OR IGNORE INTO pin VALUES (?, ?)", ((board, id) for id in answers))

    def remove_board(self, id: str) -> None:
        """Delete a board, and let its answers give way like others."""
        with self.writing() as connection:
            self._delete(connection, id, "")

    def cell(self, place: Place, answer: str | None = None) -> tuple[str, list[dict[str, int]]] | None:
        """Return a text that evidence points at, and where the quotes in it are, in UTF-16 units.

        Args:
            answer: whose text and quotes are wanted, as the row may have changed; None: those of the last.
        """
        named = "" if answer is None else " AND answer = ?"
        found = self.read(
            "SELECT cell.answer, relation, key, column, passage, text, cell.sum FROM cell JOIN answer ON id = answer"
            f" WHERE relation = ? AND key = ? AND column = ? AND passage = ?{named} ORDER BY made DESC",
            (*place, *(() if answer is None else (answer,))),
        )
        for *head, sum_ in found:
            self.check(sum_, *head)
            if tuple(head[1:5]) != tuple(place):
                raise self._unusable("one of its lists is damaged")
            cited = self.get(head[0]) if self.shows(head[0], is_there=True) else None
            if cited is not None:
                return str(unpack(head[5])), find_spans(cited.record, place)
        return None

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    # --- for what else is kept of answers -----------------------------------------------------------------------------

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Give the connection for a change that is made whole or not at all."""
        with self._lock:
            try:
                if self._connection.in_transaction:
                    yield self._connection
                    return
                with self._connection:
                    self._connection.execute("BEGIN IMMEDIATE")
                    yield self._connection
            except UNUSABLE as problem:
                raise self._unusable(problem) from problem

    def read(self, sql: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """Return the rows of a SELECT."""
        with self._lock:
            try:
                return self._connection.execute(sql, values).fetchall()
            except UNUSABLE as problem:
                raise self._unusable(problem) from problem

    def check(self, sum_: object, *parts: object) -> None:
        """Raise SourceError for a record that is not the one that was written."""
        if sum_ != checksum(*parts):
            raise self._unusable("one of its records was damaged")

    def count(self, list_: str) -> int:
        """Return how many records belong to a list."""
        found = self.read("SELECT list, count, sum FROM tally WHERE list = ?", (list_,))
        if not found:
            return 0
        self.check(found[0][2], list_, found[0][1])
        return int(found[0][1])

    def expect(self, list_: str, found: int) -> None:
        """Raise SourceError where not all records of a list were found."""
        if self.count(list_) != found:
            raise self._unusable("some of its records are missing")

    def add(self, list_: str, change: int) -> None:
        """Count records that come to a list or leave it, inside `writing`."""
        count = self.count(list_) + change
        with self.writing() as connection:
            if count > 0:
                values = (list_, count, checksum(list_, count))
                connection.execute("INSERT OR REPLACE INTO tally VALUES (?, ?, ?)", values)
            else:
                connection.execute("DELETE FROM tally WHERE list = ?", (list_,))

    def make_room(self, keeping: str) -> None:
        """Delete the oldest answers until the rest fits, inside `writing`; raises SourceError where it never does."""
        with self.writing() as connection:
            while self._page * (self._count_pages("page_count") - self._count_pages("freelist_count")) > self._most:
                oldest = connection.execute(
                    "SELECT id, conversation, source FROM answer WHERE id <> ?"
                    " ORDER BY kind = 'board' OR id IN (SELECT answer FROM verdict UNION SELECT answer FROM pin), made"
                    " LIMIT 1",
                    (keeping,),
                ).fetchone()
                if oldest is None:
                    raise SourceError(f"it alone exceeds the store ({self._most:,} bytes): raise --store-mb")
                self._delete(connection, oldest[0], oldest[1], oldest[2])

    def _count_pages(self, which: str) -> int:
        return int(self._connection.execute(f"PRAGMA {which}").fetchone()[0])

    def _delete(self, connection: sqlite3.Connection, id: str, conversation: str, source: str | None = None) -> None:
        connection.execute("DELETE FROM answer WHERE id = ?", (id,))
        connection.execute("DELETE FROM cell WHERE answer = ?", (id,))
        connection.execute("DELETE FROM pin WHERE board = ?", (id,))
        verdicts = connection.execute("DELETE FROM verdict WHERE answer = ?", (id,)).rowcount
        connection.execute("DELETE FROM tally WHERE list = ?", (verdicts_of(id),))
        if verdicts:
            self.add(verdicts_on(source or self.source), -verdicts)
        if conversation:
            self.add(self._turns(conversation, source), -1)

    def _turns(self, conversation: str, source: str | None = None) -> str:
        return f"turns {source or self.source} {conversation}"

    def _head(self, id: str) -> tuple[Any, ...] | None:
        found = self.read(f"SELECT {_HEAD} FROM answer WHERE id = ? AND source = ?", (id, self.source))
        return self._check_head(found[0]) if found and found[0][0] == id else None

    def _check_head(self, row: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Return what was found of an answer without its checksum, where the answer may be seen."""
        *head, sum_ = row
        self.check(sum_, *head)
        return tuple(head) if self.sees(columns_from_text(head[5])) else None

    def _unusable(self, problem: Exception | str) -> SourceError:
        return SourceError(
            f"the store of answers {self.file} cannot be used ({problem}): delete it, set ALMANAQ_CACHE_DIR to another"
            " folder, or start with --no-store"
        )


def verdicts_of(answer: str) -> str:
    """Return the name of the list of verdicts on an answer."""
    return f"verdicts of {answer}"


def verdicts_on(source: str) -> str:
    """Return the name of the list of all verdicts on a source."""
    return f"verdicts on {source}"


def columns_to_text(columns: Columns | None) -> str:
    """Return columns as they are kept."""
    return json.dumps(None if columns is None else sorted(columns))


def columns_from_text(kept: str) -> Columns | None:
    """Return the columns that `columns_to_text` was given."""
    found = json.loads(kept)
    return None if found is None else frozenset((relation, column) for relation, column in found)


def checksum(*parts: object) -> bytes:
    """Return a hash of the fields of a record, which none of them can leave without being noticed."""
    made = hashlib.blake2b(digest_size=8)
    for part in parts:
        data = part if isinstance(part, bytes) else repr(part).encode("utf-8", "surrogatepass")
        made.update(b"%d " % len(data) + data)
    return made.digest()


def pack(value: Any) -> bytes:
    """Return a JSON value, compressed."""
    return zlib.compress(json.dumps(value).encode(), 1)


def unpack(kept: bytes) -> Any:
    """Return the value that `pack` was given."""
    return json.loads(zlib.decompress(kept))


def find_spans(record: Mapping[str, Any], place: Place) -> list[dict[str, int]]:
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


def _read_answer(head: tuple[Any, ...], rows: bytes | None) -> Answer:
    id, _, conversation, kind, made, columns, body = head
    known = unpack(body)
    turn = None if known["turn"] is None else turn_from_json(known["turn"])
    own = known["asked"], known["model"], known["record"]
    return Answer(id, conversation, kind, *own, rows, turn, made, columns_from_text(columns))
