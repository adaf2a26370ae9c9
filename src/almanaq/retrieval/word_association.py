"""What questions ask for and what columns are called: `who` goes with `player`, `released` with `album`.

Two vectors of words, learned with the weights: of the common words of questions, and of the common words of column
names. How well a question and a header go together is the product of the sums of their words' vectors.
The vectors are kept as whole numbers, each direction with its scale.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from io import BytesIO

import numpy as np
from numpy.typing import NDArray

from almanaq.text.index_terms import Analyzer, words

ASKING = frozenset("who whom whose when where which what why how".split())
"""Words that terms leave out, and that tell what is asked for."""


@dataclass(frozen=True, eq=False)
class WordAssociation:
    """Vectors of words: row `asked[word]` of `asking` for a question's, row `named[word]` of `naming` for a header's.

    Attributes:
        named: the words of column names, in the order of `naming`.
    """

    asked: Mapping[str, int]
    named: tuple[str, ...]
    asking: NDArray[np.float32]
    naming: NDArray[np.float32]

    def scores(self, question: Iterable[str], headers: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Return how well a question of these words goes with tables.

        Args:
            headers: which words of `named` the header of each table has, shape (tables, words).
        """
        rows = [self.asked[word] for word in question if word in self.asked]
        tables = (headers @ self.naming) / np.sqrt(np.maximum(headers.sum(axis=1, keepdims=True), 1))
        made: NDArray[np.float32] = (tables @ self.asking[rows].sum(axis=0)) / np.sqrt(max(len(rows), 1))
        return made


def asked_words(question: str, analyzer: Analyzer) -> set[str]:
    """Return the words of a question that may be known: its terms, and those that tell what is asked for."""
    return set(analyzer.terms(question)) | ASKING.intersection(words(question))


def word_association(*, statements: bool) -> WordAssociation:
    """Return the learned vectors, for questions or for statements that are to be checked."""
    style, arrays = ("statements" if statements else "questions"), _learned()
    asked = {word.decode(): row for row, word in enumerate(arrays["asked"].tolist())}
    named = tuple(word.decode() for word in arrays["named"].tolist())
    return WordAssociation(asked, named, *(_vectors(f"{style}_{side}") for side in ("asking", "naming")))


def _vectors(name: str) -> NDArray[np.float32]:
    arrays = _learned()
    made: NDArray[np.float32] = arrays[name].astype(np.float32) * arrays[f"{name}_scale"].astype(np.float32)
    return made


@lru_cache(maxsize=1)
def _learned() -> Mapping[str, NDArray[np.generic]]:
    kept = files("almanaq.retrieval").joinpath("word_association.npz").read_bytes()
    with np.load(BytesIO(kept), allow_pickle=False) as arrays:
        return dict(arrays)
