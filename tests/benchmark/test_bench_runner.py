import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from almanaq.benchmark import runner
from almanaq.benchmark.runner import RunRequest, run
from almanaq.benchmark.score import score
from almanaq.errors import AlmanaqError, BenchmarkError, SourceError, UsageError


def embedder():
    raise AssertionError("no embedder is needed")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data" / "small"
    folder.mkdir(parents=True)
    tables = [
        {
            "database_id": f"db{number % 2}",
            "table_id": f"t{number}",
            "header": ["name", "value"],
            "rows": [[f"item{number}", str(number)]],
            "context": json.dumps({"title": f"List of item{number}"}),
            "split": "test",
        }
        for number in range(20)
    ]
    questions = [
        {
            "query_id": f"q{n}",
            "query": f"what is item{n}?",
            "database_id": f"db{n % 2}",
            "table_id": f"t{n}",
            "answer": "",
        }
        for n in range(20)
    ]
    pq.write_table(pa.Table.from_pylist(tables), folder / "corpus.parquet")
    pq.write_table(pa.Table.from_pylist(questions), folder / "queries_test.parquet")
    return tmp_path / "data"


@pytest.fixture
def request_(data: Path, tmp_path: Path) -> RunRequest:
    return RunRequest("table-retrieval", "small", data, "test", "bm25", tmp_path / "out", embedder)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "BATCH", 4)


def test_a_run_leaves_its_configuration_records_timings_and_measures(request_: RunRequest) -> None:
    told = []
    result = run(request_, progress=lambda done, total: told.append((done, total))).to_dict()
    assert told == [(4, 20), (8, 20), (12, 20), (16, 20), (20, 20)]
    assert {file.name for file in request_.out.iterdir()} == {
        "config.json",
        "records.jsonl",
        "timings.jsonl",
        "metrics.json",
    }
    assert set(result) == {"task", "dataset", "split", "retriever", "fields", "queries", "metrics", "provenance"}
    assert (result["queries"], result["metrics"]["recall@1"], result["metrics"]["database_recall@1"]) == (20, 1.0, 1.0)
    assert result["metrics"].keys() >= {"mrr@10", "ndcg@10", "complete_recall@50", "seconds_per_query", "index_seconds"}
    first = json.loads((request_.out / "records.jsonl").read_text().splitlines()[0])
    assert first["query_id"] == "q0"
    assert first["gold"] == [["db0", "t0"]]
    assert first["hits"][0][:2] == ["db0", "t0"]
    assert score(request_.out).to_dict() == result


def files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name != "timings.jsonl"}


@pytest.mark.parametrize("kept", [0, 1, 37, 400, 1500])
def test_a_resumed_run_equals_an_uninterrupted_one(request_: RunRequest, kept: int, tmp_path: Path) -> None:
    run(request_)
    whole = replace(request_, out=tmp_path / "whole")
    run(whole)
    records = request_.out / "records.jsonl"
    records.write_bytes(records.read_bytes()[:kept])
    (request_.out / "metrics.json").unlink()
    run(replace(request_, resume=True))
    assert files(request_.out) == files(whole.out)


def test_a_finished_run_is_not_asked_again(request_: RunRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run(request_)
    monkeypatch.setattr(runner, "_search", lambda *_: pytest.fail("asked again"))
    assert run(replace(request_, resume=True)) == first


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fields": ["title"], "resume": True}, "another configuration .*fields"),
        ({"cutoffs": (1, 2), "resume": True}, "another configuration .*cutoffs"),
        ({"retriever": "random", "resume": True}, "another configuration .*retriever"),
        ({}, "go on with --resume"),
    ],
)
def test_a_run_folder_is_never_mixed(request_: RunRequest, change: dict, message: str) -> None:
    run(request_)
    before = files(request_.out)
    with pytest.raises(BenchmarkError, match=message):
        run(replace(request_, **change))
    assert files(request_.out) == before


