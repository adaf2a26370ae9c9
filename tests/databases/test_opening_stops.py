"""A source that takes long to open is given up at the deadline and on Ctrl-C, whatever it is, and leaves nothing."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

import almanaq
from almanaq.corpus.read_cancellation import ReadCancellation, ReadCancelled, cancellable_by, raise_if_cancelled
from almanaq.engines import open_source
from almanaq.errors import DeadlineExceeded, UsageError

ROWS = 120_000
WITHIN, TRIES = 1.0, 3


def _csv(path: Path) -> Path:
    path.write_text("id,price\n" + "".join(f"{i},US${i}m\n" for i in range(ROWS)))
    return path


def _ragged(path: Path) -> Path:
    path.write_text("id,price\n" + "".join(f"{i},{i},1\n{i}\n" for i in range(ROWS)))
    return path


def _json(path: Path) -> Path:
    row = json.dumps({"a": 1, "b": {"c": [1, 2], "d": "some words"}, "items": [{"x": 1}, {"x": 2}]})
    path.write_text("[" + ",\n".join([row] * (ROWS // 4)) + "]")
    return path


def _sqlite(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, at DATETIME, n TEXT)")
        rows = ((i, f"2020-01-{i % 28 + 1:02d} 10:00:{i % 60:02d}", f"n {i}") for i in range(ROWS))
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        connection.commit()
    return path


SOURCES = {"plain.csv": _csv, "ragged.csv": _ragged, "array.json": _json, "shop.sqlite": _sqlite}


@pytest.mark.parametrize("name", SOURCES)
def test_deadline(name: str, tmp_path: Path) -> None:
    path = SOURCES[name](tmp_path / name)
    took = [_given_up(path)]
    while took[-1] > WITHIN and len(took) < TRIES:  # a machine may be busy with other things for a while
        took.append(_given_up(path))
    assert took[-1] < WITHIN, took


def _given_up(path: Path) -> float:
    """Return how many seconds it took to give up what is not opened within the deadline."""
    others = set(threading.enumerate())
    started = time.monotonic()
    with pytest.raises(DeadlineExceeded, match=r"not opened within the deadline of 0\.05 s"):
        almanaq.connect(str(path), deadline=0.05, cache=False)
    took = time.monotonic() - started
    for thread in threading.enumerate():
        if thread not in others and thread.name.startswith("almanaq-"):
            thread.join(30)
            assert not thread.is_alive()
    return took


def test_a_fault_is_raised_as_it_is() -> None:
    def fails() -> almanaq.Connection:
        raise UsageError("no")

    with pytest.raises(UsageError, match="no"):
        open_source.open_within(fails, None)


def test_what_opens_too_late_is_closed() -> None:
    closed = threading.Event()

    class Late:
        def close(self) -> None:
            closed.set()

    def late() -> Late:
        time.sleep(0.3)
        return Late()

    with pytest.raises(DeadlineExceeded):
        open_source.open_within(late, 0.05)
    assert closed.wait(5)


def test_time_that_is_granted_is_not_counted() -> None:
    class Opened:
        def close(self) -> None: ...

    def slow() -> Opened:
        from almanaq.corpus.read_cancellation import current_read

        with current_read().granting(5):
            time.sleep(0.3)
        return Opened()

    assert isinstance(open_source.open_within(slow, 0.1), Opened)


def test_who_reads_looks_whether_to_stop() -> None:
    found = []

    def work() -> None:
        cancellation = ReadCancellation()
        cancellable_by(cancellation)
        raise_if_cancelled()
        cancellation.cancel()
        with pytest.raises(ReadCancelled):
            raise_if_cancelled()
        found.append(1)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [1]
    raise_if_cancelled()  # of this thread nothing is asked
