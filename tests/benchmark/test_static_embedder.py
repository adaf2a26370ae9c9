"""The static embedder's arithmetic, on a small vocabulary; what its vectors are worth stands in docs/retrieval.md."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from almanaq.errors import SourceError
from almanaq.models.embedders.vector_store import VectorStore
from almanaq_bench import static_embedder
from almanaq_bench.static_embedder import DIMENSIONS, StaticEmbedder


class Letters:
    """A tokenizer whose tokens are letters."""

    def encode_batch(self, words, add_special_tokens):
        return [SimpleNamespace(ids=[ord(letter) % 50 for letter in word]) for word in words]


@pytest.fixture
def embedder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StaticEmbedder:
    made = np.random.default_rng(5).normal(size=(600, 300))
    monkeypatch.setattr(static_embedder, "_embed_tokens", lambda: made)
    monkeypatch.setattr(static_embedder, "_load_tokenizer", Letters)
    return StaticEmbedder(tmp_path)


def test_vectors_are_of_unit_length_and_depend_on_the_text_alone(embedder: StaticEmbedder, tmp_path: Path) -> None:
    texts = ["red fox", "a fox that is red", "", "?!", "red fox"] + [f"word{n}" for n in range(200)]
    together = embedder.embed(texts)
    assert together.shape == (205, DIMENSIONS)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), [1, 1, 0, 0, *[1] * 201], atol=1e-5)
    alone = StaticEmbedder(tmp_path)
    np.testing.assert_allclose(together, np.concatenate([alone.embed([text]) for text in texts]), atol=1e-6)
    assert embedder.embed([]).shape == (0, DIMENSIONS)


def test_early_words_count_more(embedder: StaticEmbedder) -> None:
    fox, early, late = embedder.embed(["fox", "fox " + "dog " * 30, "dog " * 30 + "fox"])
    assert fox @ early > fox @ late


def test_words_that_no_longer_fit_are_learned_anew(embedder: StaticEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"word{n} other{n}" for n in range(300)]
    expected = embedder.embed(texts)
    monkeypatch.setattr(static_embedder, "_MAX_WORDS", 50)
    monkeypatch.setattr(static_embedder, "_TEXTS_PER_SUM", 40)
    embedder._known.clear()
    embedder._words = embedder._words[:50]
    np.testing.assert_allclose(embedder.embed(texts), expected, atol=1e-6)


def test_vectors_are_distilled_once(embedder: StaticEmbedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = embedder.embed(["fox"])
    monkeypatch.setattr(static_embedder, "_embed_tokens", lambda: pytest.fail("distilled again"))
    np.testing.assert_array_equal(StaticEmbedder(tmp_path).embed(["fox"]), first)
    (file,) = tmp_path.glob("static-*.npy")
    file.write_bytes(b"not an array")
    with pytest.raises(SourceError, match="delete it"):
        StaticEmbedder(tmp_path).embed(["fox"])


def test_frequent_tokens_weigh_less() -> None:
    weights = static_embedder._zipf_weights(30_000)
    assert weights[1996] < weights[3000] < weights[20_000]


def test_a_store_does_not_keep_what_is_cheap_to_make(embedder: StaticEmbedder, tmp_path: Path) -> None:
    store = VectorStore(tmp_path / "vectors", embedder)
    assert store.vectors(["fox"]).shape == (1, DIMENSIONS)
    assert not (tmp_path / "vectors").exists()
