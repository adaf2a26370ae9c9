"""What a file of data names lies in the folder that it came in."""

from __future__ import annotations

from pathlib import Path

import pytest

from almanaq.errors import AlmanaqError, SourceError
from almanaq_bench.data import find_dataset
from almanaq_bench.data_paths import resolve_inside
from almanaq_bench.generation.run import Databases
from almanaq_bench.own_dataset import open_card

SECRET = "the-secret-of-another"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder of data, and beside it what is nobody's business."""
    for folder in ("private", "data/own/tables", "data/shared"):
        (tmp_path / folder).mkdir(parents=True)
    for file in ("private/secret.csv", "data/own/tables/rivers.csv", "data/shared/peaks.csv"):
        (tmp_path / file).write_text(f"name,length\n{SECRET if 'private' in file else 'Loire'},1006\n")
    (tmp_path / "data/own/asked.csv").write_text("query,table_id\nhow long?,rivers\n")
    return tmp_path / "data"


OUTSIDE = ("../../private", "../../private/secret.csv", "/etc/passwd", "tables/../../../private", "link", "a\0b", "~/x")


@pytest.mark.parametrize("named", OUTSIDE)
@pytest.mark.parametrize("part", ["corpus", "queries", "file"])
def test_a_card_names_what_came_with_it(data: Path, named: str, part: str) -> None:
    (data / "own/link").symlink_to(data.parent / "private")
    parts = {"corpus": "tables", "queries": "asked.csv", part: named}
    asked = f"{{file: {_quoted(named)}}}" if part == "file" else _quoted(parts["queries"])
    (data / "own/card.yaml").write_text(f"corpus: {_quoted(parts['corpus'])}\nqueries: {{test: {asked}}}\n")
    with pytest.raises(SourceError) as caught:
        find_dataset(data, "own")
    assert SECRET not in str(caught.value)


def _quoted(text: str) -> str:
    return '"' + text.replace("\0", "\\0") + '"'


def test_a_card_may_share_tables_with_its_neighbours_and_lie_behind_a_link(data: Path, tmp_path: Path) -> None:
    card = data / "own/card.yaml"
    card.write_text("corpus: ../shared\nqueries: {test: asked.csv}\n")
    assert [table.id.table for table in find_dataset(data, "own").corpus()] == ["peaks"]
    with pytest.raises(SourceError, match="lies outside"):
        open_card(card)
    # A folder that the user has linked into theirs is theirs.
    card.write_text("corpus: tables\nqueries: {test: asked.csv}\n")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/linked").symlink_to(data / "own")
    assert [table.id.table for table in find_dataset(tmp_path / "mine", "linked").corpus()] == ["rivers"]


@pytest.mark.parametrize("name", ["../private", "..", "/etc", "own/../../private", "a\0b"])
def test_a_dataset_is_a_folder_of_the_data(data: Path, name: str) -> None:
    """A run folder names its dataset, and may come from anybody."""
    with pytest.raises(AlmanaqError):
        find_dataset(data, name)


@pytest.mark.parametrize("name", ["..", ".", "", "../../private", "a/b", "a\\b", "/etc", "a\0b"])
def test_a_database_is_named_by_a_name(data: Path, name: str) -> None:
    for folder in ("private/database/..", "data/own/database"):
        (data.parent / folder).mkdir(parents=True, exist_ok=True)
    (data.parent / "private.sqlite").write_text("x")
    assert Databases(data / "own").file(name) is None


def test_a_path_through_a_loop_of_links_is_none(data: Path) -> None:
    (data / "own/loop").symlink_to(data / "own/loop")
    with pytest.raises(SourceError):
        open_card_at(data, "loop")


def open_card_at(data: Path, corpus: str) -> object:
    (data / "own/card.yaml").write_text(f"corpus: {corpus}\nqueries: {{test: asked.csv}}\n")
    return open_card(data / "own/card.yaml")


def test_what_lies_within_is_given_as_it_was_named(data: Path) -> None:
    assert resolve_inside("tables", data / "own/card.yaml", data) == data / "own/tables"
