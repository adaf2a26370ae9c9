import json
import os
import random
import resource
import signal
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from small_datasets import files, write_dataset

from almanaq.corpus.table import TableId
from almanaq.errors import AlmanaqError, BenchmarkError, SourceError, UsageError
from almanaq.retrieval.protocols import Hit
from almanaq_bench import search
from almanaq_bench.cli.output import print_scores
from almanaq_bench.config import RunRequest
from almanaq_bench.evaluation.rankings import MEASURES
from almanaq_bench.records import hold_folder
from almanaq_bench.report.page import write_report
from almanaq_bench.run_measures import describe_unfinished, score
from almanaq_bench.runner import run


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
    assert result.keys() > {"task", "dataset", "split", "retriever", "fields", "queries", "metrics", "provenance"}
    assert result["intervals"]["recall@1"] == [1.0, 1.0]
    assert (result["queries"], result["metrics"]["recall@1"], result["metrics"]["database_recall@1"]) == (20, 1.0, 1.0)
    assert result["metrics"].keys() >= {"mrr@10", "ndcg@10", "complete_recall@50", "seconds_per_query", "index_seconds"}
    first = json.loads((request_.out / "records.jsonl").read_text().splitlines()[0])
    assert first["query_id"] == "q0"
    assert first["gold"] == [["db0", "t0"]]
    assert first["hits"][0][:2] == ["db0", "t0"]
    assert score(request_.out).to_dict() == result


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
    monkeypatch.setattr(search.Search, "_index", lambda *_: pytest.fail("asked again"))
    assert run(replace(request_, resume=True)) == first


def test_a_run_folder_is_written_by_one_process_at_a_time(request_: RunRequest) -> None:
    with hold_folder(request_.out), pytest.raises(BenchmarkError, match="another process is writing"):
        run(replace(request_, resume=True))
    assert run(request_).queries == 20


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fields": ["title"], "resume": True}, "another configuration .*fields"),
        ({"cutoffs": (1, 2), "resume": True}, "another configuration .*cutoffs"),
        ({"retriever": "random", "resume": True}, "another configuration .*retriever"),
        ({}, "continue with --resume"),
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
        ({"dataset": ""}, SourceError, "is not a dataset folder"),
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
    with pytest.raises(BenchmarkError, match="table db0/t0 occurs more than once"):
        run(request_)


def test_a_folder_with_other_files_is_left_alone(request_: RunRequest) -> None:
    request_.out.mkdir()
    (request_.out / "thesis.tex").write_text("mine")
    with pytest.raises(BenchmarkError, match=r"not empty and holds no run \(thesis\.tex\)"):
        run(request_)


@pytest.mark.parametrize(("name", "recall"), [("none", 0.0), ("oracle", 1.0)])
def test_bounds(request_: RunRequest, name: str, recall: float) -> None:
    assert run(replace(request_, retriever=name)).metrics["recall@1"] == recall


def test_the_oracle_tells_questions_of_the_same_words_apart(request_: RunRequest) -> None:
    file = request_.data_dir / "small" / "queries_test.parquet"
    rows = [{**row, "query": "which item?"} for row in pq.read_table(file).to_pylist()]
    pq.write_table(pa.Table.from_pylist(rows), file)
    assert run(replace(request_, retriever="oracle")).metrics["recall@1"] == 1.0


class Empty:
    """A retriever that finds nothing for most questions, and little for the others."""

    def embed_corpus(self, corpus):
        self.tables = [table for batch in corpus for table in zip(batch["database_id"], batch["table_id"], strict=True)]

    def retrieve(self, query, top_k):
        return self.tables[:3] if query == "what is item4?" else []


def test_questions_without_any_table_are_said(request_: RunRequest, capsys: pytest.CaptureFixture[str]) -> None:
    scores = run(replace(request_, retriever=f"{__name__}:Empty"))
    nothing, few = scores.warnings
    assert "19 of 20 questions got no table from" in nothing
    assert "1 of 20 questions got fewer than the 20 tables requested, as few as 3" in few
    assert scores.to_dict()["warnings"] == [nothing, few]
    print_scores(scores, as_json=True)
    told = capsys.readouterr()
    assert nothing in told.err
    assert json.loads(told.out)["metrics"]["recall@1"] == 0
    for bound in ("none", "oracle", "random"):
        assert run(replace(request_, retriever=bound, out=request_.out / bound)).warnings == ()


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
        ([("db0", "t0", float("nan"))], "with a value that is not a number"),
        ([("db0", "t0", 0.5), ("db1", "t1", 1.0)], "its scores rise"),
        ([("db0", "t0", "best")], "which is not a Hit"),
    ],
)
def test_wrong_hits_are_refused(request_: RunRequest, hits: list, message: str, monkeypatch) -> None:
    monkeypatch.setattr(Wrong, "hits", tuple(Hit(TableId(a, b), s) for a, b, s in hits))
    with pytest.raises(BenchmarkError, match=message):
        run(replace(request_, retriever=f"{__name__}:Wrong"))


