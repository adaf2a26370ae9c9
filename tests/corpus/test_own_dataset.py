import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from almanaq.corpus.table import TableId
from almanaq.errors import SourceError, UsageError
from almanaq_bench.own_dataset import open_card

CARD = """
licence: CC0-1.0
corpus: tables
queries: {test: asked.csv}
columns: {query: question, table_id: gold}
separator: ";"
counts: {test: {questions: 2, tables: 2}}
"""


@pytest.fixture
def card(tmp_path: Path) -> Path:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "rivers.csv").write_text("river,length\nLoire,1006\n")
    (tmp_path / "tables" / "peaks.csv").write_text("peak,height\nMont Blanc,4806\n")
    (tmp_path / "asked.csv").write_text(
        "question,gold,answer,hard\nhow long?,rivers,1006,no\nboth?,rivers; peaks,,yes\n"
    )
    (tmp_path / "card.yaml").write_text(CARD)
    return tmp_path / "card.yaml"


def test_a_card_over_csv_files(card: Path) -> None:
    dataset = open_card(card)
    assert dataset.splits == ("test",)
    assert sorted(table.id for table in dataset.corpus("test")) == [("tables", "peaks"), ("tables", "rivers")]
    first, second = dataset.questions("test")
    assert (first.id, first.text, first.gold, first.answer) == (
        "1",
        "how long?",
        (TableId("tables", "rivers"),),
        "1006",
    )
    assert second.gold == (TableId("tables", "rivers"), TableId("tables", "peaks"))
    assert second.fields["hard"] == "yes"
    assert {file.name for file in dataset.files("test")} == {"card.yaml", "rivers.csv", "peaks.csv", "asked.csv"}


def test_a_card_over_parquet_and_sqlite(card: Path) -> None:
    rows = [{"query_id": 7, "query": "how long?", "database_id": "geo", "table_id": ["rivers"], "answer": 1006}]
    pq.write_table(pa.Table.from_pylist(rows), card.parent / "asked.parquet")
    with closing(sqlite3.connect(card.parent / "geo.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE rivers (river TEXT, length INTEGER)")
        connection.execute("CREATE TABLE asked (query TEXT, table_id TEXT)")
        connection.execute("INSERT INTO asked VALUES ('which river?', 'rivers')")
    card.write_text("corpus: geo.sqlite\nqueries: {train: asked.parquet, test: {file: geo.sqlite, table: asked}}\n")
    dataset = open_card(card)
    assert dataset.questions("train")[0].gold == dataset.questions("test")[0].gold == (TableId("geo", "rivers"),)
    assert dataset.questions("train")[0].id == "7"


def test_questions_among_the_tables_are_no_table(card: Path) -> None:
    """They name their gold tables: a search would find them first."""
    with closing(sqlite3.connect(card.parent / "geo.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE rivers (river TEXT)")
        connection.execute("CREATE TABLE asked (query TEXT, table_id TEXT)")
        connection.execute("INSERT INTO asked VALUES ('which river?', 'rivers')")
    card.write_text("corpus: geo.sqlite\nqueries: {test: {file: geo.sqlite, table: asked}}\n")
    assert [table.id for table in open_card(card).corpus("test")] == [TableId("geo", "rivers")]
    (card.parent / "asked.csv").rename(card.parent / "tables" / "asked.csv")
    card.write_text(CARD.replace("asked.csv", "tables/asked.csv"))
    assert {table.id.table for table in open_card(card).corpus("test")} == {"rivers", "peaks"}


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("corpus: [", SourceError, "cannot be read as a card"),
        ("- corpus", SourceError, "is not a card"),
        ("corpus: tables", SourceError, "lacks 'queries'"),
        (CARD.replace("licence", "license"), SourceError, "unknown key 'license'; did you mean 'licence'"),
        (CARD.replace("asked.csv", "aksed.csv"), SourceError, "did you mean 'asked.csv'"),
        (CARD.replace("table_id:", "tabel_id:"), SourceError, "'columns' has no 'tabel_id'; did you mean 'table_id'"),
        (CARD.replace("query: question", "query: qestion"), SourceError, "lacks the column 'qestion'; did you mean"),
        (CARD.replace("questions: 2", "questions: 3"), SourceError, "'test' has 2 questions, not the 3 that the card"),
        (CARD.replace("tables: 2", "tables: 5"), SourceError, "'test' has 2 tables, not the 5 that the card says"),
        (CARD.replace("{test: asked.csv}", "asked.csv"), SourceError, "'queries' must be a mapping"),
        (CARD.replace("test:", "train:"), UsageError, "no split 'test'"),
        (CARD.replace("test: asked", "tset: asked"), SourceError, "split 'test' that 'queries' lacks; did you mean"),
        (CARD.replace("questions: 2", "question: 3"), SourceError, "has no 'question'; did you mean 'questions'"),
        (CARD.replace("{questions: 2, tables: 2}", "2"), SourceError, "'counts' of 'test' must be numbers"),
    ],
)
def test_cards_that_are_wrong(card: Path, text: str, error: type[Exception], message: str) -> None:
    card.write_text(text)

    def read() -> None:
        dataset = open_card(card)
        dataset.corpus("test")
        dataset.questions("test")

    with pytest.raises(error, match=message):
        read()


def test_questions_of_several_databases_must_say_which(card: Path) -> None:
    (card.parent / "tables" / "more").mkdir()
    (card.parent / "tables" / "more" / "lakes.csv").write_text("lake\nGeneva\n")
    card.write_text(CARD.replace("tables: 2", "tables: 3"))
    with pytest.raises(SourceError, match="several databases: add the column 'database_id'"):
        open_card(card).questions("test")
