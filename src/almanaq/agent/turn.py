"""What one turn may take and what it took: its deadline, its account of model calls, and the thread that it runs in."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from almanaq.agent.response import Event, Response
from almanaq.errors import DeadlineExceeded
from almanaq.models.budget import Spending, enter_account
from almanaq.models.prompts import one_fence
from almanaq.options import Options

if TYPE_CHECKING:
    from almanaq.suql.result import Trace

P = ParamSpec("P")
T = TypeVar("T")

Steps = Generator[Event, None, Response]


@dataclass(frozen=True, slots=True)
class TurnDeadline:
    """When a turn ends at the latest: its queries, its calls of a language model and the work between them together.

    Attributes:
        seconds: what it may take from its beginning on.
        ends: the moment, of `time.monotonic`.
    """

    seconds: float
    ends: float

    @classmethod
    def start(cls, options: Options | None) -> TurnDeadline | None:
        """Return the deadline of a turn that begins now; None where it has none."""
        seconds = options.deadline if options is not None else None
        return None if seconds is None else cls(seconds, time.monotonic() + seconds)

    def remaining(self) -> float:
        """Return the seconds that are left; raises DeadlineExceeded where none are."""
        left = self.ends - time.monotonic()
        if left <= 0:
            raise self.error()
        return left

    def error(self, goes_on: str = "") -> DeadlineExceeded:
        """Return the error that says that the time is over, and what goes on at the server."""
        message = f"the turn took longer than {self.seconds:g} s and was stopped; give it more with --deadline"
        return DeadlineExceeded(message + goes_on)


_deadline: ContextVar[TurnDeadline | None] = ContextVar("turn_deadline", default=None)


def run_step(deadline: TurnDeadline | None, step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a step of a turn under its deadline. Between steps, nobody is bound by it."""

    def run() -> T:
        _deadline.set(deadline)
        return step(*args, **kwargs)

    return copy_context().run(run)


def options_of_turn(options: Options | None) -> Options | None:
    """Return the options of a query of the turn: it may take what is left of the turn."""
    deadline = _deadline.get()
    return options if deadline is None or options is None else replace(options, deadline=deadline.remaining())


async def await_in_turn(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Return what a coroutine gives; raises DeadlineExceeded when the turn is over before.

    `work` makes the coroutine, as a turn that is canceled before it begins would never await it.
    """
    deadline = _deadline.get()
    if deadline is None:
        return await work()
    try:
        async with asyncio.timeout(max(0.0, deadline.ends - time.monotonic())) as limit:
            return await work()
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise deadline.error() from error


class TurnAccount:
    """The account of one turn, whose steps may each run in another thread.

    Args:
        conversation: its first question: prompts of all its turns have one fence.
    """

    def __init__(self, conversation: str) -> None:
        self.spent, self._conversation = Spending(), conversation

    def watch(self, steps: Steps) -> Steps:
        """Yield the events of the steps, and enter what each spends."""
        try:
            while True:
                with enter_account(self.spent), one_fence(self._conversation):
                    try:
                        event = next(steps)
                    except StopIteration as end:
                        response: Response = end.value
                        return response
                yield event
        finally:
            steps.close()

    def add_trace(self, response: Response) -> Response:
        """Return the reply with a trace of all calls of the turn; as it is where no model was asked."""
        lines, usage = self.spent.lines, self.spent.usage
        if not lines:
            return response
        from almanaq.suql.result import Trace

        trace = replace(
            response.trace or Trace(),
            input_tokens=usage.input_tokens,
            cached_input_tokens=usage.cached_input_tokens,
            output_tokens=usage.output_tokens,
            money=usage.money,
            physical_calls=usage.calls,
            dropped_quotes=self.spent.dropped_quotes,
            spending=lines,
        )
        return replace(response, trace=trace)


def add_traces(trace: Trace, earlier: Sequence[Trace]) -> Trace:
    """Return the trace of a turn's last query with what its earlier ones asked of texts."""
    every = (trace, *earlier)
    counts = ("text_calls", "cached_calls", "unknown_calls", "unknown_answers", "candidate_rows", "seconds")
    unknown = tuple(dict.fromkeys(unknown for each in every for unknown in each.unknown))
    return replace(trace, unknown=unknown, **{name: sum(getattr(each, name) for each in every) for name in counts})


MOST_THREADS = 64
"""Questions spend most of their time waiting for a model, so threads may outnumber cores.

More than a run asks at once (generation/run.py: 16); asyncio's own pool has six threads on two cores.
"""


async def run_in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do what `asyncio.to_thread` does, in a pool of our own."""
    context = copy_context()
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_pool(), lambda: context.run(work, *args, **kwargs))


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MOST_THREADS, thread_name_prefix="question")
