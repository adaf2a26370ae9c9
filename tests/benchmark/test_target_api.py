"""The paper's Python API, with retrievers as its users write them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from small_datasets import write_dataset

import almanaq
from almanaq.errors import AlmanaqError, BenchmarkError, UsageError
from almanaq_bench import TARGET, CustomTask, get_task_names


class ByFirstCell:
    """The paper's two methods: finds the tables whose first cell the question names."""

    def embed_corpus(self, corpus):
        self.cells = {}
        for batch in corpus:
            for database, table, rows in zip(batch["database_id"], batch["table_id"], batch["table"], strict=True):
                self.cells[database, table] = rows[1][0]

    def retrieve(self, query, top_k):
        words = query.rstrip("?").split()
        return [table for table, cell in self.cells.items() if cell in words][:top_k]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_dataset(tmp_path / "data" / "ottqa")
    write_dataset(tmp_path / "data" / "mine", 5)
    return tmp_path / "data"


def test_the_papers_example_runs_as_it_is_printed(folder: Path) -> None:
    target = TARGET(("Table Retrieval", "OTTQA"), data_dir=folder)
    results = target.run(ByFirstCell(), split="test", top_k=10)
    performance = results["Table Retrieval"]["OTTQA"].retrieval_performance
    assert (performance.k, performance.recall, performance.accuracy) == (10, 1.0, 1.0)
    assert performance.precision == 0.1
    assert results["Table Retrieval"]["OTTQA"].scores.queries == 20


def test_what_its_users_had_to_work_around(folder: Path, tmp_path: Path) -> None:
    target = TARGET(
        [("Table Retrieval Task", ["ottqa"]), CustomTask("Mine", {"here": folder / "mine"})], data_dir=folder
    )
    assert target.get_loaded_tasks() == ["Table Retrieval Task", "Mine"]
    file = tmp_path / "found.jsonl"
    results = target.run("bm25", top_k=2, retrieval_results_file=file, out=tmp_path / "runs")
    assert results["Mine"]["here"].scores.queries == 5
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(lines) == 25
    assert lines[0]["hits"][0][:2] == ["db0", "t0"]
    assert target.run("bm25", top_k=2, out=tmp_path / "runs") == results  # finished runs are gone on with
    with pytest.raises(UsageError, match="no split 'validation'"):  # a second run takes the split that it is told
        target.run("bm25", split="validation")
    with pytest.raises(BenchmarkError, match="another configuration"):
        target.run("random", top_k=2, out=tmp_path / "runs")


def test_a_haystack_among_the_datasets_and_the_size_of_batches(folder: Path) -> None:
    """As the paper's users have it: `("Table Retrieval Task", ["ottqa", "gittables"])`, and `batch_size`."""
    write_dataset(folder / "gittables", 7)
    found = ByFirstCell()
    found.sizes = []
    plain = found.embed_corpus
    found.embed_corpus = lambda corpus: plain(found.sizes.append(len(b["table_id"])) or b for b in corpus)
    target = TARGET(("Table Retrieval Task", ["ottqa", "gittables"]), data_dir=folder)
    results = target.run(retriever=found, split="test", batch_size=10, top_k=3)
    config = results["Table Retrieval Task"]["ottqa"].scores.config
    assert (config.tables, config.distractors, config.distractors_from) == (27, 7, "gittables")
    assert found.sizes == [10, 10, 7]
    with pytest.raises(UsageError, match="batch_size must be 1 or more"):
        target.run(found, batch_size=0)
    with pytest.raises(UsageError, match="top_k must be 1 or more"):
        target.run(found, top_k=0)
    with pytest.raises(UsageError, match="needs a dataset that is asked about"):
        TARGET(("Table Retrieval Task", "gittables"), data_dir=folder)


class Echo:
    """The paper's generator: one method."""

    def generate(self, table_str, query):
        return table_str.splitlines()[-1].split("|")[2].strip()


def test_replies_are_scored_where_the_task_asks_for_them(folder: Path, tmp_path: Path) -> None:
    target = TARGET(("Table Question Answering", "OTTQA"), data_dir=folder)
    file = tmp_path / "replies.jsonl"
    results = target.run(ByFirstCell(), split="test", top_k=1, generator=Echo(), downstream_results_file=file)
    found = results["Table Question Answering"]["OTTQA"]
    assert found.retrieval_performance.recall == 1.0
    assert found.downstream_task_performance["exact_match"] == 1.0
    assert json.loads(file.read_text().splitlines()[3])["text"] == "3"
    assert found.scores.config.generator.endswith(":Echo")


def test_by_default_it_runs_table_retrieval_on_all_at_hand(folder: Path) -> None:
    assert TARGET(data_dir=folder).run("oracle")["Table Retrieval"].keys() == {"ottqa"}
    assert "Table Question Answering" in get_task_names()


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ("Table Retreival", "did you mean 'Table Retrieval'"),
        (("Fact Verification", "ottqa"), "has no task 'Fact Verification'; those that have: tabfact"),
        ([("Table Retrieval", "ottqa"), "Table Retrieval"], "listed twice"),
        ("Fact Verification", "holds no dataset of 'fact-verification'"),
    ],
)
def test_wrong_tasks(folder: Path, tasks: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        TARGET(tasks, data_dir=folder)


def test_a_retriever_that_is_none(folder: Path) -> None:
    with pytest.raises(AlmanaqError, match="is not a retriever"):
        TARGET(("Table Retrieval", "ottqa"), data_dir=folder).run(object())


def from_the_docs(name: str) -> str:
    """The example in docs/benchmark.md that has this class."""
    page = (Path(__file__).parents[2] / "docs" / "benchmark.md").read_text()
    (code,) = (block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if f"class {name}:" in block)
    return code


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["Shortest", "Words"])
def test_a_retriever_of_the_docs_in_a_file_is_benchmarked_with_one_command(
    folder: Path, tmp_path: Path, name: str
) -> None:
    code = from_the_docs(name)
    assert len([line for line in code.splitlines() if line]) <= 15
    (tmp_path / "mine.py").write_text(code)
    command = [sys.executable, "-c", "import sys; del sys.path[0]; from almanaq.cli import main; sys.exit(main())"]
    arguments = ["bench", "run", "--task", "table-retrieval", "--dataset", "mine", "--data-dir", str(folder)]
    more = ["--split", "test", "--retriever", f"mine:{name}", "--k", "1,5", "--out", "run", "--json"]
    home = {"PYTHONPATH": str(Path(almanaq.__file__).parents[1])}
    done = subprocess.run(
        [*command, *arguments, *more], cwd=tmp_path, env=os.environ | home, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["metrics"]["recall@5"] == 1.0
