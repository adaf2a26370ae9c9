"""Nested queries with questions in the ON of a join give the rows of the same query over a column of the answers."""

from __future__ import annotations

import pytest

from .support import Asked

pytestmark = pytest.mark.usefixtures("engine")

CONDITIONS = (
    "EXISTS (SELECT 1 FROM r WHERE r.t = t.id AND {good})",
    "NOT EXISTS (SELECT 1 FROM r WHERE r.t = t.id AND {good})",
    "EXISTS (SELECT 1 FROM r WHERE r.k = o.k AND {good})",
    "EXISTS (SELECT 1 FROM r WHERE r.k = o.k AND r.t = t.id AND {good})",
    "(SELECT count(*) FROM r WHERE r.t = t.id AND {good}) > 1",
    "t.id IN (SELECT r.t FROM r WHERE {good})",
    "EXISTS (SELECT 1 FROM r WHERE r.t = t.id AND {good}) AND answer(t.body, 'good?') = 'Yes'",
)


@pytest.fixture(scope="module")
def asked(engine: str) -> Asked:
    words = ["Yes" if i * 7 % 4 == 1 else "No" for i in range(18)]
    return Asked(
        t={
            "id": [1, 2, 3, 4, 5, 6],
            "k": [1, 1, 2, 2, 3, None],
            "body": [f"t{i};good={w}" for i, w in enumerate(words[:6])],
        },
        o={"k": [1, 2, 3, 4]},
        r={
            "t": [1, 2, 3, 4, 5, 6] * 3,
            "k": [1] * 6 + [2] * 6 + [3] * 6,
            "word": words,
            "body": [f"r{i};good={w}" for i, w in enumerate(words)],
        },
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("join", ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
def test_rows_are_those_of_a_known_answer(asked: Asked, join: str, condition: str) -> None:
    sql = f"SELECT t.id, o.k FROM t {join} o ON o.k = t.k AND {condition}"
    known = sql.replace("answer(t.body, 'good?')", "CASE WHEN t.body LIKE '%good=Yes' THEN 'Yes' ELSE 'No' END")
    expected = asked.rows(known.format(good="r.word = 'Yes'"))
    assert sorted(map(str, asked.rows(sql.format(good="answer(r.body, 'good?') = 'Yes'")))) == sorted(
        map(str, expected)
    )
