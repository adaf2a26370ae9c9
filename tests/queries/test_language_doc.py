"""Every example of docs/language.md runs and gives the rows of the database with text functions called row by row."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.laws.compare import difference, expect
from tests.laws.oracle import Oracle

import almanaq
from almanaq.sample import load
from almanaq.testing import FunctionModel
from almanaq_bench.sample.truth import truth_function

DOC = (Path(__file__).parents[2] / "docs" / "language.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```sql\n(.*?)```", DOC, re.S)
REFUSED = re.findall(r"^\| `(.+?)` \| (.+?) \|$", DOC[DOC.index("## What is refused") :], re.M)
_TRUTH = truth_function()


@pytest.fixture(scope="module", autouse=True)
def engine() -> str:
    """The sample is a DuckDB source: run these once, whatever the folder's other tests do."""
    return "duckdb"


@pytest.fixture(scope="module")
def model() -> FunctionModel:
    return FunctionModel(reply)


@pytest.fixture(scope="module")
def sample(model: FunctionModel) -> Iterator[almanaq.Connection]:
    with almanaq.connect("sample:restaurants", model=model, embedder="lexical", cache=False, link=False) as con:
        yield con


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    found = Oracle({"restaurants": load("restaurants").tables["restaurants"]}, reply)
    yield found
    found.close()


def reply(text: str, question: str) -> str | None:
    """Answer from the sample's truth, and a few plain facts that its truth leaves out."""
    if question == "how many dishes are listed?":
        return str(len(text.split(",")))
    if question == "which dishes are listed?":
        return json.dumps(text.split(", "), ensure_ascii=False)
    if question == "which dish is listed first?":
        return text.split(",")[0]
    if question == "when does it open on Mondays?":
        return _opens(text)
    return _TRUTH(text, question)


def _opens(hours: str) -> str | None:
    found = re.match(r"(?:daily|Mon)\S* (\d+):(\d+) (AM|PM)", hours)
    if found is None:
        return None
    hour = int(found[1]) % 12 + (12 if found[3] == "PM" else 0)
    return f"{hour:02}:{found[2]}:00"


def choices(example: str) -> tuple[str, dict[str, Any]]:
    """Return the query of an example, and the choices that its comments name."""
    found = re.findall(r"^-- (\w+): (.+)$", example, re.M)
    return re.sub(r"^--.*\n", "", example, flags=re.M).strip(), {name: json.loads(value) for name, value in found}


def filled(sql: str, parameters: list[Any]) -> str:
    """Write the parameters of an example as literals, for the oracle."""
    values = iter(parameters)
    return re.sub(r"= \?|\(reviews, \?|>= \?", lambda m: m[0].replace("?", _literal(next(values))), sql)


def _literal(value: Any) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


def test_the_document_has_enough_examples() -> None:
    assert len(EXAMPLES) >= 40
    assert len(REFUSED) >= 10


@pytest.mark.sampled(3)
@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_example(model: FunctionModel, sample: almanaq.Connection, oracle: Oracle, example: str) -> None:
    sql, chosen = choices(example)
    parameters = chosen.pop("parameters", [])
    if chosen:
        chosen = {"model": "local" if "link" in chosen else model, "link": False} | chosen
        with almanaq.connect("sample:restaurants", embedder="lexical", cache=False, **chosen) as con:
            result = con.sql(sql, parameters)
    else:
        result = sample.sql(sql, parameters)
    assert result.rows
    assert any(value is not None for row in result.rows for value in row)
    if chosen.get("link"):
        assert result.trace.links
    elif chosen:
        assert not result.trace.exact
    else:
        expected = expect(oracle, filled(sql, parameters))
        assert difference(expected, result.columns, result.rows) is None


@pytest.mark.parametrize(("sql", "message"), REFUSED, ids=range(len(REFUSED)))
def test_refused(model: FunctionModel, sample: almanaq.Connection, sql: str, message: str) -> None:
    before = model.calls
    with pytest.raises(almanaq.AlmanaqError) as e:
        sample.sql(sql)
    assert message in str(e.value)
    assert model.calls == before
