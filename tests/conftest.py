"""What several areas share: a PostgreSQL server, and small tables in every engine."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from engines import PostgresServer
from postgres_server import find_binaries, run_server

_SLOW_MACHINES = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("same", derandomize=True, max_examples=25, **_SLOW_MACHINES)
settings.register_profile("search", **_SLOW_MACHINES)
settings.load_profile("same")
"""Every run draws the same few examples; with `--hypothesis-profile search` each draws others, and more."""


def pytest_configure(config: pytest.Config) -> None:
    """Give the run folders of its own: nothing kept by an earlier run is seen, nor the user's cache and settings.

    Nor is a model server looked for that happens to run on this machine.

    Workers of a parallel run inherit the folder, so that costly files (static vectors) are made once.
    """
    gc.disable()  # until all tests are collected: a fifth of what that takes
    if hasattr(config, "workerinput"):
        return
    folder = tempfile.mkdtemp(prefix="almanaq-tests-")
    os.environ["ALMANAQ_CACHE_DIR"] = folder
    os.environ["XDG_CONFIG_HOME"] = os.path.join(folder, "config")
    os.environ["ALMANAQ_LOCAL_SERVERS"] = "none"
    os.environ.pop("ALMANAQ_CACHE", None)
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the cases of a test with `sampled` to `make nightly`, but for every n-th and at least one."""
    sampled: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled") is not None:
            sampled.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in sampled.values():
        cases.sort(key=lambda case: zlib.crc32(case.nodeid.encode()))
        every = cases[0].get_closest_marker("sampled").args[0]  # type: ignore[union-attr]
        for case in cases[-(-len(cases) // every) :]:
            case.add_marker("nightly")


def pytest_collection_finish() -> None:
    """Let the collector of garbage pass over thousands of collected tests."""
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    gc.enable()


def pytest_unconfigure() -> None:
    """Let what was frozen be freed, or DuckDB reports it as leaked."""
    gc.unfreeze()


@pytest.fixture(scope="module", autouse=True)
def _one_instance(request: pytest.FixtureRequest) -> Iterator[None]:
    """Open tables in one instance of DuckDB, but where instances themselves are tested."""
    from tests.one_instance import open_in_one_instance

    from almanaq.engines.duckdb import engine

    with pytest.MonkeyPatch.context() as patch:
        if request.path.parent.name not in ("databases", "security", "project"):
            patch.setattr(engine, "open_tables", open_in_one_instance)
        yield


_EXPORTED = ("OPENAI_BASE_URL", "OPENAI_API_KEY", "ALMANAQ_CACHE_DIR", "ALMANAQ_LOCAL_SERVERS", "ALMANAQ_TIMEOUT")


@pytest.fixture(autouse=True)
def _environment_as_before() -> Iterator[None]:
    """Undo what a command that ran in this process exported for the model layer."""
    before = [(name, os.environ.get(name)) for name in _EXPORTED]
    yield
    for name, value in before:
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A PostgreSQL server that makes a database for each source."""
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("no PostgreSQL here: apt-get install postgresql")
    with run_server(binaries) as (url, log):
        yield PostgresServer(url, log)
