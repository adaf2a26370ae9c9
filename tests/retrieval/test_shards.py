"""Shards that tasks write by themselves are, together, the index that one process makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from almanaq.corpus.table import Table, TableId, parse_fields
from almanaq.errors import SourceError
from almanaq.retrieval.stored import IndexRecipe, build_index, open_index
from almanaq_bench.cluster_index import Lengths, check_shards, commit_shards, count_lengths, shard_of, write_shard

FIELDS = ("title", "header", "cells")
WORDS = "ferry island harbour price season year winner team city river bridge length opened owner goals rank".split()
RECIPE = IndexRecipe(parse_fields(FIELDS))


def corpus() -> list[Table]:
    made = []
    for i in range(400):
        words = [WORDS[(i * k + k * k) % (3 + (i + k) % 14)] for k in range(1, 9)]
        rows = ((f"{words[2]} {i % 97}", words[3]), (words[4], f"{words[5]} {i % 31}"))
        made.append(Table(TableId(f"d{i % 7}", f"t{i}"), tuple(words[:2]), rows, title=f"{words[6]} {i % 13}"))
    return made


def parts(tables: list[Table], shards: int) -> list[list[Table]]:
    return [[table for table in tables if shard_of(table.id, shards) == number] for number in range(shards)]


def in_shards(folder: Path, shards: int) -> None:
    folder.mkdir()
    pieces = parts(corpus(), shards)
    means = sum((count_lengths(piece, RECIPE) for piece in pieces), Lengths({})).means()
    written = [write_shard(piece, n, folder, "build", RECIPE, means) for n, piece in enumerate(pieces)]
    commit_shards(folder, [shard for shard in written if shard is not None][::-1], RECIPE, means)


def best(folder: Path, question: str) -> list[tuple[float, str]]:
    return [(score, named.id.table) for named, score in open_index(folder).best(question, 100)]


@pytest.mark.parametrize("shards", [1, 3, 8])
def test_the_best_hundred_are_those_of_one_index(tmp_path: Path, shards: int) -> None:
    build_index(corpus(), tmp_path / "one", FIELDS)  # type: ignore[arg-type]
    in_shards(tmp_path / "many", shards)
    for question in ("ferry price 17", "winner of the season", "bridge length", "rank 30 goals"):
        one, many = best(tmp_path / "one", question), best(tmp_path / "many", question)
        assert [score for score, _ in one] == [score for score, _ in many]
        last = one[-1][0]
        assert {pair for pair in one if pair[0] > last} == {pair for pair in many if pair[0] > last}


def test_a_repeated_task_writes_the_same_bytes_and_what_a_killed_one_left_is_no_segment(tmp_path: Path) -> None:
    in_shards(tmp_path / "index", 3)
    index = open_index(tmp_path / "index")
    pieces = parts(corpus(), 3)
    before = {path: path.read_bytes() for path in (tmp_path / "index").rglob("*") if path.is_file()}
    again = write_shard(pieces[1][::-1], 1, tmp_path / "index", "build", RECIPE, index.means)
    assert again is not None
    assert {path: path.read_bytes() for path in (tmp_path / "index").rglob("*") if path.is_file()} == before
    (tmp_path / "index" / ".writing-segment-0123456789ab-x").mkdir()
    write_shard(pieces[0], 0, tmp_path / "index", "another build", RECIPE, index.means)
    assert len(open_index(tmp_path / "index").segments) == 3
    check_shards(tmp_path / "index", 3)
    assert not list((tmp_path / "index").glob(".writing-*"))


def test_an_id_that_is_repeated_and_an_odd_number_of_shards_are_errors(tmp_path: Path) -> None:
    table = corpus()[0]
    with pytest.raises(SourceError, match="twice"):
        write_shard([table, table], 0, tmp_path, "build", RECIPE, dict.fromkeys(FIELDS, 1.0))
    with pytest.raises(SourceError, match="4096"):
        check_shards(tmp_path, 0)
