"""Rows whose place in an order no text tells: how many there are is said."""

from __future__ import annotations

import pytest

from .support import Asked

pytestmark = pytest.mark.usefixtures("engine")

ROWS = {"id": [1, 2, 3, 4], "n": [1, 2, 3, 4], "t": ["size=3", "size=1", "colour=red", None]}
SIZE = "answer(t, 'size?')::int"
TOLD = "2 of 4 rows have no answer to 'size?', by which they are sorted"


@pytest.mark.parametrize(
    ("query", "warnings"),
    [
        (f"SELECT id FROM r ORDER BY {SIZE} DESC LIMIT 1", (TOLD,)),
        (f"SELECT id, {SIZE} AS size FROM r ORDER BY size", (TOLD,)),
        (f"SELECT id FROM r ORDER BY n, {SIZE} NULLS FIRST", (TOLD,)),
        (f"SELECT id FROM r WHERE n < 3 ORDER BY {SIZE}", ()),
        (f"SELECT id FROM r WHERE {SIZE} > 0 ORDER BY {SIZE}", ()),
        (f"SELECT id, {SIZE} FROM r ORDER BY id", ()),
    ],
)
def test_how_many_rows_have_no_answer_that_they_are_sorted_by_is_said(query: str, warnings: tuple[str, ...]) -> None:
    result = Asked(r=ROWS).con.sql(query)
    assert tuple(w for w in result.trace.warnings if "sorted" in w) == warnings
