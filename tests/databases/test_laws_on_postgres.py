"""Random queries give on PostgreSQL the rows that the oracle gives for its SQL."""

from __future__ import annotations

import pytest

from engines import PostgresServer
from laws.check import cases, check, connect_exactly

QUERIES = 10


@pytest.mark.slow
def test_rows_are_those_of_the_database(postgres_server: PostgresServer) -> None:
    def connect(tables: dict[str, object], model: object, **options: object) -> object:
        return connect_exactly(postgres_server.source(tables), model, **options)

    ready = cases(0, QUERIES, "postgres")
    failures = [failure for case in ready if (failure := check(case, connect=connect)[0]) is not None]
    assert not failures, "\n".join(map(str, failures))
