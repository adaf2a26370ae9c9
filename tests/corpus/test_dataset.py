import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from almanaq.corpus.table import TableId
from almanaq.errors import SourceError, UsageError
from almanaq_bench.corpus_folder import find_title
from almanaq_bench.question_sets import open_dataset


def write(folder: Path, name: str, rows: list[dict]) -> None:
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), folder / f"{name}.parquet")


def entry(table_id: str, split: str = "test", **more) -> dict:
    base = {"database_id": "0", "table_id": table_id, "header": ["a", "b"], "rows": [["1", None]], "context": None}
    return {**base, "split": split, **more}


def asked(query_id: str, table_id, **more) -> dict:
    return {"query_id": query_id, "query": "which?", "database_id": "0", "table_id": table_id, "answer": "x", **more}


def test_tables_of_a_split_are_streamed_again_and_again(tmp_path: Path) -> None:
    write(tmp_path, "corpus", [entry("one"), entry("two", "train"), entry("three")])
    corpus = open_dataset(tmp_path).corpus("test")
    assert len(corpus) == 2
    assert [[table.id.table for table in corpus] for _ in range(2)] == [["one", "three"]] * 2
    assert next(iter(corpus)).rows == (("1", ""),)


def test_a_split_that_no_table_carries_searches_all(tmp_path: Path) -> None:
    write(tmp_path, "corpus", [entry("one"), entry("two", "train")])
    corpus = open_dataset(tmp_path).corpus("validation")
    assert (len(corpus), corpus.split) == (2, None)


def test_the_published_layout_has_the_header_as_first_row(tmp_path: Path) -> None:
    row = {"database_id": 0, "table_id": 7, "table": [["a", "b"], ["1", "2"]], "context": json.dumps({"title": "T"})}
    write(tmp_path, "corpus", [row])
    (table,) = open_dataset(tmp_path).corpus("test")
    assert (table.id, table.header, table.rows, table.title) == (TableId("0", "7"), ("a", "b"), (("1", "2"),), "T")


def test_questions_have_one_gold_table_or_several(tmp_path: Path) -> None:
    write(tmp_path, "corpus", [entry("one")])
    write(tmp_path, "queries_test", [asked("1", ["one", "two", "one"], hard=True)])
    write(tmp_path, "queries_train", [asked("1", "one")])
    folder = open_dataset(tmp_path)
    assert folder.splits == ("test", "train")
    (question,) = folder.questions("test")
    assert question.gold == (TableId("0", "one"), TableId("0", "two"))
    assert question.fields == {"hard": True}
    assert folder.questions("train")[0].gold == (TableId("0", "one"),)


@pytest.mark.parametrize(
    ("context", "table_id", "title"),
    [
        ({"table_page_title": "Page", "table_caption": "Caption"}, "x", "Page"),
        ({"table_caption": "none", "table_page_title": None}, "1-100-2.html.csv", ""),
        (
            {"table_caption": "none", "page_wikipedia_url": "https://en.wikipedia.org/wiki/2004_Draft"},
            "a.csv",
            "2004 Draft",
        ),
        ({}, "totto_source/dev_json/example-2274.json", ""),
        ({}, "12345", ""),
        ({}, "9f86d081884c7d65", ""),
        ({}, "film_awards", "film awards"),
        ({"table_name": "city"}, "city", "city"),
    ],
)
def test_titles_come_from_the_context_and_never_from_file_names(context: dict, table_id: str, title: str) -> None:
    assert find_title(context, table_id) == title


def test_context_of_a_database_table(tmp_path: Path) -> None:
    context = {
        "table_name": "city",
        "primary_keys": ["ID"],
        "foreign_keys": [{"column": "C", "ref_table": "country", "ref_column": "Code"}],
        "column_names": ["key", "b"],
        "column_descriptions": {
            "a": {"column_description": "what it is", "data_format": "text"},
            "b": {"column_name": "b"},
        },
    }
    write(tmp_path, "corpus", [entry("city", context=json.dumps(context))])
    (table,) = open_dataset(tmp_path).corpus()
    assert table.keys == ("ID", "C -> country.Code")
    assert table.description == "key | b\na: what it is"


def test_a_table_without_header_gets_empty_names(tmp_path: Path) -> None:
    write(tmp_path, "corpus", [entry("one", header=[], rows=[["1", "2", "3"]])])
    (table,) = open_dataset(tmp_path).corpus()
    assert table.header == ("", "", "")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([entry("bad", rows=[["1", "2"], ["3"]])], "row 2 of table 0/bad has 1 cells under 2 columns"),
        ([entry("bad", context="{oops")], "context of table 0/bad is not JSON"),
        ([{"database_id": "0", "rows": [["1"]]}], "lacks the column 'table_id'; it has: database_id, rows"),
        ([{"database_id": "0", "table_id": "1", "rows": [["1"]]}], "lacks the column 'header'"),
    ],
)
def test_bad_tables(tmp_path: Path, rows: list[dict], message: str) -> None:
    write(tmp_path, "corpus", rows)
    with pytest.raises(SourceError, match=message):
        list(open_dataset(tmp_path).corpus())


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([asked("1", "one"), asked("1", "one")], "query ids are not unique, the first is '1'"),
        ([asked("1", None)], "question '1' lacks"),
        ([asked("1", "one") | {"query": " "}], "question '1' lacks"),
    ],
)
def test_bad_questions(tmp_path: Path, rows: list[dict], message: str) -> None:
    write(tmp_path, "corpus", [entry("one")])
    write(tmp_path, "queries_test", rows)
    with pytest.raises(SourceError, match=message):
        open_dataset(tmp_path).questions("test")


def test_bad_folders(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no such folder"):
        open_dataset(tmp_path / "nowhere")
    with pytest.raises(SourceError, match=r"no corpus\.parquet"):
        open_dataset(tmp_path)
    (tmp_path / "corpus.parquet").write_text("not parquet")
    with pytest.raises(SourceError, match="cannot read"):
        open_dataset(tmp_path).corpus()
    with pytest.raises(UsageError, match="no split 'tset'"):
        open_dataset(tmp_path).questions("tset")
