"""What a query is expected to take: before its first call, and anew with the replies."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from sqlglot import exp

from almanaq.engines.protocols import Session
from almanaq.errors import BudgetExceeded
from almanaq.event_loops import set_within
from almanaq.models.budget import estimate_tokens
from almanaq.suql.catalog.relations import Catalog
from almanaq.suql.execution.calls import TextCalls
from almanaq.suql.execution.candidates import Candidate, Candidates, CandidateStream, is_of_pairs
from almanaq.suql.execution.render import Renderer
from almanaq.suql.execution.row_evaluation import call_of_row
from almanaq.suql.execution.threads import in_thread
from almanaq.suql.plan.estimate import CHANCE_ROWS, Chances, Sharing, choose_first, estimate
from almanaq.suql.plan.predicates import atoms, may_look_at, sites_needed
from almanaq.suql.plan.stages import Plan, SiteInput, TextStage
from almanaq.suql.syntax.nodes import aliased, quoted


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a query is expected to take; replies that are kept already are not in it.

    Attributes:
        money: US dollars; None where the model's price is not known.
        most: where LIMIT ends it: if no text passes; None where that was not looked up.
        begun: whether it was made after the first replies, and goes by them.

    >>> print(Forecast(240, 40, 61000, 0.12))
    about 240 texts in 40 requests, 61,000 tokens, $0.12
    >>> print(Forecast(12, 2, 1200, 0.01, most=Forecast(90, 15, 9000, 0.08)))
    about 12 texts in 2 requests, 1,200 tokens, $0.01, until LIMIT has its rows; at most 90 texts, \
in about 15 requests, 9,000 tokens, $0.08
    """

    texts: int
    requests: int
    tokens: int
    money: float | None
    most: Forecast | None = None
    begun: bool = False

    def __str__(self) -> str:
        said = f"about {self.texts:,} texts in {self._cost}"
        if self.most is None:
            return said
        return f"{said}, until LIMIT has its rows; at most {self.most.texts:,} texts, in about {self.most._cost}"

    @property
    def figures(self) -> dict[str, Any]:
        """What is expected, by name, as JSON holds it."""
        return {"texts": self.texts, "requests": self.requests, "tokens": self.tokens, "money": self.money}

    @property
    def _cost(self) -> str:
        money = "price unknown" if self.money is None else f"${self.money:,.2f}"
        return f"{self.requests:,} requests, {self.tokens:,} tokens, {money}"


@dataclass
class Confirmation:
    """Asks before a query that is expected to take more than so many requests, or a thousandth of a dollar for each.

    Attributes:
        agreed: whether that was agreed to; it is asked once.
    """

    above: int
    ask: Callable[[Forecast], bool]
    agreed: bool = False

    def is_due(self, forecast: Forecast) -> bool:
        over = forecast.requests > self.above or (forecast.money or 0.0) > self.above / 1000
        return over and not self.agreed

    def check(self, forecast: Forecast) -> None:
        """Raise BudgetExceeded where a forecast is not agreed to."""
        if not self.is_due(forecast):
            return
        if not self.ask(forecast):
            begins, ends = "the query would take", "nothing was asked"
            if forecast.begun:
                begins, ends = "by its replies so far, the query would take", "replies are kept and not paid for again"
            raise BudgetExceeded(
                f"{begins} {forecast}, and was not confirmed: narrow its structured conditions, add a LIMIT or lower "
                f"it, or raise --confirm-above; {ends}"
            )
        self.agreed = True


_confirmation: ContextVar[Confirmation | None] = ContextVar("confirmation", default=None)


def confirming(above: int, ask: Callable[[Forecast], bool]) -> AbstractContextManager[None]:
    return set_within(_confirmation, Confirmation(above, ask))


def current_confirmation() -> Confirmation | None:
    """Return what one query has to be confirmed by; None where nobody wants to be asked."""
    found = _confirmation.get()
    return None if found is None else replace(found)


Tell = Callable[[int, int | None, int, Forecast | None], None]


@dataclass
class Watch:
    """Receives the progress of the text stage that runs.

    Attributes:
        tell: takes how many rows are done, how many there are (None: not known, or LIMIT ends it sooner), how many
            passed, and what the whole query is expected to take (None: before the first replies that were paid for).
        keeps: whether a query that is interrupted gives its rows so far, as Interrupted.
    """

    tell: Tell
    keeps: bool = True


_watch: ContextVar[Watch | None] = ContextVar("watch", default=None)


def watched(tell: Tell, *, keeps: bool = True) -> AbstractContextManager[None]:
    """Have the queries that are run in this block tell how far they are, and raise Interrupted at Ctrl-C."""
    return set_within(_watch, Watch(tell, keeps=keeps))


def current_watch() -> Watch | None:
    return _watch.get()


