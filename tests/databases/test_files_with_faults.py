"""Every cell of a file is right, or what was read of it is reported; each class of faults with several spellings."""

from __future__ import annotations

import json
import math
import os
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from contextlib import closing
from datetime import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.files.faults import judge
from tests.messy import write_workbook

from almanaq.corpus.files.sniff import find_encoding
from almanaq.engines.files.load import open_files

RECORD = Path(__file__).parents[2] / "benchmarks" / "files" / "faults.json"


def read(path: Path) -> tuple[dict[str, list[tuple[Any, ...]]], str]:
    """The rows of each table of a file, and all that is said of it."""
    with closing(open_files(path)) as database, database.session() as session:
        tables = {
            relation.name: [
                tuple(row.values())
                for row in session.fetch("SELECT * FROM " + ".".join(f'"{p}"' for p in relation.location)).to_pylist()
            ]
            for relation in database.catalog().relations
        }
        return tables, "\n".join(m for report in database.reports for m in report.messages)


@pytest.mark.nightly
def test_of_120_files_no_cell_is_wrong_without_a_word(tmp_path: Path) -> None:
    assert judge(tmp_path) == {key: value for key, value in json.loads(RECORD.read_text()).items() if key != "command"}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("cells", "values", "said"),
    [
        (["3.9", "3.10", "3.11"], ["3.9", "3.10", "3.11"], "kept as text"),
        (["1.5", "2.50", "30"], [1.5, 2.5, 30.0], ""),
        (["1.5", "2.50", "3.125"], ["1.5", "2.50", "3.125"], "kept as text"),
        (["-1.5", "2.50", "3.125"], [-1.5, 2.5, 3.125], "end in zeros that values drop, as '2.50'"),
        (["1.10", "2.50", "3.00"], [1.1, 2.5, 3.0], ""),
        (["1e5", "2e5", "3e7"], [1e5, 2e5, 3e7], ""),
        (["12E4", "7", "8"], ["12E4", "7", "8"], "kept as text"),
        (["007.50", "1.25", "3.75"], ["007.50", "1.25", "3.75"], ""),
        (["0.12345678901234567891", "0.5", "0.25"], [0.12345678901234568, 0.5, 0.25], "more digits than their values"),
        (["5-", "7", "1,200.00-"], [-5.0, 7.0, -1200.0], ""),
        (["€(9.00)", "€8.00", "(€7.00)"], [-9.0, 8.0, -7.0], ""),
        (["--5", "(5", "5)"], ["--5", "(5", "5)"], ""),
        (["+2", "+41", "+290"], ["+2", "+41", "+290"], "'+2' could not be told from other spellings"),
        (["+2", "-1", "0"], [2, -1, 0], ""),
        (["1:30", "45:10", "0:59"], ["1:30", "45:10", "0:59"], "cannot be told from hours and minutes"),
        (["12:30", "1:02:03", "59:59"], [time(0, 12, 30), time(1, 2, 3), time(0, 59, 59)], ""),
        (["8:30", "23:59", "1:02:03"], [time(8, 30), time(23, 59), time(1, 2, 3)], ""),
        (["1.75m", "5 m", "12m"], ["1.75m", "5 m", "12m"], ""),
        (["5 m", "1h", "12m"], [time(0, 5), time(1), time(0, 12)], ""),
        (["14K", "7", "24k"], [14000, 7, 24000], "'14K' is 14,000"),
        (["US$3m", "US$7m", "US$1"], [3000000, 7000000, 1], ""),
        (["0.05", "5%", "0"], [0.05, 5.0, 0.0], "lack the % of others"),
    ],
)
@pytest.mark.parametrize("many", [1, 2000])
def test_no_conversion_that_cannot_be_undone_is_silent(
    tmp_path: Path, cells: Sequence[str], values: Sequence[Any], said: str, many: int
) -> None:
    lines = [f'{"abcdefgh"[at % 8]}x,"{cell}"\n' for at in range(many) for cell in cells]
    (tmp_path / "t.csv").write_text("name,v\n" + "".join(lines), encoding="utf-8")
    tables, messages = read(tmp_path / "t.csv")
    assert [row[1] for row in tables["t"]] == list(values) * many
    assert said in messages


