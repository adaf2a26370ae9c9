"""What a whole turn took: parsing, linking, the query and its retries, relaxing and wording, in one trace."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from almanaq.agent.events import Event
from almanaq.agent.response import Response
from almanaq.models.budget import Spending, enter_account

if TYPE_CHECKING:
    from almanaq.suql.result import Trace

Steps = Generator[Event, None, Response]


class TurnAccount:
    """The account of one turn, whose steps may each be made in another thread."""

    def __init__(self) -> None:
        self._spent = Spending()

    def watch(self, steps: Steps) -> Steps:
        """Yield the events of the steps, and enter what each spends."""
        try:
            while True:
                with enter_account(self._spent):
                    try:
                        event = next(steps)
                    except StopIteration as end:
                        response: Response = end.value
                        return response
                yield event
        finally:
            steps.close()

    def told(self, response: Response) -> Response:
        """Return the reply with a trace of all calls of the turn; as it is where no model was asked."""
        lines, usage = self._spent.lines, self._spent.usage
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
            dropped_quotes=self._spent.dropped_quotes,
            spending=lines,
        )
        return replace(response, trace=trace)


def with_earlier(trace: Trace, earlier: Sequence[Trace]) -> Trace:
    """Return the trace of a turn's last query with what its earlier ones asked of texts."""
    every = (trace, *earlier)
    counts = ("text_calls", "cached_calls", "unknown_calls", "candidate_rows", "seconds")
    return replace(trace, **{name: sum(getattr(each, name) for each in every) for name in counts})
