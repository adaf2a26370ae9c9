"""Conditions over answers that are more than a verdict: the database evaluates them, many rows at a time."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sqlglot import exp

from almanaq.engines.protocols import Session
from almanaq.suql.execution.render import Renderer
from almanaq.suql.execution.threads import in_thread
from almanaq.suql.plan.predicates import Computed, atoms
from almanaq.suql.plan.references import aliased, column, table
from almanaq.suql.plan.sites import FROM_ALIAS, TEXT_ALIAS, is_text_column
from almanaq.suql.plan.stages import TextStage
from almanaq.suql.syntax.nodes import nodes_of

_NUMBERS = itertools.count(1)

Cells = tuple[pa.RecordBatch, int] | None
"""The columns that conditions read, and which row of them it is."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """One row that waits for the truth of an atom."""

    replies: Mapping[str, Any]
    cells: Cells
    future: asyncio.Future[bool | None]


def cells_read(stage: TextStage) -> tuple[str, ...]:
    """Return the columns of a stage's source that conditions over answers read."""
    found = atoms(stage.predicate) if stage.predicate is not None else []
    conditions = (atom.expression for atom in found if isinstance(atom, Computed))
    columns = (c for condition in conditions for c in nodes_of(condition, exp.Column) if c.table == FROM_ALIAS)
    return tuple(dict.fromkeys(c.name for c in columns))


class ComputedAtoms:
    """Evaluates computed atoms for rows whose answers are known, in batches.

    Args:
        with_: members of WITH that the atoms' subqueries may need.
    """

    def __init__(self, session: Session, renderer: Renderer, with_: exp.With | None) -> None:
        self._session, self._renderer, self._with = session, renderer, with_
        self._waiting: dict[str, list[_Asked]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def evaluate(self, atom: Computed, replies: Mapping[str, Any], cells: Cells) -> bool | None:
        """Return the truth of an atom for one row.

        Args:
            replies: the computed columns that it refers to.
            cells: the row's own, as the database gave them: as Python objects some would come back as others.
        """
        known = _without_database(atom, replies)
        if known is not _ASK_DATABASE:
            return known  # type: ignore[return-value]
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
                stored = stored.append_column(key, _replies([row.replies[key] for row in rows], key))
            else:
                stored = stored.append_column(*_cells(rows, key))
        self._session.store(name, stored)
        self._renderer.add_table(name)

        def read_from_table(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Column) and node.table in (FROM_ALIAS, TEXT_ALIAS):
                unknown = pa.types.is_null(stored[node.name].type)  # PostgreSQL would take the column for text
                return exp.null() if unknown else column(name, node.name)
            return node

        condition = atom.expression.transform(read_from_table)
        select = exp.Select(
            expressions=[aliased(column(name, "_i"), "_i"), aliased(condition, "truth")],
            from_=exp.From(this=table(name)),
        )
        if self._with is not None:
            select.set("with_", self._with.copy())
        found = self._session.fetch(self._renderer.sql(select))
        truths: list[bool | None] = [None] * len(rows)
        for i, truth in zip(found["_i"].to_pylist(), found["truth"].to_pylist(), strict=True):
            truths[i] = truth
        return truths


def _replies(values: list[Any], key: str) -> pa.Array:
    return pa.array(values, pa.bool_() if "_" in key else pa.string())


def _cells(rows: list[_Asked], key: str) -> tuple[pa.Field, pa.ChunkedArray]:
    """Return a column of the rows, and its field, from the batches that they stand in."""
    places = [row.cells for row in rows if row.cells is not None]
    chunks = [
        part[0][0].column(key).take(pa.array([number for _, number in part], pa.int64())) for part in _runs(places)
    ]
    field = places[0][0].schema.field(key)
    return field, pa.chunked_array(chunks, field.type)


def _runs(places: list[tuple[pa.RecordBatch, int]]) -> list[list[tuple[pa.RecordBatch, int]]]:
    """Return rows that follow each other in one batch, together."""
    return [list(part) for _, part in itertools.groupby(places, key=lambda place: id(place[0]))]


_ASK_DATABASE = object()


def _without_database(atom: Computed, values: Mapping[str, Any]) -> object:
    """Decide `answer(…) IS [NOT] NULL` here: it needs no database."""
    node = atom.expression
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null) and is_text_column(node.this):
        return (values[node.this.name] is None) != bool(node.args.get("negate"))
    return _ASK_DATABASE
