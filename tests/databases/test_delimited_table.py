"""Delimited files: what DuckDB casts, and what our readers make of the rest, is what our readers make of every cell."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from almanaq.corpus.files import sniff
from almanaq.corpus.inference import ColumnHints, ColumnReport, Marks, marks_of
from almanaq.engines.files import delimited
from almanaq.engines.files.columns import type_column
from almanaq.engines.files.load import read_table

ORDINARY = {
    "whole": st.integers(-(10**18) + 1, 10**18 - 1).map(str),
    "point": st.decimals(-(10**9), 10**9, places=2).map(str),
    "comma": st.decimals(0, 10**6, places=2).map(lambda d: f"{d:,}".translate(str.maketrans(",.", ".,"))),
    "date": st.dates().map(str),
    "timestamp": st.datetimes().map(lambda m: m.isoformat(sep=" ")),
    "iso": st.datetimes().map(lambda m: m.isoformat(timespec="seconds") + "Z"),
    "boolean": st.sampled_from(["true", "false", "TRUE"]),
    "clock": st.times().map(lambda t: t.isoformat(timespec="minutes")),
    "slashed": st.dates().map(lambda d: d.strftime("%d/%m/%Y")),
    "word": st.sampled_from(["Rome", "May", "x", "12 Main Street", "v1.2"]),
}
ODD = st.sampled_from(
    ["", "n/a", "-", "007", "1e5", "US$3m", "12%", "2:13.32", "1,234", "1.234", "1.234,5", "+5", " 7 ", "15 March 1968",
     "2020-1-5", "24:00", "inf", "nan", "1_000", "0x1f", "1e400", "9" * 19, "02/03/1968", "true", "2020-02-30", "é",
     "2020-01-01 24:00:00", "-0", "00.5", "4.0"]
)  # fmt: skip


@st.composite
def columns(draw: st.DrawFn) -> list[str]:
    """Cells of one sort, now and then an odd one, or a few of several sorts."""
    ordinary = ORDINARY[draw(st.sampled_from(sorted(ORDINARY)))]
    cells = draw(st.lists(ordinary, min_size=1, max_size=40))
    return cells + draw(st.lists(ODD, max_size=draw(st.sampled_from([0, 1, 4]))))


@pytest.fixture(params=["duckdb", "here"], autouse=True, scope="module")
def reader(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whichever reads the file, DuckDB or Python, what is read is the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "SMALL_BYTES", 0 if request.param == "duckdb" else 1 << 30)
        yield


@settings(max_examples=8)
@given(st.lists(columns(), min_size=6, max_size=6))
def test_a_file_reads_as_if_every_cell_were_read_by_our_readers(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[list[str]]
) -> None:
    path = tmp_path_factory.mktemp("law") / "t.csv"
    rows = list(zip_longest(*drawn, fillvalue=""))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *(f"c{i}" for i in range(6))])
        writer.writerows((f"r{i}", *row) for i, row in enumerate(rows))
    table, found = read_table(path)
    texts = [
        pa.chunked_array([pa.array([cell or None for cell in c], pa.large_string())]) for c in zip(*rows, strict=True)
    ]
    file = found_marks(texts)
    for i, text in enumerate(texts):
        wanted, report = type_column(f"c{i}", text, ColumnHints(file=file))
        assert table.column(f"c{i}").to_pylist() == pa.chunked_array(wanted).to_pylist()
        assert told(found.columns[i + 1]) == told(report)


def found_marks(texts: list[pa.ChunkedArray]) -> Marks:
    """What the columns of numbers and days of a small file say together of how they are written."""
    read = [(type_column("c", text)[1], marks_of(set(text.drop_null().to_pylist()))) for text in texts]
    sure = [marks for report, marks in read if report.type != "text" or marks.days]
    decimals, days = {m.decimal for m in sure} - {None}, {m.days for m in sure} - {None}
    return Marks(decimals.pop() if len(decimals) == 1 else None, days.pop() if len(days) == 1 else None)


def told(report: ColumnReport) -> tuple[object, ...]:
    """What of a report must not depend on who cast a cell; text that is surely text is not looked at closely."""
    if report.type == "text":
        return (report.type,)
    return (report.type, report.cells, report.failures, report.missing, report.examples, report.unit, report.order)


@pytest.mark.parametrize(
    ("late", "type_"),
    [("007", "text"), ("0.5", "double precision"), ("x", "bigint"), ("US$3m", "bigint"), ("9" * 19, "text")],
)
def test_what_the_beginning_does_not_show_counts(tmp_path: Path, late: str, type_: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text("n,m\n" + "".join(f"{i},a\n" for i in range(sniff._SAMPLE_ROWS + 100)) + f"{late},b\n")
    table, report = read_table(path)
    assert report.columns[0].type == type_
    assert table.num_rows == sniff._SAMPLE_ROWS + 101
    if type_ == "text":
        assert table.column("n").to_pylist()[-1] == late


def test_a_column_whose_marks_show_late_is_read_by_them(tmp_path: Path) -> None:
    """1.234 is a fraction to the beginning of the file, and a thousand to the whole of it."""
    path = tmp_path / "t.csv"
    path.write_text("n;m\n" + "1.234;a\n" * (sniff._SAMPLE_ROWS + 100) + "0,5;b\n")
    table, report = read_table(path)
    assert table.column("n").to_pylist()[0] == 1234
    assert table.column("n").to_pylist()[-1] == 0.5
    assert "the comma is the decimal mark" in report.messages[0]


def test_a_total_stays_out_when_a_column_is_read_again_as_text(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = [f"r{i},{'007' if i == 8500 else i},{i % 7}\n" for i in range(9000)]
    path.write_text("id,n,m\n" + "".join(rows) + f"Total,,{sum(i % 7 for i in range(9000))}\n")
    table, report = read_table(path)
    assert (table.num_rows, report.rows, table.column("id").to_pylist()[-1]) == (9000, 9000, "r8999")
    assert "left out, which sums the others" in report.messages[0]


def test_one_column_keeps_its_blank_fields_and_no_blank_lines(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('note\nred\n\n""\nblue\n')
    assert read_table(path)[0].column("note").to_pylist() == ["red", None, "blue"]


def test_prose_with_commas_in_a_file_of_one_column_is_not_cut(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    lines = ["Good soup, nice people, fun.", "Bad, slow.", "Never again", "Fine, if loud, at noon, I guess."] * 3
    path.write_text("\n".join(["review", *lines]))
    assert read_table(path)[0].column("review").to_pylist() == lines
