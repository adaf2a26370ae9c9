"""EXISTS and IN under ORDER BY with LIMIT: rows are looked at in that order, until so many have a match."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pyarrow as pa
import pytest

import almanaq
from almanaq.models.protocols import TextCall, TextReply
from almanaq.testing import FunctionModel

from .support import Asked, said

pytestmark = pytest.mark.usefixtures("engine")

GOOD = "answer(r.body, 'good?') = 'Yes'"
EXISTS = f"EXISTS (SELECT 1 FROM r WHERE r.t = t.k AND {GOOD})"
IN = f"t.k IN (SELECT r.t FROM r WHERE {GOOD})"
ORDERS = (
    "t.rank, t.id",
    "t.rank DESC, t.id DESC",
    "t.rank DESC NULLS FIRST, t.id",
    "t.rank NULLS FIRST, t.id DESC",
    "coalesce(t.rank, 2), CASE WHEN t.kind = 'a' THEN 0 ELSE 1 END, lower(t.kind), t.id",
    "2 DESC, n",
    "t.rank > 2, t.kind DESC, t.id",
)
CUTS = ("LIMIT 1", "LIMIT 3", "LIMIT 4 OFFSET 2", "LIMIT 100", "LIMIT 0", "FETCH FIRST 2 ROWS ONLY")
QUERIES = (
    "SELECT t.id AS n, t.rank FROM t WHERE {match}",
    "SELECT t.id AS n, t.rank FROM t WHERE t.kind <> 'c' AND {match}",
    "SELECT t.id AS n, o.place FROM t JOIN o ON o.kind = t.kind WHERE o.place < 4 AND {match}",
    "SELECT t.id AS n, o.place FROM t LEFT JOIN o ON o.kind = t.kind AND o.place > 1 WHERE {match}",
    "SELECT n, rank FROM (SELECT t.id AS n, t.rank, t.id, t.kind FROM t WHERE {match} ORDER BY {order} {cut}) AS t",
)
INSIDE = (
    EXISTS,
    IN,
    f"EXISTS (SELECT 1 FROM r WHERE r.t = t.k AND (r.stars = 5 OR {GOOD}))",
    f"t.k IN (SELECT r.t FROM r WHERE r.stars = 5 OR {GOOD})",
    f"t.k + 1 IN (SELECT r.t FROM r JOIN o ON o.place = r.stars WHERE {GOOD})",
    f"t.k IN (SELECT r.t FROM r LEFT JOIN o ON o.place = r.stars WHERE {GOOD})",
    f"t.k IN (SELECT r.t FROM r WHERE {GOOD} AND EXISTS (SELECT 1 FROM o WHERE o.place = r.stars AND {GOOD}))",
    f"t.k IN (SELECT r.t FROM r WHERE r.t >= t.rank AND {GOOD})",
    f"EXISTS (SELECT 1 FROM r WHERE {GOOD})",
    f"NOT EXISTS (SELECT 1 FROM r WHERE r.t = t.k AND {GOOD})",
    f"t.k NOT IN (SELECT r.t FROM r WHERE r.t IS NOT NULL AND {GOOD})",
)


def tables(seed: int) -> dict[str, dict[str, list[Any]]]:
    """Draw rows with ties, without a rank, without a value, and notes of which few are good."""
    draw = random.Random(seed)
    good = draw.choice([0.1, 0.4, 0.9])
    return {
        "t": {
            "id": draw.sample(range(1, 13), 12),
            "k": draw.choices([1, 2, 3, 4, 5, 6, 7, None], k=12),
            "rank": draw.choices([1, 2, 3, None], k=12),
            "kind": draw.choices("abc", k=12),
        },
        "o": {"kind": ["a", "b", "b", "c"], "place": [1, 2, 3, 4]},
        "r": {
            "t": draw.choices([1, 2, 3, 4, 5, 6, 7, 8, None], k=30),
            "stars": draw.choices([1, 2, 3, 4, 5, None], k=30),
            "body": [f"{i};good={'Yes' if draw.random() < good else 'No'}" for i in range(30)],
        },
    }


def known(sql: str) -> str:
    """Write a query over what the texts say in them."""
    return sql.replace(GOOD, "r.body LIKE '%=Yes'")


@pytest.fixture(scope="module", params=range(3))
def asked(engine: str, request: pytest.FixtureRequest) -> Asked:
    return Asked(**tables(request.param))


@pytest.mark.sampled(40)
@pytest.mark.parametrize("inside", INSIDE)
@pytest.mark.parametrize("around", QUERIES)
def test_rows_are_those_of_a_known_answer_in_their_order(asked: Asked, around: str, inside: str) -> None:
    draw = random.Random(around + inside)
    for order, cut in zip(ORDERS, draw.choices(CUTS, k=len(ORDERS)), strict=True):
        if "o.place" in around:
            order = f"o.place DESC, {order}"
        query = around.format(match=inside, order=order.replace("2 DESC, n", "t.rank DESC, t.id"), cut=cut)
        sql = f"{query} ORDER BY {order.replace('o.place DESC, 2', '2')} {cut}"
        assert asked.rows(sql) == asked.rows(known(sql)), sql


def least_calls(data: dict[str, dict[str, list[Any]]], limit: int, order: Any) -> int:
    """Count the notes that are read one row after another, in order: one of a good place, all of another."""
    places = sorted(zip(data["t"]["rank"], data["t"]["id"], data["t"]["k"], strict=True), key=order)
    calls = found = 0
    for _, _, k in places:
        notes = [body for t, body in zip(data["r"]["t"], data["r"]["body"], strict=True) if t == k]
        good = any(body.endswith("Yes") for body in notes)
        calls += 0 if found >= limit else 1 if good else len(notes)
        found += good
    return calls


@pytest.mark.sampled(3)
@pytest.mark.parametrize("inside", [EXISTS, IN])
@pytest.mark.parametrize("limit", [1, 2, 4])
def test_no_note_is_read_that_the_limit_does_not_need(engine: str, inside: str, limit: int) -> None:
    for seed in range(4):
        data = tables(seed)
        data["t"]["k"] = list(range(1, 13))
        data["r"]["t"] = random.Random(seed).choices(range(1, 13), k=30)
        data["r"]["body"] = [f"{i};good={'No' if t % 3 else 'Yes'}" for i, t in enumerate(data["r"]["t"])]
        asked = Asked(**data)
        for order, key in (
            ("t.rank, t.id", lambda row: (row[0] is None, row[0] or 0, row[1])),
            ("t.rank DESC NULLS FIRST, t.id", lambda row: (row[0] is not None, -(row[0] or 0), row[1])),
        ):
            calls = asked.calls(f"SELECT t.id FROM t WHERE {inside} ORDER BY {order} LIMIT {limit}")
            assert calls == least_calls(data, limit, key), (seed, order)


def many() -> dict[str, pa.Table]:
    """Return 120 rows with six notes each, of which one in seven is good."""
    notes = {"t": [i % 120 for i in range(720)], "body": [f"{i};good={'No' if i % 7 else 'Yes'}" for i in range(720)]}
    return {"t": pa.table({"k": list(range(120)), "rank": [i * 7 % 11 for i in range(120)]}), "r": pa.table(notes)}


@pytest.mark.parametrize("inside", [EXISTS, IN])
def test_calls_are_a_fraction_of_those_of_all_rows(inside: str) -> None:
    model = FunctionModel(said)
    with almanaq.connect(many(), model=model, cache=False) as con:
        whole = con.sql(f"SELECT t.k FROM t WHERE {inside} ORDER BY t.rank, t.k")
        first = con.sql(f"SELECT t.k FROM t WHERE {inside} ORDER BY t.rank, t.k LIMIT 5")
        assert first.rows == whole.rows[:5]
        assert whole.trace.text_calls > 400
        assert first.trace.text_calls < 50
        explained = str(con.explain(f"SELECT t.k FROM t WHERE {inside} ORDER BY t.rank, t.k LIMIT 5"))
        assert "once the first 5 values that have a row are known (top-k with early termination" in explained


class Uneven(FunctionModel):
    """Answers after a number of turns of the event loop that a seed decides."""

    def __init__(self, seed: int) -> None:
        super().__init__(said)
        self._random = random.Random(seed)

    async def read(self, call: TextCall) -> TextReply:
        for _ in range(self._random.randrange(12)):
            await asyncio.sleep(0)
        return await super().read(call)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("inside", [EXISTS, IN])
@pytest.mark.parametrize(("speculation", "concurrency"), [(1.0, 5), (3.0, 2), (3.0, 64), (10.0, 64)])
def test_in_whichever_order_calls_end_the_rows_are_the_first(inside: str, speculation: float, concurrency: int) -> None:
    options = almanaq.Options(speculation=speculation, concurrency=concurrency)
    query = f"SELECT t.k FROM t WHERE {inside} ORDER BY t.rank DESC, t.k LIMIT 6 OFFSET 1"
    for seed in range(6):
        model = Uneven(seed)
        with almanaq.connect(many(), model=model, cache=False, options=options) as con:
            assert con.sql(query).rows == con.sql(known(query)).rows
            assert model.calls < 300


@pytest.mark.parametrize(
    "order",
    [
        "answer(t.kind, 'good?')",
        "(SELECT max(o.place) FROM o WHERE o.kind = t.kind)",
        "12 / (t.rank - 1)",
        "random()",
    ],
)
def test_other_orders_look_at_all_rows(order: str) -> None:
    """A row without a match must neither be sorted by what it fails at, nor an answer be asked for its place."""
    with almanaq.connect({n: pa.table(t) for n, t in tables(0).items()}, model=FunctionModel(said), cache=False) as con:
        assert "the first" not in str(con.explain(f"SELECT t.id FROM t WHERE {EXISTS} ORDER BY {order} LIMIT 2"))


def test_with_the_most_similar_candidates_alone_the_order_is_kept() -> None:
    """What is left out is the caller's choice; rows still come in the order of ORDER BY."""
    options = almanaq.Options(candidates=700)
    with almanaq.connect(many(), model=FunctionModel(said), cache=False, options=options) as con:
        rows = con.sql(f"SELECT t.rank FROM t WHERE {EXISTS} ORDER BY t.rank, t.k LIMIT 5").rows
        assert rows == con.sql(f"SELECT t.rank FROM t WHERE {known(EXISTS)} ORDER BY t.rank, t.k LIMIT 5").rows
