"""Tables of pandas, polars and Arrow go in and come out with the same values and types: empty, nested, ENUM, zones."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import almanaq

COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "whole": (pa.int64(), [1, -(2**63), None]),
    "small": (pa.int8(), [1, -128, None]),
    "unsigned": (pa.uint64(), [2**64 - 1, 0, None]),
    "real": (pa.float64(), [1.5, -0.0, None]),
    "money": (pa.decimal128(12, 2), [Decimal("10.25"), Decimal("-0.01"), None]),
    "truth": (pa.bool_(), [True, False, None]),
    "words": (pa.string(), ["Alba", "", None]),
    "bytes": (pa.binary(), [b"\x00\xff", b"", None]),
    "day": (pa.date32(), [date(1968, 2, 15), date(9999, 12, 31), None]),
    "clock": (pa.time64("us"), [time(23, 59, 59, 999999), time(0), None]),
    "moment": (pa.timestamp("us"), [datetime(2026, 11, 22, 18), datetime(1900, 1, 1), None]),
    "zoned": (pa.timestamp("us", "UTC"), [datetime(2026, 11, 22, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC), None]),
    "list": (pa.list_(pa.string()), [["a", None], [], None]),
    "nested": (pa.list_(pa.list_(pa.int32())), [[[1], []], [], None]),
    "pair": (pa.struct([("x", pa.int32()), ("y", pa.string())]), [{"x": 1, "y": "a"}, {"x": None, "y": None}, None]),
}
TABLE = pa.table({name: pa.array(values, type_) for name, (type_, values) in COLUMNS.items()})
SOURCES: dict[str, Callable[[pa.Table], Any]] = {
    "arrow": lambda table: table,
    "polars": pl.from_arrow,
    "pandas": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
}


def back(source: Any, relation: str = "data") -> almanaq.Result:
    with almanaq.connect(source, cache=False) as connection:
        return connection.sql(f"SELECT * FROM {relation}")


def plain(type_: pa.DataType) -> object:
    """Return a type without what libraries choose for themselves: width of offsets, names of items, units of times."""
    if pa.types.is_nested(type_):
        names = [type_.field(i).name for i in range(type_.num_fields)] if pa.types.is_struct(type_) else []
        return "nested", names, [plain(type_.field(i).type) for i in range(type_.num_fields)]
    if pa.types.is_time(type_):
        return "time"
    if pa.types.is_timestamp(type_):
        return "timestamp", type_.tz is not None
    return str(type_).removeprefix("large_")


def values(table: pa.Table) -> dict[str, list[Any]]:
    return {name: table.column(name).to_pylist() for name in table.column_names}


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("rows", [3, 0], ids=["rows", "empty"])
def test_values_and_types_come_back(kind: str, rows: int) -> None:
    table = TABLE.slice(0, rows)
    for source, relation in ((SOURCES[kind](table), "data"), ({"t": SOURCES[kind](table)}, "t")):
        found = back(source, relation)
        assert values(found.arrow()) == values(table)
        assert [plain(field.type) for field in found.arrow().schema] == [plain(field.type) for field in table.schema]
        assert found.pl().height == len(found.df()) == rows


@pytest.mark.parametrize("kind", SOURCES)
def test_what_comes_out_goes_in_again(kind: str) -> None:
    first = back(SOURCES[kind](TABLE))
    for frame in (first, first.arrow(), first.pl()):
        assert values(back(frame).arrow()) == values(TABLE)
    # NumPy's types know no NULL of numbers, and no date: pandas' own frame keeps what they can hold.
    kept = first.df()[["real", "words", "truth", "moment"]]
    again = back(kept).df()
    pd.testing.assert_frame_equal(again.convert_dtypes(), kept.convert_dtypes(), check_dtype=False)


def test_categories_are_enums_in_their_order() -> None:
    sizes = ["large", "small", None, "small"]
    order = ["small", "large", "huge"]
    frames = {
        "pandas": pd.DataFrame({"size": pd.Categorical(sizes, order, ordered=True)}),
        "polars": pl.DataFrame({"size": pl.Series(sizes, dtype=pl.Enum(order))}),
    }
    for name, frame in frames.items():
        with almanaq.connect({"t": frame}, cache=False) as connection:
            assert connection.catalog.relation("t").columns[0].values == tuple(order), name
            found = connection.sql("SELECT size FROM t ORDER BY size NULLS LAST")
            assert [row[0] for row in found.rows] == ["small", "small", "large", None], name
            assert found.pl()["size"].to_list() == ["small", "small", "large", None], name
            assert [None if pd.isna(size) else size for size in found.df()["size"]] == ["small", "small", "large", None]


def test_a_moment_in_a_zone_stays_the_same_moment() -> None:
    rome = ZoneInfo("Europe/Rome")
    # The hour that the clocks give twice, both times, and one beyond the last year that Python's zones go to.
    moments = [datetime(2026, 10, 25, 2, 30, tzinfo=rome, fold=fold) for fold in (0, 1)]
    frames = [
        pd.DataFrame({"at": pd.Series(pd.to_datetime(moments, utc=True)).dt.tz_convert("Europe/Rome")}),
        pl.DataFrame({"at": moments}),
        pa.table({"at": pa.array(moments, pa.timestamp("us", "Europe/Rome"))}),
    ]
    for frame in frames:
        found = back(frame)
        for given_back in (found.arrow().column("at").to_pylist(), list(found.df()["at"]), found.pl()["at"].to_list()):
            assert [each.astimezone(UTC) for each in given_back] == [each.astimezone(UTC) for each in moments]


def test_a_duration_is_an_interval() -> None:
    took = [timedelta(days=1, seconds=2), None]
    for frame in (pa.table({"took": took}), pl.DataFrame({"took": took}), pd.DataFrame({"took": pd.Series(took)})):
        found = back(frame)
        assert found.pl()["took"].to_list() == took


def test_uuids_are_uuids_wherever_they_stand() -> None:
    one = uuid.UUID(int=7)
    plain_ids = pa.array([one.bytes, None], pa.uuid())
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), plain_ids)
    table = pa.table({"id": plain_ids, "ids": lists, "pair": pa.StructArray.from_arrays([plain_ids], ["x"])})
    found = back(table)
    assert found.rows == [(one, [one], {"x": one}), (None, [None], {"x": None})]
    for source in (table, pd.DataFrame({"id": [one, None]})):
        with almanaq.connect(source, cache=False) as connection:
            assert connection.catalog.relation("data").columns[0].type == "uuid"
            assert connection.sql(f"SELECT count(*) FROM data WHERE id = '{one}'").rows == [(1,)]


def test_numbers_of_unusual_width_are_read_whole_or_refused_by_name() -> None:
    half = pa.array([1.5, None], pa.float32()).cast(pa.float16())
    wide = pa.array([Decimal("1.5"), None], pa.decimal256(50, 2))
    halves = pa.array([[1.5], None], pa.list_(pa.float32())).cast(pa.list_(pa.float16()))
    assert back(pa.table({"half": half, "wide": wide, "halves": halves})).rows == [
        (1.5, Decimal("1.50"), [1.5]),
        (None, None, None),
    ]
    assert back(pl.DataFrame({"n": pl.Series([2**100], dtype=pl.Int128)})).rows == [(Decimal(2**100),)]
    refused = {
        "wide": pa.table({"wide": pa.array([Decimal("1" * 45)], pa.decimal256(50, 2))}),
        "far": pl.DataFrame({"far": pl.Series([2**127 - 1], dtype=pl.Int128)}),
    }
    for name, source in refused.items():
        with pytest.raises(almanaq.UsageError, match=f"'{name}' of 'data'.*as text"):
            back(source)


class _NeedsMore:
    """A table of a library that lacks a package of its own."""

    def __init__(self, error: ImportError) -> None:
        self._error = error

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise self._error


def test_a_table_whose_library_lacks_a_package_is_refused_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(almanaq.InterfaceError, match="pip install pyarrow-hotfix"):
        back(_NeedsMore(ModuleNotFoundError("No module named 'pyarrow_hotfix'", name="pyarrow_hotfix")))
    monkeypatch.setattr(_NeedsMore, "__module__", "ibis.expr.types.relations")
    monkeypatch.setattr("almanaq.engines.duckdb.frames.find_spec", lambda name: None)
    with pytest.raises(almanaq.InterfaceError, match="pip install pyarrow-hotfix"):
        back(_NeedsMore(ImportError("cannot import name 'X' from 'ibis.y'", name="ibis.y")))


def test_what_no_column_can_hold_is_refused_by_name() -> None:
    unknown = pa.ExtensionArray.from_storage(pa.opaque(pa.binary(), "shape", "maker"), pa.array([b"a"]))
    dense = pa.UnionArray.from_dense(pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([1])])
    refused = {
        "periods": pd.DataFrame({"v": pd.period_range("2020-01", periods=2, freq="M")}),
        "Python objects": pl.DataFrame({"v": pl.Series([{1}, "x"], dtype=pl.Object)}),
        "its own library": pa.table({"v": unknown}),
        "a dense union": pa.table({"v": dense}),
    }
    for what, source in refused.items():
        with pytest.raises(almanaq.UsageError, match=f"'v' of 'data'.*{what}.*give it"):
            back(source)


@given(
    st.dictionaries(
        st.from_regex("[a-z]{1,8}", fullmatch=True),
        st.sampled_from(sorted(COLUMNS)),
        min_size=1,
        max_size=4,
    ),
    st.lists(st.integers(0, 2), max_size=6),
    st.sampled_from(sorted(SOURCES)),
)
@settings(max_examples=15, deadline=None)
def test_any_table_comes_back(columns: dict[str, str], rows: list[int], kind: str) -> None:
    table = pa.table(
        {name: pa.array([COLUMNS[of][1][row] for row in rows], COLUMNS[of][0]) for name, of in columns.items()}
    )
    assert values(back(SOURCES[kind](table)).arrow()) == values(table)
