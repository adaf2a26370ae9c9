"""How many calls of a text stage are new: of distinct texts that are not blank, and whose replies no cache has."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from almanaq.engines.protocols import Session
from almanaq.suql.execution.calls import TextCalls
from almanaq.suql.execution.candidates import Candidate, CandidateStream, passages_of
from almanaq.suql.execution.render import Renderer
from almanaq.suql.execution.row_evaluation import call_of, question_of
from almanaq.suql.execution.threads import in_thread
from almanaq.suql.plan.stages import TextStage

_AT_ONCE = 500
"""Rows whose replies are looked up together."""


@dataclass(frozen=True, slots=True)
class NewCalls:
    """Calls of a stage that are surely new, and those whose replies are kept.

    Attributes:
        all_seen: every row was looked at; else there are more of both.
        stops: the stage ends when enough rows passed.
    """

    new: int
    kept: int
    all_seen: bool
    stops: bool

    @property
    def share(self) -> float:
        """The share of new calls among those seen; 0 where there were none."""
        return self.new / max(1, self.new + self.kept)

    def of(self, expected: int) -> int:
        """Return how many of so many calls are expected to be new."""
        others = max(0, expected - self.kept)
        if not self.all_seen:
            return others if self.stops else max(others, min(expected, self.new))
        return min(self.new, others if self.stops else expected)


async def new_calls(stage: TextStage, calls: TextCalls, session: Session, renderer: Renderer, enough: int) -> NewCalls:
    """Count the calls that a stage has to make; asks no model.

    Args:
        enough: stop once more calls than that are new.
    """
    seen = _Seen(stage, calls)
    rows = CandidateStream(session, renderer.sql(stage.source))
    try:
        while found := await in_thread(rows.pull, _AT_ONCE):
            await seen.add(found)
            if seen.new > enough:
                return NewCalls(seen.new, seen.kept, all_seen=False, stops=stage.stop_after is not None)
    finally:
        await rows.aclose()
    return NewCalls(seen.new, seen.kept, all_seen=True, stops=stage.stop_after is not None)


class _Seen:
    """The calls of the rows that were looked at, by the inputs of a stage, and by the values of a semi-join's key."""

    def __init__(self, stage: TextStage, calls: TextCalls) -> None:
        self._stage, self._calls = stage, calls
        self._kept: list[dict[bytes, bool]] = [{} for _ in stage.inputs]
        self._keys: dict[object, bool] = {}

    async def add(self, rows: Sequence[Candidate]) -> None:
        """Look for the replies to what is asked of some rows."""
        for item, known in zip(self._stage.inputs, self._kept, strict=True):
            asked = [
                call_of(item.site, passages_of(row.values[item.document]), question_of(item, row), self._calls)
                for row in rows
            ]
            fresh = {found[0]: found[1] for found in asked if found is not None and found[0] not in known}
            known.update(zip(fresh, await asyncio.gather(*map(self._calls.kept, fresh.values())), strict=True))
            if (key := self._stage.semi_join_key) is not None:
                for row, found in zip(rows, asked, strict=True):
                    if found is not None:
                        value = row.values[key]
                        self._keys[value] = self._keys.get(value, False) or known[found[0]]

    @property
    def kept(self) -> int:
        """Calls whose replies are kept."""
        return max(sum(known.values()) for known in self._kept)

    @property
    def new(self) -> int:
        """Calls that are made whatever the replies that are kept say.

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
