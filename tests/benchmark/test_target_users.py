"""Code written for the published benchmark package runs here with another import: its documented examples, anew."""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from small_datasets import write_dataset

from almanaq.errors import BenchmarkError, UsageError
from almanaq_bench.retrievers.paper_retrievers import AbsCustomEmbeddingRetriever, AbsStandardEmbeddingRetriever
from almanaq_bench.target.data_models import (
    GenericDatasetConfigDataModel,
    HFDatasetConfigDataModel,
    RetrievalResultDataModel,
)
from almanaq_bench.target.evaluators import TARGET, get_task_names
from almanaq_bench.target.generators import AbsGenerator
from almanaq_bench.target.retrievers import (
    HNSWOpenAIEmbeddingRetriever,
    NoContextRetriever,
    OTTQARetriever,
    RowSerializationRetriever,
)
from almanaq_bench.target.tasks import SCORES, AbsTask, QuestionAnsweringTask, TableRetrievalTask


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The datasets where a user has fetched them, and a working folder for the log."""
    for name in ("fetaqa", "ottqa", "spider"):
        write_dataset(tmp_path / "data" / name)
    monkeypatch.setenv("ALMANAQ_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "data"


class Custom(AbsCustomEmbeddingRetriever):
    """The template for retrievers that keep what they make, filled in: finds what the question names."""

    def __init__(self, expected_corpus_format: str = "nested array", **kwargs):
        super().__init__(expected_corpus_format=expected_corpus_format)
        self.tables: dict[str, dict[tuple, Any]] = {}

    def retrieve(self, query: str, dataset_name: str, top_k: int) -> list[tuple]:
        asked = query.strip("?").split()[-1]
        tables = self.tables[dataset_name]
        return sorted(tables, key=lambda table: asked not in self.cells(tables[table]))[:top_k]

    def embed_corpus(self, dataset_name: str, corpus) -> None:
        self.batches = list(corpus)
        self.tables[dataset_name] = {
            (database, table): content
            for batch in self.batches
            for database, table, content in zip(batch["database_id"], batch["table_id"], batch["table"], strict=True)
        }

    def cells(self, content) -> list[str]:
        form = self.get_expected_corpus_format()
        if form == "dictionary":
            return [cell for row in content for cell in row.values()]
        if form == "dataframe":
            return [cell for row in content.to_numpy() for cell in row]
        return [cell for row in content[1:] for cell in row]


class Standard(AbsStandardEmbeddingRetriever):
    """The template for retrievers that give vectors, filled in: one dimension for each item's number."""

    def __init__(self, expected_corpus_format: str = "nested array", **kwargs):
        super().__init__(expected_corpus_format=expected_corpus_format)

    def embed_query(self, query: str, dataset_name: str) -> np.ndarray:
        return np.eye(20)[int("".join(filter(str.isdigit, query)))]

    def embed_corpus(self, dataset_name: str, corpus_entry: dict) -> np.ndarray:
        return np.eye(20)[int(corpus_entry["table"][1][1])]


class Echo(AbsGenerator):
    def generate(self, table_str: str, query: str) -> str:
        return table_str.split()[-2]


def test_the_first_example_of_its_documentation() -> None:
    target_fetaqa = TARGET(("Table Retrieval Task", "fetaqa"))
    performance = target_fetaqa.run(retriever=OTTQARetriever(), split="test", top_k=10)
    results = performance["Table Retrieval Task"]["fetaqa"]
    told = results.model_dump()["retrieval_performance"]
    assert told["k"] == 10
    assert 0 <= told["accuracy"] == told["recall"] == results["retrieval_performance"]["recall"] <= 1
    assert results.embedding_statistics.embedding_creation_duration_wall_clock >= 0
    assert "Table Question Answering Task" in get_task_names()


@pytest.mark.parametrize("form", ["nested array", "dictionary", "dataframe"])
def test_the_template_of_a_custom_retriever(form: str, tmp_path: Path) -> None:
    made = Custom(form)
    files = {"retrieval_results_file": "retrieval.jsonl", "downstream_results_file": "downstream.jsonl"}
    results = TARGET(("Table Retrieval Task", "fetaqa")).run(made, batch_size=8, top_k=3, **files)
    assert results["Table Retrieval Task"]["fetaqa"].retrieval_performance.accuracy == 1.0
    assert [len(batch["table_id"]) for batch in made.batches] == [8, 8, 4]
    assert set(made.batches[0]) == {"database_id", "table_id", "table", "context"}
    lines = [json.loads(line) for line in Path("retrieval.jsonl").read_text().splitlines()]
    assert len(lines) == 20
    assert RetrievalResultDataModel(**lines[3]).retrieval_results[0] == ("db1", "t3")
    assert Path("downstream.jsonl").read_text() == ""


