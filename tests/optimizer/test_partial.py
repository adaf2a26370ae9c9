"""What a stopped query shows is in the full result, whatever stands above the stopped filter (semantics 13)."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pyarrow as pa
import pytest

import almanaq
from almanaq.errors import BudgetExceeded, UsageError
from almanaq.testing import FunctionModel

CALM = "answer(body, 'calm?') = 'Yes'"
NUMBERS = range(60)
QUERIES = (
    f"SELECT id FROM t WHERE {CALM}",
    f"SELECT id FROM t WHERE {CALM} ORDER BY id DESC LIMIT 20",
    f"SELECT t.id, u.id FROM t JOIN t AS u ON u.id = t.id + 1 WHERE {CALM.replace('body', 't.body')}",
    f"SELECT x.id FROM t AS x LEFT JOIN (SELECT id FROM t WHERE {CALM}) AS y ON x.id = y.id WHERE y.id IS NULL",
    f"SELECT y.id FROM (SELECT id FROM t WHERE {CALM}) AS y RIGHT JOIN t AS x ON x.id = y.id ORDER BY x.id",
    f"WITH c AS (SELECT id FROM t WHERE {CALM}) SELECT id FROM c WHERE id NOT IN (SELECT id + 1 FROM c)",
    f"WITH c AS (SELECT id FROM t WHERE {CALM}) SELECT id, (SELECT count(*) FROM c) FROM c",
    f"SELECT u.id FROM (SELECT id FROM t WHERE {CALM}) AS c JOIN t AS u ON u.g = c.id % 3 ORDER BY u.id LIMIT 4",
    f"SELECT id FROM (SELECT id, row_number() OVER (ORDER BY id DESC) AS n FROM t WHERE {CALM}) AS z WHERE n < 4",
    f"SELECT g, count(*) FROM t WHERE {CALM} GROUP BY g",
    f"SELECT id FROM t EXCEPT SELECT id FROM t WHERE {CALM}",
)


@cache
def connect(reply: str) -> almanaq.Connection:
    table = pa.table({"id": list(NUMBERS), "g": [i % 3 for i in NUMBERS], "body": [f"text {i}" for i in NUMBERS]})
    model = FunctionModel(lambda text, _: "Yes" if reply == "often" or text.endswith("7") else "No")
    return almanaq.connect({"t": table}, model=model, cache=False, order="table", speculation=1)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("reply", ["often", "rarely"])
@pytest.mark.parametrize("sql", QUERIES)
def test_each_row_is_in_the_full_result(sql: str, reply: str, monkeypatch: pytest.MonkeyPatch) -> None:
    full = Counter(connect(reply).sql(sql).rows)
    monkeypatch.setattr("almanaq.suql.execution.run.refuse_over_budget", lambda total, budget: None)
    for budget in (0, 1, 13, 45):
        try:
            shown = connect(reply).sql(sql, options=almanaq.Options(max_calls=budget))
        except BudgetExceeded as stopped:
            shown = stopped.partial
        assert shown is None or not Counter(shown.rows) - full


def test_a_reply_is_one_of_the_options_or_none() -> None:
    table = pa.table({"id": [1, 2, 3], "body": [" RED", "crimson", "blue"]})
    con = almanaq.connect({"t": table}, model=FunctionModel(lambda text, _: text), cache=False)
    asked = "answer(body, 'which?', ARRAY['red', 'blue'])"
    result = con.sql(f"SELECT {asked}, {asked} = 'red', {asked} = 'crimson' FROM t ORDER BY id")
    assert result.rows == [("red", True, False), (None, None, None), ("blue", False, False)]


@pytest.mark.parametrize("reply", ["a\0b", "a\ud83db"])
def test_a_reply_that_cannot_be_stored_is_mended(reply: str) -> None:
    con = almanaq.connect({"t": pa.table({"body": ["x"]})}, model=FunctionModel(lambda *_: reply), cache=False)
    assert con.sql("SELECT answer(body, 'what?') FROM t").rows == [("a\ufffdb",)]


def test_a_function_that_gives_no_text_is_told_so() -> None:
    con = almanaq.connect({"t": pa.table({"body": ["x"]})}, model=FunctionModel(lambda *_: 5), cache=False)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="gave 5"):
        con.sql("SELECT answer(body, 'how many?')::int FROM t")
