"""Work in another thread ends when it is told to: its model calls stop, and it gives no rows."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time

import pytest

import almanaq
from almanaq.event_loops import CancelToken
from almanaq.suql.execution.forecast import watched
from almanaq.testing import FunctionModel

QUERY = "SELECT n FROM t WHERE answer(s, 'q?') = 'Yes'"
ROWS = 4_000


@pytest.fixture
def slow():
    model = FunctionModel(lambda text, question: "Yes", latency=0.05)
    tables = {"t": {"n": list(range(ROWS)), "s": [f"text {i}" for i in range(ROWS)]}}
    with almanaq.connect(tables, model=model, cache=False, concurrency=4) as connection:
        yield connection, model


def begun(connection, model, token, **watch):
    """Run the query in a thread until some calls were made; give what the thread ends with."""
    ended: list[BaseException | None] = []

    def work():
        with token.scope(), watched(lambda *_: None, **watch):
            try:
                connection.sql(QUERY)
                ended.append(None)
            except BaseException as error:
                ended.append(error)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,))
    thread.start()
    while model.calls < 8:
        time.sleep(0.01)
    return thread, ended


def test_stopping_ends_the_calls(slow):
    connection, model = slow
    token = CancelToken()
    thread, ended = begun(connection, model, token, keeps=False)
    token.cancel()
    thread.join(20)
    assert [type(error) for error in ended] == [asyncio.CancelledError]
    made = model.calls
    time.sleep(0.2)
    assert model.calls == made < ROWS


def test_what_begins_after_the_stop_makes_no_call(slow):
    connection, model = slow
    token = CancelToken()
    token.cancel()
    with token.scope(), pytest.raises(asyncio.CancelledError):
        connection.sql(QUERY)
    assert model.calls == 0


def test_another_thread_is_not_ended(slow):
    connection, _ = slow
    CancelToken().cancel()
    assert len(connection.sql(QUERY + " LIMIT 2")) == 2


def test_in_a_running_loop_the_watch_is_told_and_the_stop_obeyed(slow):
    connection, _ = slow
    told: list[int] = []

    async def notebook():
        with watched(lambda done, total, passed, forecast: told.append(passed)):
            connection.sql(QUERY + " LIMIT 5")
        token = CancelToken()
        token.cancel()
        with token.scope():
            connection.sql(QUERY)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(notebook())
    assert told
