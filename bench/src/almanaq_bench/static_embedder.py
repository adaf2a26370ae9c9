"""StaticEmbedder: summed word vectors, distilled from MiniLM: the embedder of the benchmarks of large indexes."""

from __future__ import annotations

import io
import os
import re
import threading
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from almanaq.errors import MissingExtraError, SourceError
from almanaq.models.embedders.base import SymmetricEmbedder, normalize
from almanaq.models.embedders.minilm import WEIGHTS_SHA256, find_weights, load_minilm

DIMENSIONS = 256
_FILE = f"static-words-{WEIGHTS_SHA256[:8]}-{DIMENSIONS}-summed.npy"
"""A change to the distillation needs another file name, and another name of the embedder."""

_FREQUENCY_SCALE = 1e-4
"""A token of probability p weighs `_FREQUENCY_SCALE / (_FREQUENCY_SCALE + p)` (Arora et al., 2017)."""

_FIRST_WORD, _FIRST_SIGN = 1996, 999
"""The vocabulary holds special tokens, then single characters, then words and word parts, frequent ones first."""

_POSITION_SCALE = 20.0
"""The word after i others weighs `1 / (1 + i / _POSITION_SCALE)`."""

_WORD = re.compile(r"\w+")
_MAX_WORDS = 100_000  # cached word vectors: 100 MB
_TEXTS_PER_SUM = 64  # summed at once, within the CPU's cache
_SUM_BYTES = 4


class StaticEmbedder(SymmetricEmbedder):
    """An Embedder of summed word vectors, distilled from MiniLM at the first use ever: some ten seconds of CPU time.

    After model2vec (Tulkens and van Dongen, 2024): each token of the vocabulary goes through the model alone, the
    vectors are reduced to their principal components, and frequent tokens weigh less. Meaning that arises between words
    is lost, but thousands of texts are embedded per second. Unlike model2vec, components are scaled to equal variance,
    and words weigh less the later they come, as a table's text begins with its title (docs/decisions/0011).

    Args:
        folder: where the distilled vectors are stored: 16 MB.
    """

    name = "static"
    cheap = True  # embedding a text again is as fast as looking up its vector

    def __init__(self, folder: Path) -> None:
        self._file = folder / _FILE
        self._lock = threading.Lock()
        self._tokenizer: Any = None
        self._tokens = np.zeros((0, DIMENSIONS), np.float32)
        self._known: dict[str, int] = {}
        self._words = np.zeros((0, DIMENSIONS), np.float32)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors, shape (len(texts), dimensions); a text without words gets a zero vector."""
        made = np.zeros((len(texts), DIMENSIONS), np.float32)
        with self._lock:
            if self._tokenizer is None:
                self._tokenizer, self._tokens = _load_tokenizer(), _load_vectors(self._file)
            for start in range(0, len(texts), _TEXTS_PER_SUM):
                part = slice(start, start + _TEXTS_PER_SUM)
                made[part] = self._sums([_WORD.findall(text.lower()) for text in texts[part]])
        return normalize(made)

    def _sums(self, texts: Sequence[Sequence[str]]) -> NDArray[np.float32]:
        self._learn({word for words in texts for word in words})
        sums = np.zeros((len(texts), DIMENSIONS), np.float32)
        weights = 1 / (1 + np.arange(max(map(len, texts)), dtype=np.float32) / _POSITION_SCALE)
        for row, words in zip(sums, texts, strict=True):
            if words:
                row[:] = weights[: len(words)] @ self._words[[self._known[word] for word in words]]
        return sums

    def _learn(self, words: Iterable[str]) -> None:
        """Cache the vectors of words: the sum of their tokens' vectors, divided by the root of their number."""
        unknown = [word for word in words if word not in self._known]
        if len(self._known) + len(unknown) > len(self._words):
            self._known.clear()
            unknown = list(words)
            self._words = np.zeros((max(_MAX_WORDS, len(unknown)), DIMENSIONS), np.float32)
        for word, tokens in zip(unknown, self._tokenizer.encode_batch(unknown, add_special_tokens=False), strict=True):
            self._words[len(self._known)] = self._tokens[tokens.ids].sum(axis=0) / max(1, len(tokens.ids)) ** 0.5
            self._known[word] = len(self._known)


def _load_tokenizer() -> Any:
    try:
        from tokenizers import Tokenizer
    except ImportError as problem:
        raise MissingExtraError("tokenizers", "local", "the static embedder") from problem
    made = Tokenizer.from_file(str(find_weights() / "tokenizer.json"))
    made.no_truncation()
    made.no_padding()
    return made


def _load_vectors(file: Path) -> NDArray[np.float32]:
    """Return the tokens' vectors, distilling them if the file is missing. Raises SourceError where it is damaged."""
    try:
        if not file.is_file():
            file.parent.mkdir(parents=True, exist_ok=True)
            fresh = file.with_name(f".{file.name}.{os.getpid()}")
            written = io.BytesIO()
            np.save(written, distill_vectors().astype(np.float16))
            fresh.write_bytes(written.getvalue() + _checksum(written.getvalue()))
            fresh.replace(file)
        content = file.read_bytes()
        if _checksum(content[:-_SUM_BYTES]) != content[-_SUM_BYTES:]:
            raise ValueError("it is damaged")
        tokens: NDArray[np.float32] = np.load(io.BytesIO(content), allow_pickle=False).astype(np.float32)
        return tokens
    except (OSError, ValueError) as error:
        raise SourceError(f"cannot use {file}: {error}; delete it, or name another ALMANAQ_CACHE_DIR") from error


def _checksum(content: bytes) -> bytes:
    return zlib.crc32(content).to_bytes(_SUM_BYTES, "little")


def distill_vectors() -> NDArray[np.float32]:
    """Return a vector for each token of the vocabulary, shape (tokens, dimensions), scaled by the token's weight."""
    vectors = _embed_tokens()
    centred = vectors - vectors.mean(axis=0)
    variances, axes = np.linalg.eigh(centred.T @ centred / len(centred))
    main = slice(None, -DIMENSIONS - 1, -1)  # the largest come last
    reduced = centred @ axes[:, main] / np.sqrt(variances[main])
    weighed: NDArray[np.float32] = (reduced * _zipf_weights(len(reduced))[:, None]).astype(np.float32)
    return weighed


def _zipf_weights(tokens: int) -> NDArray[np.float64]:
    """Return the weight of each token, its frequency estimated from its rank by Zipf's law."""
    numbers = np.arange(tokens)
    rank = np.where(numbers >= _FIRST_WORD, numbers - _FIRST_WORD + 1, np.where(numbers >= _FIRST_SIGN, 200, tokens))
    probability = 1 / rank / (1 / rank).sum()
    weights: NDArray[np.float64] = _FREQUENCY_SCALE / (_FREQUENCY_SCALE + probability)
    return weights


def _embed_tokens() -> NDArray[np.float64]:
    """Return the model's vector of each token alone: the mean over it and the special tokens around it."""
    tokenizer = _load_tokenizer()
    first, last = (tokenizer.token_to_id(mark) for mark in ("[CLS]", "[SEP]"))
    model = load_minilm(precise=True)
    return model.pool_tokens([(first, token, last) for token in range(tokenizer.get_vocab_size())]).astype(np.float64)
