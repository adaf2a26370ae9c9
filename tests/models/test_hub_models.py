"""Models in folders: a tiny BERT made here is read by our encoder as by its own library."""

from __future__ import annotations

import string
from pathlib import Path

import numpy as np
import pytest

from almanaq.models.embedders.minilm import MiniLM

TEXTS = ["the patio was quiet", "a", "we waited an hour for a table and then another", ""]


@pytest.fixture(scope="module")
def transformers():  # type: ignore[no-untyped-def]
    return pytest.importorskip("transformers")


def make(transformers, folder: Path, kind: str, **options: object) -> Path:  # type: ignore[no-untyped-def]
    """Write a tiny model of a kind with a vocabulary of letters, its weights from a fixed seed."""
    import torch

    torch.manual_seed(7)
    letters = [*string.ascii_lowercase, *string.digits, *(f"##{c}" for c in string.ascii_lowercase), "?", ".", ","]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters]))
    sizes = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 40}
    config = transformers.BertConfig(vocab_size=len(letters) + 5, max_position_embeddings=64, **sizes, **options)
    getattr(transformers, kind)(config).save_pretrained(folder)
    transformers.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    return folder


@pytest.mark.nightly
@pytest.mark.slow
def test_vectors_are_those_of_the_library(transformers, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    import torch

    folder = make(transformers, tmp_path / "bert", "BertModel")
    model, tokenizer = (kind.from_pretrained(folder) for kind in (transformers.AutoModel, transformers.AutoTokenizer))
    encoded = tokenizer(TEXTS, padding=True, truncation=True, max_length=64, return_tensors="pt")
    with torch.inference_mode():
        states, mask = model.eval()(**encoded).last_hidden_state, encoded["attention_mask"][:, :, None]
    pooled = ((states * mask).sum(1) / mask.sum(1)).numpy()
    expected = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
    np.testing.assert_allclose(MiniLM(folder, precise=True).encode(TEXTS), expected, atol=1e-5)
