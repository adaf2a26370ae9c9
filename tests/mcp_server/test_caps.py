"""Whatever the rows hold, a result keeps its size and its schema, and what was cut is said."""

from __future__ import annotations

import json

import jsonschema
from hypothesis import given
from hypothesis import strategies as st

from almanaq.mcp import caps
from almanaq.mcp.declared import BY_NAME
from almanaq.suql.result import Evidence, UnknownAnswer

SCHEMA = {**BY_NAME["run_query"].output_schema, "additionalProperties": False}
TEXTS = st.one_of(st.text(max_size=30), st.sampled_from(['"' * 5_000, "\x00" * 3_000, "é" * 9_000, "\ud800" * 4_000]))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS, st.dates(), st.binary(max_size=4_000)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=2)),
    max_leaves=6,
)


def record(columns, truncated=False):
    return {
        "status": "answered",
        "answer": "some rows",
        "suql": "SELECT 1",
        "columns": columns,
        "truncated": truncated,
        "next": None,
        "searched": "",
        "relaxed": None,
        "cost": {},
        "warnings": caps.clip_warnings(["w" * 900] * 20),
        "unknown": caps.unknown_records([UnknownAnswer("k" * 900, "c", "q" * 900, "r")] * 20),
        "notice": "n",
    }


def quote(text):
    return Evidence("t", text, "c", 0, 0, text, text)


@given(st.data())
def test_any_rows_fit(data):
    width = data.draw(st.sampled_from([1, 2, 5, 30]))
    count = data.draw(st.sampled_from([0, 1, 3, 20]))
    few = data.draw(st.lists(st.tuples(*[VALUES] * min(width, 3)), min_size=1, max_size=3))
    rows = [(few[i % len(few)] * width)[:width] for i in range(count)]
    cited = [tuple(quote(text) for text in data.draw(st.lists(TEXTS, max_size=4))) for _ in rows[:2]]
    cited += [()] * (len(rows) - len(cited))
    names = [data.draw(TEXTS) or "c" for _ in range(width)]
    fitted = caps.fit_record(record(names), rows, cited)
    jsonschema.validate(fitted, SCHEMA)
    assert caps.CAP.size_of(fitted) <= caps.RESULT
    json.dumps(fitted, allow_nan=False)
    assert len(fitted["evidence"]) == len(fitted["rows"])
    assert fitted["truncated"] == (len(fitted["rows"]) < count or len(fitted["columns"]) < width)
    for row in fitted["rows"]:
        assert len(row) == len(fitted["columns"])
        assert all(caps.CAP.size_of(value) <= caps.CELL for value in row)


def test_what_is_small_comes_whole():
    rows = [(1, "a", None, [1, 2], {"b": 2.5}), (2, "b", True, [], {})]
    fitted = caps.fit_record(record(list("abcde")), rows, [(quote("q"),), ()])
    assert fitted["rows"] == [[1, "a", None, [1, 2], {"b": 2.5}], [2, "b", True, [], {}]]
    assert fitted["evidence"][0][0]["quote"] == "q"
    assert not fitted["truncated"]


def test_numbers_that_javascript_lacks_are_text():
    fitted = caps.fit_record(record(list("abcd")), [(2**53 - 1, 2**53, -(2**60), True)], [()])
    assert fitted["rows"] == [[2**53 - 1, str(2**53), str(-(2**60)), True]]


def test_passages_count_from_one_as_read_text_counts_them():
    assert caps.quote_records([Evidence("t", "1", "c", 4, 0, "q", "?")])[0]["passage"] == 5
