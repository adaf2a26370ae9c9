"""Ctrl-C: the rows that are sure are printed, the exit code says that it was interrupted, and no traceback comes."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from almanaq_bench.testing import Faults, StandInServer, replies_from

QUERY = "SELECT id FROM texts WHERE answer(body, 'is it short?') = 'Yes'"
ANSWERED = 6


@pytest.mark.sampled(3)
@pytest.mark.parametrize("query", [QUERY, f"{QUERY} LIMIT 15", f"SELECT count(*) FROM ({QUERY}) AS q"])
def test_rows_that_are_sure_are_printed(environment, tmp_path, query) -> None:
    (tmp_path / "texts.csv").write_text("id,body\n" + "".join(f'{i},"Some words of text {i}."\n' for i in range(30)))
    faults = Faults([*[None] * ANSWERED, *["hang"] * 100], hang=100.0)
    with StandInServer(replies_from(lambda *_: "Yes"), faults=faults) as server:
        keys = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "k", "ALMANAQ_BATCH": "1"}
        more = ["--db", str(tmp_path), "--model", "openai:m", "--format", "csv", "--order", "table"]
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        command = str(Path(sys.executable).with_name("almanaq"))
        # A shell's background job ignores interrupts, and so would what it starts.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            process = subprocess.Popen([command, "sql", query, *more], env=environment | keys, text=True, **streams)
        finally:
            signal.signal(signal.SIGINT, before)
        with process:
            while server.ledger.answered < ANSWERED or server.ledger.calls == ANSWERED:
                assert process.poll() is None, process.communicate()
                time.sleep(0.05)
            time.sleep(0.3)  # what was answered has to arrive
            process.send_signal(signal.SIGINT)
            said, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in told
    rows = said.splitlines()[1:]
    if "count" in query:
        assert said == ""  # a count of some of the rows is no row of the result
    else:
        assert len(rows) == ANSWERED
        assert "interrupted" in told


def test_a_source_that_takes_long_is_given_up_at_once(environment, tmp_path) -> None:
    row = '{"a": "2", "b": {"c": [1, 2], "d": "words"}, "items": [{"x": 1}, {"x": 2}]}'
    (tmp_path / "t.json").write_text("[" + ",".join([row] * 300_000) + "]")
    command = [str(Path(sys.executable).with_name("almanaq")), "sql", "SELECT 1", "--db", str(tmp_path / "t.json")]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen(command, env=environment, **streams)
    finally:
        signal.signal(signal.SIGINT, before)
    with process:
        while not _reads(process.pid, "t.json"):
            assert process.poll() is None
            time.sleep(0.02)
        time.sleep(0.2)
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert time.monotonic() - sent < 1.5
    assert process.returncode == 130
    assert "Traceback" not in told


def _reads(pid: int, name: str) -> bool:
    """Tell whether a process has loaded what it reads tables with, and has a file open."""
    descriptors = []
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            descriptors.append(each.readlink().name)
    return name in descriptors and "libarrow" in Path(f"/proc/{pid}/maps").read_text()


JOINING = """
import sys, time
from pathlib import Path
from almanaq.suql.execution import similarity
candidates, mark = similarity._candidates, Path(sys.argv.pop(1))

def slowly(*given):
    for found in candidates(*given):
        mark.touch()
        time.sleep(2)
        yield found

similarity._candidates = slowly
from almanaq.cli import main
sys.exit(main())
"""


@pytest.mark.nightly
def test_a_similarity_join_ends_at_once_and_leaves_nothing(environment, tmp_path) -> None:
    """It is interrupted while its pairs are looked for, which by itself would take sixteen seconds."""
    words = ["soup", "bread", "rice", "fish", "tea", "salt", "plum", "leek", "beans", "corn"]
    rows = [f"{i},{words[i % 10]} {words[i // 10 % 10]} {words[i // 100 % 10]} {i % 7}" for i in range(8_000)]
    (tmp_path / "t.csv").write_text("id,body\n" + "\n".join(rows))
    mark, left = tmp_path / "mark", tmp_path / "left"
    left.mkdir()
    query = "SELECT count(*) FROM t AS a JOIN t AS b ON similarity(a.body, b.body) > 0.99 AND a.id < b.id"
    command = [sys.executable, "-c", JOINING, str(mark), "sql", query, "--db", str(tmp_path / "t.csv")]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen(command, env=environment | {"TMPDIR": str(left)}, **streams)
    finally:
        signal.signal(signal.SIGINT, before)
    with process:
        while not mark.exists():
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        said, told = process.communicate(timeout=60)
    assert time.monotonic() - sent < 10
    assert process.returncode == 130, told
    assert said == ""
    assert "Traceback" not in told
    assert [path for path in left.rglob("*") if not path.is_dir()] == []
