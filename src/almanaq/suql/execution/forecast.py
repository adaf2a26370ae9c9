"""What a query is expected to take: its calls, less those whose replies are kept, and who has to agree to them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from sqlglot import exp

from almanaq.engines.protocols import Session
from almanaq.errors import BudgetExceeded
from almanaq.models.budget import estimate_tokens
from almanaq.suql.catalog.relations import Catalog
from almanaq.suql.execution.calls import TextCalls
from almanaq.suql.execution.candidates import Candidate, CandidateStream
from almanaq.suql.execution.render import Renderer
from almanaq.suql.execution.row_evaluation import call_of_row
from almanaq.suql.execution.threads import in_thread
from almanaq.suql.execution.trial_order import Candidates
from almanaq.suql.plan.estimate import estimate
from almanaq.suql.plan.stages import Plan, TextStage
from almanaq.suql.syntax.nodes import aliased, quoted


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a query is expected to take; replies that are kept already are not in it.

    Attributes:
        money: US dollars; None where the model's price is not known.

    >>> print(Forecast(240, 40, 61000, 0.12))
    about 240 texts in 40 requests, 61,000 tokens, $0.12
    """

    texts: int
    requests: int
    tokens: int
    money: float | None

    def __str__(self) -> str:
        money = "price unknown" if self.money is None else f"${self.money:,.2f}"
        return f"about {self.texts:,} texts in {self.requests:,} requests, {self.tokens:,} tokens, {money}"


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Asks before a query that is expected to take more than so many requests, or a thousandth of a dollar for each."""

    above: int
    ask: Callable[[Forecast], bool]

    def check(self, forecast: Forecast) -> None:
        """Raise BudgetExceeded where whoever is asked says no; blocks until then."""
        over = forecast.requests > self.above or (forecast.money or 0.0) > self.above / 1000
        if over and not self.ask(forecast):
            raise BudgetExceeded(
                f"the query would take {forecast}, and was not confirmed: narrow its structured conditions, add a "
                "LIMIT, or raise --confirm-above; nothing was asked"
            )


_confirmation: ContextVar[Confirmation | None] = ContextVar("confirmation", default=None)


@contextmanager
def confirming(above: int, ask: Callable[[Forecast], bool]) -> Iterator[None]:
    """Have the queries that are run in this block ask before they take more."""
    token = _confirmation.set(Confirmation(above, ask))
    try:
        yield
    finally:
        _confirmation.reset(token)


def current_confirmation() -> Confirmation | None:
    """Return who is to agree; None where nobody is asked."""
    return _confirmation.get()


def expected_calls(plan: Plan, catalog: Catalog, rows: Mapping[str, int], candidates: int | None) -> dict[str, int]:
    """Return the calls that each text stage of a plan is expected to make, by its name.

    Args:
        rows: rows of the tables that were made already.
        candidates: the most rows that a filter asks about, by the user's choice.
    """
    figures = estimate(plan, catalog, rows)
    texts = [stage for stage in plan.stages if isinstance(stage, TextStage)]
    return {stage.name: at_most(stage, figures[stage.name].calls, candidates) for stage in texts}


def at_most(stage: TextStage, calls: int, candidates: int | None) -> int:
    """Return the calls of a stage where a filter asks about so many rows at most."""
    return calls if candidates is None or stage.predicate is None else min(calls, candidates * len(stage.inputs))


def count_rows(stage: TextStage, candidates: Candidates | None, session: Session, renderer: Renderer) -> int:
    """Return the rows that a stage has before it; blocks while the database looks for them.

    Args:
        candidates: the stage's; None where to look at them would spend something.
    """
    rows = candidates.count_ahead() if isinstance(candidates, CandidateStream) else None
    if rows is None:
        source = exp.Subquery(this=stage.source.copy(), alias=exp.TableAlias(this=quoted("_asked")))
        count = exp.Select(expressions=[aliased(exp.Count(this=exp.Star()), "n")], from_=exp.From(this=source))
        rows = int(session.fetch(renderer.sql(count)).column(0)[0].as_py())
    return rows


_AT_ONCE = 500
"""Rows whose replies are looked up together."""
_FEWEST_SEEN = 10_000
"""Rows that are looked at however many new calls they take: the figure in a refusal is exact for fewer."""


class NewCalls:
    """The calls that a stage has to make, by the rows that were looked at; asks no model.

    Args:
        whole: texts are read whole; else a cache does not show which replies it has.
    """

    def __init__(self, stage: TextStage, calls: TextCalls, *, whole: bool) -> None:
        self._stage, self._calls, self._whole = stage, calls, whole
        self._kept: list[dict[bytes, bool]] = [{} for _ in stage.inputs]
        self._keys: dict[object, bool] = {}
        self._tokens = self._texts = self._rows = 0
        self._all_seen = True

    async def look(
        self, session: Session, renderer: Renderer, enough: int, decided: Callable[[Candidate], bool | None]
    ) -> None:
        """Look at the rows of the stage.

        Args:
            enough: of many rows, stop once more calls than that are new.
            decided: tells which rows are decided without asking.
        """
        rows = CandidateStream(session, renderer.sql(self._stage.source))
        try:
            while self._all_seen and (found := await in_thread(rows.pull, _AT_ONCE)):
                self._rows += len(found)
                await self._add([row for row in found if decided(row) is None])
                self._all_seen = self.new <= enough or self._rows < _FEWEST_SEEN
        finally:
            await rows.aclose()

    async def _add(self, rows: Sequence[Candidate]) -> None:
        for item, known in zip(self._stage.inputs, self._kept, strict=True):
            asked = [call_of_row(item, row, self._calls) for row in rows]
            fresh = {found[0]: found[1] for found in asked if found is not None and found[0] not in known}
            looked_up = [self._calls.kept(call) for call in fresh.values() if self._whole]
            known |= dict.fromkeys(fresh, False) | dict(zip(fresh, await asyncio.gather(*looked_up), strict=False))
            new = [call for identity, call in fresh.items() if not known[identity]]
            self._texts += len(new)
            self._tokens += sum(estimate_tokens(passage) for call in new for passage in call.passages)
            if (key := self._stage.semi_join_key) is not None:
                for row, found in zip(rows, asked, strict=True):
                    if found is not None:
                        value = row.values[key]
                        self._keys[value] = self._keys.get(value, False) or known[found[0]]

    @property
    def text_tokens(self) -> float:
        """The mean of the texts of new calls; 0 where only parts of them are read."""
        return self._tokens / max(1, self._texts) if self._whole else 0.0

    @property
    def kept(self) -> int:
        """Calls whose replies are kept."""
        return max(sum(known.values()) for known in self._kept)

    @property
    def new(self) -> int:
        """Calls that are made for any content of the cached replies.

        For a value of a semi-join's key one reply may do, and in a filter the replies to one of its inputs.
        """
        if self._stage.semi_join_key is not None:
            wanted = self._stage.values_wanted
            new = sum(not kept for kept in self._keys.values())
            return new if wanted is None else max(0, min(new, wanted - len(self._keys) + new))
        new_calls = [len(known) - sum(known.values()) for known in self._kept]
        if self._stage.predicate is None:
            return sum(new_calls)
        return min(new_calls) if self.kept else max(new_calls)

    @property
    def share(self) -> float:
        """The share of new calls among those seen; 0 where there were none."""
        return self.new / max(1, self.new + self.kept)

    def of(self, expected: int, rows: int | None) -> int:
        """Return how many of so many calls, about so many rows, are expected to be new; None: a LIMIT stops them."""
        if rows is not None:
            return min(expected, self.new if self._all_seen else round(self.new * max(1.0, rows / self._rows)))
        others = max(0, expected - self.kept)
        return min(self.new, others) if self._all_seen else others