def test_the_template_of_a_standard_retriever() -> None:
    results = TARGET(("Table Retrieval Task", ["fetaqa", "ottqa"])).run(Standard(), top_k=1)
    assert [each.retrieval_performance.accuracy for each in results["Table Retrieval Task"].values()] == [1.0, 1.0]


@pytest.mark.parametrize("word", ["nested arrays", "spreadsheet", ""])
def test_a_form_that_is_none_is_an_error(word: str) -> None:
    with pytest.raises(UsageError, match="expected_corpus_format"):
        Custom(word)
    late = Custom()
    late.expected_corpus_format = word
    with pytest.raises(UsageError, match="expected_corpus_format"):
        TARGET(("Table Retrieval Task", "fetaqa")).run(late)


def test_the_getter_counts() -> None:
    class Getter(Custom):
        def get_expected_corpus_format(self) -> str:
            return "dictionary"

    made = Getter()
    TARGET(("Table Retrieval Task", "fetaqa")).run(made, top_k=1)
    assert made.batches[0]["table"][2] == [{"name": "item2", "value": "2"}]


def test_an_overridden_retrieve_batch_counts() -> None:
    class Batched(Custom):
        def retrieve(self, query, dataset_name, top_k):
            raise AssertionError("its own retrieve_batch asks nobody")

        def retrieve_batch(self, queries, dataset_name, top_k, **kwargs):
            self.asked = queries
            numbers = ["".join(filter(str.isdigit, query)) for query in queries["query"]]
            found = [[(f"db{int(number) % 2}", f"t{number}")] for number in numbers]
            return [
                RetrievalResultDataModel(dataset_name=dataset_name, query_id=query_id, retrieval_results=tables)
                for query_id, tables in zip(queries["query_id"], found, strict=True)
            ]

    made = Batched()
    results = TARGET(("Table Retrieval Task", "fetaqa")).run(made, top_k=1)
    assert results["Table Retrieval Task"]["fetaqa"].retrieval_performance.accuracy == 1.0
    assert made.asked["query"][-1] == "what is item19?"
    assert not any(made.asked["table_id"])  # what is to be found is not told


def test_an_overridden_retrieve_batch_of_vectors_asks_the_client() -> None:
    class Second(Standard):
        """Gives the next table's vector: every first table is wrong."""

        def retrieve_batch(self, queries, dataset_name, top_k, **kwargs):
            client = kwargs["client"]
            vectors = [np.roll(self.embed_query(query, dataset_name), 1) for query in queries["query"]]
            points = [client.search(collection_name=dataset_name, query_vector=v, limit=top_k)[0] for v in vectors]
            return [
                RetrievalResultDataModel(
                    dataset_name=dataset_name,
                    query_id=query_id,
                    retrieval_results=[(point.payload["database_id"], point.payload["table_id"])],
                )
                for query_id, point in zip(queries["query_id"], points, strict=True)
            ]

    results = TARGET(("Table Retrieval Task", "fetaqa")).run(Second(), top_k=1)
    assert results["Table Retrieval Task"]["fetaqa"].retrieval_performance.accuracy == 0.0


def test_a_batch_that_answers_too_few_is_an_error() -> None:
    class Short(Custom):
        def retrieve_batch(self, queries, dataset_name, top_k, **kwargs):
            return super().retrieve_batch(queries, dataset_name, top_k, **kwargs)[1:]

    with pytest.raises(BenchmarkError, match="retrieve_batch gave 3 results for 4 questions"):
        TARGET(("Table Retrieval Task", "fetaqa")).run(Short())


def test_a_generator_of_ones_own_in_a_task_object() -> None:
    qa_task = QuestionAnsweringTask({"fetaqa": {"dataset_path": "data/fetaqa"}}, task_generator=Echo())
    results = TARGET(downstream_tasks=qa_task).run(Custom(), top_k=1, downstream_results_dir="replies")
    told = results["Table Question Answering Task"]["fetaqa"].downstream_task_performance
    assert told.task_name == "Table Question Answering Task"
    assert told.scores["exact_match"] == 1.0
    assert {"bleu", "sacrebleu", "rouge", "meteor"} <= told.scores.keys()
    assert told.scores["rouge"]["rougeL"] == 1.0
    lines = [json.loads(line) for line in Path("replies/fetaqa_1.jsonl").read_text().splitlines()]
    assert lines[7] == {"dataset_name": "fetaqa", "query_id": "q7", "generated_results": "7"}


class Failing(AbsGenerator):
    """Fails at the questions whose number is a multiple of `every`."""

    def __init__(self, every: int) -> None:
        self.every = every

    def generate(self, table_str: str, query: str) -> str:
        if int("".join(filter(str.isdigit, query))) % self.every == 0:
            raise RuntimeError("the key is wrong")
        return table_str.split()[-2]


