"""JSON read piece by piece is what it is read whole, wherever the pieces end; what is no JSON is none."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from almanaq.corpus.files import records
from almanaq.corpus.files.records import _parse_stream, read_json

plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
values = st.recursive(
    plain, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4)
)


def streamed(text: str, chunk: int) -> Any:
    before, records._CHUNK = records._CHUNK, chunk
    try:
        return _parse_stream(records.JSONStream(io.StringIO(text)))
    finally:
        records._CHUNK = before


@settings(max_examples=60)
@given(values, st.integers(1, 9), st.sampled_from([None, 1]), st.booleans())
def test_pieces_are_the_whole(value: Any, chunk: int, indent: int | None, ascii_: bool) -> None:
    text = f"  {json.dumps(value, indent=indent, ensure_ascii=ascii_)}\n"
    assert streamed(text, chunk) == value


@settings(max_examples=60)
@given(values, st.integers(1, 9), st.integers(0, 200), st.sampled_from([*'[]{},:"x1e. ', ""]))
def test_a_fault_is_a_fault(value: Any, chunk: int, at: int, sign: str) -> None:
    text = json.dumps([value, {"a": value}])
    at = min(at, len(text) - 1)
    text = text[:at] + sign + text[at + 1 :]
    try:
        wanted = json.loads(text)
    except ValueError:
        with pytest.raises(ValueError, match="char"):
            streamed(text, chunk)
    else:
        assert streamed(text, chunk) == wanted


def test_lines_of_long_objects_are_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("almanaq.corpus.files.records._LONGEST_BEGINNING", 16)
    path = tmp_path / "long.json"
    rows = [{"a": "x" * 99, "n": n} for n in range(3)]
    path.write_text("\n".join(map(json.dumps, rows)))
    assert read_json(path, path.name).rows == rows
    path.write_text(json.dumps(rows))
    assert read_json(path, path.name).rows == rows
