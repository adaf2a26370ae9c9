"""Rows given as they are found are the rows of the result, in its order and no more than its LIMIT."""

from __future__ import annotations

import asyncio

import pyarrow as pa
import pytest

import almanaq
from almanaq.testing import FunctionModel

IDS = list(range(40))
ROWS = pa.table({"id": IDS, "rank": [i * 7 % 40 for i in IDS], "t": [f"text {i}" for i in IDS]})
KEPT = "FROM r WHERE answer(t, 'even?') = 'Yes'"


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT id {KEPT} ORDER BY rank",
        f"SELECT id {KEPT} ORDER BY answer(t, 'name?') DESC, id",
        f"SELECT id {KEPT} ORDER BY rank DESC LIMIT 5",
        f"SELECT id {KEPT} ORDER BY rank LIMIT 2 + 3",
        f"SELECT id {KEPT} ORDER BY rank LIMIT 5 OFFSET 2",
        f"SELECT id, summary(t) {KEPT} ORDER BY rank LIMIT 4",
        f"SELECT count(*) {KEPT}",
    ],
)
def test_the_stream_is_the_result(query: str) -> None:
    def reply(text: str, question: str) -> str:
        return ("Yes" if int(text.split()[-1]) % 2 == 0 else "No") if question == "even?" else text

    async def stream() -> list[tuple[object, ...]]:
        return [row async for row in con.stream(query)]

    with almanaq.connect({"r": ROWS}, model=FunctionModel(reply, latency=0.001), order="table", concurrency=3) as con:
        assert asyncio.run(stream()) == con.sql(query).rows
