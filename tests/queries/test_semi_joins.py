"""`IN (SELECT …)` asks about rows whose value may be looked for, and of each value until one row passes."""

from __future__ import annotations

import random

import pytest

import almanaq
from almanaq.testing import FunctionModel

from .support import Asked, said

pytestmark = pytest.mark.usefixtures("engine")

GOOD = "answer(r.body, 'good?') = 'Yes'"
OF_R = f"SELECT r.t FROM r WHERE {GOOD}"
QUERIES = (
    f"SELECT t.id FROM t WHERE t.kind = 'a' AND t.id IN ({OF_R})",
    f"SELECT t.id FROM t WHERE t.kind = 'a' AND t.id IN (SELECT DISTINCT r.t FROM r WHERE {GOOD})",
    f"SELECT t.id FROM t WHERE t.kind = 'a' AND t.id NOT IN ({OF_R} AND r.t IS NOT NULL)",
    f"SELECT t.id FROM t WHERE t.kind = 'a' OR t.id IN ({OF_R})",
    f"SELECT t.id FROM t WHERE t.id IN ({OF_R}) AND t.id + 1 IN ({OF_R})",
    f"SELECT t.id, o.kind FROM t JOIN o ON o.kind = t.kind WHERE o.rank < 3 AND t.id IN ({OF_R})",
    f"SELECT t.id, o.rank FROM t LEFT JOIN o ON o.kind = t.kind WHERE t.id IN ({OF_R})",
    f"SELECT t.kind, count(*) FROM t WHERE t.id IN ({OF_R}) GROUP BY t.kind",
    f"WITH w AS (SELECT * FROM t WHERE kind = 'b') SELECT w.id FROM w WHERE w.id IN ({OF_R})",
    f"SELECT x.id FROM (SELECT id FROM t WHERE kind = 'b') x WHERE x.id IN ({OF_R})",
    f"SELECT t.id FROM t WHERE t.id IN (SELECT r.t FROM r JOIN t u ON u.id = r.t WHERE u.kind = 'a' AND {GOOD})",
    f"SELECT t.id FROM t WHERE t.id * 2 IN (SELECT r.t + 1 FROM r WHERE {GOOD})",
    f"SELECT t.id FROM t WHERE t.id IN (SELECT max(r.t) FROM r WHERE {GOOD} GROUP BY r.k)",
    f"SELECT t.id FROM t WHERE t.id IN ({OF_R} ORDER BY r.body, r.k, r.t LIMIT 3)",
    f"SELECT t.id FROM t WHERE EXISTS (SELECT 1 FROM o WHERE o.kind = t.kind AND t.id IN ({OF_R}))",
    f"SELECT t.id FROM t WHERE t.id IN ({OF_R} UNION ALL SELECT 3)",
    f"SELECT t.id FROM t WHERE t.kind = 'a' AND t.id <> ALL ({OF_R} AND r.t IS NOT NULL)",
)


def tables(seed: int) -> dict[str, dict[str, list[object]]]:
    """Draw rows, some without a value, and texts, some of them twice."""
    draw = random.Random(seed)
    words = [f"{i % 9};good={draw.choice(['Yes', 'No', 'No'])}" for i in range(24)]
    return {
        "t": {"id": list(range(1, 9)), "kind": draw.choices("abc", k=8)},
        "o": {"kind": ["a", "b", "b", "c"], "rank": [1, 2, 3, 4]},
        "r": {
            "t": draw.choices([*range(1, 11), None], k=24),
            "k": draw.choices([1, 2, 3], k=24),
            "body": words,
        },
    }


def known(sql: str) -> str:
    """Write a query over what the texts say in them."""
    return sql.replace(GOOD, "r.body LIKE '%=Yes'")


@pytest.fixture(scope="module", params=range(3))
def asked(engine: str, request: pytest.FixtureRequest) -> Asked:
    return Asked(**tables(request.param))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("sql", QUERIES)
def test_rows_are_those_of_a_known_answer(asked: Asked, sql: str) -> None:
    assert sorted(map(str, asked.rows(sql))) == sorted(map(str, asked.rows(known(sql))))


@pytest.mark.parametrize("limit", [1, 2, 5])
@pytest.mark.parametrize("later", ["", " AND EXISTS (SELECT 1 FROM o WHERE o.kind = t.kind AND o.rank > 3)"])
def test_a_limit_gets_its_rows(asked: Asked, limit: int, later: str) -> None:
    sql = QUERIES[0].replace("t.kind = 'a' AND", "") + later
    found = asked.rows(f"{sql} LIMIT {limit}")
    right = asked.rows(known(sql))
    assert set(found) <= set(right)
    assert len(found) == min(limit, len(right))


@pytest.mark.parametrize("looked_up", ["IN ({})", "= ANY ({})", "= SOME ({})"])
def test_rows_that_nothing_looks_for_are_not_asked_about(looked_up: str) -> None:
    """Four rows of r have a value that a row of t with that kind has; of each value, the first decides."""
    model = FunctionModel(said)
    source = {
        "t": {"id": [1, 2, 3], "kind": ["a", "a", "b"]},
        "r": {"t": [1, 1, 2, 2, 3, 3, None], "body": [f"{i};good=Yes" for i in range(7)]},
    }
    with almanaq.connect(source, model=model, cache=False, order="table", speculation=1.0) as con:
        sql = f"SELECT t.id FROM t WHERE t.kind = 'a' AND t.id {looked_up.format(OF_R)}"
        assert sorted(con.sql(sql).rows) == [(1,), (2,)]
        assert model.calls == 2
        assert len(con.sql(f"{sql} LIMIT 1").rows) == 1
        assert model.calls == 3
