"""A turn's deadline is that of all its steps together: parsing, mending, running, relaxing, wording."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

import almanaq
from almanaq.agent import turn
from almanaq.errors import DeadlineExceeded
from almanaq.models.protocols import Prompt
from almanaq.options import AGENT_DEADLINE, Options
from almanaq.suql.engine import Engine
from almanaq.suql.result import Result
from almanaq.testing import ScriptedModel

TABLES = {"t": {"n": [1, 2, 3], "s": ["a", "b", "c"]}}


def scripted(suql: str, latency: float) -> ScriptedModel:
    def reply(prompt: Prompt) -> object:
        return (
            {"reasoning": "", "suql": suql, "needs_data": True, "clarify": None} if prompt.name == "parse" else "Yes."
        )

    return ScriptedModel(reply, latency=latency)


@pytest.mark.parametrize("suql", ["SELECT n FROM t", "SELECT wrong FROM t"])
def test_steps_that_are_each_in_time_are_stopped_where_their_sum_is_not(suql: str) -> None:
    model = scripted(suql, latency=0.7)
    with almanaq.connect(TABLES, model=model, cache=False, deadline=1.0) as connection:
        response = connection.ask("which numbers are there?")
    assert response.status == "failed"
    assert isinstance(response.error, DeadlineExceeded)
    assert "the turn took longer than 1 s" in response.answer
    assert model.calls <= 2


def test_a_query_may_take_what_the_turn_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []
    run = Engine.run

    def recorded(self: Engine, query: str, parameters: tuple[object, ...] = (), *, options: Options) -> Result:
        assert options.deadline is not None
        if "LIMIT 21" not in query and "DISTINCT s)" not in query:  # what looks at the table before the model is asked
            given.append(options.deadline)
        return run(self, query, parameters, options=options)

    monkeypatch.setattr(Engine, "run", recorded)
    model = scripted("SELECT n FROM t WHERE n > 5 AND s = 'z'", latency=0.05)
    with almanaq.connect(TABLES, model=model, cache=False) as connection:
        assert connection.ask("which numbers are there?").status in ("no_result", "answered")
        first = len(given)
        connection.ask("which numbers are there?")
    assert first > 1, "a query that finds nothing is looked at again"
    assert given[0] <= AGENT_DEADLINE - 0.05
    assert given[:first] == sorted(given[:first], reverse=True)
    assert given[first] > given[first - 1], "the next turn begins anew"


def test_time_between_the_events_of_a_turn_binds_nobody_else() -> None:
    with almanaq.connect(TABLES, model=scripted("SELECT n FROM t", 0.0), cache=False, deadline=30.0) as connection:
        steps = connection.agent.events("which numbers are there?")
        next(steps)
        assert connection.engine.run("SELECT n FROM t").rows == [(1,), (2,), (3,)]
        assert [type(event).__name__ for event in steps][-1] == "Finished"


def test_a_clock_that_lags_behind_the_timer_is_no_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    """The timer may fire a moment before the turn's own clock says that the time is over."""
    monkeypatch.setattr(turn, "time", SimpleNamespace(monotonic=lambda: 0.0))
    late = turn.TurnDeadline(0.01, 0.01)
    with pytest.raises(DeadlineExceeded, match="the turn took longer"):
        turn.run_step(late, lambda: asyncio.run(turn.await_in_turn(lambda: asyncio.sleep(5))))
