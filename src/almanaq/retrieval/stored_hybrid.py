"""Words and vectors of an index on disk in one score, at any size.

Both scores are taken in standard deviations above their means and summed. Neither needs a score of every
table: the mean and spread of the words' scores follow from sums that the index holds, those of the cosines from a
sample. Up to EXACT tables all cosines are computed, above it those of the best by words, and of the nearest by codes
where the index has these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from almanaq.models.embedders.vector_store import Vectors, VectorStore
from almanaq.models.protocols import Embedder
from almanaq.retrieval.protocols import Hit, Ranking
from almanaq.retrieval.pruning import Term, best_tables, score_tables
from almanaq.retrieval.ranking import Scores, check_k, top_k
from almanaq.retrieval.segments import Named
from almanaq.retrieval.stored import StoredIndex
from almanaq.retrieval.stored_vectors import StoredVectors

EXACT = 200_000
"""Tables up to which a question is compared with every vector: a fifth of a gigabyte of memory, some 20 ms."""

CANDIDATES = 300
"""Tables that the words propose, up to EXACT the vectors too; above it each costs a look into the disk's cache."""
_SAMPLE = 2_048


@dataclass(frozen=True, slots=True)
class Candidates:
    """Places of tables, in order, with their scores by words and by vectors in standard deviations, and cosines."""

    places: NDArray[np.intp]
    words: Scores
    dense: Scores
    cosines: Scores


@dataclass(frozen=True)
class StoredHybrid:
    """An opened index with vectors, and the embedder that they are of.

    Args:
        weight: the worth of the dense score beside the words' 1.
        exact: tables up to which all cosines are computed.
    """

    index: StoredIndex
    embedder: Embedder
    weight: float = 1.0
    exact: int = EXACT

    def search(self, questions: Sequence[str], k: int) -> list[Ranking]:
        """Return for each question the k tables of the highest fused score; the questions are embedded together."""
        return [tuple(Hit(named.id, score) for named, score in found) for found in self._best(questions, k)]

    def best(self, question: str, k: int) -> list[tuple[Named, float]]:
        """Return the k best tables with what is shown of them, best first."""
        return self._best([question], k)[0]

    def _best(self, questions: Sequence[str], k: int) -> list[list[tuple[Named, float]]]:
        check_k(k)
        best = []
        for question, vector in zip(questions, self.vectors(questions), strict=True):
            found = self.candidates(question, vector, k)
            scores = found.words + self.weight * found.dense
            ranked = top_k(scores, k)
            best.append([(self.index.named(int(found.places[place])), float(scores[place])) for place in ranked])
        return best

    def vectors(self, questions: Sequence[str]) -> Vectors:
        """Embed questions, all at once."""
        return VectorStore(None, self.embedder).question_vectors(questions)

    def candidates(self, question: str, vector: Vectors, k: int) -> Candidates:
        """Return at least k tables, and CANDIDATES, where there are as many, with their scores
        in standard deviations.
        """
        terms = self.index.terms(question)
        places, _ = best_tables(terms, self.index.size, max(k, CANDIDATES), self.index.gone())
        if self._vectors.coded:
            places = np.union1d(places, self._vectors.nearest(vector, max(k, CANDIDATES)))
            cosines = self._vectors.at(places) @ vector
        elif self.index.size <= self.exact or not len(places):
            cosines = self._vectors.cosines(vector)
            cosines[self.index.gone()] = -np.inf
            places = np.union1d(places, top_k(cosines, max(k, CANDIDATES)))
            cosines = cosines[places]
        else:
            places = np.sort(places)
            cosines = self._vectors.at(places) @ vector
        sample = self._sample @ vector
        dense = (cosines - sample.mean()) / max(float(sample.std()), 1e-6)
        return Candidates(places, standardized_words(terms, places, self.index.size), dense, cosines)

    @cached_property
    def _sample(self) -> Vectors:
        """The vectors of some tables, spread over all: what cosines are measured against."""
        step = max(1, self.index.size // _SAMPLE)
        return self._vectors.at(np.arange(0, self.index.size, step))

    @cached_property
    def _vectors(self) -> StoredVectors:
        return StoredVectors(self.index, self.exact)


def standardized_words(terms: Sequence[Term], places: NDArray[np.intp], size: int) -> Scores:
    """Return the words' scores of some places, given in order, in standard deviations above the mean of all tables.

    Words are taken as independent.
    """
    means = np.array([term.worth * sum(part.total for part in term.parts) / size for term in terms])
    squares = np.array([term.worth**2 * sum(part.squares for part in term.parts) / size for term in terms])
    spread = float(np.sqrt(max(0.0, (squares - means**2).sum())))
    scores = score_tables(terms, places)
    return (scores - np.float32(means.sum())) / np.float32(spread if spread > 1e-6 else 1.0)
