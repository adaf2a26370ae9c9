"""Results whose columns come with the candidates: the same as from a statement of their own."""

from __future__ import annotations

import datetime
import decimal

import pyarrow as pa
import pytest

import almanaq
from almanaq.errors import BudgetExceeded
from almanaq.options import Options

from .support import Asked, texts

pytestmark = pytest.mark.usefixtures("engine")

YES = "answer(body, 'ok?') = 'Yes'"
BROUGHT = [
    f"SELECT id FROM t WHERE {YES} LIMIT 3",
    f"SELECT day, price, id, kind, id AS again, ratio FROM t WHERE {YES} ORDER BY price DESC, id LIMIT 4",
    f"SELECT body, kind FROM t WHERE kind <> 'c' AND {YES} ORDER BY id LIMIT 5",
    f"SELECT x.id AS number FROM (SELECT id, body FROM t WHERE {YES}) AS x LIMIT 2",
    f"SELECT kind, id FROM t WHERE kind = 'a' OR {YES} ORDER BY id LIMIT 7",
    f"SELECT day FROM t WHERE {YES} AND id > 1000 LIMIT 3",
    f"SELECT 7 AS number, id, 'x' AS name FROM t WHERE {YES}",
    f"SELECT kind, price FROM t WHERE {YES} ORDER BY price DESC, id",
]
APART = [
    f"SELECT id + 1 FROM t WHERE {YES} ORDER BY id LIMIT 3",
    f"SELECT id FROM t WHERE {YES} ORDER BY id LIMIT 3 OFFSET 1",
    f"SELECT id FROM t WHERE {YES} ORDER BY id LIMIT (SELECT 3)",
    f"SELECT count(*) FROM (SELECT id FROM t WHERE {YES} ORDER BY id LIMIT 3) AS d",
    f"SELECT DISTINCT kind FROM t WHERE {YES} ORDER BY kind LIMIT 3",
    f"SELECT id, answer(body, 'why?') FROM t WHERE {YES} ORDER BY id LIMIT 3",
    f"SELECT notes FROM t WHERE {YES} ORDER BY id LIMIT 3",
]


@pytest.fixture(scope="module")
def asked(engine: str) -> Asked:
    numbers = range(40)
    price = [None if i % 7 == 0 else decimal.Decimal(i * 37 % 11) / 4 for i in numbers]
    table = {
        "id": pa.array(numbers),
        "kind": texts(*("abc"[i % 3] for i in numbers)),
        "day": pa.array([None if i % 5 == 0 else datetime.date(2020, 1, 1 + i % 28) for i in numbers], pa.date32()),
        "ratio": pa.array([i / 8 for i in numbers]),
        "body": texts(*(f"text {i}; ok={'Yes' if i % 3 else 'No'}; why=w{i}" for i in numbers)),
        "notes": texts(*(f"{i} " + "a very long note " * 12 for i in numbers)),
    }
    exact = pa.array([None if p is None else float(p) for p in price])
    decimals = exact if engine == "sqlite" else pa.array(price, pa.decimal128(6, 2))
    return Asked(t=pa.table({**table, "price": decimals}))


@pytest.mark.parametrize("sql", BROUGHT)
def test_columns_come_with_the_candidates(monkeypatch: pytest.MonkeyPatch, asked: Asked, sql: str) -> None:
    carried = _result(asked, sql)
    assert bool(asked.con.engine.plan(sql).output.payload) == asked.con.engine._database.typed
    monkeypatch.setattr("almanaq.suql.plan.lower.shown_columns", lambda *_: None)
    assert not asked.con.engine.plan(sql + " ").output.payload
    apart = _result(asked, sql + " ")
    assert sorted(carried.rows, key=str) == sorted(apart.rows, key=str)
    assert carried.rows == apart.rows or "ORDER BY" not in sql
    assert carried.table.schema == apart.table.schema
    assert dict(zip(carried.rows, carried.evidence, strict=True)) == dict(zip(apart.rows, apart.evidence, strict=True))
    assert carried.trace.text_calls == apart.trace.text_calls


@pytest.mark.parametrize("sql", APART)
def test_nothing_is_brought_that_is_more_than_the_rows_or_may_be_large(asked: Asked, sql: str) -> None:
    assert not asked.con.engine.plan(sql).output.payload


def test_a_budget_gives_the_rows_that_are_sure(asked: Asked) -> None:
    with pytest.raises(BudgetExceeded) as caught:
        asked.con.sql(BROUGHT[1], options=Options(order="table", max_calls=4, link=False, speculation=1))
    assert caught.value.partial is not None
    assert caught.value.partial.rows == _result(asked, BROUGHT[1]).rows[: len(caught.value.partial.rows)]


def test_explain_says_what_is_brought(asked: Asked) -> None:
    said = "the rows that passed, as they came" in str(asked.con.explain(BROUGHT[0]))
    assert said == asked.con.engine._database.typed


def _result(asked: Asked, sql: str) -> almanaq.Result:
    return asked.con.sql(sql)
