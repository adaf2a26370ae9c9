import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_corpora import CORPUS, FILMS, RIVERS, TEAMS, table

from almanaq.corpus.table import Field
from almanaq.errors import SourceError, UsageError
from almanaq.retrieval import stored
from almanaq.retrieval.bm25 import BM25
from almanaq.retrieval.index_files import MANIFEST, lock_folder
from almanaq.retrieval.stored import IndexChange, build_index, open_index, update_index

FIELDS = ["title", "header", "cells"]


def word(number: int) -> str:
    return f"q{'abcde'[number // 10]}{'fghijklmno'[number % 10]}"


MANY = tuple(table(f"t{number}", f"title {number}", ("a", "b"), [(word(number), "y")]) for number in range(40))


def found(index, question: str) -> list[str]:
    return [hit.id.table for hit in index.search([question], 50)[0]]


def test_it_ranks_and_scores_as_the_index_in_memory(tmp_path: Path) -> None:
    build_index(CORPUS, tmp_path / "i", FIELDS)
    opened, memory = open_index(tmp_path / "i"), BM25().index(CORPUS, FIELDS)
    for question in ("films of Kurosawa", "river length 6650", "Lyon 1950 club", "zzz", ""):
        (mine,), (theirs,) = opened.search([question], 3), memory.search([question], 3)
        assert [hit.id for hit in mine] == [hit.id for hit in theirs]
        np.testing.assert_allclose([h.score for h in mine], [h.score for h in theirs], rtol=1e-5)


def test_it_keeps_what_is_shown(tmp_path: Path) -> None:
    index = build_index(CORPUS, tmp_path / "i", FIELDS)
    ((named, _),) = index.best("Kurosawa", 5)
    assert (named.id, named.title, named.header) == (FILMS.id, FILMS.title, FILMS.header)


def test_what_became_private_leaves_the_folder(tmp_path: Path) -> None:
    secret = table("secret", header=("who", "what"), rows=[("Ann", "plugh")])
    build_index((*MANY, secret), tmp_path / "i", FIELDS)
    for rows, kept in (([("Ann", "xyzzy")], True), ([("Ann", "")], False)):
        index, change = update_index((*MANY, replace(secret, rows=tuple(rows))), tmp_path / "i")
        assert change.rebuilt is not kept
    texts = [
        index.segments[n].table(place) for n, segment in enumerate(index.segments) for place in range(len(segment))
    ]
    assert not any("xyzzy" in str(each) or "plugh" in str(each) for each in texts)


def test_it_keeps_what_was_indexed_of_each_table(tmp_path: Path) -> None:
    odd = table("odd", "Größe", ("", "b"), [("x\n\u2028y", "\ud800"), ("", '"')], description="of it", keys=("b",))
    long = tuple(table(f"long{n}", header=("a",), rows=[(f"{n} " * 9_000,)]) for n in range(4))
    corpus = (*MANY, odd, *long)
    build_index(corpus, tmp_path / "all", list(Field))
    changed = (*MANY[1:], odd, *long, replace(FILMS, keys=("Year",)))
    for expected, index in (
        (corpus, open_index(tmp_path / "all")),
        (changed, update_index(changed, tmp_path / "all")[0]),
    ):
        kept = [index.table(place) for place in np.setdiff1d(np.arange(index.size), index.dead_places())]
        assert kept == list(expected)
    less = build_index([odd], tmp_path / "less", ["title", "header"])
    assert less.table(0) == replace(odd, rows=(), description="", keys=())


def test_an_update_writes_what_changed_only(tmp_path: Path) -> None:
    build_index(MANY, tmp_path / "i", FIELDS)
    before = {path.name for path in (tmp_path / "i").glob("segment-*")}
    changed = replace(MANY[3], rows=(("walrus", "y"),))
    new = table("new", "A penguin")
    index, change = update_index((*MANY[:3], changed, *MANY[5:], new), tmp_path / "i")
    assert change == IndexChange(added=1, changed=1, deleted=1, kept=38)
    assert len(index) == 40
    assert before < {path.name for path in (tmp_path / "i").glob("segment-*")}
    assert found(index, "walrus") == ["t3"]
    assert found(index, "penguin") == ["new"]
    assert found(index, word(3)) == found(index, word(4)) == []
    assert found(index, word(7)) == ["t7"]


def test_a_value_that_moves_to_another_column_is_a_change(tmp_path: Path) -> None:
    moved = table("t", "moves", ("a", "b"), [("x", "")])
    build_index((*MANY, moved), tmp_path, FIELDS)
    _, change = update_index((*MANY, replace(moved, rows=(("", "x"),))), tmp_path)
    assert (change.changed, change.kept) == (1, len(MANY))


