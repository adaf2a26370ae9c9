"""Evaluating one row of a text stage: what it has to ask, what that costs, and the conditions over its answers."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from sqlglot import exp

from almanaq.engines.protocols import Session
from almanaq.models.protocols import Quote, TextCall
from almanaq.suql.execution.calls import NOTHING, Outcome, TextCalls
from almanaq.suql.execution.candidates import Candidate, PassageSelection, passages_of
from almanaq.suql.execution.evidence import SiteQuote, StageCounts, StageRow, keeper
from almanaq.suql.execution.render import Renderer
from almanaq.suql.execution.threads import in_thread
from almanaq.suql.plan.predicates import Atom, Computed, Verdict, atoms, may_look_at, truth_output, with_conditions
from almanaq.suql.plan.sites import FROM_ALIAS, TEXT_ALIAS, Site, is_text_column, site_of
from almanaq.suql.plan.stages import SiteInput, TextStage
from almanaq.suql.syntax.nodes import aliased, column, nodes_of, table

_NUMBERS = itertools.count(1)

Cells = tuple[pa.RecordBatch, int] | None
"""The columns that conditions read, and which row of them it is."""


@dataclass(frozen=True, slots=True)
class _Asked:
    replies: Mapping[str, Any]
    cells: Cells
    future: asyncio.Future[bool | None]


def cells_read(stage: TextStage) -> tuple[str, ...]:
    found = with_conditions(atoms(stage.predicate)) if stage.predicate is not None else []
    conditions = (atom.expression for atom in found if isinstance(atom, Computed))
    columns = (c for condition in conditions for c in nodes_of(condition, exp.Column) if c.table == FROM_ALIAS)
    return tuple(dict.fromkeys(c.name for c in columns))


class ComputedAtoms:
    def __init__(self, session: Session, renderer: Renderer, with_: exp.With | None) -> None:
        self._session, self._renderer, self._with = session, renderer, with_
        self._waiting: dict[str, list[_Asked]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def evaluate(self, atom: Computed, replies: Mapping[str, Any], cells: Cells) -> bool | None:
        """Return the truth of an atom for one row.

        Args:
            replies: the computed columns that it refers to, but for those that it does not look at.
            cells: the row's own, as the database gave them: as Python objects some would come back as others.
        """
        node = atom.expression
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null) and is_text_column(node.this):
            return (replies[node.this.name] is None) != bool(node.args.get("negate"))  # without the database
        future: asyncio.Future[bool | None] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(atom.column, [])
        waiting.append(_Asked(replies, cells, future))
        if len(waiting) == 1:
            task = asyncio.ensure_future(self._flush(atom))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await future

    async def _flush(self, atom: Computed) -> None:
        for _ in range(3):  # let the rows that are ready at the same moment join
            await asyncio.sleep(0)
        batch = self._waiting.pop(atom.column)
        try:
            results = await in_thread(self._run, atom, batch)
        except Exception as error:  # handed to every row that waits for it
            for row in batch:
                if not row.future.done():
                    row.future.set_exception(error)
            return
        for row, result in zip(batch, results, strict=True):
            if not row.future.done():
                row.future.set_result(result)

    def _run(self, atom: Computed, rows: list[_Asked]) -> list[bool | None]:
        name = f"_computed_{next(_NUMBERS)}"
        references = {c.name: c for c in nodes_of(atom.expression, exp.Column) if c.table in (FROM_ALIAS, TEXT_ALIAS)}
        stored = pa.table({"_i": pa.array(range(len(rows)), pa.int64())})
        for key, reference in references.items():
            if reference.table == TEXT_ALIAS:
                values = [row.replies.get(key) for row in rows]
                stored = stored.append_column(key, pa.array(values, pa.bool_() if "_" in key else pa.string()))
            else:
                stored = stored.append_column(*_cells(rows, key))
        self._renderer.store(name, stored)

        def read_from_table(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Column) and node.table in (FROM_ALIAS, TEXT_ALIAS):
                unknown = pa.types.is_null(stored[node.name].type)  # PostgreSQL would take the column for text
                return exp.null() if unknown else column(name, node.name)
            return node

        condition = atom.expression.transform(read_from_table)
        select = exp.Select(
            expressions=[aliased(column(name, "_i"), "_i"), truth_output(condition, "truth")],
            from_=exp.From(this=table(name)),
        )
        if self._with is not None:
            select.set("with_", self._with.copy())
        found = self._session.fetch(self._renderer.sql(select))
        truths: list[bool | None] = [None] * len(rows)
        for i, truth in zip(found["_i"].to_pylist(), found["truth"].to_pylist(), strict=True):
            truths[i] = truth
        return truths


def _cells(rows: list[_Asked], key: str) -> tuple[pa.Field, pa.ChunkedArray]:
    places = [row.cells for row in rows if row.cells is not None]
    runs = [list(part) for _, part in itertools.groupby(places, key=lambda place: id(place[0]))]
    chunks = [part[0][0].column(key).take(pa.array([number for _, number in part], pa.int64())) for part in runs]
    field = places[0][0].schema.field(key)
    return field, pa.chunked_array(chunks, field.type)


@dataclass(frozen=True, slots=True)
class RowContext:
    """What the rows of one stage share.

    Attributes:
        selection: reads only the best passages of each document; None reads all.
    """

    inputs: Mapping[str, SiteInput]
    needs: Mapping[str, tuple[str, ...]]
    calls: TextCalls
    computed: ComputedAtoms
    selection: PassageSelection | None
    counts: StageCounts


class RowEvaluation:
    """One row while it is asked about: its outcomes so far, and what the next would cost."""

    def __init__(self, context: RowContext, candidate: Candidate) -> None:
        self._context, self._candidate = context, candidate
        self._outcomes: dict[str, Outcome] = {}
        self._asked: set[str] = set()
        self._unknown: set[str] = set()
        self._passages = {site: passages_of(candidate.values[item.document]) for site, item in context.inputs.items()}
        self._numbers: dict[str, tuple[int, ...]] = {}
        self._call_of: dict[str, tuple[bytes, TextCall] | None] = {}

    async def select_passages(self) -> None:
        selection = self._context.selection
        for site, passages in self._passages.items() if selection is not None else ():
            assert selection is not None
            numbers = await selection.best(self._question(site), passages)
            self._numbers[site] = numbers
            self._passages[site] = tuple(passages[i] for i in numbers)

    def cost(self, atom: Atom) -> float:
        """Return the number of calls that an atom still takes, long documents counting for more."""
        total = 1e-3
        for site in self._context.needs[atom.column]:
            if site in self._outcomes or not may_look_at(atom, site, self._candidate.values):
                continue
            found = self._call(site)
            if found is not None and not self._context.calls.is_answered(found[0]):
                total += 1 + sum(map(len, found[1].passages)) / 4000
        return total

    async def truth(self, atom: Atom) -> bool | None:
        """Return the truth of an atom for the row; what rests on a failed call is NULL."""
        under = dict(atom.under) if isinstance(atom, Computed) else {}
        later = {site: condition for site, condition in under.items() if isinstance(condition, Computed)}
        needs = [site for site in self._context.needs[atom.column] if site not in later]
        needs = [site for site in needs if may_look_at(atom, site, self._candidate.values)]
        if len(needs) == 1:  # the usual case, without the tasks that gather() makes
            outcomes = [await self.outcome(needs[0])]
        else:
            outcomes = list(await asyncio.gather(*map(self.outcome, needs)))
        for site, condition in later.items():
            if not any(outcome.unknown for outcome in outcomes) and await self._compute(condition):
                outcomes.append(await self.outcome(site))
        if any(outcome.unknown for outcome in outcomes):
            self._unknown.add(atom.column)
            return None
        if isinstance(atom, Verdict):
            return self._values()[atom.column]  # type: ignore[no-any-return]
        assert isinstance(atom, Computed)
        return await self._compute(atom)

    async def _compute(self, atom: Computed) -> bool | None:
        replies = {name: self._context.calls.unify(value) for name, value in self._values().items()}
        return await self._context.computed.evaluate(atom, replies, self._candidate.cells)

    def is_unknown(self, atom: Atom) -> bool:
        """Return whether an atom that was found out rests on a call that failed."""
        return atom.column in self._unknown

    @property
    def has_unknown(self) -> bool:
        """Whether a call that was made for the row failed."""
        return any(outcome.unknown for outcome in self._outcomes.values())

    async def chance(self, verdict: Verdict) -> float | None:
        """Return how likely a verdict is "yes" by the reader that is asked; None where it does not say."""
        site = site_of(verdict.column)
        compared = self._context.inputs[site].site.compared
        literal = next(c for i, c in enumerate(compared) if f"{site}_{i}" == verdict.column)
        return (await self.outcome(site)).probabilities.get(literal)

    async def outcome(self, site: str, *, in_own_task: bool = False) -> Outcome:
        if site not in self._outcomes:
            found = self._call(site)
            if found is None:
                self._outcomes[site] = NOTHING
            else:
                item = self._context.inputs[site]
                column = f"{item.relation}.{item.column}"
                if item.relation and column not in self._asked:
                    self._asked.add(column)
                    self._context.counts.cells[column] += 1
                calls = self._context.calls
                answered = calls.within(item.site, await calls.ask(*found, in_own_task=in_own_task))
                self._outcomes[site] = answered
                if answered.reason:
                    calls.unknown_answers.add(
                        item, self._question(site), self._candidate, answered.reason, failed=answered.unknown
                    )
        return self._outcomes[site]

    def result(self) -> StageRow:
        quotes = [self._cite(site, quote) for site, outcome in self._outcomes.items() for quote in outcome.quotes]
        found = self._candidate
        key = {name: found.values[name] for item in self._context.inputs.values() for name in item.key}
        return StageRow(found.number, found.row, self._values(), quotes, key, found.payload)

    def _values(self) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for site, outcome in self._outcomes.items():
            compared = self._context.inputs[site].site.compared
            values[site] = outcome.value
            values.update({f"{site}_{i}": outcome.verdicts.get(literal) for i, literal in enumerate(compared)})
        return values

    def _cite(self, site: str, quote: Quote) -> SiteQuote:
        """Return a quote with the number of its passage in the whole document."""
        item = self._context.inputs[site]
        text = self._passages[site][quote.passage] if keeper() is not None else None
        numbers, document = self._numbers.get(site), self._candidate.values[item.document]
        number = numbers[quote.passage] if numbers is not None else quote.passage
        if isinstance(document, list):
            number = [i for i, part in enumerate(document) if part is not None and str(part).strip()][number]
        return SiteQuote(item, self._question(site), replace(quote, passage=number), text)

    def _question(self, site: str) -> str:
        return question_of(self._context.inputs[site], self._candidate)

    def _call(self, site: str) -> tuple[bytes, TextCall] | None:
        if site not in self._call_of:
            asked = self._context.inputs[site].site
            self._call_of[site] = call_of(asked, self._passages[site], self._question(site), self._context.calls)
        return self._call_of[site]


def question_of(item: SiteInput, candidate: Candidate) -> str:
    """Return what is asked of a row: the question that the query writes out, or the one that the row makes."""
    if item.question_column is None:
        return str(item.site.question.name)
    return str(candidate.values[item.question_column] or "")


def call_of(site: Site, passages: tuple[str, ...], question: str, calls: TextCalls) -> tuple[bytes, TextCall] | None:
    """Return the call that a site takes, with its identity; None where there is nothing to read or to ask."""
    nothing = not passages or not question.strip()
    if site.options_from is not None and not calls.options_of(site):
        nothing = True  # it can be none of them
    return None if nothing else calls.call_for(site, passages, question)


def calls_of(inputs: Sequence[SiteInput], calls: TextCalls) -> Callable[[Candidate], frozenset[bytes]]:
    def asks(candidate: Candidate) -> frozenset[bytes]:
        found = (call_of_row(item, candidate, calls) for item in inputs)
        return frozenset(call[0] for call in found if call is not None)

    return asks


def call_of_row(item: SiteInput, candidate: Candidate, calls: TextCalls) -> tuple[bytes, TextCall] | None:
    return call_of(item.site, passages_of(candidate.values[item.document]), question_of(item, candidate), calls)
