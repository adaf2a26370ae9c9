"""One running cluster for all tests, and a client that sees no Java."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .processes import Cluster, has_spark, running
from .tables import Tables

sys.path.append(str(Path(__file__).parents[1] / "databases"))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A master, two workers and a Connect server; they alone know where Java is."""
    if shutil.which("java") is None:
        pytest.skip("no Java here, for the cluster: apt-get install openjdk-17-jre-headless")
    if not has_spark():
        pytest.skip("no Spark here, for the cluster: make cluster-test installs it")
    with running(tmp_path_factory.mktemp("cluster")) as up:
        assert shutil.which("java") is None
        yield up
        used = up.cpu_seconds() + sum(os.times()[:4])
        request.config.get_terminal_writer().line(f" [{used:.0f} s of a processor, the cluster's included]")


@pytest.fixture(scope="session")
def tables(cluster: Cluster) -> Tables:
    """What makes tables on the cluster."""
    return Tables(cluster)