def test_a_generator_that_always_fails_has_no_score() -> None:
    task = QuestionAnsweringTask({"fetaqa": {"dataset_path": "data/fetaqa"}}, task_generator=Failing(1))
    with pytest.raises(BenchmarkError, match=r"failed at all 20 questions .* RuntimeError: the key is wrong"):
        TARGET(task).run(Custom(), top_k=1)


def test_replies_that_fail_are_counted_and_told() -> None:
    task = QuestionAnsweringTask({"fetaqa": {"dataset_path": "data/fetaqa"}}, task_generator=Failing(5))
    target = TARGET(task, log_file_path="log.txt")
    with pytest.warns(UserWarning, match="4 of 20 replies failed"):
        results = target.run(Custom(), top_k=1)
    scores = results["Table Question Answering Task"]["fetaqa"].downstream_task_performance.scores
    assert scores["failed_replies"] == 4
    assert scores["exact_match"] == 0.8
    assert "the key is wrong" in Path("log.txt").read_text()


@pytest.mark.parametrize(
    ("make", "meant"),
    [
        (lambda: QuestionAnsweringTask(task_generater=Echo()), "task_generator"),
        (lambda: QuestionAnsweringTask(metric=["bleu"]), "metrics"),
        (lambda: TableRetrievalTask(dataset_config={}), "datasets_config"),
        (lambda: AbsTask(tsk_name="mine"), "task_name"),
        (lambda: OTTQARetriever(with_title=True), "withtitle"),
        (lambda: OTTQARetriever(encoding="bm52"), "bm25"),
        (lambda: HNSWOpenAIEmbeddingRetriever(num_row=0), "num_rows"),
        (lambda: HNSWOpenAIEmbeddingRetriever(embedding_model_id="other"), "embedder='openai:other'"),
    ],
)
def test_an_argument_that_nobody_has_is_an_error_with_the_nearest(make, meant: str) -> None:
    with pytest.raises(UsageError, match=meant):
        make()


def test_arguments_of_the_published_classes_are_taken() -> None:
    assert OTTQARetriever("files", "bm25").name() == "target-bm25-notitle"
    assert OTTQARetriever(out_dir="files", withtitle=True).name() == "target-tfidf"
    assert HNSWOpenAIEmbeddingRetriever(out_dir="files", num_rows=100).name() == "openai-embedding"
    assert RowSerializationRetriever(embeddings_dir="files", batch_size=8).name() == "row-serial"
    assert TableRetrievalTask(overwrite_default_datasets=True).dataset_config


def test_tasks_datasets_and_loaders_are_told() -> None:
    own = TableRetrievalTask({"mine": GenericDatasetConfigDataModel(dataset_name="mine", dataset_path="data/ottqa")})
    target = TARGET([("Text to SQL Task", "spider-test"), ("Table Question Answering Task", ["fetaqa", "ottqa"]), own])
    assert target.get_loaded_tasks() == ["Text to SQL Task", "Table Question Answering Task", "Table Retrieval Task"]
    assert list(target.dataset_info) == ["spider-test", "fetaqa", "ottqa", "mine"]
    assert target.dataset_info["spider-test"].split == "test"
    assert isinstance(target.dataset_info["ottqa"], HFDatasetConfigDataModel)
    loaders = target.create_dataloaders(target.dataset_info, "test")
    loader = loaders["fetaqa"]
    assert (loader.dataset_name, loader.split, loader.corpus, loader.queries) == ("fetaqa", "test", None, None)
    with pytest.raises(RuntimeError, match="call load"):
        loader.get_corpus_size()
    for each in loaders.values():
        each.load()
        assert each.get_corpus_size() == each.get_queries_size() == 20
    assert loader.corpus[1]["table"] == [["name", "value"], ["item1", "1"]]
    assert loader.queries[1]["query"] == "what is item1?"
    assert loader.get_table_id_to_table()["db1", "t1"][1] == ["item1", "1"]
    assert [len(batch["query"]) for batch in loader.get_queries_for_task(batch_size=15)] == [15, 5]
    assert next(iter(loader.convert_corpus_table_to("dataframe")))["table"][0].shape == (1, 2)
    loader.persist_corpus_to("csv", "tables")
    assert Path("tables/test/t1.csv").read_text().splitlines() == ["name,value", "item1,1"]


def test_a_task_named_twice_is_the_later_one_and_the_log_says_so() -> None:
    own = TableRetrievalTask({"fetaqa": {"dataset_path": "data/fetaqa"}})
    target = TARGET(["Table Retrieval Task", own], log_file_path="here/log.txt")
    assert target.get_loaded_tasks() == ["Table Retrieval Task"]
    assert list(target.dataset_info) == ["fetaqa"]
    assert "named twice" in Path("here/log.txt").read_text()


