"""One running cluster for all tests, and a client that sees no Java."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .processes import Cluster, running
from .tables import Tables

sys.path.append(str(Path(__file__).parents[1] / "databases"))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master, two workers and a Connect server; they alone know where Java is."""
    java = shutil.which("java")
    if java is None:
        pytest.fail("no Java on the PATH for the cluster: apt-get install openjdk-17-jre-headless")
    kept = {name: os.environ.pop(name, None) for name in ("JAVA_HOME", "SPARK_HOME")}
    path = os.environ["PATH"]
    without = [folder for folder in path.split(os.pathsep) if shutil.which("java", path=folder) is None]
    os.environ |= {"ALMANAQ_JAVA_PATH": path, "PATH": os.pathsep.join(without)}
    if kept["JAVA_HOME"]:
        os.environ["ALMANAQ_JAVA_HOME"] = kept["JAVA_HOME"]
    assert shutil.which("java") is None
    with running(tmp_path_factory.mktemp("cluster")) as up:
        yield up
    os.environ["PATH"] = path


@pytest.fixture(scope="session")
def tables(cluster: Cluster) -> Tables:
    """What makes tables on the cluster."""
    return Tables(cluster)
