"""At a terminal: how far a query is and how long it will take, and what Ctrl-C does to a command and to the prompt."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from almanaq_bench.testing import Faults, StandInServer, replies_from

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
QUERY = "SELECT id FROM texts WHERE answer(body, 'is it short?') = 'Yes'"
ROWS, ANSWERED = 30, 6
CTRL_C = b"\x03"
ENDED = 15.0
_STEERING = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


class Terminal:
    """A command that runs at a terminal of its own, and what it has printed."""

    def __init__(self, arguments: list[str], environment: dict[str, str]) -> None:
        import pty

        self._master, slave = pty.openpty()
        command = [str(Path(sys.executable).with_name("almanaq")), *arguments]
        env = {**environment, "TERM": "xterm", "COLUMNS": "100", "LINES": "40"}
        # A session of its own, so that Ctrl-C at this terminal reaches it.
        attach = (
            "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", attach, *command],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=env,
            start_new_session=True,
        )
        os.close(slave)
        self.seen = ""

    def type(self, keys: bytes) -> None:
        """Press keys; what was printed before is forgotten."""
        self.seen = ""
        os.write(self._master, keys)

    def expect(self, pattern: str) -> str:
        """Read until a pattern has been printed, and give all that was."""
        until = time.monotonic() + 60
        while not re.search(pattern, self.seen, re.DOTALL):
            assert time.monotonic() < until, self.seen
            if not self._read():
                assert re.search(pattern, self.seen, re.DOTALL), self.seen
        return self.seen

    def type_until(self, keys: bytes, pattern: str) -> None:
        """Press keys until a pattern is printed: Python may miss a signal that comes as it begins to wait for input."""
        for _ in range(20):
            self.type(keys)
            until = time.monotonic() + 3
            while time.monotonic() < until and self._read():
                if re.search(pattern, self.seen, re.DOTALL):
                    return
        raise AssertionError(self.seen)

    def end(self) -> int:
        """Read to the end, and give the exit code."""
        while self._read():
            pass
        return self.process.wait(60)

    def close(self) -> None:
        """Leave nothing behind."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)

    def _read(self) -> bool:
        if select.select([self._master], [], [], 0.2)[0]:
            try:
                read = os.read(self._master, 10_000)
            except OSError:  # the other end was closed
                return False
            self.seen += _STEERING.sub("", read.decode(errors="replace"))
            return bool(read)
        return self.process.poll() is None


@contextmanager
def terminal(arguments: list[str], environment: dict[str, str]) -> Iterator[Terminal]:
    found = Terminal(arguments, environment)
    try:
        yield found
    finally:
        found.close()


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    (tmp_path / "texts.csv").write_text("id,body\n" + "".join(f'{i},"Some words of text {i}."\n' for i in range(ROWS)))
    return tmp_path


@contextmanager
def stuck(environment: dict[str, str]) -> Iterator[tuple[StandInServer, dict[str, str], list[str]]]:
    """A server that answers a few questions and no more, and what a command needs to use it."""
    faults = Faults([*[None] * ANSWERED, *["hang"] * 200], hang=100.0)
    with StandInServer(replies_from(lambda *_: "Yes"), faults=faults) as server:
        keys = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "k", "ALMANAQ_BATCH": "1"}
        yield server, environment | keys, ["--model", "openai:m", "--no-cache"]


def answered(server: StandInServer) -> None:
    until = time.monotonic() + 60
    while server.ledger.answered < ANSWERED or server.ledger.calls == ANSWERED:
        assert time.monotonic() < until
        time.sleep(0.05)
    time.sleep(0.3)  # what was answered has to arrive


def test_a_query_shows_how_far_it_is_and_ctrl_c_what_is_sure(environment, texts):
    with stuck(environment) as (server, env, more):
        arguments = ["sql", QUERY, "--db", str(texts), "--format", "csv", "--order", "table", *more]
        with terminal(arguments, env) as shown:
            shown.expect(rf"[0-9]+ of {ROWS} rows read, [0-9]+ found.*(-:--:--|[0-9]:[0-9]{{2}}:[0-9]{{2}})")
            answered(server)
            shown.type(CTRL_C)
            sent = time.monotonic()
            assert shown.end() == 130
            assert time.monotonic() - sent < ENDED
            rows = [line for line in shown.seen.splitlines() if line.strip().isdigit()]
            assert len(rows) == ANSWERED
            assert "interrupted: these rows are in the result" in shown.seen
            assert "Traceback" not in shown.seen


def test_ctrl_c_at_the_prompt_ends_a_query_and_not_the_program(environment, texts):
    with stuck(environment) as (server, env, more), terminal(["shell", str(texts), *more], env) as shown:
        shown.expect("almanaq> $")
        shown.type(b"SELECT id,\n")
        shown.expect(r"\.\.\.> $")
        shown.type_until(CTRL_C, "almanaq> $")
        shown.type(f"{QUERY};\n".encode())
        answered(server)
        shown.type(CTRL_C)
        sent = time.monotonic()
        shown.expect("interrupted.*almanaq> $")
        assert time.monotonic() - sent < ENDED
        shown.type(b"SELECT count(*) FROM texts;\n")
        shown.expect(rf"{ROWS}.*almanaq> $")
        shown.type(b".quit\n")
        assert shown.end() == 0
        assert "Traceback" not in shown.seen
