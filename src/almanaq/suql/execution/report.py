"""What a query is expected to take, and what its run says of itself: progress, figures, warnings."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from almanaq.engines.protocols import Session
from almanaq.errors import BudgetExceeded, ModelCallError, ModelError
from almanaq.event_loops import set_within
from almanaq.models.budget import Spending, SpendingLine, estimate_tokens
from almanaq.models.protocols import Usage
from almanaq.models.retrying import describe_failure
from almanaq.suql.accuracy.targets import Inference
from almanaq.suql.catalog.relations import Catalog
from almanaq.suql.execution.calls import TextCalls
from almanaq.suql.execution.candidates import Candidate, Candidates, CandidateStream, PassageSelection
from almanaq.suql.execution.evidence import StageCounts
from almanaq.suql.execution.render import Renderer
from almanaq.suql.execution.row_evaluation import call_of_row
from almanaq.suql.execution.threads import in_thread
from almanaq.suql.plan.estimate import Chances, estimate
from almanaq.suql.plan.predicates import choose, sites_needed
from almanaq.suql.plan.stages import Plan, TextStage
from almanaq.suql.syntax.nodes import aliased, quoted


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a query is expected to take; replies that are kept already are not in it.

    Attributes:
        money: US dollars; None where the model's price is not known.
        most: where LIMIT ends it: if no text passes.

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

    def __str__(self) -> str:
        said = f"about {self.texts:,} texts in {self._cost}"
        if self.most is None:
            return said
        return f"{said}, until LIMIT has its rows; at most {self.most.texts:,} texts, in about {self.most._cost}"

    @property
    def _cost(self) -> str:
        money = "price unknown" if self.money is None else f"${self.money:,.2f}"
        return f"{self.requests:,} requests, {self.tokens:,} tokens, {money}"


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Asks before a query that is expected to take more than so many requests, or a thousandth of a dollar for each."""

    above: int
    ask: Callable[[Forecast], bool]

    def check(self, forecast: Forecast) -> None:
        over = forecast.requests > self.above or (forecast.money or 0.0) > self.above / 1000
        if over and not self.ask(forecast):
            raise BudgetExceeded(
                f"the query would take {forecast}, and was not confirmed: narrow its structured conditions, add a "
                "LIMIT, or raise --confirm-above; nothing was asked"
            )


_confirmation: ContextVar[Confirmation | None] = ContextVar("confirmation", default=None)


def confirming(above: int, ask: Callable[[Forecast], bool]) -> AbstractContextManager[None]:
    return set_within(_confirmation, Confirmation(above, ask))


def current_confirmation() -> Confirmation | None:
    return _confirmation.get()


def expected_calls(plan: Plan, catalog: Catalog, rows: Mapping[str, int], candidates: int | None) -> dict[str, int]:
    figures = estimate(plan, catalog, rows)
    texts = [stage for stage in plan.stages if isinstance(stage, TextStage)]
    return {stage.name: at_most(stage, figures[stage.name].calls, candidates) for stage in texts}


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
            asked = [call_of_row(item, row, self._calls) for row in rows]
            fresh = {found[0]: found[1] for found in asked if found is not None and found[0] not in known}
            looked_up = [self._calls.kept(call) for call in fresh.values() if self._whole]
            replies = await asyncio.gather(*looked_up)
            known |= dict.fromkeys(fresh, False) | {i: r is not None for i, r in zip(fresh, replies, strict=False)}
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
        most = sum(len(known) - sum(known.values()) for known in self._kept)
        if not self._all_seen:
            most = round(most * max(1.0, rows / self._rows))
        wanted = self._stage.stop_after
        if predicate is None or wanted is None or not self._open:
            return most, most
        row = choose(predicate, {}, lambda atom: len(sites_needed(atom)), self._chances.of)
        asked = wanted * self._open / max(1e-3, self._sure + self._open * row.chance)
        # A text of a join comes with many rows: n texts with n others make up to n * n of them.
        of_each = min(asked, (asked * math.prod(texts) / self._open) ** (1 / len(texts)))
        alike = len(set().union(*self._kept)) / sum(texts)
        return min(most, max(0, math.ceil(of_each * row.cost * alike) - self.kept)), most

    @property
    def share(self) -> float:
        """The share of new calls among those seen; 0 where there were none."""
        return self.new / max(1, self.new + self.kept)

    def of(self, expected: int, rows: int) -> int:
        """Return how many of so many calls, about so many rows, are expected to be new."""
        return min(expected, self.new if self._all_seen else round(self.new * max(1.0, rows / self._rows)))


