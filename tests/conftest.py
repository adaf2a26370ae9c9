"""What several areas share: a PostgreSQL server, and small tables in every engine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engines import PostgresServer
from postgres_server import find_binaries, run_server


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A PostgreSQL server that makes a database for each source."""
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("no PostgreSQL here: apt-get install postgresql")
    with run_server(binaries) as (url, log):
        yield PostgresServer(url, log)