@pytest.mark.parametrize("ranking", [None, 5, "db0/t0"])
def test_a_ranking_that_is_none_is_named(request_: RunRequest, ranking: object, monkeypatch) -> None:
    monkeypatch.setattr(Wrong, "hits", ranking)
    with pytest.raises(BenchmarkError, match=r"Wrong, question 'q0': it gave .* not a list of hits"):
        run(replace(request_, retriever=f"{__name__}:Wrong"))


def test_scores_of_numpy_are_numbers(request_: RunRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    hits = (Hit(TableId("db0", "t0"), np.float32(0.1)), Hit(TableId("db1", "t1"), np.int64(0)))
    monkeypatch.setattr(Wrong, "hits", hits)
    assert run(replace(request_, retriever=f"{__name__}:Wrong")).metrics["recall@1"] == 0.05
    first = json.loads((request_.out / "records.jsonl").read_text().splitlines()[0])
    assert first["hits"] == [["db0", "t0", 0.1], ["db1", "t1", 0.0]]


def test_folders_that_cannot_be_scored(tmp_path: Path, request_: RunRequest) -> None:
    with pytest.raises(BenchmarkError, match="no such run folder"):
        score(tmp_path / "nowhere")
    with pytest.raises(BenchmarkError, match="is not a run folder"):
        score(tmp_path)
    run(request_)
    config = request_.out / "config.json"
    config.write_text(config.read_text().replace('"seed": 0', '"seed": 1'))
    with pytest.raises(BenchmarkError, match="was edited"):
        score(request_.out)


class Late:
    """A retriever that fails at a question in the way its class attribute says."""

    name = "late"
    failing = True
    at = "q9"
    few = False

    def index(self, _corpus, _fields):
        return self

    def search(self, questions, _k):
        if self.failing and f"what is item{self.at[1:]}?" in questions:
            if self.few:
                return []
            raise ValueError("out of memory\nsomewhere")
        return [() for _ in questions]


@pytest.mark.parametrize(
    ("few", "message"),
    [(False, r"Late raised ValueError at questions 'q8' to 'q11': out of memory somewhere.*--resume"),
     (True, "gave 0 rankings for 4 questions")],
)  # fmt: skip
def test_a_retriever_that_fails_loses_nothing(request_: RunRequest, few: bool, message: str, monkeypatch) -> None:
    request = replace(request_, retriever=f"{__name__}:Late")
    monkeypatch.setattr(Late, "few", few)
    with pytest.raises(BenchmarkError, match=message):
        run(request)
    kept = (request.out / "records.jsonl").read_text()
    assert len(kept.splitlines()) == 8
    monkeypatch.setattr(Late, "failing", False)
    assert run(replace(request, resume=True)).queries == 20
    assert (request.out / "records.jsonl").read_text().startswith(kept)


def forked(work) -> int:
    """Run something in a process of its own, and give its process id."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    return child


class Slow:
    """Gives each batch its time, so that a process can be killed in the middle of anything."""

    name = "slow"

    def index(self, corpus, _fields):
        self.ids = [table.id for table in corpus]
        return self

    def search(self, questions, k):
        time.sleep(0.005)
        return [tuple(Hit(table, 1 / rank) for rank, table in enumerate(self.ids[:k], 1)) for _ in questions]


def test_a_run_killed_ten_times_equals_an_uninterrupted_one(request_: RunRequest, tmp_path: Path) -> None:
    request = replace(request_, retriever=f"{__name__}:Slow")
    whole = replace(request, out=tmp_path / "whole")
    started = time.perf_counter()
    run(whole)
    took = time.perf_counter() - started
    draw = random.Random(7)
    for _ in range(10):
        child = forked(lambda: run(replace(request, resume=True)))
        time.sleep(draw.uniform(0, took))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    run(replace(request, resume=True))
    assert files(request.out) == files(whole.out)


def test_a_full_disk_loses_nothing(request_: RunRequest, tmp_path: Path) -> None:
    whole = replace(request_, out=tmp_path / "whole")
    run(whole)
    message = tmp_path / "message"

    def fill() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3_000, 3_000))
        try:
            run(request_)
        except BenchmarkError as error:
            message.write_text(str(error))

    os.waitpid(forked(fill), 0)
    assert "cannot write" in message.read_text()
    assert "its earlier content is intact" in message.read_text()
    assert not list(request_.out.glob("*.part"))
    assert (request_.out / "records.jsonl").stat().st_size > 0
    run(replace(request_, resume=True))
    assert files(request_.out) == files(whole.out)


def test_a_page_that_does_not_fit_on_the_disk_leaves_no_half_of_it(request_: RunRequest, tmp_path: Path) -> None:
    run(request_)
    page, message = tmp_path / "report.html", tmp_path / "message"

    def fill() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3_000, 3_000))
        try:
            write_report([request_.out], page)
        except BenchmarkError as error:
            message.write_text(str(error))

    os.waitpid(forked(fill), 0)
    assert f"cannot write {page}" in message.read_text()
    assert not list(tmp_path.glob("report*"))


def test_distractors_are_drawn_by_the_seed_and_never_raise_recall(request_: RunRequest, tmp_path: Path) -> None:
    write_dataset(request_.data_dir / "hay", 40)
    request = replace(request_, task="needle-in-haystack", distractors=15, distractors_from="hay")
    plain = run(replace(request_, out=tmp_path / "plain"))
    found = [run(replace(request, out=tmp_path / f"out{n}", seed=n // 2)) for n in range(3)]
    assert found[0].config.tables == 35
    assert files(tmp_path / "out0") == files(tmp_path / "out1")
    assert found[0].config.distractors_from == "hay"
    assert all(each.metrics["recall@1"] <= plain.metrics["recall@1"] for each in found)
    assert all(each.metrics["recall@50"] <= plain.metrics["recall@50"] for each in found)
    every = run(replace(request, out=tmp_path / "every", distractors=None))
    assert (every.config.distractors, every.config.tables) == (40, 60)
    lines = (tmp_path / "every" / "records.jsonl").read_text().splitlines()
    hits = {hit[0] for line in lines for hit in json.loads(line)["hits"]}
    assert hits & {"hay/db0", "hay/db1"}


def test_distractors_that_are_not_there(request_: RunRequest) -> None:
    with pytest.raises(UsageError, match=r"'gittables' is not in .*bench fetch gittables"):
        run(replace(request_, task="needle-in-haystack"))
    write_dataset(request_.data_dir / "hay", 3)
    with pytest.raises(UsageError, match="--distractors 4: hay holds 3 tables"):
        run(replace(request_, distractors=4, distractors_from="hay"))


def test_data_that_differs_from_the_card_is_said(request_: RunRequest, tmp_path: Path) -> None:
    write_dataset(request_.data_dir / "fetaqa")
    counts = run(replace(request_, dataset="fetaqa")).config.counts
    assert counts == "fetaqa test here has 20 tables (published: 2003) and 20 questions (published: 2003)"


def test_scores_at_other_cutoffs_need_no_new_run(request_: RunRequest) -> None:
    ran = run(request_)
    assert score(request_.out, (3, 5)).metrics.keys() < {*ran.metrics, *(f"{name}@3" for name in MEASURES)}
    with pytest.raises(UsageError, match="holds 50 tables per question; give 1 to 50"):
        score(request_.out, (51,))


def test_folders_of_other_versions_and_half_written_ones(request_: RunRequest) -> None:
    run(request_)
    config = request_.out / "config.json"
    text = config.read_text()
    config.write_text(text.replace('"format": 3', '"format": 9'))
    with pytest.raises(BenchmarkError, match="in format 9; this one reads format 3: run it again"):
        score(request_.out)
    config.write_text(text[:40])
    with pytest.raises(BenchmarkError, match="is damaged"):
        score(request_.out)
    config.write_text(text)
    (request_.out / "records.jsonl").write_text('{"query_id": 1}\n')
    with pytest.raises(BenchmarkError, match="line 1: not a record"):
        score(request_.out)


def test_what_a_run_took_is_told_apart_from_what_it_found(request_: RunRequest) -> None:
    found = run(request_)
    assert found.timings.keys() == {
        "seconds_per_query", "index_seconds", "index_bytes", "latency_mean", "latency_p50", "latency_p95",
    }  # fmt: skip
    assert found.timings["index_bytes"] > 1000
    assert not found.timings.keys() & found.metrics.keys()
    with (request_.out / "timings.jsonl").open("a") as timings:
        timings.write('{"stage": "sea')
    assert score(request_.out).timings == found.timings


def test_a_cutoff_below_another_takes_the_same_vectors(request_: RunRequest, tmp_path: Path) -> None:
    class Counting:
        name = "counting"
        embedded = 0

        def embed(self, texts):
            Counting.embedded += len(texts)
            return np.ones((len(texts), 4), dtype=np.float32) / 2

    request = replace(request_, retriever="dense", embedder=Counting, cache=tmp_path / "cache")
    run(request)
    first = Counting.embedded
    assert first >= 40
    run(replace(request, out=tmp_path / "again", cutoffs=(2, 20)))
    assert Counting.embedded == first


def test_what_is_wrong_with_a_run_folder_is_named(request_: RunRequest) -> None:
    run(request_)
    assert describe_unfinished(request_.out) == ""
    (request_.out / "metrics.json").unlink()
    assert "is not finished: 20 questions so far; continue with --resume" in describe_unfinished(request_.out)
    timings = request_.out / "timings.jsonl"
    timings.write_text(timings.read_text() + "half\n")
    with pytest.raises(BenchmarkError, match=r"timings\.jsonl, line \d+: not a timing"):
        score(request_.out)
    config = request_.out / "config.json"
    config.write_text(config.read_text().replace('"seed"', '"sead"'))
    with pytest.raises(BenchmarkError, match=r"with other settings \(sead, seed\): run it again"):
        score(request_.out)
