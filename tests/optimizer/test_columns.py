"""Columns made of Python values are those that Arrow itself makes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from almanaq.suql.execution.evidence import boolean_column, id_column, text_column

TEXTS = [[], [None], ["a", "", None, "川菜 🍜"], ["x"] * 17, [None] * 9 + ["y"]]


@pytest.mark.parametrize("values", TEXTS)
def test_text(values: list[str | None]) -> None:
    column = text_column(values)
    column.validate(full=True)
    assert column.equals(pa.array(values, pa.string()))


@pytest.mark.parametrize("values", [[], [None], [True, False, None] * 7, [False] * 8])
def test_booleans(values: list[bool | None]) -> None:
    column = boolean_column(values)
    column.validate(full=True)
    assert column.equals(pa.array(values, pa.bool_()))


@pytest.mark.parametrize(("values", "type_"), [([], pa.int64()), ([3, 2**40], pa.int64()), (["(0,1)"], pa.string())])
def test_row_ids(values: list[object], type_: pa.DataType) -> None:
    column = id_column(values)
    column.validate(full=True)
    assert column.equals(pa.array(values, type_))