def expected_calls(
    plan: Plan, catalog: Catalog, rows: Mapping[str, int], candidates: int | None, first: TextStage
) -> list[int]:
    """Return the calls that the text stages of a plan are expected to take, from one of them on."""
    figures = estimate(plan, catalog, rows)
    texts = [stage for stage in plan.stages if isinstance(stage, TextStage)]
    left = itertools.dropwhile(lambda stage: stage is not first, texts)
    return [at_most(stage, figures[stage.name].calls, candidates) for stage in left]


def at_most(stage: TextStage, calls: int, candidates: int | None) -> int:
    """Return the calls of a stage where a filter asks about so many rows at most."""
    return calls if candidates is None or stage.predicate is None else min(calls, candidates * len(stage.inputs))


def count_rows(stage: TextStage, candidates: Candidates | None, session: Session, renderer: Renderer) -> int:
    """Return the rows that a stage has before it; `candidates` are None where to look at them would spend something."""
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
    """The calls that a stage has to make, by the rows that were looked at; asks no model."""

    def __init__(self, stage: TextStage, calls: TextCalls, *, whole: bool) -> None:
        self._stage, self._calls, self._whole = stage, calls, whole
        self._kept: list[dict[bytes, bool]] = [{} for _ in stage.inputs]
        self._keys: dict[object, bool] = {}
        self._chances = Chances(stage.inputs)
        self._atoms = atoms(stage.predicate) if stage.predicate is not None else []
        self._tokens = self._texts = self._rows = self._open = self._sure = 0
        self._all_seen = True

    async def look(
        self, session: Session, renderer: Renderer, enough: int, decided: Callable[[Candidate], bool | None]
    ) -> None:
        rows = CandidateStream(session, renderer.sql(self._stage.source))
        try:
            while self._all_seen and (found := await in_thread(rows.pull, _AT_ONCE)):
                self._rows += len(found)
                states = [decided(row) for row in found]
                self._open, self._sure = self._open + states.count(None), self._sure + states.count(True)
                await self._add([row for row, state in zip(found, states, strict=True) if state is None])
                self._all_seen = self.new <= enough or self._rows < _FEWEST_SEEN
        finally:
            await rows.aclose()

    async def _add(self, rows: Sequence[Candidate]) -> None:
        for item, known in zip(self._stage.inputs, self._kept, strict=True):
            asked = [call_of_row(item, row, self._calls) if self._may_ask(item, row) else None for row in rows]
            fresh = {found[0]: found[1] for found in asked if found is not None and found[0] not in known}
            looked_up = [self._calls.kept(call) for call in fresh.values() if self._whole]
            replies = await asyncio.gather(*looked_up)
            known |= {identity: self._calls.is_asked(identity) for identity in fresh}
            known |= {i: True for i, reply in zip(fresh, replies, strict=False) if reply is not None}
            for reply in replies:
                for verdict, literal in zip(item.site.columns[1:], item.site.compared, strict=True):
                    if reply is not None:
                        self._chances.learn(verdict, reply.verdicts.get(literal))
            new = [call for identity, call in fresh.items() if not known[identity]]
            self._texts += len(new)
            self._tokens += sum(estimate_tokens(passage) for call in new for passage in call.passages)
            if (key := self._stage.semi_join_key) is not None:
                for row, found in zip(rows, asked, strict=True):
                    if found is not None:
                        value = row.values[key]
                        self._keys[value] = self._keys.get(value, False) or known[found[0]]

    def _may_ask(self, item: SiteInput, row: Candidate) -> bool:
        site = item.site.id
        readers = [atom for atom in self._atoms if site in sites_needed(atom)]
        return not readers or any(may_look_at(atom, site, row.values) for atom in readers)

    @property
    def text_tokens(self) -> float:
        """The mean of the texts of new calls; 0 where only parts of them are read."""
        return self._tokens / max(1, self._texts) if self._whole else 0.0

    @property
    def kept(self) -> int:
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

    def until_enough(self, rows: int) -> tuple[int, int]:
        """Return how many new calls LIMIT is expected to take, with so many rows before it, and how many at most.

        That depends on the share of rows that pass, which nobody knows before: replies that are kept tell of it.
        """
        predicate, texts = self._stage.predicate, [max(1, len(known)) for known in self._kept]
        most, wanted = self.most(rows), self._stage.stop_after
        if predicate is None or wanted is None or not self._open:
            return most, most
        row = choose_first(predicate, self._chances.of)
        asked = wanted * self._open / max(1e-3, self._sure + self._open * row.chance)
        # A text of a join comes with many rows: n texts with n others make up to n * n of them.
        of_each = min(asked, (asked * math.prod(texts) / self._open) ** (1 / len(texts)))
        alike = len(set().union(*self._kept)) / sum(texts)
        return min(most, max(0, math.ceil(of_each * row.cost * alike) - self.kept)), most

    def most(self, rows: int) -> int:
        """Return how many texts are new, with so many rows before the stage."""
        return self._of_all(
            len({identity for known in self._kept for identity, kept in known.items() if not kept}), rows
        )

    @property
    def share(self) -> float:
        """The share of new calls among those seen; 0 where there were none."""
        return self.new / max(1, self.new + self.kept)

    def of(self, expected: int, rows: int) -> int:
        """Return how many of so many calls, about so many rows, are expected to be new."""
        return min(expected, self._of_all(self.new, rows))

    def _of_all(self, new: int, rows: int) -> int:
        """Return how many are new of so many rows, by those that were seen."""
        return new if self._all_seen else round(new * max(1.0, rows / self._rows))


