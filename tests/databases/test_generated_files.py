"""A law: what is read of a file is what was written, or is reported. Tables, dialects and the rows around a table are
drawn; a note on the encoding is no report of a cell."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Sequence
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.messy import write_workbook

from almanaq.engines.files.load import open_files

Rows = list[list[Any]]
WORDS = "lamp table oak chair green north port river stone glass paper Köln Zoë señor".split()
PROSE = ["red, green; and blue", 'the "old" one', "first line\nsecond line", "a|b", "tab\there", "3 pieces, 4 boxes"]


def draw_column(dice: random.Random, count: int) -> tuple[str, list[Any], list[Any]]:
    """Return the name of a column, its values, and its cells as text."""
    kind = dice.choice(["whole", "money", "day", "code", "word", "prose", "flag"])
    numbers = [dice.randrange(-50, 5000) for _ in range(count)]
    values: list[Any] = {
        "whole": numbers,
        "money": [number + dice.choice([0.25, 0.5, 0.99]) for number in numbers],
        "day": [date(2024, 1, 1) + timedelta(days=abs(number)) for number in numbers],
        "code": [f"0{abs(number):05d}" for number in numbers],
        "word": dice.choices(WORDS, k=count),
        "prose": [f"{dice.choice(PROSE)} {dice.choice(WORDS)}" for _ in numbers],
        "flag": dice.choices([True, False], k=count),
    }[kind]
    values = [None if dice.random() < 0.1 else value for value in values]
    return kind, values, ["" if v is None else f"{v:.2f}" if kind == "money" else str(v) for v in values]


def draw_around(dice: random.Random, names: list[str], body: Rows, columns: Sequence[list[Any]]) -> Rows:
    """Return the rows of a file: a table, and at times what people write above and below it."""
    blank: list[Any] = [None] * len(names)

    def pad(*cells: Any) -> list[Any]:
        return [*cells, *blank[len(cells) :]]

    above, below = [], []
    if dice.random() < 0.3:
        above += dice.choice([[pad("Report of sales")], [pad("Report", "Sales"), pad("Period", "2024"), blank]])
        above = above if len(names) > 2 else []
    if dice.random() < 0.3:
        sums = [round(sum(filter(None, c)), 2) if is_numeric(c) else None for c in columns]
        below += [pad(dice.choice(["Total", "Grand Total:", "Summe"]), *sums)]
    if dice.random() < 0.3:
        below += dice.choice([[blank, pad("Source: finance")], [pad("* provisional figures of May")]])
    return [*above, names, *body, *below]


def is_numeric(values: Sequence[Any]) -> bool:
    return any(value is not None for value in values) and all(
        type(value) in (int, float, type(None)) for value in values
    )


def write(dice: random.Random, path: Path, rows: Rows) -> Path:
    text = io.StringIO(newline="")
    quoting = dice.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
    separator, end = dice.choice(",;\t|"), dice.choice(["\n", "\r\n"])
    csv.writer(text, delimiter=separator, quoting=quoting, lineterminator=end).writerows(rows)
    path.write_bytes(text.getvalue().encode(dice.choice(["utf-8", "utf-8-sig", "utf-16", "cp1252"])))
    return path


@pytest.mark.sampled(40)
@pytest.mark.parametrize("seed", range(400))
def test_what_is_read_is_what_was_written_or_is_reported(tmp_path: Path, seed: int) -> None:
    dice = random.Random(f"files {seed}")
    count = dice.randrange(3, 30)
    drawn = [draw_column(dice, count) for _ in range(dice.randrange(1, 5))]
    names = ["item", *(f"{kind} {at}" for at, (kind, _, _) in enumerate(drawn, start=1))]
    items = [f"{dice.choice(WORDS)} {at}x" for at in range(count)]
    values = [column for _, column, _ in drawn]
    if dice.random() < 0.3:
        # Workbooks hold values; this writer writes days as text.
        cells = [[str(v) if isinstance(v, date) else v for v in column] for column in values]
        rows = draw_around(dice, names, [list(row) for row in zip(items, *cells, strict=True)], values)
        path = write_workbook(tmp_path / "t.xlsx", {"S": rows})
    else:
        body = [list(row) for row in zip(items, *(cells for _, _, cells in drawn), strict=True)]
        path = write(dice, tmp_path / "t.csv", draw_around(dice, names, body, values))
    with closing(open_files(path)) as database, database.session() as session:
        (relation,) = database.catalog().relations
        place = ".".join(f'"{part}"' for part in relation.location)
        read = [list(row.values()) for row in session.fetch(f"SELECT * FROM {place}").to_pylist()]
        reports = [m for report in database.reports for m in report.messages if "UTF-8" not in m]
    assert ([column.name for column in relation.columns], read) == (
        names,
        [list(row) for row in zip(items, *values, strict=True)],
    ) or (reports and "left out" not in "".join(reports)), (path.read_bytes()[:500], reports)