@dataclass
class Watch:
    """Receives the progress of the text stage that runs.

    Attributes:
        tell: takes how many rows are done, how many there are (None: not known), and how many passed.
        total: rows of the stage; None while they are not counted, or where a LIMIT ends it sooner.
        keeps: whether a query that is interrupted gives its rows so far, as Interrupted.
    """

    tell: Callable[[int, int | None, int], None]
    total: int | None = None
    keeps: bool = True

    def done(self, rows: int, passed: int) -> None:
        self.tell(rows, self.total, passed)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, where rows are there that are surely in the full result."""

    def __init__(self, partial: object) -> None:
        super().__init__("interrupted")
        self.partial = partial


_watch: ContextVar[Watch | None] = ContextVar("watch", default=None)


def watched(tell: Callable[[int, int | None, int], None], *, keeps: bool = True) -> AbstractContextManager[None]:
    """Have the queries that are run in this block tell how far they are, and raise Interrupted at Ctrl-C."""
    return set_within(_watch, Watch(tell, keeps=keeps))


def current_watch() -> Watch | None:
    return _watch.get()


@dataclass
class RunReport:
    """What each stage did, by the name of the table it made: rows for SQL stages, counts for text stages."""

    rows: dict[str, int] = field(default_factory=dict)
    text: dict[str, StageCounts] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def figures(self, spent: Sequence[SpendingLine] = ()) -> dict[str, dict[str, Any]]:
        """Return what each stage took, as EXPLAIN shows it; `spent` holds the tokens and money of paid calls."""
        found: dict[str, dict[str, Any]] = {name: {"rows": rows} for name, rows in self.rows.items()}
        for name, counts in self.text.items():
            usage = sum((line.usage for line in spent if line.operator == name), Usage())
            tokens = usage.input_tokens + usage.output_tokens
            found[name] = {"rows": counts.passed, "candidates": counts.candidates, "calls": counts.calls}
            found[name] |= {"tokens": tokens, "money": usage.money}
            if counts.inference is not None:
                found[name] |= _inference_figures(counts.inference)
        for name, seconds in self.seconds.items():
            found[name]["seconds"] = round(seconds, 4)
        return found


def _inference_figures(inference: Inference) -> dict[str, Any]:
    known = inference.certificate
    return {
        "expected": inference.expected,
        "asked": known.asked,
        "accepted unasked": known.accepted,
        "rejected unasked": known.rejected,
        "wrongly accepted at most": known.wrongly_accepted,
        "wrongly rejected at most": known.wrongly_rejected,
        "recall at least": round(known.recall, 4),
        "precision at least": round(known.precision, 4),
        "seed": inference.targets.seed,
    }


_ENOUGH, _MOSTLY = 10, 0.8
"""Texts, and the share of them without information, from which on `local` is no judge of what was asked."""


def table_order(problem: ModelError) -> str:
    """Say that rows are tried in table order, and why: only the number of calls may be another."""
    cause = describe_failure(problem)[0] if isinstance(problem, ModelCallError) else str(problem)
    return f"rows are tried in table order: the embedder failed ({cause})"


def list_warnings(
    calls: TextCalls,
    account: Spending,
    selection: PassageSelection | None,
    inference: Inference | None,
    *,
    certain: bool,
) -> Iterator[str]:
    if unreadable := calls.unknown_answers.unreadable:
        yield f"{unreadable} answer(s) could not be read as the type asked for; they are NULL"
    if calls.unknown:
        yield f"{calls.unknown} call(s) failed ({calls.causes}); their answers are unknown: the rows are not exact"
    if calls.unknown and not certain:
        yield (
            f"rows may be shown that should not, or values be wrong: {calls.unknown} answer(s) are unknown, and the "
            "query shows rows by what others lack (NOT IN, EXCEPT, an outer join, …) or computes with them"
        )
    read = calls.made + calls.cached
    if calls.reads_words_alone and read >= _ENOUGH and calls.silent >= _MOSTLY * read:
        yield (
            f"`local` found no information in {calls.silent:,} of {read:,} texts: it recognizes what is said in the "
            "words of the question; a language model understands other words"
        )
    if account.read_in_parts:
        yield (
            f"{account.read_in_parts} text(s) were longer than the model reads at once: each was read in parts, "
            "and its answer is made of theirs"
        )
    if account.cut_prompts:
        yield (
            f"the server read only a part of {account.cut_prompts} prompt(s), without a word: these texts were read "
            "again in smaller parts; give the model a larger context (Ollama: num_ctx)"
        )
    if selection is not None:
        yield f"approximate: read {selection.read} of {selection.total} passages"
    if inference is not None and inference.saves_little:
        yield (
            f"accuracy: about {inference.expected:,} of {inference.rows:,} rows were expected to be asked: the "
            "exact query is as cheap, leave accuracy out"
        )
