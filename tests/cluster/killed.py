"""Processes of the cluster, and the client, killed at random moments: right rows or an error with a name, never a part.

ALMANAQ_CLUSTER_KILLS says how often each is killed. `tests/cluster/kills.json` is the record of ten times, and of kills
of a worker, with which its executor goes, and of the server, which `shards.py` kills as well.
"""

from __future__ import annotations

import os

import pytest

from .kills import CONCURRENCY, TEXTS, Undisturbed, moments, undisturbed
from .processes import Cluster

KILLS = int(os.environ.get("ALMANAQ_CLUSTER_KILLS", "1"))


@pytest.fixture(scope="module")
def whole(cluster: Cluster) -> Undisturbed:
    return undisturbed(cluster, runs=1)


@pytest.mark.parametrize("kind", ["executor", "client"])
def test_right_rows_or_an_error_with_a_name(cluster: Cluster, whole: Undisturbed, kind: str) -> None:
    found = moments(cluster, kind, KILLS, whole=whole)
    assert len(found) == KILLS
    for moment in found:
        assert moment.asked <= TEXTS
        assert moment.again + moment.asked <= TEXTS + CONCURRENCY
        assert moment.said == "" if kind == "client" else moment.said
    assert not list(cluster.sessions.glob("*/*/*.parquet")), "something is left in the sessions' folder"
