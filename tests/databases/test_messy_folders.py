"""A folder as people have it opens with one report: each file is read as it is written, or named with what to do."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.messy import write_bad, write_messy, write_workbook

import almanaq
from almanaq.corpus.files import records, sheets
from almanaq.engines.files import load
from almanaq.engines.open_source import open_database
from almanaq.engines.table_corpus import read_corpus
from almanaq.errors import SourceError
from almanaq.suql.catalog.schema_file import COLUMN_KEYS, FILE_KEYS, TABLE_KEYS, describe, read_schema


@pytest.fixture(scope="module")
def messy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[almanaq.Connection]:
    with almanaq.connect(write_messy(tmp_path_factory.mktemp("m") / "messy"), cache=False) as connection:
        yield connection


def types(connection: almanaq.Connection) -> dict[str, str]:
    return {f"{r.name}.{c.name}": c.type + "[]" * c.array for r in connection.catalog.relations for c in r.columns}


def test_every_file_has_the_types_of_its_cells(messy: almanaq.Connection) -> None:
    found = types(messy)
    assert found["semicolons.price"] == "double precision"
    assert [found[f"{order}.day"] for order in ("dmy", "mdy", "ymd")] == ["date"] * 3
    assert {found[f"wide.c{i}"] for i in range(200)} == {"bigint"}
    assert found["orders.to_at_lat"] == "double precision"
    assert found["orders.tags"] == "text[]"
    large = [found[f"large.{name}"] for name in ("id", "share", "at", "word")]
    assert large == ["bigint", "double precision", "timestamp", "text"]
    assert found["sales.year"] in ("bigint", "integer")
    small = ("tabs", "bars", "utf16", "bom", "zipped", "packed", "squeezed")
    assert {(found[f"{name}.a"], found[f"{name}.b"]) for name in small} == {("bigint", "text")}


def test_every_cell_is_read_as_it_is_meant(messy: almanaq.Connection) -> None:
    def one(sql: str) -> Any:
        return messy.sql(sql).rows[0]

    assert one("SELECT city, price FROM semicolons WHERE id = 7") == ("Köln", 1007.5)
    assert one("SELECT note FROM quoted WHERE id = 1") == ("line one\nline two",)
    orders = [one(f"SELECT day FROM {order} WHERE id = 14") for order in ("dmy", "mdy", "ymd")]
    assert orders == [(datetime.date(2015, 3, 15),)] * 3
    assert one("SELECT count(*), count(id), max(share) FROM large") == (100_001, 100_000, 3_000_000)
    assert one("SELECT b FROM utf16") == one("SELECT b FROM bom") == ("é",)
    assert one("SELECT sum(amount), min(year), max(year) FROM sales") == (8.0, 2023, 2024)
    joined = (
        "SELECT count(*) FROM orders JOIN orders_items ON orders.id = orders_items.orders_id WHERE to_city = 'Rome'"
    )
    assert one(joined) == (2,)


def test_what_was_guessed_is_said(messy: almanaq.Connection) -> None:
    said = "\n".join(messy.warnings)
    for part in (
        "semicolons.csv: not UTF-8, read as Windows-1252",
        "dmy.day: days are read as day/month/year",
        "mdy.day: days are read as month/day/year",
        "semicolons.price: the comma is the decimal mark",
    ):
        assert part in said
    assert "not opened" not in said
    assert "ymd" not in said


def test_a_folder_of_faults_opens_what_it_can_and_names_the_rest(tmp_path: Path) -> None:
    with almanaq.connect(write_bad(tmp_path / "messybad"), cache=False) as connection:
        read = {relation.name for relation in connection.catalog.relations}
        assert read == {
            "good", "ragged", "headerless", "titled", "latin", "open_quote", "unsure", "lines"
        }  # fmt: skip
        assert list(connection.sql("SELECT * FROM ragged ORDER BY a").rows) == [(1, 2, 3), (4, 5, None), (6, 7, 8)]
        assert len(connection.sql("SELECT column_1, column_2, column_3 FROM headerless").rows) == 3
        assert list(connection.sql("SELECT name, n FROM titled ORDER BY n").rows) == [("x", 1), ("y", 2)]
        assert len(connection.sql("SELECT a FROM open_quote").rows) == 2
        said = list(connection.warnings)
    for file in ("empty.csv", "binary.csv", "one.json", "bad.parquet", "bad.csv.gz", "pipe.csv", "link.csv"):
        assert sum(message.startswith(f"{file}: not opened: ") for message in said) == 1, file
    whole = "\n".join(said)
    for part in ("ragged.csv, first in line 3: 2 of 3 rows", "headerless.csv: its first line looks like a row",
                 "open_quote.csv, line", "unsure.day: kept as text", "lines.jsonl: a line is left out"):  # fmt: skip
        assert part in whole


def test_a_folder_without_one_good_file_says_all_that_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("")
    (tmp_path / "b.parquet").write_text("no")
    with pytest.raises(SourceError, match=r"(?s)a\.csv: not opened: is empty.*b\.parquet: not opened"):
        open_database(tmp_path)


def test_a_person_says_how_a_file_is_to_be_read(tmp_path: Path) -> None:
    folder = write_bad(tmp_path / "bad")
    (tmp_path / "bad.almanaq.toml").write_text(
        """
        [unsure.file]
        days = "DMY"
        [headerless]
        named_by = "Rome"
        [headerless.file]
        header = true
        [good.columns.id]
        type = "text"
        """
    )
    with almanaq.connect(folder, cache=False) as connection:
        found = types(connection)
        assert (found["unsure.day"], found["good.id"], found["headerless.2.5"]) == ("date", "text", "double precision")
        assert connection.catalog.relation("headerless").named_by == "Rome"
        assert min(connection.sql("SELECT day FROM unsure").rows) == (datetime.date(2020, 4, 3),)


def test_each_sheet_of_a_workbook_is_a_table(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine")
    sales = [["Report"], [], ["who", "n", "paid"], ["Ann", 1, True], ["Bob", 2.5, False]]
    write_workbook(tmp_path / "book.xlsx", {"Sales": sales, "Costs": [["a"], ["x"]], "Empty": []})
    with almanaq.connect(tmp_path, cache=False) as connection:
        assert types(connection) == {
            "book_Costs.a": "text", "book_Sales.who": "text", "book_Sales.n": "double precision",
            "book_Sales.paid": "boolean",
        }  # fmt: skip
    assert {table.id.table for table in read_corpus(tmp_path)} == {"book_Sales", "book_Costs"}


def test_a_workbook_without_its_reader_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "python_calamine", None)
    write_workbook(tmp_path / "book.xlsx", {"Sales": [["a"], [1]]})
    (tmp_path / "a.csv").write_text("x\ny\n")
    with almanaq.connect(tmp_path, cache=False) as connection:
        assert "almanaq[xlsx]" in connection.warnings[0]


def test_large_parquet_is_read_in_place_and_nothing_else_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "VIEW_BYTES", 0)
    folder = tmp_path / "data"
    folder.mkdir()
    pq.write_table(pa.table({"id": [1, 2], "A": ["x", "y"]}), folder / "t.parquet")
    other = tmp_path / "other.parquet"
    pq.write_table(pa.table({"secret": [1]}), other)
    with almanaq.connect(folder) as connection:
        relation = connection.catalog.relation("t")
        assert relation.row_id is None
        assert list(connection.sql("SELECT id FROM t WHERE a = 'y'").rows) == [(2,)]
    with (
        closing(open_database(folder)) as database,
        database.session() as session,
        pytest.raises(almanaq.Error, match=r"(?i)permission|cannot access"),
    ):
        session.fetch(f"SELECT * FROM read_parquet('{other}')")


def test_columns_that_refer_to_others_are_found_by_name_and_value(tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text("order_id,customer_id,shop_id\n1,10,7\n2,10,8\n3,11,9\n")
    (tmp_path / "customers.csv").write_text("id,full_name,company\n10,Ann Lee,Acme\n11,Bob Ray,Beta\n")
    (tmp_path / "shops.csv").write_text("id,place\n7,Rome\n8,Oslo\n")
    with almanaq.connect(tmp_path, cache=False) as connection:
        orders, customers = (connection.catalog.relation(name) for name in ("orders", "customers"))
        assert orders.key == ("order_id",)
        assert orders.foreign_keys == ((("customer_id",), "customers", ("id",)),)  # no shop is 9
        assert (customers.key, customers.named_by) == (("id",), "full_name")


def test_spelling_of_a_column_is_its_own_tables(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("id,Name\n1,Ann\n")
    (tmp_path / "shops.csv").write_text("id,name\n1,Alpha\n")
    with almanaq.connect(tmp_path, cache=False) as connection:
        assert connection.sql("SELECT s.name FROM shops s").columns == ("name",)
        assert connection.sql("SELECT name FROM people").columns == ("Name",)


def test_duckdb_itself_reads_a_messy_file_otherwise(tmp_path: Path) -> None:
    """The file that the tests above read right is not one that needs no care."""
    (tmp_path / "latin.csv").write_bytes("city\nK\xf6ln\n".encode("latin-1"))
    with pytest.raises(duckdb.Error):
        duckdb.sql(f"SELECT * FROM read_csv('{tmp_path / 'latin.csv'}')").fetchall()


def test_a_name_that_is_a_pattern_names_its_own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "VIEW_BYTES", 0)
    for stem, value in (("r[1]", 1), ("r1", 2), ("q*", 3), ("qq", 4)):
        (tmp_path / f"{stem}.csv").write_text(f"a,b\n{value},x\n")
        pq.write_table(pa.table({"a": [value]}), tmp_path / f"{stem}p.parquet")
    with almanaq.connect(tmp_path, cache=False) as connection:
        found = {r.name: connection.sql(f'SELECT a FROM "{r.name}"').rows[0][0] for r in connection.catalog.relations}
    assert found == {"r[1]": 1, "r1": 2, "q*": 3, "qq": 4, "r[1]p": 1, "r1p": 2, "q*p": 3, "qqp": 4}


def test_all_parts_of_a_table_are_searched(tmp_path: Path) -> None:
    for year in (2023, 2024):
        (tmp_path / "sales" / f"year={year}").mkdir(parents=True)
        pq.write_table(pa.table({"amount": [1.5, 2.5]}), tmp_path / "sales" / f"year={year}" / "part-0.parquet")
    [sales] = list(read_corpus(tmp_path))
    assert (sales.header, len(sales.rows)) == (("amount", "year"), 4)
    assert {row[1] for row in sales.rows} == {"2023", "2024"}


def test_merged_cells_and_sheets_of_one_cell(tmp_path: Path) -> None:
    sales = [["Region", "Month", "n"], ["North", "May", 1], [None, "June", 2], ["South", "May", 3]]
    write_workbook(tmp_path / "book.xlsx", {"Sales": sales, "Remark": [["by Ann"]]}, merged="A2:A3")
    with almanaq.connect(tmp_path / "book.xlsx") as connection:
        assert {relation.name for relation in connection.catalog.relations} == {"book"}
        assert connection.sql("SELECT * FROM book ORDER BY n").rows == [
            ("North", "May", 1),
            ("North", "June", 2),
            ("South", "May", 3),
        ]
        assert any("'Sales': merged cells repeat" in message for message in connection.warnings)
        assert any("'Remark': left out" in message for message in connection.warnings)


def test_a_header_merged_over_two_rows_is_one(tmp_path: Path) -> None:
    rows = [["Sheet", "What"], [None, None], ["cases", "by day"], ["deaths", "by week"], ["tests", "by month"]]
    for header in ("A1:A2", "A1:B2"):
        cells = [list(row) for row in rows]
        cells[1][1] = "What" if header == "A1:A2" else None
        cells[0] = ["Sheet", "What"] if header == "A1:A2" else ["Sheet", None]
        for row in cells[2:] if header == "A1:B2" else []:
            row[1] = None
        write_workbook(tmp_path / "book.xlsx", {"Sales": cells}, merged=header)
        with almanaq.connect(tmp_path / "book.xlsx") as connection:
            assert [row[0] for row in connection.sql("SELECT Sheet FROM book ORDER BY 1").rows] == [
                "cases",
                "deaths",
                "tests",
            ]
            assert any("row 2 left out, as the header is repeated" in m for m in connection.warnings)


@pytest.mark.parametrize(
    ("last", "counted"),
    [
        (["Total", None, 6, "1'500.50"], False),
        (["Grand total:", "Grand total:", 6, None], False),  # a merged cell
        (["Summe", None, None, None], False),  # formulas that no program has computed
        (["Total", None, 7, "1'500.50"], True),  # an oil company: its numbers are its own
        (["Total", "May", 6, "1'500.50"], True),
        (["Totals Ltd", None, 6, "1'500.50"], True),
        ([None, None, 6, "1'500.50"], False),  # without a label
    ],
)
def test_a_row_that_sums_up_a_sheet_is_no_row_of_it(tmp_path: Path, last: list[object], counted: bool) -> None:
    rows = [["North", "May", 1, "1'000"], ["North", "June", 2, "200.25"], ["South", "May", 3, "300.25"]]
    write_workbook(tmp_path / "book.xlsx", {"Sales": [["Region", "Month", "n", "Paid"], *rows, last]})
    with almanaq.connect(tmp_path / "book.xlsx") as connection:
        [(read,)] = connection.sql("SELECT count(*) FROM book").rows
        assert read == 3 + counted
        assert any("sums the others, is left out" in message for message in connection.warnings) is not counted


def test_what_is_too_large_to_be_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sheets, "MOST_BYTES", 1 << 20)
    monkeypatch.setattr(records, "MOST_BYTES", 1 << 20)
    write_workbook(tmp_path / "book.xlsx", {"Sales": [["a", "b"], *[["words " * 9, i] for i in range(20_000)]]})
    (tmp_path / "large.json").write_text("[" + ",".join(['{"a": "' + "b" * 99 + '"}'] * 20_000) + "]")
    (tmp_path / "good.csv").write_text("a,b\n1,2\n")
    with almanaq.connect(tmp_path, cache=False) as connection:
        told = [message for message in connection.warnings if "not opened" in message]
    assert len(told) == 2
    assert "book.xlsx: not opened: holds 2 MB, and workbooks are read up to 1: save its sheets as CSV" in told
    assert "large.json: not opened: holds 2 MB, and JSON is read up to 1: write it as Parquet" in told


def test_years_of_two_digits_and_of_months_by_name(tmp_path: Path) -> None:
    days = "".join(f"{m}/{d}/{y:02d},{d:02d}-Mar-{y:02d},{d:02d}.{m:02d}.{y:02d},1.{d}.{y:02d}\n" for d, m, y in DAYS)
    (tmp_path / "short.csv").write_text(f"us,name,dots,version\n{days}")
    with almanaq.connect(tmp_path / "short.csv") as connection:
        found = types(connection)
        assert [found[f"short.{c}"] for c in ("us", "name", "dots", "version")] == ["date", "date", "date", "text"]
        rows = connection.sql("SELECT us, name, dots FROM short").rows
        assert rows[1] == (datetime.date(1999, 1, 20), datetime.date(1999, 3, 20), datetime.date(1999, 1, 20))
        assert rows[0][0].year == 2005
        assert sum("two-digit years are read as 1969 to 2068" in m for m in connection.warnings) == 3


DAYS = [(5, 3, 5), (20, 1, 99), (11, 12, 68), (30, 6, 69)]


@pytest.mark.parametrize("rows", [3, 4000])
def test_backslashes_before_quotes(tmp_path: Path, rows: int) -> None:
    lines = "".join(f'{i},"she said \\"no, {i}\\" twice"\n' for i in range(rows))
    (tmp_path / "said.csv").write_text(f"id,note\n{lines}")
    with almanaq.connect(tmp_path / "said.csv", cache=False) as connection:
        assert connection.warnings == ()
        assert connection.sql("SELECT note FROM said WHERE id = 2").rows == [('she said "no, 2" twice',)]
        assert connection.sql("SELECT count(*) FROM said").rows == [(rows,)]


def test_columns_cut_by_spaces(tmp_path: Path) -> None:
    (tmp_path / "spaced.csv").write_text('"city"   size\n "New York"  8.5\nOslo      0.7\nRome 2.8  \n')
    (tmp_path / "people.csv").write_text("full name\nAnn Lee\nBob Ray\nCid Fox\n")
    with almanaq.connect(tmp_path) as connection:
        assert connection.sql("SELECT * FROM spaced WHERE size > 1 ORDER BY size").rows == [
            ("Rome", 2.8),
            ("New York", 8.5),
        ]
        assert types(connection)["people.full name"] == "text"
        assert connection.warnings == ()


def test_separators_at_the_ends_of_lines(tmp_path: Path) -> None:
    (tmp_path / "ends.csv").write_text("id,name,\n1,a,\n2,b,\n3,c,\n")
    (tmp_path / "titled.csv").write_text("Made by: Ann\nSeasonally adjusted\n\nid,name,\n1,a\n2,b\n3,c\n")
    (tmp_path / "used.csv").write_text("id,name,\n1,a,x\n2,b,\n3,c,\n")
    with almanaq.connect(tmp_path) as connection:
        for name in ("ends", "titled"):
            assert connection.sql(f"SELECT * FROM {name}").rows == [(1, "a"), (2, "b"), (3, "c")]
        assert connection.sql("SELECT column_3 FROM used WHERE id = 1").rows == [("x",)]
        assert {message.split(":")[0] for message in connection.warnings} == {"titled.csv", "used.csv"}


def test_a_slip_is_no_binary_file(tmp_path: Path) -> None:
    (tmp_path / "slip.csv").write_text("id,name\n1,a\0b\n2,c\n")
    with almanaq.connect(tmp_path / "slip.csv") as connection:
        assert connection.sql("SELECT id, length(name) FROM slip").rows == [(1, 3), (2, 1)]


def test_one_object_may_be_a_table(tmp_path: Path) -> None:
    shapes = {
        "named": {f"k{i}": {"n": i, **({"extra": "x"} if i else {})} for i in range(4)},
        "columns": {"n": [0, 1, 2, 3], "extra": [None, "x", "x", "x"]},
        "pandas": {"n": {str(i): i for i in range(4)}, "extra": {str(i): "x" if i else None for i in range(4)}},
    }
    for name, value in shapes.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(value))
    for name, value in {
        "settings": {"a": {"x": 1}, "b": {"y": 2}, "c": {"z": 3}},
        "two": {"a": {"x": 1}, "b": {"x": 2}},
        "ragged": {"a": [1], "b": [1, 2]},
        "lists": {"a": [[1]], "b": [[2]]},
        "empty": {},
    }.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(value))
    with almanaq.connect(tmp_path) as connection:
        assert {relation.name for relation in connection.catalog.relations} == set(shapes)
        for name in shapes:
            rows = connection.sql(f"SELECT n, extra FROM {name} ORDER BY n").rows
            assert rows == [(0, None), (1, "x"), (2, "x"), (3, "x")]
        assert connection.sql("SELECT key FROM named ORDER BY n LIMIT 1").rows == [("k0",)]
        assert sum("one object, read as 4 rows" in message for message in connection.warnings) == 3


@pytest.mark.parametrize(
    ("encoding", "text", "told"),
    [
        ("cp1251", "Иван Петров живёт в Москве, ООО РОМАШКА", "read as Windows-1251"),
        ("koi8-r", "Иван Петров живёт в Москве, ООО РОМАШКА", "read as KOI8"),
        ("cp1253", "Η Άννα μένει στην Αθήνα με τον αδελφό της", "read as Windows-1253"),
        ("cp1252", "Zoë mange à l'hôtel où l'été était déjà passé", "read as Windows-1252"),
        ("cp1252", "Größe und Übermaß; Äpfel; ÖBB", "read as Windows-1252"),
        ("shift_jis", "山田太郎は東京に住んでいます", "read as Shift JIS"),
    ],
)
def test_encodings_of_one_byte(tmp_path: Path, encoding: str, text: str, told: str) -> None:
    (tmp_path / "people.csv").write_bytes(f'id,who\n1,"{text}"\n2,"{text}"\n'.encode(encoding))
    with almanaq.connect(tmp_path / "people.csv") as connection:
        assert told in connection.warnings[0]
        if encoding != "shift_jis":
            assert connection.sql("SELECT DISTINCT who FROM people").rows == [(text,)]


def test_the_columns_of_a_file_are_called_as_its_schema_file_says(tmp_path: Path) -> None:
    (tmp_path / "stock.csv").write_text("0450\t17\tBrake pads\n0451\t3\tChain\n0007\t0\tTube\n")
    schema = tmp_path / "stock.almanaq.toml"
    said = 'names = ["code", "stock", "part"]'
    schema.write_text(f'[stock.file]\n{said}\n[stock.columns.stock]\ntype = "text"\n')
    with almanaq.connect(tmp_path / "stock.csv", cache=False) as connection:
        assert connection.sql("SELECT code, stock, part FROM stock ORDER BY code LIMIT 1").rows == [
            ("0007", "0", "Tube")
        ]
        assert not any("column_1" in message for message in connection.warnings)
        assert said in describe(connection.catalog, read_schema(schema))
    schema.write_text('[stock.file]\nnames = ["code", "stock"]\n')
    with pytest.raises(SourceError, match="has 3 columns, and `names` in the schema file lists 2"):
        almanaq.connect(tmp_path / "stock.csv", cache=False)
    for wrong in ('["a", "A", "b"]', '["a", "", "b"]'):
        schema.write_text(f"[stock.file]\nnames = {wrong}\n")
        with pytest.raises(SourceError, match="names must be different"):
            almanaq.connect(tmp_path / "stock.csv", cache=False)


def test_cells_that_say_there_is_no_value_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "na.csv"
    file.write_text("item,bought,n\na,2019-03-01,5\nb,n/a,-\nc,2020-01-02,\nd,2020-01-05,7\ne,NA,8\nf,2021-01-05,9\n")
    with almanaq.connect(file, cache=False) as connection:
        assert connection.sql("SELECT count(*) FROM na WHERE bought IS NULL").rows == [(2,)]
        told = [message for message in connection.warnings if "placeholders" in message]
    share = "cells are placeholders such as n/a or -, and read as NULL"
    assert told == [f"na.bought: 2 of 6 {share}", f"na.n: 1 of 5 {share}"]


def test_the_files_page_names_all_that_a_schema_file_may_say() -> None:
    page = (
        (Path(__file__).parents[2] / "docs/files.md")
        .read_text()
        .partition("## How to correct it")[2]
        .partition("\n## ")[0]
    )
    for key in (*TABLE_KEYS, *FILE_KEYS, *COLUMN_KEYS):
        assert f"{key} = " in page or f".{key}" in page, key
