"""The 50 queries that the paper's parser wrote for a restaurant agent, over the bundled sample.

They are read from the dataset `suql_restaurants` (ALMANAQ_DATA, else ../shared/data), which is not part of this
repository. The rows must be those of a naive interpreter: DuckDB, with the sample's truth as an ordinary function.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.laws.compare import difference, expect
from tests.laws.oracle import Oracle

import almanaq
from almanaq import sample
from almanaq.errors import QueryError
from almanaq.suql.result import Result
from almanaq.testing import FunctionModel
from almanaq.values import canonical
from almanaq_bench.sample.truth import truth_function

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("ALMANAQ_DATA", ROOT.parent / "shared" / "data"))
FILE = DATA / "suql_restaurants" / "queries_single_turn.parquet"

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not FILE.exists(), reason="the dataset is not at hand")]

Link = tuple[str, str, tuple[str, ...]]
UNKNOWN_FUNCTION = "st_distance_sphere"


@pytest.fixture(scope="module")
def queries() -> dict[str, str]:
    """The queries by their id."""
    rows = pq.read_table(FILE, columns=["query_id", "predicted_suql"]).to_pylist()
    return {row["query_id"]: row["predicted_suql"] for row in rows}


@pytest.fixture(scope="module")
def results(queries) -> dict[str, Result | QueryError]:
    """What each query gives on the sample, whose own truth is the model."""
    model = FunctionModel(truth_function())
    found: dict[str, Result | QueryError] = {}
    with almanaq.connect("sample:restaurants", model=model, cache=False) as connection:
        for name, suql in queries.items():
            try:
                found[name] = connection.sql(suql)
            except QueryError as error:
                found[name] = error
    return found


def spelled(literals: Sequence[str]) -> Callable[[str, str], str | None]:
    """Return the truth in the spelling of the query's own literals: equal up to case and white space is equal."""
    truth, spelling = truth_function(), {canonical(literal): literal for literal in literals}

    def reply(text: str, question: str) -> str | None:
        value = truth(text, question)
        return value if value is None else spelling.get(canonical(value), value)

    return reply


def linked(suql: str, links: Sequence[Link]) -> str:
    """Write what literals were linked to into the text of a query."""
    for column, literal, values in links:
        name, quoted = column.rpartition(".")[2], re.escape("'" + literal.replace("'", "''") + "'")
        listed = ", ".join("'" + value.replace("'", "''") + "'" for value in values)
        array = f"[{listed}]" if values else "[]::VARCHAR[]"
        for pattern, form in (
            (rf"{quoted}\s*=\s*ANY\s*\(\s*{name}\s*\)", f"list_has_any({name}, {array})"),
            (rf"{name}\s*&&\s*ARRAY\[{quoted}\]", f"list_has_any({name}, {array})"),
            (rf"{name}\s*=\s*{quoted}", f"{name} IN ({listed})" if values else "false"),
        ):
            suql = re.sub(pattern, lambda _, form=form: form, suql)
    return suql


def test_49_run_and_one_is_refused_by_name(results):
    assert len(results) == 50
    refused = [error for error in results.values() if isinstance(error, QueryError)]
    assert len(refused) == 1
    assert UNKNOWN_FUNCTION in str(refused[0]).lower()


def test_at_least_40_return_rows(results):
    assert sum(isinstance(result, Result) and bool(result.rows) for result in results.values()) >= 40


def test_rows_are_those_of_a_naive_interpreter(queries, results):
    table = sample.load("restaurants").tables["restaurants"]
    wrong = {}
    for name, result in results.items():
        if isinstance(result, QueryError):
            continue
        suql = queries[name].rstrip("; ")
        oracle = Oracle({"restaurants": table}, spelled(re.findall(r"'((?:[^']|'')*)'", suql)))
        try:
            expected = expect(oracle, linked(suql, result.trace.links), fold=True)
            named = tuple(None if name and "(" in name else name for name in expected.columns)
            if problem := difference(replace(expected, columns=named), result.columns, result.rows, fold=True):
                wrong[name] = problem[:300]
        finally:
            oracle.close()
    assert wrong == {}


def test_calls_are_no_more_than_the_naive_interpreter_makes(queries, results):
    restaurants = len(sample.load("restaurants").tables["restaurants"])
    for name, result in results.items():
        if isinstance(result, Result):
            functions = len(re.findall(r"\b(?:answer|summary)\(", queries[name]))
            assert result.trace.text_calls <= functions * restaurants