@pytest.mark.parametrize("offset", ["+02:00", "-05:00", "+0530", "+01"])
def test_a_moment_keeps_its_day(tmp_path: Path, offset: str) -> None:
    (tmp_path / "t.csv").write_text(f"id,at\na,2024-06-01T00:30:00{offset}\nb,2024-06-30T23:30:00{offset}\n")
    tables, messages = read(tmp_path / "t.csv")
    assert [row[1].isoformat() for row in tables["t"]] == ["2024-06-01T00:30:00", "2024-06-30T23:30:00"]
    assert f"({offset}) is left out" in messages


@pytest.mark.parametrize(
    ("below", "rows", "said"),
    [
        ([["Total", 18, 2]], 3, "row 5, which sums the others, is left out"),  # the mean of prices
        ([["Total", 18, None], ["Source: finance"]], 3, "row 6, a note below the table, is left out"),
        ([[None, 18, 6]], 3, "row 5, which sums"),
        ([["Gesamt:", 18.0, None], [], ["* provisional"]], 3, "row 7, a note"),
        ([["Total", 19, 2]], 4, "its numbers are not the sums: it is kept"),
        ([["Kiwi", 18, 6]], 4, ""),
        ([["Total Apple", 5, 2], ["Grand Total:", 18, 6]], 3, "row 5, which sums up others, is left out"),
        ([["Total Apple", 5, 2], ["Grand Total:", 23, 8]], 4, "row 6, which sums the others, is left out"),
        ([["Grand Total:", 19, 6]], 4, "its numbers are not the sums: it is kept"),
        ([["K 2"]], 4, "row 5, holds a text alone, perhaps a note: it is kept"),
        ([["seen by the finance department"]], 3, "row 5, a note below the table, is left out"),
    ],
)
def test_rows_below_a_table(tmp_path: Path, below: list[list[object]], rows: int, said: str) -> None:
    table = [["item", "n", "price"], ["Apple", 5, 2], ["Pear", 6, 3], ["Fig", 7, 1]]
    tables, messages = read(write_workbook(tmp_path / "t.xlsx", {"S": [*table, *below]}))
    assert len(tables["t"]) == rows
    assert said in messages


def test_a_form_and_a_list_without_a_header_are_said(tmp_path: Path) -> None:
    form = [["Name", None, None, None, "1"], ["Ann", "born", "1990", "in", "x"], [None, "seen", "1991", "at", "y"]]
    people = [["Huber", "1907-07-03"], ["Meier", "2005-02-23"], ["Kunz", "1988-05-03"], ["noon", "12:30:00"]]
    tables, messages = read(write_workbook(tmp_path / "t.xlsx", {"Form": form, "People": people}))
    assert "sheet 'Form': its first row names fewer than half of its columns" in messages
    assert len(tables["t_People"]) == 4


def test_a_long_file_ends_before_its_total(tmp_path: Path) -> None:
    lines = "".join(f"item {at},{at % 7},{at % 5}.5\n" for at in range(5000))
    total = f"Total,{sum(at % 7 for at in range(5000))},{sum(at % 5 + 0.5 for at in range(5000))}\n"
    (tmp_path / "t.csv").write_text("item,n,price\n" + lines + total + "Source: till,,\n")
    tables, messages = read(tmp_path / "t.csv")
    assert len(tables["t"]) == 5000
    assert "row 5001: left out, which sums the others" in messages


def test_several_tables_and_headers_on_a_sheet(tmp_path: Path) -> None:
    first = [["id", "name"], [1, "A"], [2, "B"]]
    second = [["Orders"], ["order", "customer", "amount"], [None, None, "EUR"], [10, 1, 5.5], [11, 2, 6.5]]
    tables, messages = read(write_workbook(tmp_path / "t.xlsx", {"S": [*first, [], [], *second]}))
    assert tables == {"t": [(1, "A"), (2, "B")], "t_2": [(10, 1, 5.5), (11, 2, 6.5)]}
    assert "holds 2 tables" in messages
    assert "row 8 gives the units" in messages