def test_an_update_without_change_writes_nothing(tmp_path: Path) -> None:
    build_index(CORPUS, tmp_path / "i", FIELDS)
    before = (tmp_path / "i" / MANIFEST).stat().st_mtime_ns
    (tmp_path / "i" / "segment-killed").mkdir()
    _, change = update_index(CORPUS, tmp_path / "i")
    assert change == IndexChange(kept=3)
    assert (tmp_path / "i" / MANIFEST).stat().st_mtime_ns == before
    assert len(list((tmp_path / "i").glob("segment-*"))) == 1  # what a killed one left is gone all the same


def test_much_change_builds_anew(tmp_path: Path) -> None:
    build_index(CORPUS, tmp_path / "i", FIELDS)
    index, change = update_index([FILMS, table("x", "walrus")], tmp_path / "i")
    assert change.rebuilt
    assert len(index.segments) == 1
    assert found(index, "walrus") == ["x"]


@settings(max_examples=15)
@given(st.lists(st.sets(st.integers(0, 39)), min_size=1, max_size=4))
def test_updates_end_where_a_fresh_build_does(tmp_path_factory, steps: list[set[int]]) -> None:
    folder = tmp_path_factory.mktemp("index")
    build_index(MANY, folder, FIELDS)
    corpus = list(MANY)
    for step in steps:
        corpus = [replace(t, title=f"{t.title} again") if i in step else t for i, t in enumerate(MANY)]
        index, _ = update_index(corpus, folder)
    fresh = BM25().index(corpus, FIELDS)
    for question in ("again", word(7), "title 12"):
        assert set(found(index, question)) == {hit.id.table for hit in fresh.search([question], 50)[0]}


@pytest.mark.parametrize("step", ["_write_segment", "write_manifest"])
def test_a_crash_leaves_the_old_index_whole(tmp_path: Path, monkeypatch, step: str) -> None:
    build_index(MANY, tmp_path / "i", FIELDS)
    real = getattr(stored, step)

    def crash(*arguments):
        if step == "_write_segment":
            real(*arguments)  # the segment is there, the manifest is not
        raise KeyboardInterrupt

    monkeypatch.setattr(stored, step, crash)
    with pytest.raises(KeyboardInterrupt):
        update_index((*MANY, table("new", "penguin")), tmp_path / "i")
    monkeypatch.undo()
    assert found(open_index(tmp_path / "i"), "penguin") == []
    assert len(open_index(tmp_path / "i")) == len(MANY)
    index, _ = update_index((*MANY, table("new", "penguin")), tmp_path / "i")
    assert found(index, "penguin") == ["new"]
    assert len(list((tmp_path / "i").glob("segment-*"))) == 2  # what the crash left is gone


def test_a_first_build_that_was_killed_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "segment-0").mkdir()
    for name in (".lock", ".manifest.json.123"):
        (tmp_path / name).write_text("")
    assert len(build_index(MANY, tmp_path, FIELDS)) == len(MANY)
    assert not (tmp_path / ".manifest.json.123").exists()


def test_a_second_writer_is_refused_and_searching_goes_on(tmp_path: Path) -> None:
    build_index(MANY, tmp_path, FIELDS)
    with lock_folder(tmp_path):
        for write in (lambda: update_index(CORPUS, tmp_path), lambda: build_index(CORPUS, tmp_path, FIELDS)):
            with pytest.raises(SourceError, match="another process is writing"):
                write()
        assert found(open_index(tmp_path), word(7)) == ["t7"]
    assert update_index(CORPUS, tmp_path)[1].deleted == len(MANY)


def test_a_build_that_fails_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no table"):
        build_index([], tmp_path / "i", FIELDS)
    assert not (tmp_path / "i").exists()


