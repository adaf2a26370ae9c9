"""Spider's gold queries over SQLite give PostgreSQL's rows; all of them are compared by `python -m benchmarks.gold`."""

from __future__ import annotations

import pytest
from benchmarks.gold.__main__ import DATA, compare

from engines import PostgresServer


@pytest.mark.slow
@pytest.mark.skipif(not DATA.exists(), reason="the dataset spider is not here (ALMANAQ_DATA)")
def test_gold_queries(postgres_server: PostgresServer) -> None:
    report = compare(postgres_server.url, frozenset(("concert_singer", "pets_1", "world_1", "dog_kennels")))
    assert report["not_the_same"] == []
    assert report["counts"]["same"] > 130