def test_tables_side_by_side_on_a_sheet_are_apart(tmp_path: Path) -> None:
    rows = [["Scores", None, None, "Heights"], ["name", "score", None, "name", "cm"], ["Ann", 1, None, "Xu", 180]]
    rows += [["Bo", 2, None, "Yi", 170], [None, None, None, "Za", 190]]
    tables, messages = read(write_workbook(tmp_path / "t.xlsx", {"S": rows}))
    assert tables == {"t": [("Ann", 1), ("Bo", 2)], "t_2": [("Xu", 180), ("Yi", 170), ("Za", 190)]}
    assert "holds 2 tables" in messages
    rows[1][3] = "who"  # it may be a table of five columns as well
    tables, messages = read(write_workbook(tmp_path / "t.xlsx", {"S": rows}))
    assert tables["t"] == [("Ann", 1, "Xu", 180), ("Bo", 2, "Yi", 170), (None, None, "Za", 190)]
    assert "a column before 'who' is empty: if another table begins there" in messages


def test_a_hidden_sheet_is_read_and_said_to_be_hidden(tmp_path: Path) -> None:
    sheets = {"Now": [["a", "b"], [1, 2]], "Old": [["a", "b"], [3, 4]]}
    tables, messages = read(write_workbook(tmp_path / "t.xlsx", sheets, hidden="Old"))
    assert tables == {"t_Now": [(1, 2)], "t_Old": [(3, 4)]}
    assert "sheet 'Old': is hidden" in messages
    assert "sheet 'Now'" not in messages


def test_cells_of_a_workbook_without_a_value_are_counted(tmp_path: Path) -> None:
    plain, path = tmp_path / "plain.xlsx", tmp_path / "t.xlsx"
    write_workbook(plain, {"S": [["item", "n", "ratio"], ["a", 2, 1.5], ["b", 3, 77], ["c", 4, 88]]})
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(path, "w") as target:
        for name in source.namelist():
            text = source.read(name).decode()
            text = text.replace("<c><v>77</v></c>", '<c r="C3" t="e"><f>1/0</f><v>#DIV/0!</v></c>')
            target.writestr(name, text.replace("<c><v>88</v></c>", '<c r="C4"><f>B4*2</f></c>'))
    tables, messages = read(path)
    assert [row[2] for row in tables["t"]] == [1.5, None, None]
    assert "1 cells hold an error such as #DIV/0! and are NULL (C3)" in messages
    assert "1 formulas have no stored value and are NULL (C4)" in messages


