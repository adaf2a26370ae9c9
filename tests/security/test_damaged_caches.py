"""A cache that was damaged, or that others try to read, gives no wrong reply, no defect and no secret."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import stat
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from benchmarks.faults import answers
from benchmarks.faults.cache import fill, flips, prompt_of, right

from almanaq.engines.files import table_cache
from almanaq.models.cached import LEASE_SECONDS, CachedModel, ReplyCache
from almanaq.models.embedders.base import LexicalEmbedder
from almanaq.models.embedders.vector_store import VectorStore
from almanaq.models.private_files import make_private, private_temporary_folder, process_mark
from almanaq.testing import ScriptedModel


def test_a_flipped_bit_never_changes_a_reply_and_is_never_a_defect(tmp_path: Path) -> None:
    ended = flips(tmp_path / "c.sqlite", 12)
    assert set(ended) <= {"right", "right, some asked for again", "refused"}, ended
    assert ended["refused"]
    assert ended["right, some asked for again"]


def test_a_damage_never_changes_an_answer_that_is_kept_and_is_never_a_defect(tmp_path: Path) -> None:
    ended = answers.damages(tmp_path / "a.sqlite", 20)
    assert set(ended) <= {"right", "refused", "missing"}, ended
    assert ended["refused"] > 5
    assert ended["right"]


def test_a_reply_that_was_changed_is_asked_for_again(tmp_path: Path) -> None:
    file = tmp_path / "c.sqlite"
    fill(file)
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE reply SET text = 'forged'")
    connection.close()
    inner = ScriptedModel(right)
    model = CachedModel(inner, ReplyCache(file), identity="scripted")
    assert asyncio.run(model.complete(prompt_of(3))).text == right(prompt_of(3))
    assert asyncio.run(model.complete(prompt_of(3))).text == right(prompt_of(3))
    assert inner.calls == 1
    model.cache.close()


def test_replies_of_an_earlier_version_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "c.sqlite"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE reply (key BLOB PRIMARY KEY, text TEXT, model TEXT, made REAL) WITHOUT ROWID")
        connection.execute("INSERT INTO reply VALUES (?, 'kept', 'm', 0)", (b"k",))
        connection.execute("PRAGMA user_version = 1")
    connection.close()
    cache = ReplyCache(file)
    assert cache.get(b"k") == "kept"
    cache.keep([(b"l", "new")])
    assert cache.get(b"l") == "new"
    cache.close()


@pytest.mark.parametrize("until", [LEASE_SECONDS + 3600, 1e18, float("inf"), -1.0, "soon", b"x"])
def test_a_lease_of_another_clock_is_no_lease(until: float | str | bytes, tmp_path: Path) -> None:
    file = tmp_path / "c.sqlite"
    cache = ReplyCache(file)
    cache.get(b"k")
    with closing(sqlite3.connect(file)) as connection, connection:
        dated = until if not isinstance(until, float) else time.time() + until
        lease = (b"k", "other", os.getpid(), "elsewhere", dated, "")
        connection.execute("INSERT INTO lease VALUES (?, ?, ?, ?, ?, ?)", lease)
    connection.close()
    assert cache.look([b"k"]) == [True]
    cache.close()


def lease_of(file: Path, pid: object, mark: str) -> None:
    """Write a lease that begins now as another cache on this machine writes one."""
    ReplyCache(file).get(b"k")
    with closing(sqlite3.connect(file)) as connection, connection:
        values = (b"k", "other", pid, os.uname().nodename, time.time() + 60, mark)
        connection.execute("INSERT OR REPLACE INTO lease VALUES (?, ?, ?, ?, ?, ?)", values)


@pytest.mark.parametrize("pid", [0, -1, 2**40, "x"])
def test_a_lease_of_no_process_is_no_lease(pid: object, tmp_path: Path) -> None:
    lease_of(tmp_path / "c.sqlite", pid, "")
    cache = ReplyCache(tmp_path / "c.sqlite")
    assert cache.look([b"k"]) == [True]
    cache.close()


@pytest.mark.skipif(not process_mark(), reason="this system does not say when a process began")
@pytest.mark.parametrize("who", [os.getpid, os.getppid])
def test_a_lease_is_not_that_of_the_next_process_of_its_number(who: Callable[[], int], tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "c.sqlite")
    mark = process_mark(who())
    boot, _, start = mark.partition(" ")
    for of_another in (f"{boot} {int(start) + 1}", f"another-boot {start}"):
        lease_of(tmp_path / "c.sqlite", who(), mark)
        assert cache.look([b"k"]) == [False]
        lease_of(tmp_path / "c.sqlite", who(), of_another)
        assert cache.look([b"k"]) == [True]
    cache.close()


def test_nobody_is_waited_for_longer_than_a_lease_can_run(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = ReplyCache()
    monkeypatch.setattr(cache, "look", lambda keys: [False] * len(keys))
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr("almanaq.models.cached.asyncio.sleep", sleep)
    model = CachedModel(ScriptedModel(["asked"]), cache)
    assert asyncio.run(model.complete(prompt_of(0))).text == "asked"
    assert sum(slept) == pytest.approx(LEASE_SECONDS, rel=0.01)


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="modes of files are not the system's way")
def test_caches_are_the_users_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        folder = tmp_path / "cache"
        cache = ReplyCache(folder / "replies.sqlite")
        cache.keep([(b"k", "text")])
        assert _open_to_others(folder) == []
        cache.close()
        VectorStore(folder, _Counting()).vectors(["a", "b"])
        assert len(list(folder.iterdir())) >= 2
        assert _open_to_others(folder) == []
        # One that an earlier version left open is closed.
        (folder / "replies.sqlite").chmod(0o644)
        make_private(folder / "replies.sqlite")
        assert _open_to_others(folder) == []
    finally:
        os.umask(before)


def _open_to_others(folder: Path) -> list[str]:
    every = [folder, *folder.iterdir()]
    return [f"{path.name} {path.stat().st_mode:o}" for path in every if stat.S_IMODE(path.stat().st_mode) & 0o077]


class _Counting:
    """An embedder that is worth a cache."""

    name = "counting"

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed(self, texts: list[str]) -> np.ndarray:
        self.texts += texts
        return LexicalEmbedder().embed(texts)


def test_a_vector_that_was_damaged_is_made_anew(tmp_path: Path) -> None:
    texts = [f"text number {number}" for number in range(40)]
    expected = VectorStore(tmp_path, _Counting()).vectors(texts)
    (file,) = tmp_path.glob("*.sqlite")
    with sqlite3.connect(file) as connection:
        damaged = connection.execute(
            "UPDATE vectors SET vector = zeroblob(length(vector)) WHERE rowid % 4 = 0"
        ).rowcount
        damaged += connection.execute("UPDATE vectors SET vector = x'00' WHERE rowid % 4 = 1").rowcount
    connection.close()
    again = _Counting()
    np.testing.assert_array_equal(VectorStore(tmp_path, again).vectors(texts), expected)
    assert len(again.texts) == damaged == 20
    once_more = _Counting()
    np.testing.assert_array_equal(VectorStore(tmp_path, once_more).vectors(texts), expected)
    assert once_more.texts == []


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="modes of files are not the system's way")
def test_what_spills_to_the_disk_is_out_of_the_sight_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that somebody else made ready, a link or one that is open to others, is not taken."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    name = f"almanaq-{os.getuid()}"
    taken = [private_temporary_folder()]
    assert taken[0] == tmp_path / name
    taken[0].chmod(0o777)
    taken.append(private_temporary_folder())
    taken[0].rmdir()
    (tmp_path / "theirs").mkdir(mode=0o777)
    (tmp_path / name).symlink_to(tmp_path / "theirs")
    taken.append(private_temporary_folder())
    (tmp_path / name).unlink()
    (tmp_path / name).write_text("a file")
    taken.append(private_temporary_folder())
    assert len(set(taken)) == 4
    assert all(stat.S_IMODE(folder.stat().st_mode) == 0o700 for folder in taken[1:])


def test_how_kept_tables_were_read_is_whole_or_read_anew() -> None:
    text = json.dumps({"kinds": ["enum", "free_text"]})
    summed = table_cache._add_checksum(text)
    assert table_cache._verify_checksum(summed) == text
    for place in range(len(summed)):
        with pytest.raises(ValueError, match="does not hold"):
            table_cache._verify_checksum(summed[:place] + chr(ord(summed[place]) ^ 1) + summed[place + 1 :])
