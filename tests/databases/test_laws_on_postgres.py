"""Random queries give on PostgreSQL the rows that the oracle gives for its SQL."""

from __future__ import annotations

from itertools import chain

import pytest

from engines import PostgresServer
from laws.check import cases, check, connect_exactly

QUERIES = 10
ONCE_WRONG = (844,)
"""A side of EXCEPT that reads ordered rows."""


@pytest.mark.slow
def test_rows_are_those_of_the_database(postgres_server: PostgresServer) -> None:
    def connect(tables: dict[str, object], model: object, **options: object) -> object:
        return connect_exactly(postgres_server.source(tables), model, **options)

    ready = chain(cases(0, QUERIES, "postgres"), *(cases(seed, 1, "postgres") for seed in ONCE_WRONG))
    failures = [failure for case in ready if (failure := check(case, connect=connect)[0]) is not None]
    assert not failures, "\n".join(map(str, failures))
