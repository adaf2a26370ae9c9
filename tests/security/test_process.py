"""A command ends in time and in order: no thread of an engine holds it, and no memory beyond its bound is taken."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from almanaq.cli import main

HOLDING = """
import sys, threading, time
import almanaq
from almanaq.cli import main
connection = almanaq.connect({"t": {"n": [1]}})
threading.Thread(target=lambda: (connection.sql("SELECT n FROM t"), time.sleep(600)), daemon=True).start()
sys.argv = ["almanaq", *sys.argv[1:]]
sys.exit(main())
"""
LIMITED = """
import sys
from almanaq.cli import main, options
options.machine_memory = lambda: 1_500_000_000
sys.argv = ["almanaq", *sys.argv[1:]]
sys.exit(main())
"""
# What a thread still holds when a reply is there: handlers of the exit run in the opposite order.
LATE = """
import atexit, time, weakref
held = []
atexit.register(lambda: print("held" if held[0]() else "let go"))
from almanaq.suql.execution import threads
class Late(threads.Future):
    def set_result(self, result):
        super().set_result(result)
        time.sleep(0.1)
class Thing: pass
threads.Future = Late
thing = Thing()
held.append(weakref.ref(thing))
threads._pool().submit(lambda thing: None, thing).result()
del thing
"""


@pytest.fixture
def source(tmp_path: Path) -> str:
    (tmp_path / "t.csv").write_text("n\n1\n")
    return str(tmp_path / "t.csv")


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command with some code before it: a script called as the command is is the command."""
    script = Path(arguments[arguments.index("--db") + 1]).parent / "almanaq"
    script.write_text(code)
    command = [sys.executable, str(script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=dict(os.environ))


def test_nothing_is_said_of_what_a_thread_holds_at_the_end(source: str) -> None:
    done = run(HOLDING, "sql", "SELECT n FROM t", "--db", source, "--format", "csv")
    assert (done.returncode, done.stdout, done.stderr) == (0, "n\n1\n", "")


def test_the_exit_waits_until_threads_have_let_go() -> None:
    done = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("let go\n", "")


def test_a_command_does_not_wait_for_an_engine_that_does_not_stop(source: str) -> None:
    slow = "SELECT length(lpad('x', 600000000, 'ab')) AS n"
    done = run(HOLDING, "sql", slow, "--db", source, "--deadline", "1")
    assert done.returncode == 1
    # Where other programs take the processor, the second is over before the source is open.
    assert re.fullmatch("almanaq: .* deadline of 1 s.*\n", done.stderr)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems bound no such memory")
def test_a_query_beyond_the_memory_there_is_fails_with_a_word(source: str) -> None:
    large = "SELECT max(length(repeat('a', 2000000 + i::int))) AS n FROM generate_series(1, 1500) AS g(i)"  # 3 GB
    done = run(LIMITED, "sql", large, "--db", source)
    assert done.returncode == 1
    assert "memory" in done.stderr
    assert "narrow" in done.stderr
    assert "defect" not in done.stderr


def test_a_caller_of_the_command_is_not_ended(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    held = threading.Event()
    thread = threading.Thread(target=held.wait, daemon=True)
    thread.start()
    monkeypatch.setattr(sys, "argv", ["almanaq", "sql", "SELECT n FROM t", "--db", source, "--format", "csv"])
    monkeypatch.setattr(os, "_exit", lambda code: pytest.fail(f"the caller was ended with {code}"))
    assert main() == 0
    held.set()
    thread.join()