_MISSES = 3
"""Rows without one that passed show a share below the supposed one where so many were supposed to pass: 19 in 20."""


class Reached(NamedTuple):
    """How far a text stage is.

    Attributes:
        started: rows that were tried, of which so many are `under_way`.
        missing: rows, or values, that are still wanted; None: all are.
        waiting: rows that can still be tried; None: not known.
    """

    started: int
    under_way: int
    passed: int
    missing: int | None
    waiting: int | None


class Course:
    """Tells how far a text stage is, and forecasts anew, by its replies so far, what the query takes; asks no model.

    The share of rows that pass is that of the rows so far, and of CHANCE_ROWS rows with the share supposed before any.
    What a request costs is what those so far cost.

    Args:
        rows: rows that the stage has; None: not known, or LIMIT ends it sooner.
        later: calls that later stages are expected to make.
        most: calls that the stage makes if no row passes; None: `count_new` is asked once a confirmation depends on it.
    """

    def __init__(
        self,
        stage: TextStage,
        calls: TextCalls,
        sharing: Sharing,
        watch: Watch | None,
        confirmation: Confirmation | None,
        *,
        rows: int | None,
        later: int,
        most: int | None,
        count_new: Callable[[], Awaitable[int]],
    ) -> None:
        self._stage, self._calls, self._sharing = stage, calls, sharing
        self._watch, self._confirmation = watch, confirmation
        self._rows, self._later, self._most, self._count_new = rows, later, most, count_new
        self._made, self._spent = calls.made, calls.usage
        self._free = 0
        predicate = stage.predicate
        self._chance = 1.0 if predicate is None else choose_first(predicate, Chances(stage.inputs).of).chance
        self._pairs = is_of_pairs(stage)

    async def go_on(self, reached: Reached) -> None:
        """Tell how far the stage is; raises BudgetExceeded where what the query is to take is not agreed to."""
        forecast, confirmation = self._forecast(reached), self._confirmation
        if self._watch is not None:
            self._watch.tell(reached.started - reached.under_way, self._rows, reached.passed, forecast)
        if forecast is None or confirmation is None or not confirmation.is_due(forecast):
            return
        if self._most is None:
            self._most = self._calls.made - self._made + await self._count_new()
            forecast = self._forecast(reached)
        if forecast is not None:
            await in_thread(confirmation.check, forecast)

    def _forecast(self, reached: Reached) -> Forecast | None:
        started, under_way, passed, missing, waiting = reached
        made = self._calls.made - self._made
        if not (self._calls.usage - self._spent).calls:
            self._free = started - under_way  # their replies were kept
            return None
        if self._pairs and missing is None and self._most is None:
            return None  # how many texts are left shows when the last begins
        more = 0.0
        if missing is not None:
            if not passed and (started - under_way) * self._chance < _MISSES:
                return None  # that none of so few passed may be chance
            share = (CHANCE_ROWS * self._chance + passed) / (CHANCE_ROWS + started - under_way)
            more = missing / max(1e-6, share) - under_way
        elif self._rows is not None:
            more = self._rows - started
        more = max(0.0, more if waiting is None else min(more, waiting))
        # Of a join under LIMIT, n texts make up to n * n rows.
        exponent = 1 / len(self._stage.inputs) if self._pairs else 1.0
        texts = math.ceil(made * (1 + more / max(1, started - self._free)) ** exponent)
        if self._most is None:
            return self._of(texts - made)
        most = max(made, self._most)
        return replace(self._of(min(texts, most) - made), most=None if missing is None else self._of(most - made))

    def _of(self, texts: int) -> Forecast:
        """Return what the query takes in all with so many texts that this stage has not asked about yet."""
        calls, spent = self._calls, self._calls.usage
        so_far, texts = spent - self._spent, texts + self._later
        requests = self._sharing.requests(self._stage, texts + calls.under_way)
        each = requests / so_far.calls
        tokens = spent.input_tokens + spent.output_tokens + each * (so_far.input_tokens + so_far.output_tokens)
        money = None if spent.money is None or so_far.money is None else spent.money + each * so_far.money
        return Forecast(calls.made + texts, spent.calls + requests, round(tokens), money, begun=True)