def test_nan_is_missing(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('[{"k": "a", "v": 1.0}, {"k": "b", "v": NaN}]')
    tables, messages = read(tmp_path / "t.json")
    assert (tables["t"], "NaN" in messages) == ([("a", 1.0), ("b", None)], True)
    columns = {"k": ["a", "b", "c"], "v": [1.0, math.nan, None], "w": pa.array([math.nan, 0.5, None], pa.float32())}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    assert read(tmp_path / "t.parquet")[0]["t"] == [("a", 1.0, None), ("b", None, 0.5), ("c", None, None)]


def test_cells_of_sqlite_that_a_column_cannot_hold_are_counted(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "t.db")) as own:
        own.executescript(
            "CREATE TABLE t(n, s); INSERT INTO t VALUES (9007199254740993, 'a'), (1.5, x'ff61'),"
            " (2, CAST(x'4aff' AS TEXT)), (3, '\ufffd'); CREATE TABLE u(n); INSERT INTO u VALUES (7);"
        )
    tables, messages = read(tmp_path / "t.db")
    texts = ["a", "\ufffda", "J\ufffd", "\ufffd"]
    assert tables == {"t": list(zip([2.0**53, 1.5, 2.0, 3.0], texts, strict=True)), "u": [(7,)]}
    assert "t.n: 1 of 4 cells have more digits than their values, as '9007199254740993'" in messages
    assert "2 cells of 't' are not UTF-8" in messages


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("gb18030", "城市,人口\n北京,2189\n上海,2487\n广州,1868\n"),
        ("euc_jp", "都市,人口\n東京とうきょう,13960\nおおさか,8800\n"),
        ("euc_kr", "도시,인구\n서울,9700\n부산,3400\n대구,2400\n"),
        ("shift_jis", "都市,人口\n東京,13960\n大阪,8800\nさいたま,7300\n"),
        ("koi8-u", "город,население\nМосква,12000\nКазань,1200\n"),
        ("cp1251", "имя,возраст\nАнна,12\nОльга,13\n"),
        ("cp1252", "name,city\nJosé,Köln\nÉmile,Orléans\n"),
        ("cp1252", "name,area\nA,3 m³\nB,£m\nC,£m\nD,4 cm³\n"),
        ("cp1250", "imię,miasto\nŁukasz,Bełchatów\nSławek,Kołobrzeg\n"),
        ("iso8859-2", "imię,miasto\nMałgosia,Białystok\nZośka,Dąbrowa\n"),
        ("cp1250", "jméno,město\nŘehoř,Třebíč\nZdeněk,Příbram\nLuboš,Žďár\n"),
        ("iso8859-2", "jméno,město\nŠárka,Žatec\nZdeněk,Děčín\nJiří,Příbram\n"),
        ("cp1250", "név,hely\nErdős,Győr\nFűzfői,Kőszeg\nSzűcs,Mezőkövesd\n"),
        ("cp1250", "mesto,župan\nČakovec,Đuro Perić\nĐakovo,Krešimir Kovačić\n"),
        ("cp1252", "nom,ville\nZoë,Orléans\nFrançois,Île-aux-Moines\nHélène,Où\n"),
        ("cp1252", "città,perché\nForlì,così\nCefalù,però\n"),
        ("cp1252", "navn,by\nSøren,Århus\nÆgir,Tromsø\n"),
        ("cp1252", "nome,cidade\nJoão,São Paulo\nConceição,Camões\n"),
        ("cp1252", "name,quote\nA,“x” – y…\nB,Šimon’s €5\n"),
        ("big5", "城市,人口\n臺北,2500\n高雄,2700\n臺中,2800\n花蓮,320\n"),
    ],
)
def test_letters_decide_the_encoding_and_the_report_asks(tmp_path: Path, encoding: str, text: str) -> None:
    (tmp_path / "t.csv").write_bytes(text.encode(encoding))
    found, _, notes = find_encoding(tmp_path / "t.csv", "t.csv")
    assert found == encoding
    assert "if letters look wrong, set `encoding = " in notes[0]


def test_nearly_all_references_are_proposed_with_their_share(tmp_path: Path) -> None:
    (tmp_path / "customers.csv").write_text("id,name\n" + "".join(f"{at},c{at}\n" for at in range(1, 31)))
    orders = "".join(f"{at},{at if at < 30 else 99}\n" for at in range(1, 31))
    (tmp_path / "orders.csv").write_text("id,customer_id\n" + orders)
    assert "orders.customer_id: 96.7% of its values are in customers.id" in read(tmp_path)[1]


@pytest.mark.parametrize("left_log", [False, True])
def test_nothing_is_left_beside_a_sqlite_file_in_wal_mode(tmp_path: Path, left_log: bool) -> None:
    path, copy = tmp_path / "own" / "w.db", tmp_path / "w.db"
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as own:
        own.executescript("PRAGMA journal_mode=wal; CREATE TABLE t(a int); INSERT INTO t VALUES (1);")
        if left_log:  # as after a crash
            copy.write_bytes(path.read_bytes())
            (tmp_path / "w.db-wal").write_bytes((path.parent / "w.db-wal").read_bytes())
    if not left_log:
        path.rename(copy)
    before = sorted(os.listdir(tmp_path))
    with closing(open_files(copy)) as database:
        assert database.catalog().relations[0].rows == 1
    assert sorted(os.listdir(tmp_path)) == before


def test_a_script_that_never_closes_keeps_what_it_read(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n" + "1234567,some words\n" * 70_000)
    code = f"import almanaq; almanaq.connect({str(tmp_path / 't.csv')!r}, model='local').sql('SELECT sum(a) FROM t')"
    kept = tmp_path / "cache"
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"ALMANAQ_CACHE_DIR": str(kept)})
    assert sorted(path.suffix for path in (kept / "tables").iterdir()) == [".duckdb", ".json"]
