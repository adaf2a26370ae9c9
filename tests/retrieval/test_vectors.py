import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from small_corpora import BagOfWords

from almanaq.errors import ModelError, SourceError
from almanaq.models.embedders.vector_store import VectorStore
from almanaq.models.private_files import default_cache_folder

TEXTS = ["one", "two", "one", ""]


@pytest.mark.parametrize("on_disk", [True, False])
def test_each_text_is_embedded_once(tmp_path: Path, on_disk: bool) -> None:
    embedder = BagOfWords()
    store = VectorStore(tmp_path if on_disk else None, embedder)
    first = store.vectors(TEXTS)
    np.testing.assert_array_equal(first, BagOfWords().embed(TEXTS))
    np.testing.assert_array_equal(store.vectors(TEXTS[::-1]), first[::-1])
    assert sorted(embedder.embedded) == ["", "one", "two"]


def test_texts_of_like_length_are_embedded_together(tmp_path: Path) -> None:
    texts = ["x" * (number * 7919 % 1201) for number in range(1201)]
    embedder = BagOfWords()
    made = VectorStore(tmp_path, embedder).vectors(texts)
    assert embedder.embedded == sorted(texts, key=len)
    np.testing.assert_array_equal(made, BagOfWords().embed(texts))


def test_a_second_process_embeds_nothing(tmp_path: Path) -> None:
    VectorStore(tmp_path, BagOfWords()).vectors(TEXTS)
    later = BagOfWords()
    VectorStore(tmp_path, later).vectors(TEXTS)
    assert later.embedded == []


def test_embedders_do_not_share_vectors(tmp_path: Path) -> None:
    VectorStore(tmp_path, BagOfWords()).vectors(TEXTS)
    other = BagOfWords()
    other.name = "bag/of words"
    VectorStore(tmp_path, other).vectors(TEXTS)
    assert len(other.embedded) == 3


def test_a_store_that_was_stopped_goes_on_with_the_same_batches(tmp_path: Path) -> None:
    """A vector's last digits hang on its batch: a resumed run must give those of an uninterrupted one."""

    class Batches(BagOfWords):
        def __init__(self, most=99):
            super().__init__()
            self.most = most
            self.batches = []

        def embed(self, texts):
            if len(self.batches) == self.most:
                raise RuntimeError("killed")
            self.batches.append(list(texts))
            return super().embed(texts)

    texts = ["x" * (number * 7919 % 1801) for number in range(1801)]
    whole, stopped, resumed = Batches(), Batches(most=2), Batches()
    VectorStore(tmp_path / "whole", whole).vectors(texts)
    with pytest.raises(RuntimeError):
        VectorStore(tmp_path / "stopped", stopped).vectors(texts)
    VectorStore(tmp_path / "stopped", resumed).vectors(texts)
    assert [*stopped.batches, *resumed.batches] == whole.batches
    assert len(whole.batches) == 4


def test_what_was_embedded_before_a_failure_is_kept(tmp_path: Path) -> None:
    class Failing(BagOfWords):
        def embed(self, texts):
            if self.embedded:
                raise ModelError("gone")
            return super().embed(texts)

    with pytest.raises(ModelError, match="gone"):
        VectorStore(tmp_path, Failing()).vectors([str(number) for number in range(600)])
    again = BagOfWords()
    VectorStore(tmp_path, again).vectors([str(number) for number in range(600)])
    assert len(again.embedded) == 88


_WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from small_corpora import BagOfWords
from almanaq.models.embedders.vector_store import VectorStore
store = VectorStore(Path(sys.argv[1]), BagOfWords())
for number in range(40):
    store.vectors([f"text {number}", f"own {sys.argv[3]} {number}"])
"""


def test_several_processes_may_write_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _WRITER, str(tmp_path), str(Path(__file__).parent)]
    writers = [subprocess.Popen([*command, str(number)]) for number in range(3)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    embedder = BagOfWords()
    VectorStore(tmp_path, embedder).vectors([f"own {writer} {n}" for writer in range(3) for n in range(40)])
    assert embedder.embedded == []


def test_no_texts_and_bad_embedders(tmp_path: Path) -> None:
    assert VectorStore(tmp_path, BagOfWords()).vectors([]).shape[0] == 0

    class Broken(BagOfWords):
        def embed(self, texts):
            return super().embed(texts)[:-1]

    with pytest.raises(ModelError, match=r"shape \(1, 64\) for 2 texts"):
        VectorStore(None, Broken()).vectors(["a", "b"])

    class NotANumber(BagOfWords):
        def embed(self, texts):
            return super().embed(texts) * np.nan

    with pytest.raises(ModelError, match="not finite"):
        VectorStore(None, NotANumber()).vectors(["a"])


def test_another_width_under_the_same_name_is_refused(tmp_path: Path) -> None:
    VectorStore(tmp_path, BagOfWords()).vectors(["a"])
    with pytest.raises(ModelError, match="other widths"):
        VectorStore(tmp_path, BagOfWords(32)).vectors(["a", "b"])


def test_a_foreign_file_is_named(tmp_path: Path) -> None:
    store = VectorStore(tmp_path, BagOfWords())
    store.file.write_text("not a database, and long enough to be taken for one by its header " * 20)
    with pytest.raises(SourceError, match="ALMANAQ_CACHE_DIR"):
        store.vectors(["a"])


def test_a_killed_writer_loses_no_written_vector(tmp_path: Path) -> None:
    store = VectorStore(tmp_path, BagOfWords())
    store.vectors(["a"])
    connection = sqlite3.connect(store.file)
    connection.execute("INSERT INTO vectors (key, vector) VALUES (x'00', x'00')")  # never committed
    connection.close()
    embedder = BagOfWords()
    VectorStore(tmp_path, embedder).vectors(["a"])
    assert embedder.embedded == []


def test_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALMANAQ_CACHE_DIR", "/named")
    assert default_cache_folder() == Path("/named")
    monkeypatch.delenv("ALMANAQ_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert default_cache_folder() == Path("/xdg/almanaq")
