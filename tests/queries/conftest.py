"""The engines that the queries of `Asked` run on."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest

from engines import sqlite_source

from .support import Asked

ONE_IN = {"duckdb": 1, "sqlite": 12, "postgres": 8}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave most tests on the engines other than DuckDB to `make nightly`."""
    for item in items:
        if item.nodeid.startswith("tests/queries/") and isinstance(item, pytest.Function):
            engine = item.callspec.params.get("engine", "duckdb") if hasattr(item, "callspec") else "duckdb"
            if zlib.crc32(item.nodeid.encode()) % ONE_IN[engine]:
                item.add_marker("nightly")


@pytest.fixture(
    scope="module",
    params=["duckdb", "sqlite", "postgres"],
)
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Make `Asked` put its tables into one of the engines: modules that use it say `usefixtures("engine")`."""
    server = request.getfixturevalue("postgres_server") if request.param == "postgres" else None

    def source(tables: Mapping[str, pa.Table]) -> Any:
        if server is not None:
            return server.source(tables)
        return sqlite_source(tables, tmp_path_factory.mktemp("sqlite")) if request.param == "sqlite" else tables

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Asked, "source", staticmethod(source))
        yield request.param
    Asked.close_all()
