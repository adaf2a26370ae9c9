"""StaticEmbedder: a vector per word, distilled from all-MiniLM-L6-v2 on the spot; a text is the sum of its words.

After model2vec (Tulkens and van Dongen, 2024): every token of the vocabulary goes through the model alone, the vectors
are reduced to their principal components, and frequent tokens are weighed down. What words mean together is lost, what
each means is kept, and thousands of texts are embedded in a second. Unlike there, components are brought to one
variance, and words count less the later they stand, as a table's text begins with its title (docs/decisions/0011).
"""

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
from almanaq.models.embedding import SymmetricEmbedder
from almanaq.models.local_embedder import load_minilm
from almanaq.models.minilm_weights import WEIGHTS_SHA256, checked_folder
from almanaq.models.vectors import normalised

DIMENSIONS = 256
_FILE = f"static-words-{WEIGHTS_SHA256[:8]}-{DIMENSIONS}-summed.npy"
"""Vectors that are made in another way need another name of the file, and of the embedder."""

_FREQUENT = 1e-4
"""A token of probability p weighs `_FREQUENT / (_FREQUENT + p)` (Arora et al., 2017)."""

_FIRST_WORD, _FIRST_SIGN = 1996, 999
"""The vocabulary holds marks, then single signs, then words and parts of words, frequent ones first."""

_EARLY = 20.0
"""The word after i others weighs `1 / (1 + i / _EARLY)`."""

_WORD = re.compile(r"\w+")
_KNOWN = 100_000  # words whose vectors are at hand: 100 MB
_TEXTS = 64  # summed at once: in the cache of a processor
_SUM_BYTES = 4


class StaticEmbedder(SymmetricEmbedder):
    """An Embedder of summed word vectors. They are distilled at the first use ever: some ten seconds of a processor.

    Args:
        folder: where the distilled vectors are kept: 16 MB.
    """

    name = "static"
    cheap = True  # embedding a text again costs no more than looking its vector up

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
                self._tokenizer, self._tokens = _tokenizer(), _kept(self._file)
            for start in range(0, len(texts), _TEXTS):
                part = slice(start, start + _TEXTS)
                made[part] = self._sums([_WORD.findall(text.lower()) for text in texts[part]])
        return normalised(made)

    def _sums(self, texts: Sequence[Sequence[str]]) -> NDArray[np.float32]:
        self._learn({word for words in texts for word in words})
        sums = np.zeros((len(texts), DIMENSIONS), np.float32)
        weights = 1 / (1 + np.arange(max(map(len, texts)), dtype=np.float32) / _EARLY)
        for row, words in zip(sums, texts, strict=True):
            if words:
                row[:] = weights[: len(words)] @ self._words[[self._known[word] for word in words]]
        return sums

    def _learn(self, words: Iterable[str]) -> None:
        """Have the vectors of words at hand: the sums of those of their tokens, by the root of their number."""
        unknown = [word for word in words if word not in self._known]
        if len(self._known) + len(unknown) > len(self._words):
            self._known.clear()
            unknown = list(words)
            self._words = np.zeros((max(_KNOWN, len(unknown)), DIMENSIONS), np.float32)
        for word, tokens in zip(unknown, self._tokenizer.encode_batch(unknown, add_special_tokens=False), strict=True):
            self._words[len(self._known)] = self._tokens[tokens.ids].sum(axis=0) / max(1, len(tokens.ids)) ** 0.5
            self._known[word] = len(self._known)


def _tokenizer() -> Any:
    try:
        from tokenizers import Tokenizer
    except ImportError as problem:
        raise MissingExtraError("tokenizers", "local", "the static embedder") from problem
    made = Tokenizer.from_file(str(checked_folder() / "tokenizer.json"))
    made.no_truncation()
    made.no_padding()
    return made


def _kept(file: Path) -> NDArray[np.float32]:
    """Return the tokens' vectors, distilled if the file is not there. Raises SourceError where it is damaged."""
    try:
        if not file.is_file():
            file.parent.mkdir(parents=True, exist_ok=True)
            fresh = file.with_name(f".{file.name}.{os.getpid()}")
            written = io.BytesIO()
            np.save(written, distil().astype(np.float16))
            fresh.write_bytes(written.getvalue() + _sum(written.getvalue()))
            fresh.replace(file)
        content = file.read_bytes()
        if _sum(content[:-_SUM_BYTES]) != content[-_SUM_BYTES:]:
            raise ValueError("it is damaged")
        tokens: NDArray[np.float32] = np.load(io.BytesIO(content), allow_pickle=False).astype(np.float32)
        return tokens
    except (OSError, ValueError) as error:
        raise SourceError(f"cannot use {file}: {error}; delete it, or name another ALMANAQ_CACHE_DIR") from error


def _sum(content: bytes) -> bytes:
    return zlib.crc32(content).to_bytes(_SUM_BYTES, "little")


def distil() -> NDArray[np.float32]:
    """Return a vector for each token of the vocabulary, shape (tokens, dimensions), scaled by the token's weight."""
    vectors = _alone()
    centred = vectors - vectors.mean(axis=0)
    variances, axes = np.linalg.eigh(centred.T @ centred / len(centred))
    main = slice(None, -DIMENSIONS - 1, -1)  # the largest come last
    reduced = centred @ axes[:, main] / np.sqrt(variances[main])
    weighed: NDArray[np.float32] = (reduced * _weights(len(reduced))[:, None]).astype(np.float32)
    return weighed


def _weights(tokens: int) -> NDArray[np.float64]:
    """Return what each token of the vocabulary weighs, its frequency being by its number as the law of Zipf has it."""
    numbers = np.arange(tokens)
    rank = np.where(numbers >= _FIRST_WORD, numbers - _FIRST_WORD + 1, np.where(numbers >= _FIRST_SIGN, 200, tokens))
    probability = 1 / rank / (1 / rank).sum()
    weights: NDArray[np.float64] = _FREQUENT / (_FREQUENT + probability)
    return weights


def _alone() -> NDArray[np.float64]:
    """Return the model's vector for every token by itself: the mean over it and the marks around it."""
    tokenizer = _tokenizer()
    first, last = (tokenizer.token_to_id(mark) for mark in ("[CLS]", "[SEP]"))
    model = load_minilm(precise=True)
    return model.pooled([(first, token, last) for token in range(tokenizer.get_vocab_size())]).astype(np.float64)