def test_where_the_log_goes() -> None:
    TARGET(("Table Retrieval Task", "fetaqa"), persist_log=False)
    assert not Path("logs").exists()
    TARGET(("Table Retrieval Task", "fetaqa"))
    (log,) = Path("logs").iterdir()
    assert log.name.startswith("target_run_log_")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("Tabel Retrieval Task", "Table Retrieval Task"),
        (("Table Question Answering Task", "spider"), "is not of task"),
        (("Table Question Answering Task", "spider-test"), "is not of task"),
        (("Table Retrieval Task", 5), "neither a dataset's name nor a list"),
        (5, "is not a task"),
    ],
)
def test_what_is_no_task(spec, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        TARGET(spec)


def test_a_haystack_joins_the_tables(folder: Path) -> None:
    shutil.copytree(folder / "ottqa", folder / "gittables")
    made = Custom()
    results = TARGET(("Table Retrieval Task", ["fetaqa", "gittables"])).run(made, top_k=40)
    assert list(results["Table Retrieval Task"]) == ["fetaqa"]
    assert sum(len(batch["table_id"]) for batch in made.batches) == 40


def test_a_task_of_ones_own_measures_its_replies() -> None:
    class Count(AbsTask):
        default_name = "Count Task"

        @classmethod
        def get_default_task_name(cls) -> str:
            return "Count Task"

        def _update_downstream_task_metrics(self, query_batch, downstream_results) -> None:
            self.seen = getattr(self, "seen", Counter())
            for gold, result in zip(query_batch["answer"], downstream_results, strict=True):
                self.seen[gold == result.generated_results] += 1

        def _calculate_downstream_task_performance(self, **kwargs):
            base = super()._calculate_downstream_task_performance()
            return base.model_copy(update={"scores": {"right": self.seen[True]}})

    task = Count(datasets_config={"fetaqa": {"dataset_path": "data/fetaqa"}}, task_generator=Echo())
    results = TARGET(task, persist_log=False).run(Custom(), top_k=1)
    assert results["Count Task"]["fetaqa"]["downstream_task_performance"]["scores"] == {"right": 20}


def test_without_tables_nothing_is_found() -> None:
    results = TARGET(("Table Retrieval Task", "fetaqa")).run(NoContextRetriever())
    assert results["Table Retrieval Task"]["fetaqa"].retrieval_performance.recall == 0.0


def test_scores_of_text_are_those_that_their_definitions_give() -> None:
    same = [("the cat sat on the mat", "the cat sat on the mat")]
    other = [("dogs bark", "the cat sat on the mat")]
    half = [("the cat", "the cat sat down")]
    assert SCORES["rouge"].compute(same, "en")["rouge2"] == 1.0
    assert SCORES["rouge"].compute(other, "en")["rougeL"] == 0.0
    assert SCORES["rouge"].compute(half, "en")["rouge1"] == pytest.approx(2 / 3)  # precision 1, recall 1/2
    assert SCORES["meteor"].compute(other, "en")["meteor"] == 0.0
    # One chunk of six words: 1 - 0.5 (1/6)^3.
    assert SCORES["meteor"].compute(same, "en")["meteor"] == pytest.approx(1 - 0.5 / 6**3)
    with pytest.raises(UsageError, match="rogue"):
        QuestionAnsweringTask(metrics=["rogue"])


def test_a_model_of_bertscore_that_cannot_be_had_is_an_error_that_says_what_to_do(monkeypatch, tmp_path: Path) -> None:
    def score(replies, golds, **_):
        raise OSError("no connection\nat all")

    monkeypatch.setitem(sys.modules, "bert_score", SimpleNamespace(score=score))
    for folder, named in (("", "language 'en'"), (str(tmp_path), str(tmp_path))):
        monkeypatch.setenv("ALMANAQ_BERTSCORE_MODEL", folder)
        with pytest.raises(UsageError, match="ALMANAQ_BERTSCORE_MODEL") as raised:
            SCORES["bertscore"].compute([("a", "b")], "en")
        assert named in str(raised.value)


def test_bertscore_takes_the_last_layer_of_a_model_of_this_machine(monkeypatch, tmp_path: Path) -> None:
    def score(replies, golds, **chosen):
        assert chosen == {"return_hash": True, "model_type": str(tmp_path), "num_layers": 6}
        return tuple(np.array([value, 0.0]) for value in (1.0, 0.5, 0.6)), "signed"

    (tmp_path / "config.json").write_text('{"num_hidden_layers": 6}')
    monkeypatch.setenv("ALMANAQ_BERTSCORE_MODEL", str(tmp_path))
    monkeypatch.setitem(sys.modules, "bert_score", SimpleNamespace(score=score))
    told = SCORES["bertscore"].compute([("a", "a"), ("a", "b")], "en")
    assert told == {"precision": 0.5, "recall": 0.25, "f1": 0.3, "signature": "signed"}
