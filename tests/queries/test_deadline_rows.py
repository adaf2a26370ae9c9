"""A query that its deadline ends hands over the rows that were found, where each of them is surely in its result."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import almanaq
from almanaq.errors import DeadlineExceeded
from almanaq.models.protocols import TextCall, TextReply
from almanaq.testing import FunctionModel

from .support import Asked

pytestmark = pytest.mark.usefixtures("engine")

_WANTED = "answer(body, 'calm?') = 'Yes'"


class _Halting(FunctionModel):
    """Answers for the first texts at once, and for the others never."""

    def __init__(self) -> None:
        super().__init__(lambda text, question: "No" if text == "text 1" else "Yes")

    async def read(self, call: TextCall) -> TextReply:
        if int(" ".join(call.passages).split()[-1]) > 4:
            await asyncio.sleep(60)
        return await super().read(call)


def _ended(query: str) -> DeadlineExceeded:
    import pyarrow as pa

    tables = {"t": pa.table({"id": list(range(12)), "body": [f"text {n}" for n in range(12)]})}
    options: dict[str, Any] = {"model": _Halting(), "cache": False, "deadline": 2.0, "order": "table"}
    with almanaq.connect(Asked.source(tables), **options) as con, pytest.raises(DeadlineExceeded) as caught:
        con.sql(query)
    return caught.value


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT id FROM t WHERE {_WANTED}",
        f"SELECT upper(body), id FROM t WHERE {_WANTED} ORDER BY id LIMIT 9",
    ],
)
def test_rows_that_are_sure_come_with_the_error(query: str) -> None:
    partial = _ended(query).partial
    assert isinstance(partial, almanaq.Result)
    assert [row[-1] for row in partial.rows] == [0, 2, 3, 4]
    assert partial.trace.partial
    assert len(partial.evidence) == 4


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT count(*) FROM t WHERE {_WANTED}",
        f"SELECT id FROM t WHERE id NOT IN (SELECT id FROM t WHERE {_WANTED})",
    ],
)
def test_rows_that_are_not_sure_do_not(query: str) -> None:
    assert _ended(query).partial is None
