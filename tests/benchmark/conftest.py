"""A small dataset in the contract's layout, and a request to run on it."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_datasets import no_embedder, write_dataset

from almanaq_bench import search
from almanaq_bench.config import RunRequest


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write_dataset(tmp_path / "data" / "small")
    return tmp_path / "data"


@pytest.fixture
def request_(data: Path, tmp_path: Path) -> RunRequest:
    return RunRequest("table-retrieval", "small", data, "test", "bm25", tmp_path / "out", no_embedder)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "BATCH", 4)
