"""Inferred kinds: prose is prose, addresses and labels are not."""

from __future__ import annotations

import pytest

import almanaq
from almanaq.suql.catalog.reading import ColumnSample, infer_kind, is_enumerable, is_prose
from almanaq.suql.catalog.relations import Column, ColumnKind


@pytest.mark.parametrize(
    ("values", "prose"),
    [
        ([f"Dish {i} came quickly and it was hot." for i in range(9)], True),
        (
            [
                f"the waiter told us {i} stories about the old port while we waited for our main course"
                for i in range(9)
            ],
            True,
        ),
        (["NA", "n/a", "-", "None"] * 90 + [f"Dish {i} came quickly and it was hot." for i in range(9)], True),
        (["NA"] * 9, False),
        ([f"{i} Castro Street, Suite {i}, Mountain View, CA 94041" for i in range(9)], False),
        (["The same long sentence stands in every row of this column, over and over."] * 9, False),
        (["Italian", "French", "Thai"], False),
        (
            [
                "friendly and quick with children",
                "barks at everyone who passes",
                "shy at first",
                "hates the rain",
                "likes to swim in the sea",
                "does not get on with cats",
            ],
            True,
        ),
        ([f"Tales of the {name} and the Sea" for name in ("Fox", "Owl", "Elk", "Hen", "Ant")], False),
        ([f"part {i} of the old series" for i in range(9)] * 2, False),
        (["red, green and the blue", "red, blue", "blue, a few of green", "green, red, grey", "grey, black"], False),
        ([], False),
        (["", "  "], False),
    ],
)
def test_prose(values: list[str], prose: bool) -> None:
    assert is_prose(values) is prose


def test_enumerable_needs_few_short_repeated_values() -> None:
    assert is_enumerable(("a", "b"), 10)
    assert not is_enumerable(("a", "b"), 9)
    assert not is_enumerable(("a",), 100)
    assert not is_enumerable(tuple(map(str, range(51))), 10_000)
    assert not is_enumerable(("a", "b" * 41), 100)


def test_declared_and_other_types_are_left() -> None:
    prose = ColumnSample(tuple(f"We came {i} times and liked it every single time." for i in range(9)))
    assert infer_kind(Column("n", "bigint"), prose).kind is ColumnKind.STRUCTURED
    declared = Column("n", "text", ColumnKind.ENUM, values=("a",))
    assert infer_kind(declared, prose) is declared
    assert infer_kind(Column("n", "text"), prose).kind is ColumnKind.FREE_TEXT


def test_a_column_that_begins_with_marks_for_no_value_is_judged_by_what_comes_after_them(tmp_path):
    reports = ["NA"] * 1500 + [f"The crew of boat {i} saw a light far off and called the port." for i in range(40)]
    (tmp_path / "watch.csv").write_text("\n".join(["no,report", *(f"{i},{r}" for i, r in enumerate(reports))]))
    with almanaq.connect(tmp_path, cache=False) as connection:
        assert connection.catalog.relations[0].column("report").kind is ColumnKind.FREE_TEXT
