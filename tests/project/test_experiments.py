"""The script that runs the committed experiments again."""

from __future__ import annotations

import json
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest


@pytest.fixture
def experiments(script, tmp_path, monkeypatch):
    """The script, over two small experiments and one whose dataset is not at hand."""
    module = script("experiments")
    monkeypatch.setattr(sys, "argv", sys.argv)  # the script sets it
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "DATA", tmp_path / "data")
    folder = tmp_path / "data" / "small"
    folder.mkdir(parents=True)
    table = {
        "database_id": "d",
        "table_id": "t",
        "header": ["city"],
        "rows": [["Lyon"]],
        "context": "{}",
        "split": "test",
    }
    asked = {"query_id": "1", "query": "where is Lyon?", "database_id": "d", "table_id": "t", "answer": ""}
    pq.write_table(pa.Table.from_pylist([table]), folder / "corpus.parquet")
    pq.write_table(pa.Table.from_pylist([asked]), folder / "queries_test.parquet")
    kind = tmp_path / "experiments" / "kind"
    kind.mkdir(parents=True)
    for dataset, retriever, split in (("small", "bm25", "test"), ("small", "none", "tset"), ("away", "bm25", "test")):
        command = (
            f"bench run --task table-retrieval --dataset {dataset} --split {split} --retriever {retriever}".split()
        )
        (kind / f"{dataset}-{retriever}.json").write_text(json.dumps({"command": command, "result": None}))
    (kind / "other.json").write_text('{"made_by": "another script"}')
    return module


def test_results_are_kept_and_what_went_wrong_is_said(experiments, tmp_path, capsys):
    paths = list(experiments.select_experiments(["kind"]))
    assert [path.stem for path in paths] == ["away-bm25", "small-bm25", "small-none"]
    assert [path.stem for path in experiments.select_experiments(["small-b"])] == ["small-bm25"]
    away, done, failed = experiments.run_all(paths)
    assert "passed over: no" in away["outcome"]
    assert (done["outcome"], done["name"]) == ("done", "experiments/kind/small-bm25.json")
    assert failed["outcome"] == "failed with exit code 2"
    assert done["wall_seconds"] > 0
    record = json.loads((tmp_path / "experiments" / "kind" / "small-bm25.json").read_text())
    assert record["result"]["metrics"]["recall@1"] == 1.0
    assert record["command"][:2] == ["bench", "run"]
    assert json.loads((tmp_path / "experiments" / "kind" / "small-none.json").read_text())["result"] is None
    assert "did you mean 'test'" in capsys.readouterr().err


def test_datasets_run_side_by_side_the_largest_first(experiments):
    experiments.run_all(list(experiments.select_experiments(["small-bm25"])))
    groups = experiments.by_dataset(list(experiments.select_experiments([])))
    assert [[path.stem for path in group] for group in groups] == [["small-bm25", "small-none"], ["away-bm25"]]
