"""Calls at once: at most so many of a model and of each query, and few until the model has replied."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar

from almanaq.errors import ModelCallError, ModelError
from almanaq.event_loops import PerLoop
from almanaq.models.protocols import Completion, LanguageModel, Prompt
from almanaq.models.retrying import FailedCall

calls_at_once: ContextVar[asyncio.Semaphore | None] = ContextVar("almanaq_calls_at_once", default=None)
"""The slots of the current query: at most as many as the model has."""

_FIRST_AT_ONCE = 4
PATIENCE = 0.25
"""Seconds that further calls wait for a first reply: a refusal comes sooner, with three round trips to a far server."""
_REFUSALS = 8
"""Refused requests, and no reply, that show that the key, the address or the model is wrong, and not a text."""


class ConcurrentModel:
    """Limits the calls in flight in an event loop, and of each query; the others wait in order.

    Until the model has replied, few are made, for `patience` seconds: an error that concerns all ends the others.
    """

    bounds_calls = True

    def __init__(self, model: LanguageModel, limit: int = 64, *, patience: float = PATIENCE) -> None:
        self.name = model.name
        self._model = model
        self._slots = PerLoop(lambda: asyncio.Semaphore(limit))
        self._first = PerLoop(lambda: _FirstCalls(limit, patience))
        self._has_replied = not patience

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the reply, after waiting for a free slot."""
        if self._has_replied:
            return await self._make_call(prompt)
        completion = await self._first.get().complete(self._make_call, prompt)
        self._has_replied = True
        return completion

    async def _make_call(self, prompt: Prompt) -> Completion:
        slots, held = self._slots.get(), list[asyncio.Semaphore]()
        try:
            for each in (calls_at_once.get(), slots):
                if each is not None:
                    await each.acquire()
                    held.append(each)
            return await self._model.complete(prompt)
        finally:
            # Released only after the reply is passed on, so that CachedModel stores it before the next call starts:
            # a killed process loses no more than the calls in flight.
            asyncio.get_running_loop().call_soon(_release, held)


def _release(held: Sequence[asyncio.Semaphore]) -> None:
    for each in held:
        each.release()


class _FirstCalls:
    """The calls of an event loop to a model that has not replied yet.

    Few go out until there is a reply, or for `patience` seconds: an error that concerns all ends the others. Once a
    request is refused, a text or the key may be at fault: few go out until there is a reply, and single texts go before
    those that share a request.
    """

    def __init__(self, limit: int, patience: float) -> None:
        self._limit, self._patience = limit, patience
        self._inside = self._out = self._refused = 0
        self._until: float | None = None
        self._problem: ModelError | None = None
        self._has_replied = False
        self._changed = asyncio.Event()

    async def complete(self, make_call: Callable[[Prompt], Awaitable[Completion]], prompt: Prompt) -> Completion:
        """Return the reply to a call; raises the error that concerns all calls, where another has met it."""
        if not self._inside:
            self._refused, self._until, self._problem = 0, None, None
        self._inside += 1
        try:
            await self._wait_for_turn(prompt)
            if self._problem is not None:
                raise self._problem
            return await self._send(make_call, prompt)
        finally:
            self._inside -= 1

    def _may_go(self, prompt: Prompt, *, late: bool) -> bool:
        if self._has_replied or self._problem is not None:
            return True
        if not self._refused:
            return self._out < (self._limit if late else _FIRST_AT_ONCE)
        if prompt.divisible:
            return late and not self._out
        return self._out < max(1, min(_FIRST_AT_ONCE, _REFUSALS - self._refused))  # no more than still decide

    async def _wait_for_turn(self, prompt: Prompt) -> None:
        clock, late = asyncio.get_running_loop().time, False
        while not self._may_go(prompt, late=late):
            if self._until is None:  # counted from here, as the first call may have loaded modules for long
                self._until = clock() + self._patience
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(None if late else self._until):
                    await self._changed.wait()
            late = clock() >= self._until

    async def _send(self, make_call: Callable[[Prompt], Awaitable[Completion]], prompt: Prompt) -> Completion:
        self._out += 1
        try:
            completion = await make_call(prompt)
            self._has_replied = True
            return completion
        except ModelCallError as failure:
            setup = failure.setup if isinstance(failure, FailedCall) else None
            if setup is None or self._has_replied:
                raise
            self._refused += 1
            self._until = asyncio.get_running_loop().time() + self._patience
            if self._refused < _REFUSALS or self._out > _FIRST_AT_ONCE or prompt.divisible:
                raise
            self._problem = setup
            raise setup from failure
        except ModelError as problem:
            self._problem = problem
            raise
        finally:
            asyncio.get_running_loop().call_soon(self._end_call)  # after the reply is passed on, as slots are released

    def _end_call(self) -> None:
        self._out -= 1
        self._changed.set()
        self._changed = asyncio.Event()
