"""`--chart` in the terminal: the chart below the rows, and bars beside them where somebody looks."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pytest
from rich.console import Console
from typer.testing import CliRunner

from almanaq.cli.app import app
from almanaq.cli.terminal import Amount, print_result
from almanaq.suql.result import Result, Trace

FLIGHTS = Result(pa.table({"carrier": ["UA", "DL"], "flights": [8, 4]}), ((), ()), Trace())


def printed(result: Result, amount: Amount, *, terminal: bool) -> str:
    out = Console(file=io.StringIO(), width=60, force_terminal=terminal, color_system=None)
    print_result(result, out, amount)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


def test_a_terminal_shows_a_bar_beside_each_group_and_a_file_does_not():
    shown = printed(FLIGHTS, Amount(), terminal=True).splitlines()
    lengths = [line.count("█") for line in shown if "█" in line]
    assert lengths == [20, 10]
    assert "█" not in printed(FLIGHTS, Amount(), terminal=False)


def test_a_chart_that_is_asked_for_comes_below_the_rows_also_in_a_file():
    text = printed(FLIGHTS, Amount(chart=True), terminal=False)
    assert text.index("flights by carrier") > text.index("DL")
    assert [line.split()[0] for line in text.splitlines() if "█" in line] == ["UA", "DL"]


def test_a_result_that_no_chart_fits_says_so():
    names = Result(pa.table({"name": ["a", "b"]}), ((), ()), Trace())
    assert "no chart fits" in printed(names, Amount(chart=True), terminal=False)


def test_cells_of_a_chart_do_not_steer_the_terminal():
    hostile = Result(pa.table({"name": ["\x1b[2Jx", "b"], "count": [1, 2]}), ((), ()), Trace())
    assert "\x1b[2J" not in printed(hostile, Amount(chart=True), terminal=False)


@pytest.mark.parametrize("format", ["json", "csv"])
def test_chart_goes_with_a_table(format):
    finished = CliRunner().invoke(app, ["sql", "SELECT 1 AS n", "sample:restaurants", "--chart", "--format", format])
    assert "--chart needs --format table" in str(finished.exception)


def test_json_holds_the_chart():
    query = "SELECT location, count(*) AS n FROM restaurants GROUP BY location"
    finished = CliRunner().invoke(app, ["sql", query, "sample:restaurants", "--format", "json"])
    chart = json.loads(finished.stdout)["chart"]
    assert chart["mark"]["type"] == "bar"
    assert len(chart["data"]["values"]) > 1
