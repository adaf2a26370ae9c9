"""An index on disk that was damaged or forged gives no wrong answer, opens no other file, and chooses no model."""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections import Counter
from pathlib import Path

import pytest
from benchmarks.faults.index import answers, build, flips, tables
from typer.testing import CliRunner

import almanaq
from almanaq.cli.app import app
from almanaq.errors import SourceError, UsageError
from almanaq.retrieval import segments
from almanaq.retrieval.index_files import MANIFEST, SUMS
from almanaq.retrieval.stored import open_index, update_index
from almanaq_bench.testing import StandInServer


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index with vectors and two segments."""
    folder = tmp_path_factory.mktemp("damaged") / "index"
    build(folder, 60)
    return folder


@pytest.fixture
def index(built: Path, tmp_path: Path) -> Path:
    """A copy of it that a test may change."""
    for file in built.rglob("*"):
        if file.is_file():
            copy = tmp_path / "index" / file.relative_to(built)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(file.read_bytes())
    return tmp_path / "index"


def forge(folder: Path, **changes: object) -> None:
    """Write a manifest that says something else, as whoever made the index could."""
    told = json.loads((folder / MANIFEST).read_text())
    told = {**told, **changes}
    told.pop("sum")
    checksum = hashlib.blake2b(json.dumps(told, sort_keys=True).encode(), digest_size=16).hexdigest()
    (folder / MANIFEST).write_text(json.dumps({**told, "sum": checksum}))


def ends(folder: Path, count: int, *, summed: bool) -> Counter[str]:
    ended: Counter[str] = Counter()
    for (_, how), times in flips(folder, count, summed=summed).items():
        ended[how] += times
    return ended


def test_a_flipped_bit_changes_no_answer(index: Path) -> None:
    ended = ends(index, 60, summed=False)
    assert set(ended) <= {"same", "refused"}, ended
    assert ended["refused"] > 30


def test_a_forged_index_ends_in_no_defect(index: Path) -> None:
    """Whoever may write the index may write its sums: answers are theirs, but nothing else is."""
    ended = ends(index, 20, summed=True)
    assert set(ended) <= {"same", "refused", "wrong"}, ended


@pytest.mark.parametrize("file", ["tables.npy", "texts.bin", "names.jsonl", SUMS])
def test_a_block_that_changes_under_an_open_index_is_found_at_its_first_touch(index: Path, file: str) -> None:
    opened = open_index(index)
    segment = opened.segments[0].folder / file
    content = bytearray(segment.read_bytes())
    content[-1] ^= 1
    with segment.open("r+b") as changed:
        changed.write(content)
    if file == SUMS:
        assert opened.best("river1", 3)  # what was read before is what counts
        with pytest.raises(SourceError, match="damaged"):
            open_index(index)
        return
    with pytest.raises(SourceError, match="damaged"):
        assert answers(index)


@pytest.mark.parametrize(
    "name", ["../index", "../../etc", "/etc", "segment-", "segment-0123456789ab/..", "", ".", "a\0b", 7, None, ["x"]]
)
def test_a_segment_lies_in_its_index(index: Path, name: object) -> None:
    (entry, *rest) = json.loads((index / MANIFEST).read_text())["segments"]
    forge(index, segments=[{**entry, "name": name}, *rest])
    with pytest.raises(SourceError, match="is damaged"):
        open_index(index)
    with pytest.raises(SourceError, match="is damaged"):
        update_index(tables(60), index)


@pytest.mark.parametrize(
    "changes",
    [
        {"segments": [{}]},
        {"segments": "x"},
        {"segments": None},
        {"segments": {"name": "x"}},
        {"fields": ["secrets"]},
        {"fields": 7},
        {"language": "klingon"},
        {"embedder": 7},
        {"means": [1]},
        {"means": None},
    ],
)
def test_a_manifest_of_other_kinds_is_damaged(index: Path, changes: dict[str, object]) -> None:
    forge(index, **changes)
    with pytest.raises((SourceError, UsageError)):
        open_index(index)


@pytest.mark.parametrize("dead", [[-1], [10**6], [2**70], ["x"], [0.5], None])
def test_dead_tables_are_tables(index: Path, dead: object) -> None:
    (entry, *rest) = json.loads((index / MANIFEST).read_text())["segments"]
    forge(index, segments=[{**entry, "dead": dead}, *rest])
    with pytest.raises(SourceError, match="is damaged"):
        open_index(index)


@pytest.mark.parametrize("sizes", ["{}", "[]", "x", '{"x": -1}', '{"x": 1e999}', '{"x": null}', '{"x": 1}'])
def test_checksums_are_those_of_the_files_of_a_segment(index: Path, sizes: str) -> None:
    (entry, *rest) = json.loads((index / MANIFEST).read_text())["segments"]
    content = f"{sizes}\n".encode()
    (index / entry["name"] / SUMS).write_bytes(content)
    forge(index, segments=[{**entry, "sums": hashlib.blake2b(content, digest_size=16).hexdigest()}, *rest])
    with pytest.raises(SourceError, match="is damaged"):
        open_index(index)


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="no links here")
def test_a_file_of_an_index_is_no_link_to_another(index: Path, tmp_path: Path) -> None:
    """What is read of another's file under an index's name is not what the sums say, and is never shown."""
    secret = tmp_path / "secret"
    secret.write_text("the secret of another" * 1000)
    names = open_index(index).segments[0].folder / "names.jsonl"
    names.unlink()
    names.symlink_to(secret)
    with pytest.raises(SourceError) as caught:
        answers(index)
    assert "the secret" not in str(caught.value)


@pytest.mark.parametrize("block", [zlib.compress(bytes(1001)), zlib.compress(b"[]")[:-3], b"not packed"])
def test_a_block_of_texts_unpacks_to_no_more_than_is_written(block: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "MAX_BLOCK_BYTES", 1000)
    with pytest.raises((ValueError, zlib.error)):
        segments._decompress(block)


@pytest.mark.parametrize("embedder", ["openai:m", "someone/model", "./model"])
def test_an_index_chooses_no_model(index: Path, embedder: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rivers.csv").write_text("river,length\nNile,6650\n")
    forge(index, embedder=embedder)
    commands = [["find", "river1", "--index", str(index)], ["index", str(tmp_path), "--out", str(index), "--update"]]
    with StandInServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "canary")
        monkeypatch.delenv("ALMANAQ_EMBEDDER", raising=False)
        for command in commands:
            with pytest.raises(UsageError, match=r"confirm it with embedder=.* \(--embedder, "):
                CliRunner().invoke(app, command, catch_exceptions=False)
            with pytest.raises(UsageError, match=r"does not fit|cannot be combined"):
                CliRunner().invoke(app, [*command, "--embedder", "static"], catch_exceptions=False)
        with pytest.raises(UsageError, match=r"confirm it with embedder="):
            almanaq.tables(index=index).find("river1")
        assert server.ledger.calls == 0
        assert CliRunner().invoke(app, [*commands[0], "--retriever", "bm25"], catch_exceptions=False).exit_code == 0
        assert server.ledger.calls == 0
        if embedder == "openai:m":
            # Its vectors are of another width here: what counts is who was asked.
            CliRunner().invoke(app, [*commands[0], "--embedder", embedder])
            assert server.ledger.calls == 1
