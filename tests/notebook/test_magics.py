"""The magics in an IPython of this process; a Ctrl-C where an event loop runs, as it does in a kernel."""

from __future__ import annotations

import asyncio
import os
import signal
import threading

import pytest

import almanaq
from almanaq import notebook
from almanaq.errors import BudgetExceeded, UnknownNameError, UsageError
from almanaq.suql.execution.forecast import watched
from almanaq.suql.execution.report import Interrupted
from almanaq.testing import FunctionModel

TABLES = {"t": {"n": list(range(60)), "s": [f"text {i}" for i in range(60)]}}


class Shell:
    """As much of IPython's shell as the extension asks of it."""

    def __init__(self) -> None:
        self.user_ns: dict[str, object] = {}
        self.magics: dict[str, object] = {}
        self.input_transformers_cleanup: list[object] = []

    def register_magic_function(self, function, kind, name):
        self.magics[name] = function


@pytest.fixture
def shell():
    found = Shell()
    notebook.load_ipython_extension(found)
    found.user_ns["tables"] = TABLES
    return found


def test_the_real_shell_takes_them():
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "almanaq.notebook")
    shell.user_ns["tables"] = TABLES
    shell.run_line_magic("almanaq", "tables")
    assert shell.run_cell_magic("suql", "", "SELECT count(*) AS n FROM t").rows == [(60,)]
    assert shell.run_cell_magic("suql", "kept <<", "SELECT n FROM t WHERE n < 2 ORDER BY n") is None
    assert shell.user_ns["kept"].rows == [(0,), (1,)]
    assert shell.run_line_magic("suql", "SELECT 1 AS one").rows == [(1,)]
    assert "text filter" in str(
        shell.run_cell_magic("suql", "--explain", "SELECT n FROM t WHERE answer(s, 'q') = 'Yes'")
    )
    assert shell.run_line_magic("ask", "How many t are there?").rows == ((60,),)


def test_cells_as_they_are_typed(capsys):
    """A question ends with the mark by which IPython looks names up; a mistake is one message, not a pile of frames."""
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    shell.user_ns["tables"] = TABLES
    for line in ("%load_ext almanaq.notebook", "%almanaq tables", "reply = %ask How many t are there?"):
        assert shell.run_cell(line).success, line
    assert shell.user_ns["reply"].rows == ((60,),)
    assert shell.run_cell("%ask How many t are there?").result.rows == ((60,),)
    capsys.readouterr()
    assert isinstance(shell.run_cell("%suql SELECT nope FROM t").error_in_exec, UnknownNameError)
    shown = capsys.readouterr().out
    assert "UnknownNameError" in shown
    assert "nope" in shown
    assert "Traceback" not in shown
    assert ".py" not in shown


@pytest.mark.parametrize(
    ("magic", "line", "said"),
    [
        ("almanaq", "", "source"),
        ("almanaq", "tables --modle x", "modle"),
        ("ask", "What?", "no source"),
        ("ask", " ", "a question"),
        ("suql", "--max-cals 3", "max-cals"),
    ],
)
def test_what_is_wrong_is_said(shell, magic, line, said):
    arguments = (line, "SELECT 1") if magic == "suql" else (line,)
    with pytest.raises(UsageError, match=said):
        shell.magics[magic](*arguments)


def test_a_budget_gives_the_rows_that_are_sure(shell, capsys):
    magics = shell.magics["suql"].__wrapped__.__self__
    model = FunctionModel(lambda text, question: "Yes" if text == "text 0" else "No")
    magics.connection = almanaq.connect(TABLES, model=model, cache=False, order="table", concurrency=1)
    query = "SELECT n FROM t WHERE answer(s, 'q') = 'Yes' LIMIT 2"
    found = shell.magics["suql"]("--max-calls 10", query)
    assert found.rows == [(0,)]
    assert "not be all of it" in capsys.readouterr().out
    assert "not all of the result" in found._repr_html_()
    with pytest.raises(BudgetExceeded, match="nothing was asked"):
        shell.magics["suql"]("--max-calls 2", query)


def test_progress_is_one_display_that_is_empty_in_the_end(monkeypatch):
    shows = []

    class Handle:
        def update(self, shown, raw):
            shows[-1].append(shown["text/plain"])

    def display(shown, raw, display_id):
        shows.append([shown["text/plain"]])
        return Handle()

    monkeypatch.setattr("IPython.display.display", display)
    monkeypatch.setattr("almanaq.jobs.PROGRESS_SECONDS", 0.0)
    model = FunctionModel(lambda text, question: "Yes", latency=0.001)
    with almanaq.connect(TABLES, model=model, cache=False, concurrency=2) as connection, notebook.progress():
        connection.sql("SELECT count(*) FROM t WHERE answer(s, 'q') = 'Yes'")
    (told,) = shows
    assert "of 60 rows read" in told[0]
    assert told[-1] == ""


def interrupted(query, **options):
    """Run a query in a loop that runs, as a kernel does, and press Ctrl-C once some calls were made."""
    model = FunctionModel(lambda text, question: "Yes", latency=0.02)
    tables = {"t": {"n": list(range(4000)), "s": [f"text {i}" for i in range(4000)]}}

    def press():
        while model.calls < 12:
            threading.Event().wait(0.005)
        os.kill(os.getpid(), signal.SIGINT)

    async def cell(connection):
        with watched(lambda *_: None):
            return connection.sql(query)

    loop = asyncio.new_event_loop()
    presser = threading.Thread(target=press)
    with almanaq.connect(tables, model=model, cache=False, order="table", concurrency=4, **options) as connection:
        presser.start()
        try:
            loop.run_until_complete(cell(connection))
        finally:
            presser.join()
            made = model.calls
            threading.Event().wait(0.1)
            loop.close()
            assert model.calls == made < 4000


@pytest.fixture
def default_handler():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("default_handler")
def test_interrupting_keeps_the_rows_that_are_sure():
    with pytest.raises(KeyboardInterrupt) as stopped:  # one that got through would end the whole run of the tests
        interrupted("SELECT n FROM t WHERE answer(s, 'q') = 'Yes'")
    assert isinstance(stopped.value, Interrupted)
    rows = stopped.value.partial.rows
    assert 0 < len(rows) < 4000
    assert stopped.value.partial.trace.partial


@pytest.mark.usefixtures("default_handler")
def test_interrupting_a_thread_that_is_slow_to_start_keeps_them_too(monkeypatch):
    start = threading.Thread.start

    def start_slowly(thread):
        start(thread)
        if thread.name == "almanaq":
            threading.Event().wait(5)

    monkeypatch.setattr(threading.Thread, "start", start_slowly)
    with pytest.raises(KeyboardInterrupt) as stopped:
        interrupted("SELECT n FROM t WHERE answer(s, 'q') = 'Yes'")
    assert isinstance(stopped.value, Interrupted)


@pytest.mark.usefixtures("default_handler")
def test_interrupting_where_no_row_is_sure_ends_the_calls():
    with pytest.raises(KeyboardInterrupt) as stopped:
        interrupted("SELECT count(*) FROM t WHERE answer(s, 'q') = 'Yes'")
    assert not isinstance(stopped.value, Interrupted)
