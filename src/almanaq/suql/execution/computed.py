"""Conditions over answers that are more than a verdict: the database evaluates them, many rows at a time."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from sqlglot import exp

from almanaq.suql.databases.protocols import Session
from almanaq.suql.execution.render import Renderer
from almanaq.suql.execution.threads import in_thread
from almanaq.suql.plan.predicates import Computed
from almanaq.suql.plan.references import aliased, column, table
from almanaq.suql.plan.sites import FROM_ALIAS, TEXT_ALIAS, is_text_column
from almanaq.suql.syntax.nodes import nodes_of

_NUMBERS = itertools.count(1)


class ComputedAtoms:
    """Evaluates computed atoms for rows whose answers are known, in batches.

    Args:
        types: Arrow types of the source's columns.
        with_: members of WITH that the atoms' subqueries may need.
    """

    def __init__(self, session: Session, renderer: Renderer, with_: exp.With | None) -> None:
        self._session, self._renderer, self._with = session, renderer, with_
        self._waiting: dict[str, list[tuple[Mapping[str, Any], asyncio.Future[bool | None]]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def evaluate(self, atom: Computed, values: Mapping[str, Any]) -> bool | None:
        """Return the truth of an atom for one row, given the values of the columns that it refers to."""
        known = _without_database(atom, values)
        if known is not _ASK_DATABASE:
            return known  # type: ignore[return-value]
        future: asyncio.Future[bool | None] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(atom.column, [])
        waiting.append((values, future))
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
            results = await in_thread(self._run, atom, [values for values, _ in batch])
        except Exception as error:  # handed to every row that waits for it
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
            return
        for (_, future), result in zip(batch, results, strict=True):
            if not future.done():
                future.set_result(result)

    def _run(self, atom: Computed, rows: list[Mapping[str, Any]]) -> list[bool | None]:
        name = f"_computed_{next(_NUMBERS)}"
        references = {c.name: c for c in nodes_of(atom.expression, exp.Column) if c.table in (FROM_ALIAS, TEXT_ALIAS)}
        arrays = {key: _array([row[key] for row in rows], key) for key in references}
        self._session.store(name, pa.table({"_i": pa.array(range(len(rows)), pa.int64()), **arrays}))
        self._renderer.add_table(name)

        def read_from_table(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Column) and node.table in (FROM_ALIAS, TEXT_ALIAS):
                unknown = pa.types.is_null(arrays[node.name].type)  # PostgreSQL would take the column for text
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


def _array(values: list[Any], key: str) -> pa.Array:
    if not key.startswith("t"):
        return pa.array(values)
    return pa.array(values, pa.bool_() if "_" in key else pa.string())


_ASK_DATABASE = object()


def _without_database(atom: Computed, values: Mapping[str, Any]) -> object:
    """Decide `answer(…) IS [NOT] NULL` here: it needs no database."""
    node = atom.expression
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null) and is_text_column(node.this):
        return (values[node.this.name] is None) != bool(node.args.get("negate"))
    return _ASK_DATABASE
