"""Every query of docs/peers.md runs over the sample."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import almanaq
from almanaq.testing import FunctionModel

DOC = (Path(__file__).parents[2] / "docs" / "peers.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```sql\n(.*?)```", DOC, re.S)
NO_ROWS = 2  # of the sample's restaurants, none is the same place as another


@pytest.fixture(scope="module", autouse=True)
def engine() -> str:
    """The sample is a DuckDB source: run these once, whatever the folder's other tests do."""
    return "duckdb"


def reply(text: str, question: str) -> str | None:
    if "same place" in question:
        left, right = text.split(" / ")
        return "Yes" if left == right else "No"
    if "cuisine" in question:
        return "Italian"
    return str(len(text) % 10) if "from 0 to 10" in question else ("Yes" if question.startswith("is") else "quiet")


def test_every_query_runs_and_but_for_one_gives_rows() -> None:
    assert len(EXAMPLES) >= 10
    with almanaq.connect("sample:restaurants", model=FunctionModel(reply), embedder="lexical", cache=False) as con:
        without = [sql for sql in EXAMPLES if not con.sql(sql).rows]
    assert len(without) <= NO_ROWS
    assert all("same place" in sql for sql in without)