def test_changed_data_is_another_configuration(request_: RunRequest) -> None:
    run(request_)
    file = request_.data_dir / "small" / "queries_test.parquet"
    pq.write_table(pq.read_table(file).slice(0, 10), file)
    with pytest.raises(BenchmarkError, match=r"another configuration .*data"):
        run(replace(request_, resume=True))


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"task": "table-retreival"}, UsageError, "did you mean 'table-retrieval'"),
        ({"dataset": "smal"}, UsageError, "did you mean 'small'"),
        ({"dataset": "fetaqa"}, UsageError, "is not in"),
        ({"data_dir": Path("/no/such")}, SourceError, "no such folder"),
        ({"split": "tset"}, UsageError, "did you mean 'test'"),
        ({"retriever": "bm52"}, UsageError, "did you mean 'bm25'"),
        ({"fields": ["headers"]}, UsageError, "did you mean 'header'"),
        ({"limit": 0}, UsageError, "--limit must be 1 or more"),
        ({"cutoffs": (0,)}, UsageError, "--k takes numbers of 1 or more"),
        ({"cutoffs": ()}, UsageError, "--k takes numbers of 1 or more"),
    ],
)
def test_bad_requests_write_nothing(request_: RunRequest, change: dict, kind: type[AlmanaqError], message: str) -> None:
    with pytest.raises(kind, match=message):
        run(replace(request_, **change))
    assert not request_.out.exists()


def test_gold_tables_must_be_in_the_corpus(request_: RunRequest) -> None:
    file = request_.data_dir / "small" / "corpus.parquet"
    pq.write_table(pq.read_table(file).slice(3), file)
    with pytest.raises(BenchmarkError, match=r"3 gold tables are not among the 17 .* db0/t0 of question 'q0'"):
        run(request_)


def test_tables_must_not_repeat(request_: RunRequest) -> None:
    file = request_.data_dir / "small" / "corpus.parquet"
    corpus = pq.read_table(file)
    pq.write_table(pa.concat_tables([corpus, corpus.slice(0, 1)]), file)
    with pytest.raises(BenchmarkError, match="table db0/t0 stands more than once"):
        run(request_)


def test_a_folder_with_other_files_is_left_alone(request_: RunRequest) -> None:
    request_.out.mkdir()
    (request_.out / "thesis.tex").write_text("mine")
    with pytest.raises(BenchmarkError, match=r"not empty and holds no run \(thesis\.tex\)"):
        run(request_)


@pytest.mark.parametrize(("name", "recall"), [("none", 0.0), ("oracle", 1.0)])
def test_bounds(request_: RunRequest, name: str, recall: float) -> None:
    assert run(replace(request_, retriever=name)).metrics["recall@1"] == recall


def test_limit_asks_the_first_questions(request_: RunRequest) -> None:
    assert run(replace(request_, limit=3)).queries == 3


class Wrong:
    """A retriever whose hits are wrong in the way its class attribute says."""

    name = "wrong"
    hits: tuple = ()

    def index(self, _corpus, _fields):
        return self

    def search(self, questions, _k):
        return [self.hits for _ in questions]


@pytest.mark.parametrize(
    ("hits", "message"),
    [
        ([("db0", "t0", 1.0), ("db0", "t0", 0.5)], "lists db0/t0 twice"),
        ([("db0", "nope", 1.0)], "db0/nope, which is not in the corpus"),
        ([("db0", "t0", float("nan"))], "score that is no number"),
        ([("db0", "t0", 0.5), ("db1", "t1", 1.0)], "scores that rise"),
    ],
)
def test_wrong_hits_are_refused(request_: RunRequest, hits: list, message: str, monkeypatch) -> None:
    from almanaq.corpus.table import TableId
    from almanaq.retrieval.protocols import Hit

    monkeypatch.setattr(Wrong, "hits", tuple(Hit(TableId(a, b), s) for a, b, s in hits))
    with pytest.raises(BenchmarkError, match=message):
        run(replace(request_, retriever=f"{__name__}:Wrong"))


def test_folders_that_cannot_be_scored(tmp_path: Path, request_: RunRequest) -> None:
    with pytest.raises(BenchmarkError, match="no such run folder"):
        score(tmp_path / "nowhere")
    with pytest.raises(BenchmarkError, match="is no run folder"):
        score(tmp_path)
    run(request_)
    config = request_.out / "config.json"
    config.write_text(config.read_text().replace('"seed": 0', '"seed": 1'))
    with pytest.raises(BenchmarkError, match="was edited"):
        score(request_.out)
