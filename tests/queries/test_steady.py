"""A model whose calls cost nothing gives the same rows every time, however long each call takes."""

from __future__ import annotations

import asyncio
import random

import pyarrow as pa
import pytest

import almanaq
from almanaq.models.protocols import TextCall, TextReply
from almanaq.testing import FunctionModel

IDS = list(range(60))
ROWS = pa.table({"id": IDS, "kind": [i % 5 for i in IDS], "t": [f"text {i}" for i in IDS]})


class Uneven(FunctionModel):
    """Answers after a number of turns of the event loop that a seed decides."""

    def __init__(self, seed: int) -> None:
        super().__init__(lambda text, _: "Yes" if int(text.split()[-1]) % 3 == 0 else "No")
        self._random = random.Random(seed)

    async def read(self, call: TextCall) -> TextReply:
        for _ in range(self._random.randrange(12)):
            await asyncio.sleep(0)
        return await super().read(call)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("order", ["table", "similarity"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM r WHERE answer(t, 'odd?') = 'Yes' LIMIT 7",
        "SELECT id FROM r WHERE kind <> 1 AND answer(t, 'odd?') = 'Yes' LIMIT 3 OFFSET 2",
        "SELECT id FROM r WHERE answer(t, 'odd?') = 'Yes' LIMIT 16",
        "SELECT id FROM r WHERE answer(t, 'odd?') = 'Yes' ORDER BY kind, id DESC LIMIT 4",
    ],
)
def test_rows_hang_on_no_duration(order, query) -> None:
    found = set()
    for seed in range(6):
        with almanaq.connect({"r": ROWS}, model=Uneven(seed), order=order, speculation=3.0) as con:
            streamed = asyncio.run(collected(con, query))
            rows = con.sql(query).rows
            assert sorted(streamed) == sorted(rows)
            found.add(tuple(rows))
    assert len(found) == 1


async def collected(con: almanaq.Connection, query: str) -> list[tuple[object, ...]]:
    return [row async for row in con.stream(query)]
