"""What goes wrong at a stand-in server, how often, and what the client then gets."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence

from almanaq_bench.testing.hostile import HOSTILE
from almanaq_bench.testing.outcome import Outcome

KINDS = ("too_many", "error", "hang", "slow", "malformed", "cut", "off_schema", "not_json", "empty", "length")
"""429, 500, a reply that never comes, a right one that comes late, broken JSON, a broken connection, and replies of
another form than asked for."""


class Faults:
    """Which chat calls go wrong, and how.

    Args:
        script: a fault (one of KINDS or of HOSTILE) or None for each call in order; after its end the rates count.
        rates: the share of calls with each fault; drawn from `seed`.
        latency: seconds before a reply, or a function that draws them.
        retry_after: sent with each 429.
        hang: seconds that a call with the fault "hang" takes; `slow`: those of one that is slow, and then right.

    A call that fails is made again, and the answer is right all the same:

    >>> import almanaq
    >>> from almanaq.models.openai import OpenAIModel
    >>> from almanaq_bench.testing import StandInServer, replies_from
    >>> with StandInServer(replies_from(lambda *_: "Yes"), faults=Faults(["too_many"], retry_after=0)) as server:
    ...     con = almanaq.connect({"t": {"s": ["Rex"]}}, model=OpenAIModel("any", server.url, "key"), cache=False)
    ...     con.sql("SELECT answer(s, 'is it a dog?') FROM t").rows
    [('Yes',)]
    >>> sorted(server.ledger.outcomes.items())
    [('answered', 1), ('too_many', 1)]
    """

    def __init__(
        self,
        script: Sequence[str | None] = (),
        *,
        rates: Mapping[str, float] | None = None,
        latency: float | Callable[[], float] = 0.0,
        retry_after: float | None = None,
        hang: float = 3600.0,
        slow: float = 5.0,
        seed: int = 0,
    ) -> None:
        unknown = {*(rates or {}), *(fault for fault in script if fault)} - {*KINDS, *HOSTILE}
        if unknown:
            raise ValueError(f"no such faults: {sorted(unknown)}; known: {', '.join([*KINDS, *HOSTILE])}")
        self._script = list(script)
        self._rates = dict(rates or {})
        self._latency, self._retry_after, self._hang, self._slow = latency, retry_after, hang, slow
        self._random = random.Random(seed)

    def draw(self) -> str | None:
        """Return the fault of the next call, None for none.

        >>> faults = Faults(["hang", None])
        >>> faults.draw(), faults.draw(), faults.draw()
        ('hang', None, None)
        """
        return self._script.pop(0) if self._script else self._draw_fault()

    async def wait(self, fault: str | None) -> None:
        """Take the time that a call with this fault takes."""
        seconds = self._latency() if callable(self._latency) else self._latency
        if fault in ("hang", "slow"):
            seconds = self._hang if fault == "hang" else self._slow
        if seconds:
            await asyncio.sleep(seconds)

    def _draw_fault(self) -> str | None:
        if not self._rates:
            return None
        rest = self._random.random()
        for fault, rate in self._rates.items():
            rest -= rate
            if rest < 0:
                return fault
        return None

    def outcome(self, fault: str) -> Outcome | None:
        """Return the reply of a fault that leaves no chat completion, None for one that has another form."""
        if fault == "too_many":
            wait = {} if self._retry_after is None else {"retry-after": f"{self._retry_after:g}"}
            return Outcome.error(429, "Rate limit reached", wait)
        if fault == "error":
            return Outcome.error(500, "The server had an error")
        if fault == "hang":
            return Outcome.error(504, "gave up")
        if fault == "malformed":
            return Outcome(200, b'{"choices": [{"message": {"content": "Ye')
        return None
