"""Objects one after another are rows, however they are laid out; what is no JSON is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from almanaq.corpus.files.records import read_json
from almanaq.errors import SourceError

ROWS = [{"a": "x" * 99, "n": n} for n in range(3)]


@pytest.mark.parametrize("between", ["", "\n", " \n\n"])
def test_objects_one_after_another_are_rows(between: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text("\n" + between.join(json.dumps(row, indent=1) for row in ROWS) + "\n")
    assert read_json(path, path.name).rows == ROWS


@pytest.mark.parametrize(
    "text",
    [
        '[{"a": 1}',
        '[{"a": 1}] 2',
        '{"a": [1,]}',
        '{"a":\n1}\n[1]',
        '{"a":\n1} {"b"',
        "\u00a0[{}]",
        "[{}]\v",
        '{"a": 1}\v',
    ],
)
def test_a_fault_is_a_fault(text: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text(text)
    with pytest.raises(SourceError, match=r"is not JSON \(.*: char \d"):
        read_json(path, path.name)


@pytest.mark.parametrize("text", [f"[{'1' * 5_000}]", f'{{"a": {"1" * 5_000}}}', "[" * 100_000])
@pytest.mark.parametrize("name", ["rows.json", "rows.jsonl"])
def test_what_python_refuses_to_read_is_a_fault(text: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(SourceError, match="not JSON"):
        read_json(path, path.name)


def test_lines_of_long_objects_are_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("almanaq.corpus.files.records._LONGEST_BEGINNING", 16)
    path = tmp_path / "long.json"
    path.write_text("\n".join(map(json.dumps, ROWS)))
    assert read_json(path, path.name).rows == ROWS
    path.write_text(json.dumps(ROWS))
    assert read_json(path, path.name).rows == ROWS


@pytest.mark.parametrize("name", ["rows.json", "rows.jsonl", "rows.ndjson"])
def test_a_key_that_an_object_holds_twice_is_told(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text('{"a": 1}\n{"a": 2, "b": {"c": 1, "c": 2}}\n{"a": 3, "a": 4}\n')
    found = read_json(path, name)
    assert found.rows == [{"a": 1}, {"a": 2, "b": {"c": 2}}, {"a": 4}]
    (note,) = found.notes
    where = """line 2, 'c' in {"c": 2}; line 3, 'a' in {"a": 4}"""
    assert note == f"{name}: of a key that is twice in an object the last value is read, as at {where}"


@pytest.mark.parametrize(
    "text", ['{"rows": [{"a": 1, "a": 2}]}', '{"a": 1, "a": 2}', '{"r": [{"a": 1, "a": 2}], "s": [{}]}']
)
def test_a_key_twice_is_told_of_whatever_a_document_holds(text: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text("\n" + text)
    assert """char 1, 'a' in {"a": 2}""" in read_json(path, path.name).notes[0]
