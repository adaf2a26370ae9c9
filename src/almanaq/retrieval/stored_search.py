"""Search of an index on disk by words and vectors, and the learned reranker over it.

Word and vector scores are taken in standard deviations above their means and summed. Neither needs the score of every
table: mean and spread of word scores follow from sums in the index, those of cosines from a sample. Up to EXACT tables
all cosines are computed; above it those of the best by words, and of the nearest by codes where the index has codes.

The reranker works as `rerank`, with what an index stores: term streams, and one vector per table or none. Only streams
of candidates are read, and renumbered, as each segment numbers its terms by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from almanaq.models.embedders.vector_store import Vectors, VectorStore
from almanaq.models.protocols import Embedder
from almanaq.retrieval.bm25 import Term, best_tables
from almanaq.retrieval.features import Featurizer, TermStreams
from almanaq.retrieval.protocols import (
    Databases,
    Hit,
    JudgedRanking,
    Ranking,
    Scores,
    check_k,
    group_by_database,
    top_k,
)
from almanaq.retrieval.rerank import (
    CANDIDATES,
    SCALE,
    ScoredCandidates,
    Sight,
    Styles,
    choose_weights,
    fuse_scores,
    rank_candidates,
    score_by_features,
)
from almanaq.retrieval.segments import TableEntry, term_hash
from almanaq.retrieval.stored import StoredIndex

EXACT = 200_000  # tables up to which a question is compared with every vector: 0.2 GB of memory, some 20 ms
_CHUNK = 65_536
_PROPOSED = 300  # candidates by words, and by vectors up to EXACT tables; above it, each costs a read from disk
_SAMPLE_TABLES = 2_048
_RESCORED = 30  # tables rescored by their vectors per requested neighbour, where the recall of codes is measured


@dataclass(frozen=True)
class StoredVectors:
    """The vectors of an opened index; up to `exact` tables, all stay in memory once read."""

    index: StoredIndex
    exact: int = 0

    @property
    def coded(self) -> bool:
        return self.index.recipe.vectors.code_type is not None

    def at(self, places: NDArray[np.intp]) -> Vectors:
        """Return the vectors at some places, given in order, in single precision."""
        cuts = np.searchsorted(places, self.index.bases()[1:])
        parts = zip(np.split(places, cuts), self.index.bases(), self.index.segments, strict=True)
        found = [segment.vectors.at(part - base) for part, base, segment in parts if segment.vectors is not None]
        return np.concatenate(found).astype(np.float32)

    def cosines(self, vector: Vectors) -> Scores:
        """Return the cosine of every table, in chunks above `exact`; a matrix has one question per column."""
        if self.index.size <= self.exact:
            cosines: Scores = self._matrix @ vector
            return cosines
        every = np.arange(self.index.size)
        starts = range(0, self.index.size, _CHUNK)
        return np.concatenate([self.at(every[start : start + _CHUNK]) @ vector for start in starts])

    def nearest(self, vector: Vectors, count: int) -> NDArray[np.intp]:
        """Return the sorted positions of the `count` nearest tables, by codes first, then rescored by vectors."""
        precision, found = self.index.recipe.vectors, []
        for base, segment in zip(self.index.bases(), self.index.segments, strict=True):
            if segment.codes is not None:
                codes = segment.codes.all()
                found.append(base + precision.nearest(codes, vector, min(count * precision.spare, len(codes))))
        places = np.setdiff1d(np.concatenate(found), self.index.dead_places())
        return np.sort(places[top_k(self.at(places) @ vector, count)])

    @cached_property
    def _matrix(self) -> Vectors:
        return self.at(np.arange(self.index.size))


def recall_of_codes(index: StoredIndex) -> float:
    """Return the share of the nearest 10 neighbours of evenly sampled 100 tables that codes find."""
    asked, nearest = 100, 10
    stored, live = StoredVectors(index), np.setdiff1d(np.arange(index.size), index.dead_places())
    questions = live[:: max(1, len(live) // asked)][:asked]
    vectors = stored.at(questions)
    cosines = stored.cosines(vectors.T)
    cosines[index.dead_places()] = -np.inf
    found = wanted = 0
    for number, place in enumerate(questions):
        own = cosines[:, number].copy()
        own[place] = -np.inf
        right = top_k(own, min(nearest, len(live) - 1))
        near = stored.nearest(vectors[number], nearest * _RESCORED)
        found += int((own[near][:, None] == own[right][None]).any(axis=0).sum())
        wanted += len(right)
    return found / max(1, wanted)


@dataclass(frozen=True)
class StoredHybrid:
    """An opened index with vectors, and their embedder."""

    index: StoredIndex
    embedder: Embedder
    exact: int = EXACT  # tables up to which all cosines are computed

    def search(self, questions: Sequence[str], k: int) -> list[Ranking]:
        return [tuple(Hit(named.id, score) for named, score in self.best(question, k)) for question in questions]

    def best(self, question: str, k: int) -> list[tuple[TableEntry, float]]:
        """Return the k tables with the highest fused scores, best first."""
        check_k(k)
        places, words, dense, _ = self.candidates(question, k)
        scores = words + dense
        return [(self.index.entry(int(places[place])), float(scores[place])) for place in top_k(scores, k)]

    def candidates(self, question: str, k: int) -> tuple[NDArray[np.intp], Scores, Scores, Scores]:
        """Return the sorted positions of k or _PROPOSED tables: their standardized word and vector scores, cosines."""
        (vector,) = VectorStore(None, self.embedder).question_vectors([question])
        terms, dead = self.index.terms(question), self.index.dead_places()
        places = np.sort(best_tables(terms, self.index.size, max(k, _PROPOSED), dead)[0])
        if not self._vectors.coded and (self.index.size <= self.exact or not len(places)):
            every = self._vectors.cosines(vector)
            every[dead] = -np.inf
            places = np.union1d(places, top_k(every, max(k, _PROPOSED)))
            cosines = every[places]
        else:
            if self._vectors.coded:
                places = np.union1d(places, self._vectors.nearest(vector, max(k, _PROPOSED)))
            cosines = self._vectors.at(places) @ vector
        sample = self._sample @ vector
        dense = (cosines - sample.mean()) / max(float(sample.std()), 1e-6)
        return places, standardize_words(terms, places, self.index.size), dense, cosines

    @cached_property
    def _sample(self) -> Vectors:
        """The vectors of evenly sampled tables, from which mean and spread of cosines are estimated."""
        step = max(1, self.index.size // _SAMPLE_TABLES)
        return self._vectors.at(np.arange(0, self.index.size, step))

    @cached_property
    def _vectors(self) -> StoredVectors:
        return StoredVectors(self.index, self.exact)


def standardize_words(terms: Sequence[Term], places: NDArray[np.intp], size: int) -> Scores:
    """Return word scores at sorted positions, in deviations above their mean; words count as independent."""
    means = np.array([term.worth * sum(part.total for part in term.parts) / size for term in terms])
    squares = np.array([term.worth**2 * sum(part.squares for part in term.parts) / size for term in terms])
    spread = float(np.sqrt(max(0.0, (squares - means**2).sum())))
    scores = np.zeros(len(places), dtype=np.float32)
    for term in sorted(terms, key=lambda term: -term.worth):
        term.add_to(scores, places)
    return (scores - np.float32(means.sum())) / np.float32(spread if spread > 1e-6 else 1.0)


@dataclass(frozen=True)
class StoredRerank:
    """An opened index, searched by words, and by vectors if `dense` is given, then reranked."""

    index: StoredIndex
    dense: StoredHybrid | None = None
    candidates: int = CANDIDATES
    own: Styles | None = None  # weights that replace the learned ones

    def search(self, questions: Sequence[str], k: int) -> list[Ranking]:
        return [found.ranking for found in self.find(questions, k)]

    def find(self, questions: Sequence[str], k: int) -> list[JudgedRanking]:
        return [self.best(question, k)[0] for question in questions]

    def best(self, question: str, k: int) -> tuple[JudgedRanking, list[TableEntry]]:
        """Return the ranking of a question, none for one without words, and the entries of its tables."""
        check_k(k)
        scored, rest = self.score_candidates(question, k)
        named = [self.index.entry(int(place)) for place in (*scored.tables, *rest)][:k]
        found = rank_candidates([each.id for each in named], scored, self.weights.of(question), len(self.index))
        return found, named

    @cached_property
    def weights(self) -> Styles:
        sight: Sight = "stored" if self.dense else "stored-words"
        return self.own or choose_weights(self.index.recipe.fields, several=self.index.several, sight=sight)

    def score_candidates(self, question: str, k: int = 1) -> tuple[ScoredCandidates, NDArray[np.intp]]:
        """Return the scored candidates of a question, by position, and the tables behind them up to k."""
        if self.dense is not None:
            places, words, dense, cosines = self.dense.candidates(question, k)
            own = {"bm25": words / SCALE, "dense": dense / SCALE, "cosine": cosines}
        else:
            terms = self.index.terms(question)
            most = max(k, self.candidates)
            places = np.sort(best_tables(terms, self.index.size, most, self.index.dead_places())[0])
            own = {"bm25": standardize_words(terms, places, self.index.size) / SCALE}
        if self.index.several:
            databases = group_by_database([self.index.entry(int(place)).id for place in places])
        else:
            databases = Databases(np.zeros(len(places), np.intp), np.arange(len(places)), np.array([0, len(places)]))
        own["company"] = databases.pool(fuse_scores(own)[None])[0]
        order = top_k(fuse_scores(own), max(k, self.candidates)) if question.strip() else np.zeros(0, np.intp)
        chosen, rest = order[: self.candidates], order[self.candidates :]
        weights = self.weights.of(question)
        named = weights.association.named if weights.association else ()
        streams = candidate_streams(self.index, places[chosen], question, named)
        among = Databases(databases.of[chosen], databases.order, databases.starts)
        theirs = {name: scores[chosen] for name, scores in own.items()}
        scored = score_by_features(question, np.arange(len(chosen)), theirs, weights, Featurizer(streams), among)
        return replace(scored, tables=places[chosen][scored.tables]), places[rest]


def candidate_streams(
    index: StoredIndex, places: NDArray[np.intp], question: str, more: tuple[str, ...] = ()
) -> TermStreams:
    """Return the streams of some tables; `terms` names those of the question and `more`, others have only numbers."""
    bases = index.bases()
    numbers = np.searchsorted(bases, places, side="right") - 1
    parts = [index.segments[n].stream(int(place - bases[n])) for n, place in zip(numbers, places, strict=True)]
    lengths = [len(part) for part in parts]
    tokens = np.concatenate([np.zeros(0, np.int32), *parts])
    real = tokens >= 0
    owners = np.repeat(numbers, lengths)[real]
    asked = list(dict.fromkeys(index.analyzer.terms(question)))
    hashes = np.zeros(len(owners) + len(asked) + len(more), dtype=np.uint64)
    hashes[len(owners) :] = [*map(term_hash, asked), *_hash_terms(more)]
    for number in np.unique(owners):
        own = np.flatnonzero(owners == number)
        hashes[own] = index.segments[number].terms.at(tokens[real][own])
    distinct, numbered = np.unique(hashes, return_inverse=True)
    held = np.sum([segment.document_frequencies(distinct) for segment in index.segments], axis=0)
    tokens[real] = numbered[: len(owners)]
    terms = {term: int(n) for term, n in zip((*asked, *more), numbered[len(owners) :], strict=True) if held[n]}
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return TermStreams(index.size, terms, starts, tokens, held.astype(np.int32), index.analyzer)


@lru_cache(maxsize=4)
def _hash_terms(terms: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(map(term_hash, terms))