def test_an_index_that_is_replaced_while_it_is_opened_is_opened_anew(tmp_path: Path, monkeypatch) -> None:
    build_index(MANY, tmp_path, FIELDS)
    told = stored.read_manifest(tmp_path)
    build_index(CORPUS, tmp_path, FIELDS)
    read = iter([told, stored.read_manifest(tmp_path)])
    monkeypatch.setattr(stored, "read_manifest", lambda _: next(read))
    assert len(open_index(tmp_path)) == len(CORPUS)


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no table"):
        build_index([], tmp_path / "i", FIELDS)
    with pytest.raises(SourceError, match="d/films occurs more than once"):
        build_index([FILMS, FILMS], tmp_path / "i", FIELDS)
    with pytest.raises(SourceError, match="holds no index"):
        open_index(tmp_path / "none")
    with pytest.raises(UsageError, match="did you mean 'cells'"):
        build_index(CORPUS, tmp_path / "i", ["cels"])
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("x")
    with pytest.raises(SourceError, match=r"holds no index \(mine.txt\)"):
        build_index(CORPUS, tmp_path / "other", FIELDS)


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ("{", "cannot read"),
        ("[]", "is not an index"),
        ('{"format": "else"}', "is not an index"),
        ('{"format": "almanaq-table-index", "version": 99}', "version 99, this almanaq reads 5"),
        ('{"format": "almanaq-table-index", "version": 5}', "is damaged"),
    ],
)
def test_foreign_and_damaged_indexes(tmp_path: Path, manifest: str, message: str) -> None:
    (tmp_path / MANIFEST).write_text(manifest)
    with pytest.raises(SourceError, match=message):
        open_index(tmp_path)


@pytest.mark.parametrize("manifest", ["{", '{"format": "almanaq-table-index", "version": 1}'])
def test_a_damaged_or_outdated_index_can_be_built_anew(tmp_path: Path, manifest: str) -> None:
    build_index(CORPUS, tmp_path / "i", FIELDS)
    (tmp_path / "i" / MANIFEST).write_text(manifest)
    with pytest.raises(SourceError, match="rebuild"):
        open_index(tmp_path / "i")
    assert found(build_index(CORPUS, tmp_path / "i", FIELDS), "Kurosawa") == ["films"]
    assert len(list((tmp_path / "i").glob("segment-*"))) == 1


@pytest.mark.parametrize("manifest", ["{", "[]", '{"format": "else"}'])
def test_a_manifest_of_something_else_is_left_alone(tmp_path: Path, manifest: str) -> None:
    (tmp_path / MANIFEST).write_text(manifest)
    with pytest.raises(SourceError, match="holds no index"):
        build_index(CORPUS, tmp_path, FIELDS)


@pytest.mark.parametrize(("file", "what"), [("names.jsonl", r"names\.jsonl"), ("texts.bin", r"texts\.bin")])
def test_a_segment_that_is_cut_off_is_damaged(tmp_path: Path, file: str, what: str) -> None:
    index = build_index((RIVERS, TEAMS), tmp_path / "i", FIELDS)
    (index.segments[0].folder / file).write_bytes(b"")
    with pytest.raises(SourceError, match=rf"damaged .*{what} is cut off"):
        open_index(tmp_path / "i")


@pytest.mark.parametrize("file", ["texts.bin", "names.jsonl"])
def test_what_is_damaged_inside_is_told_when_it_is_read(tmp_path: Path, file: str) -> None:
    index = build_index((RIVERS, TEAMS), tmp_path / "i", FIELDS)
    damaged = index.segments[0].folder / file
    damaged.write_bytes(bytes(damaged.stat().st_size))
    opened = open_index(tmp_path / "i")
    for read in (opened.table, *([opened.entry] if file == "names.jsonl" else [])):
        with pytest.raises(SourceError, match="damaged"):
            read(0)


_UPDATING = """
import sys
from dataclasses import replace
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_stored import FIELDS, MANY
from almanaq.retrieval.stored import update_index
print("ready", flush=True)
for turn in range(100_000):
    corpus = [replace(t, title=f"turn {turn} again") if i < 5 else t for i, t in enumerate(MANY)]
    update_index(corpus, Path(sys.argv[1]))
    print("updated", flush=True)
"""


@pytest.mark.slow
def test_a_killed_update_leaves_a_whole_index(tmp_path: Path) -> None:
    folder = tmp_path / "i"
    build_index(MANY, folder, FIELDS)
    for pause in (0.05, 0.11, 0.23, 0.41):
        command = [sys.executable, "-c", _UPDATING, str(folder), str(Path(__file__).parent)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            lines = [process.stdout.readline(), process.stdout.readline()]
            assert lines == [b"ready\n", b"updated\n"]
            time.sleep(pause)
            process.kill()
        index = open_index(folder)
        assert len(index) == len(MANY)
        assert found(index, word(30)) == ["t30"]
    assert len(found(index, "again")) == 5
    update_index(MANY, folder)
    assert found(open_index(folder), "again") == []
    assert len(list(folder.glob("segment-*"))) <= 17  # what a killed one left is gone
