"""`almanaq find` and `almanaq bench`: JSON, exit codes, run folders, on a dataset folder made here."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

TABLES = {
    "rivers": (["river", "length km"], [["Rhône", "813"], ["Loire", "1,006"], ["Seine", "777"]], "Rivers of France"),
    "peaks": (["peak", "height m"], [["Mont Blanc", "4,806"], ["Barre des Écrins", "4,102"]], "Peaks of the Alps"),
    "operas": (["opera", "composer"], [["Tosca", "Puccini"], ["Otello", "Verdi"]], "Operas of the nineteenth century"),
}
QUERIES = {
    "how long is the river Loire": "rivers",
    "which peak of the Alps is the highest": "peaks",
    "who composed the opera Tosca": "operas",
}


@pytest.fixture
def data(tmp_path):
    """A dataset folder in the contract's layout: three tables, three questions."""
    folder = tmp_path / "data" / "tiny"
    folder.mkdir(parents=True)
    corpus = [
        {
            "database_id": "tiny",
            "table_id": name,
            "header": header,
            "rows": rows,
            "context": json.dumps({"title": title}),
            "split": "validation",
        }
        for name, (header, rows, title) in TABLES.items()
    ]
    queries = [
        {"query_id": f"q{number}", "query": query, "database_id": "tiny", "table_id": table, "answer": ""}
        for number, (query, table) in enumerate(QUERIES.items())
    ]
    pq.write_table(pa.Table.from_pylist(corpus), folder / "corpus.parquet")
    pq.write_table(pa.Table.from_pylist(queries), folder / "queries_validation.parquet")
    return tmp_path / "data"


def arguments(data, out, *more):
    return (
        "bench", "run", "--task", "table-retrieval", "--dataset", "tiny", "--data-dir", data, "--split", "validation",
        "--retriever", "bm25", "--fields", "title,header,cells", "--k", "1,2", "--out", out, *more,
    )  # fmt: skip


def test_find_ranks_tables(almanaq, conforms, data):
    run = almanaq("find", "how long is the river Loire", "--corpus", data / "tiny", "-k", "2", "--json")
    assert run.returncode == 0, run.stderr
    hits = json.loads(run.stdout)
    conforms("find", hits)
    assert hits[0]["table_id"] == "rivers"
    assert len(hits) <= 2
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)


def test_find_searches_a_folder_of_files(almanaq, conforms, places):
    run = almanaq("find", "dogs get a bowl of water", "--corpus", places, "--json")
    assert run.returncode == 0, run.stderr
    hits = json.loads(run.stdout)
    conforms("find", hits)
    assert hits[0]["table_id"] == "places"


def test_bench_run_scores_and_scores_again(almanaq, conforms, data):
    run = almanaq(*arguments(data, "run", "--json"))
    assert run.returncode == 0, run.stderr
    record = json.loads(run.stdout)
    conforms("bench_run", record)
    assert (record["dataset"], record["queries"]) == ("tiny", 3)
    assert record["metrics"]["recall@1"] == 1
    again = almanaq("bench", "score", "run", "--json")
    assert again.returncode == 0, again.stderr
    scored = json.loads(again.stdout)
    conforms("bench_run", scored)
    assert scored["metrics"]["recall@1"] == record["metrics"]["recall@1"]


def test_bench_run_wants_a_folder_of_its_own(almanaq, data, refused):
    assert almanaq(*arguments(data, "run")).returncode == 0
    refused(almanaq(*arguments(data, "run")), 1, "run", "--resume")
    assert almanaq(*arguments(data, "run", "--resume")).returncode == 0


def test_bench_list_names_datasets_and_retrievers(almanaq, conforms):
    run = almanaq("bench", "list", "--json")
    assert run.returncode == 0, run.stderr
    listed = json.loads(run.stdout)
    conforms("bench_list", listed)
    text = json.dumps(listed)
    for name in ("fetaqa", "tabfact", "ottqa", "spider", "bird", "hybridqa", "bm25", "dense", "hybrid"):
        assert f'"{name}"' in text


@pytest.mark.parametrize(
    ("flag", "value", "code", "parts"),
    [
        ("--task", "table-retreival", 2, ["table-retreival", "table-retrieval"]),
        ("--dataset", "tinny", 2, ["tinny"]),
        ("--split", "validaton", 2, ["validaton", "validation"]),
        ("--retriever", "bm52", 2, ["bm52", "bm25"]),
        ("--fields", "title,headers", 2, ["headers", "header"]),
        ("--k", "0", 2, ["k"]),
        ("--k", "ten", 2, ["ten"]),
    ],
)
def test_bench_names_that_do_not_exist(almanaq, data, refused, tmp_path, flag, value, code, parts):
    command = list(arguments(data, "run", "--json"))
    command[command.index(flag) + 1] = value
    refused(almanaq(*command), code, *parts)
    assert not (tmp_path / "run").exists()


def test_an_empty_corpus_is_an_error(almanaq, refused, tmp_path):
    (tmp_path / "empty").mkdir()
    refused(almanaq("find", "anything", "--corpus", "empty", "--json"), 1, "empty")


@pytest.mark.parametrize("k", ["0", "-1", "ten"])
def test_a_cutoff_that_is_none(almanaq, refused, data, k):
    refused(almanaq("find", "river", "--corpus", data / "tiny", "-k", k, "--json"), 2, "k")
