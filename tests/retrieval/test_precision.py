import json
from pathlib import Path

import numpy as np
import pytest
from small_corpora import CORPUS, BagOfWords, table
from typer.testing import CliRunner

from almanaq.cli.app import app
from almanaq.errors import SourceError, UsageError
from almanaq.models.embedders.vector_store import VectorStore
from almanaq.retrieval.segments import Precision, parse_precision
from almanaq.retrieval.stored import IndexChange, build_index, open_index, update_index
from almanaq.retrieval.stored_search import StoredHybrid, StoredVectors, recall_of_codes

FIELDS = ["title", "header", "cells"]
CODED = [Precision.INT8, Precision.BINARY]
SIZE, WIDE = 3000, 128


def drawn(number: int, seed: int = 0) -> np.ndarray:
    """Return unit vectors in groups, as texts of some kinds have them."""
    random = np.random.default_rng(seed)
    middles = random.standard_normal((30, WIDE))
    vectors = middles[random.integers(0, 30, number)] + random.standard_normal((number, WIDE))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


class Drawn:
    """Embeds the text `t17 …` as the vector of that number."""

    name, cheap = "drawn", True

    def __init__(self) -> None:
        self.vectors = drawn(SIZE)

    def embed(self, texts):
        return self.vectors[[int(text.split()[0].removeprefix("t")) for text in texts]]


@pytest.fixture(scope="module", params=CODED)
def coded(request, tmp_path_factory):
    corpus = [table(f"t{n}", f"t{n} of them", ("a",), [("x",)]) for n in range(SIZE)]
    folder = tmp_path_factory.mktemp("coded") / "i"
    return build_index(corpus, folder, FIELDS, store=VectorStore(None, Drawn()), vectors=request.param)


@pytest.mark.parametrize("precision", CODED)
def test_the_nearest_code_is_its_own(precision: Precision) -> None:
    vectors = drawn(500)
    codes = precision.codes(vectors)
    assert codes.nbytes == 500 * WIDE // {Precision.INT8: 1, Precision.BINARY: 8}[precision]
    for number in (0, 77, 499):
        assert precision.nearest(codes, vectors[number], 1).tolist() == [number]
        assert len(precision.nearest(codes, vectors[number], 20)) == 20


def test_a_vector_of_nothing_has_a_code() -> None:
    for precision in CODED:
        assert not precision.codes(np.zeros((2, WIDE), np.float32)).any()


def test_codes_find_nearly_what_all_vectors_do(coded) -> None:
    assert 0.98 <= recall_of_codes(coded) <= 1
    stored, vector = StoredVectors(coded), drawn(SIZE)[5]
    exact = np.argsort(-stored.cosines(vector), kind="stable")[:10]
    assert len(set(exact) & set(stored.nearest(vector, 300))) >= 9
    assert stored.nearest(vector, 1).tolist() == [5]


def test_what_is_kept_is_as_small_as_it_says(coded) -> None:
    (segment,) = coded.segments
    width = WIDE if coded.recipe.vectors is Precision.INT8 else WIDE // 8
    assert segment.codes.all().shape == (SIZE, width)
    assert segment.vectors.all().dtype == np.float16


@pytest.mark.parametrize("precision", list(Precision))
def test_an_update_and_a_search_keep_to_it(tmp_path: Path, precision: Precision) -> None:
    store = VectorStore(None, BagOfWords())
    many = (*CORPUS, *(table(f"t{n}", f"walk {n}", ("a", "b"), [(f"x{n}", "y")]) for n in range(60)))
    build_index(many, tmp_path / "i", FIELDS, store=store, vectors=precision)
    index, change = update_index((*many[1:], table("new", "owl")), tmp_path / "i", store=store)
    assert change == IndexChange(added=1, deleted=1, kept=len(many) - 1)
    assert len(index.segments) == 2
    assert all(segment.vectors.all().dtype == precision.dtype for segment in index.segments)
    assert all((segment.codes is None) == (precision not in CODED) for segment in index.segments)
    found = [named.id.table for named, _ in StoredHybrid(index, BagOfWords()).best("owl", 50)]
    assert found[0] == "new"
    assert many[0].id.table not in found  # it is dead, though its code is still there
    assert json.loads((tmp_path / "i" / "manifest.json").read_text()).get("vectors", "float16") == precision


def test_codes_that_are_missing_are_noticed(tmp_path: Path) -> None:
    build_index(CORPUS, tmp_path / "i", FIELDS, store=VectorStore(None, BagOfWords()), vectors=Precision.INT8)
    next((tmp_path / "i").glob("segment-*/codes.npy")).unlink()
    with pytest.raises(SourceError, match="damaged"):
        open_index(tmp_path / "i")


def test_the_command_says_what_codes_find(tmp_path: Path) -> None:
    (tmp_path / "rivers.csv").write_text("river,length\nRhine,1230\nDanube,2850\n")
    (tmp_path / "films.csv").write_text("film,year\nIkiru,1952\n")
    made = ["index", str(tmp_path), "--out", str(tmp_path / "i"), "--embedder", "lexical", "--vectors", "binary"]
    run = CliRunner().invoke(app, made)
    assert run.exit_code == 0, run.output
    assert "binary codes find 100.0% of the ten nearest" in run.stdout
    assert open_index(tmp_path / "i").recipe.vectors is Precision.BINARY


def test_what_does_not_go_together_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="float16, float32, int8, binary"):
        parse_precision("int4")
    (tmp_path / "a.csv").write_text("a\n1\n")
    for more, said in ((["--vectors", "int8"], "--embedder"), (["--update", "--vectors", "int8"], "--update")):
        run = CliRunner().invoke(app, ["index", str(tmp_path / "a.csv"), "--out", str(tmp_path / "i"), *more])
        assert run.exit_code != 0
        assert said in run.stderr + str(run.exception)
