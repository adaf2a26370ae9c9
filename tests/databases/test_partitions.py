"""Files that are one table: by the values of their folders, by dates or numbers in their names, by their header."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import almanaq
from almanaq.corpus.files.listing import list_folder

ROWS = "id,amount\n1,1.10\n2,x\n"


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def tables(source: Any, **options: Any) -> dict[str, list[tuple[Any, ...]]]:
    with almanaq.connect(source, **options) as connection:
        names = [relation.name for relation in connection.catalog.relations]
        return {name: sorted(connection.sql(f'SELECT * FROM "{name}"').rows) for name in names}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {"sales-2024-01.csv": "id,n\n1,2\n", "sales-2024-02.csv": "id,n\n1,x\n"},
            {"sales": [(1, "2", "2024-01"), (1, "x", "2024-02")]},
        ),
        (
            {"year=2020/a.csv": "id\n1\n", "year=2021/month=3/b.csv": "id\n2\n"},
            {"data": [(1, 2020, None), (2, 2021, 3)]},
        ),
        (
            {"WalMartStock_20240103.tsv": "n\tm\n1\t2\n", "WalMartStock_20240104.tsv": "n\tm\n3\t4\n"},
            {"WalMartStock": [(1, 2, datetime.date(2024, 1, 3)), (3, 4, datetime.date(2024, 1, 4))]},
        ),
        (
            {f"{name}.tsv": f"day\tbikes\n1\t{n}\n" for n, name in enumerate(("north", "port", "west"))},
            {name: [(1, n)] for n, name in enumerate(("north", "port", "west"))},
        ),
        (
            {"log2023.jsonl": '{"a": 1, "year": "x"}', "log2024.jsonl": '{"a": 2, "year": "y"}'},
            {"log": [(1, "x", 2023), (2, "y", 2024)]},
        ),
        ({"a1.csv": "id,n\n1,2\n", "a2.csv": "id,m\n1,2\n"}, {"a1": [(1, 2)], "a2": [(1, 2)]}),
        (
            {"dogs.csv": "id,name\n1,Rex\n", "cats.csv": "id,name\n1,Tom\n"},
            {"dogs": [(1, "Rex")], "cats": [(1, "Tom")]},
        ),
    ],
    ids=["months", "folders", "days", "one header", "lines of JSON", "other headers", "two of one header"],
)
def test_files_of_one_table(tmp_path: Path, files: dict[str, str], expected: dict[str, Any]) -> None:
    folder = write(tmp_path / "data", files)
    (folder / "README.css").write_text("no table")
    assert tables(folder) == {name: sorted(rows) for name, rows in expected.items()}
    found = {table.id.table: len(table.rows) for table in almanaq.tables(folder)}
    assert found == {name: len(rows) for name, rows in expected.items()}


def test_files_of_one_header_are_one_table_where_a_pattern_names_them(tmp_path: Path) -> None:
    names = ("north", "port", "west")
    folder = write(tmp_path / "data", {f"{name}.tsv": f"day\tbikes\n1\t{n}\n" for n, name in enumerate(names)})
    assert tables(str(folder / "*.tsv")) == {"data": [(1, n, name) for n, name in enumerate(names)]}
    assert set(tables(folder)) == set(names)


def test_monthly_parquet_is_read_in_place_as_one(tmp_path: Path) -> None:
    for month in ("01", "02"):
        pq.write_table(pa.table({"id": [int(month)], "month": ["x"]}), tmp_path / f"trips_2024-{month}.parquet")
    assert tables(tmp_path) == {"trips": [(1, "x", "2024-01"), (2, "x", "2024-02")]}
    assert set(tables(tmp_path, separate=True)) == {"trips_2024-01", "trips_2024-02"}


def test_it_is_said_and_separate_keeps_them_apart(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", {"s-2024-01.csv": ROWS, "s-2024-02.csv": ROWS, "year=2020/a.csv": ROWS})
    (folder / "year=2020" / "a.csv").unlink()
    (folder / "year=2020").rmdir()
    with almanaq.connect(folder) as connection:
        assert any("2 files are one table, and the column 'month'" in said for said in connection.warnings)
    assert set(tables(folder, separate=True)) == {"s-2024-01", "s-2024-02"}
    (folder / "s-2024-01.csv.almanaq.toml").write_text('["s-2024-01".columns.amount]\nprivate = true\n')
    assert set(tables(folder)) == {"s-2024-01", "s-2024-02"}  # what is private stays so
    parts = write(tmp_path / "parts", {"year=2020/a.csv": ROWS, "year=2021/b.csv": ROWS})
    assert set(tables(parts, separate=True)) == {"a", "b"}


def test_each_file_ends_before_its_total(tmp_path: Path) -> None:
    def month(first: int, rows: int) -> str:
        numbers = [first + at for at in range(rows)]
        return "item,n\n" + "".join(f"x{n},{n}\n" for n in numbers) + f"Total,{sum(numbers)}\n"

    write(tmp_path, {"sales-2024-01.csv": month(1, 3), "sales-2024-02.csv": month(5, 4000)})
    with almanaq.connect(tmp_path, cache=False) as connection:
        assert connection.sql("SELECT count(*), sum(n) FROM sales").rows == [(4003, 6 + sum(range(5, 4005)))]
        assert sum("which sums the others" in note for note in connection.notes("sales")) == 2


def test_a_value_of_a_path_is_read_as_it_was_meant(tmp_path: Path) -> None:
    files = {"k=__HIVE_DEFAULT_PARTITION__/a.csv": "id,n\n1,2\n", "k=x%20y/b.csv": "id,n\n2,3\n"}
    assert tables(write(tmp_path / "t", files)) == {"t": [(1, 2, None), (2, 3, "x y")]}


def test_files_that_lie_too_deep_are_said(tmp_path: Path) -> None:
    deep = ["a/x.csv", "a/b/c/y.csv", "p/year=2020/z.csv", "p/q/z.csv", "d/e/n.md"]
    listing = list_folder(write(tmp_path, dict.fromkeys(deep, "id\n1\n")))
    assert [note.partition(" ")[0] for note in listing.problems] == ["a/b/:", "p/q/:"]
