"""What a text stage has before it: the same figures off its candidates as from the database."""

from __future__ import annotations

import pytest

from almanaq.errors import BudgetExceeded
from almanaq.options import Options
from almanaq.suql.execution.candidates import CandidateStream
from almanaq.suql.execution.forecast import watched

from .support import Asked

pytestmark = pytest.mark.usefixtures("engine")

ROWS = 5_000
YES = "answer(body, 'good?') = 'Yes'"
QUERIES = {
    f"SELECT id FROM t WHERE id < 40 AND {YES}": (40, 3),
    f"SELECT id FROM t WHERE id < 40 AND {YES} AND answer(title, 'good?') = 'Yes'": (40, 40),
    "SELECT answer(body, 'good?'), answer(title, 'good?') FROM t WHERE id < 40": (40, 43),
    f"SELECT id FROM t WHERE id < 40 AND body IS NULL AND {YES}": (10, 0),
    f"SELECT id FROM t WHERE id < 0 AND {YES}": (0, 0),
    "SELECT answer(parts, 'good?') FROM t WHERE id < 40": (40, 2),
    f"SELECT id FROM t WHERE {YES}": (ROWS, 3),
}


@pytest.fixture(scope="module")
def asked(engine: str) -> Asked:
    ids = range(ROWS)
    return Asked(
        reply=lambda *_: "Yes",
        t={
            "id": list(ids),
            "title": [f"title {i}" for i in ids],
            "body": [None if i % 4 == 0 else f"text {i % 4}" for i in ids],
            **({} if engine == "sqlite" else {"parts": [["a", "b"] if i % 2 else ["a"] for i in ids]}),
        },
    )


@pytest.fixture(params=["looked at", "counted there"], autouse=True)
def counted_where(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "counted there":
        monkeypatch.setattr(CandidateStream, "count_ahead", lambda _: None)


@pytest.mark.parametrize(("query", "expected"), QUERIES.items(), ids=range(len(QUERIES)))
def test_rows_and_texts_are_those_of_the_stage(asked: Asked, query: str, expected: tuple[int, int]) -> None:
    rows, texts = expected
    if "parts" in query and asked.con.catalog.relations[0].column("parts") is None:
        pytest.skip("SQLite has no arrays")
    totals: list[int | None] = []
    with watched(lambda _, total, *__: totals.append(total), keeps=False):
        found = asked.con.sql(query, options=Options(max_calls=texts, link=False))
    assert set(totals) == ({rows} if rows else set())
    assert len(found.rows) == (0 if not texts else rows - rows // 4 if YES in query else rows)
    if texts:
        with pytest.raises(BudgetExceeded, match=f"about {texts:,} model calls"):
            asked.con.sql(query, options=Options(max_calls=texts - 1, link=False))
