"""`almanaq serve` under its supervisor: whatever becomes of the process that serves, there is one that does."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.web.live import Client, own_environment
from tests.web.test_work import until

from almanaq.accounts import LastingBudget
from almanaq.errors import BudgetExceeded
from almanaq.models.protocols import Usage
from almanaq.web.supervisor import share_count
from almanaq_bench.testing import StandInServer, replies_from

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a server is watched on Linux only")
WAIT = 60.0
HURRIED, PATIENT = 5.0, 60.0
ENDING_SOON = """
import sys
from almanaq import cli
from almanaq.web import supervisor
supervisor.SILENT_SECONDS, supervisor._SECONDS_TO_END = {silent}, 1.5
sys.exit(cli.main())
"""


@pytest.fixture
def start(tmp_path):
    kept, begun = own_environment(tmp_path), []

    def run(*words, program=("-m", "almanaq"), **more):
        command = [sys.executable, *program, "serve", "places.csv", "--port", "0", *words]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=kept | more, cwd=tmp_path
        )
        begun.append(process)
        found = re.search(r":(\d+)/", process.stdout.readline())
        return process, Client(int(found[1]))

    yield run
    for process in begun:
        process.kill()
        process.communicate()


def worker_of(process):
    """The process that serves: the only child of the one that was started."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return int(children[0]) if children else None


def lives(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


@pytest.mark.slow
def test_a_worker_that_crashed_or_hangs_is_replaced_and_ends_with_its_supervisor(start):
    process, client = start("--model", "local", program=("-c", ENDING_SOON.format(silent=HURRIED)))
    answer = client.ask("How many places are there?")
    before = worker_of(process)
    os.kill(before, signal.SIGSEGV)
    until(lambda: worker_of(process) not in (None, before), WAIT)
    # What comes meanwhile waits; what was told before is there, and goes on.
    assert client("GET", answer["link"]).status == 200
    again = client.ask("How many are in Paris?", conversation=answer["conversation"])
    assert again["conversation"] == answer["conversation"]
    assert f"ended by signal {int(signal.SIGSEGV)}" in process.stderr.readline()

    before = worker_of(process)
    os.kill(before, signal.SIGSTOP)
    assert client("GET", "/healthz").status == 200
    worker = worker_of(process)
    assert worker != before
    assert not lives(before)
    assert "the server did not answer /healthz for 5 s, and was ended" in process.stderr.readline()

    process.kill()
    process.wait()
    until(lambda: not lives(worker), WAIT)
    assert process.stdout.read() == ""  # the address was told once


def test_what_cannot_begin_is_told_as_ever_and_is_not_tried_again(tmp_path):
    command = [sys.executable, "-m", "almanaq", "serve", str(tmp_path / "none.csv"), "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT)
    assert done.returncode in (1, 2)
    assert done.stderr.startswith("almanaq: ")
    assert len(done.stderr.splitlines()) == 1


def test_the_calls_of_a_server_are_those_of_all_its_workers():
    count = share_count()
    most = Usage(1)
    first = LastingBudget(5, count)
    for _ in range(3):
        assert first.reserve(most)
    first.settle(most, most)  # two are under way when it is killed: they count
    second = LastingBudget(5, count)
    assert second.reserve(most)
    second.settle(most, most)
    assert second.reserve(most)
    second.settle(most, most)
    with pytest.raises(BudgetExceeded, match="--server-calls"):
        second.reserve(most)


@pytest.mark.nightly
def test_a_limit_of_calls_outlives_a_worker(start, tmp_path):
    tmp_path.joinpath("places.csv").write_text(
        "id,notes\n" + "".join(f'{n},"a text about place {n} that is of some length"\n' for n in range(6))
    )
    (tmp_path / "s.toml").write_text('[places.columns.notes]\nkind = "free_text"\n')
    with StandInServer(replies_from(lambda *_: "Yes")) as server:
        more = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "k-12345678", "ALMANAQ_LOCAL_SERVERS": "none"}
        words = ("--model", "openai:m", "--server-calls", "8", "--no-cache", "--batch", "1", "--schema", "s.toml")
        process, client = start(*words, **more)
        body = {"suql": "SELECT id FROM places WHERE answer(notes, 'is it?') = 'Yes'"}
        assert client.post("sql", body).status == 200
        before = worker_of(process)
        os.kill(before, signal.SIGKILL)
        until(lambda: worker_of(process) not in (None, before), WAIT)
        assert client.post("sql", body).status == 422
        assert server.ledger.calls <= 8


@pytest.mark.slow
def test_bombs_leave_a_server_that_answers_and_ends(start):
    """Queries that need more memory than there is end with a word; a worker that does not heed the end is ended."""
    process, client = start("--model", "local", program=("-c", ENDING_SOON.format(silent=PATIENT)))
    bombs = [
        "SELECT array_agg(g) FROM generate_series(1, 5000000000) AS g",
        "SELECT length(repeat('x', 1900000000)) FROM generate_series(1, 40) AS g",
        "SELECT a.name || repeat('y', 3000000) FROM places AS a, generate_series(1, 5000) AS g",
    ]
    statuses = [client.post("sql", {"suql": bomb, "options": {"deadline": 1}}).status for bomb in bombs]
    assert set(statuses) <= {200, 400, 422, 503, 504}
    assert client.post("sql", {"suql": "SELECT count(*) AS n FROM places"}).json()["rows"] == [[3]]
    worker = worker_of(process)
    os.kill(worker, signal.SIGSTOP)
    process.terminate()
    assert process.wait(WAIT) == 128 + signal.SIGKILL
    until(lambda: not lives(worker), WAIT)
