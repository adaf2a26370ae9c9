"""What a person says of a file's columns is done, or told not to be; rows that repeat are counted."""

from __future__ import annotations

from datetime import date, time
from pathlib import Path
from typing import Any

import pytest

import almanaq

_CASES: list[tuple[str, list[str], list[Any], str]] = [
    ("bigint", ["007", "012", "0"], [7, 12, 0], ""),
    ("double precision", ["007", "1", "2"], [7.0, 1.0, 2.0], ""),
    ("double precision", ["$5", "€4", "3"], [5.0, 4.0, 3.0], ""),
    ("bigint", ["1.5", "2", "x"], [None, 2, None], "cells are not bigint and read as NULL: '1.5', 'x'"),
    (
        "bigint",
        ["9223372036854775807", "9223372036854775808", "1"],
        [2**63 - 1, None, 1],
        "cells are not bigint",
    ),
    ("boolean", ["yes", "0", "maybe"], [True, False, None], "cells are not boolean and read as NULL: 'maybe'"),
    ("date", ["2020-01-01", "x", "y"], [date(2020, 1, 1), None, None], "cells are not date"),
    ("time", ["10:00", "30:00:00", "11:30"], [time(10), None, time(11, 30)], "cells are not time"),
    ("bigint", ["a", "b", "c"], [None, None, None], "cells are not bigint"),
    ("text", ["1", "2", "3"], ["1", "2", "3"], ""),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("kind", "cells", "values", "told"), _CASES)
@pytest.mark.parametrize("rows", [1, 2_000])
def test_a_column_has_the_type_that_a_person_gave_it(
    tmp_path: Path, kind: str, cells: list[str], values: list[Any], told: str, rows: int
) -> None:
    (tmp_path / "t.csv").write_text("v,n\n" + "".join(f"{cell},{i}\n" for i in range(rows) for cell in cells))
    (tmp_path / "s.toml").write_text(f'[t.columns.v]\ntype = "{kind}"\n')
    with almanaq.connect(tmp_path / "t.csv", schema=tmp_path / "s.toml") as con:
        (relation,) = con.catalog.relations
        result = con.sql("SELECT v FROM t WHERE n = 0")
        warnings = [warning for warning in con.warnings if warning.startswith("t.v")]
    assert relation.columns[0].type == kind
    assert sorted(result.rows, key=repr) == sorted(((value,) for value in values), key=repr)
    assert len(warnings) == bool(told)
    assert all(told in warning for warning in warnings)


def test_a_column_of_leading_zeros_of_which_nothing_is_said_stays_text(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("v,n\n007,1\n012,2\n")
    with almanaq.connect(tmp_path / "t.csv") as con:
        assert con.sql("SELECT v FROM t ORDER BY n").rows == [("007",), ("012",)]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a,b\n1,x\n1,x\n2,y\n1,x\n", "2 of 4 rows repeat earlier ones"),
        ("a,b\n1,x\n1,x\n", "1 of 2 rows repeats an earlier one"),
        ("a,b\n1,\n1,\n", "1 of 2 rows repeats an earlier one"),
        ("a,b\n1,x\n1,y\n", ""),
        ("a\nx\nx\n", ""),
        ("id,b\n1,x\n2,x\n", ""),
    ],
)
def test_rows_that_repeat_are_told_of(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with almanaq.connect(tmp_path / "t.csv") as con:
        warnings = [warning for warning in con.warnings if "repeat" in warning]
    assert len(warnings) == bool(told)
    assert all(told in warning for warning in warnings)
