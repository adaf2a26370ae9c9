"""Rows of a query that its deadline or its budget stopped are printed, said to be incomplete, and it is no success."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import almanaq
from almanaq.cli.output import Format
from almanaq.cli.sql import Output, run_query
from almanaq.errors import BudgetExceeded, DeadlineExceeded
from almanaq.models.protocols import TextCall, TextReply
from almanaq.testing import FunctionModel

QUERY = "SELECT id FROM t WHERE answer(body, 'calm?') = 'Yes'"


class Halting(FunctionModel):
    """Answers for the first texts at once, and for the others never."""

    async def read(self, call: TextCall) -> TextReply:
        if int(" ".join(call.passages).split()[-1]) > 4:
            await asyncio.sleep(60)
        return await super().read(call)


@pytest.mark.parametrize("format_", [Format.table, Format.json, Format.csv, Format.parquet])
def test_rows_found_before_the_deadline_are_written(format_: Format, tmp_path: Path, capsys) -> None:
    tables = {"t": {"id": list(range(20, 32)), "body": [f"text {n}" for n in range(12)]}}
    out = tmp_path / "rows"
    model = Halting(lambda text, question: "No" if text == "text 1" else "Yes")
    connection = almanaq.connect(tables, model=model, cache=False, deadline=0.4, order="table")
    with connection as con, pytest.raises(DeadlineExceeded):
        run_query(con, (QUERY, ()), Output(format_, str(out)))
    if format_ is not Format.parquet:
        written = out.read_text("utf-8").partition('"trace"')[0]  # its seconds may hold any figures
        assert all(str(n) in written for n in (20, 22, 23, 24))
        assert "21" not in written
    else:
        import pyarrow.parquet as pq

        assert pq.read_table(out)["id"].to_pylist() == [20, 22, 23, 24]
    assert "stopped by its deadline: these rows are in the result, but may not be all of it" in capsys.readouterr().err


def test_where_no_row_was_found_nothing_is_written(tmp_path: Path, capsys) -> None:
    tables = {"t": {"id": [1], "body": ["text 9"]}}
    with almanaq.connect(tables, model=Halting(lambda *_: "Yes"), cache=False, deadline=0.2) as con:
        for format_ in (Format.json, Format.csv):
            with pytest.raises(DeadlineExceeded):
                run_query(con, (QUERY, ()), Output(format_, str(tmp_path / "rows")))
    assert not (tmp_path / "rows").exists()
    assert "these rows" not in capsys.readouterr().err
    assert DeadlineExceeded.exit_code != 0 != BudgetExceeded.exit_code
