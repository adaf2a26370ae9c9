"""The learned score over an index on disk: its best tables by words and vectors, ranked anew by what they hold.

As `rerank`, with what an index keeps: the streams of its tables, and one vector of each or none. Streams of the
candidates alone are read, and get numbers of their own, as each segment counts its terms by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from almanaq.models.embedders.vector_store import Vectors
from almanaq.retrieval.abstain import Found
from almanaq.retrieval.features import Featurizer
from almanaq.retrieval.protocols import Hit, Ranking
from almanaq.retrieval.pruning import best_tables
from almanaq.retrieval.ranking import Scores, check_k, top_k
from almanaq.retrieval.rerank import CANDIDATES, SCALE, Scored, Weighed, fused, judged
from almanaq.retrieval.segments import Named, term_hash
from almanaq.retrieval.sibling_tables import Databases, group_by_database
from almanaq.retrieval.stored import StoredIndex
from almanaq.retrieval.stored_hybrid import StoredHybrid, standardized_words
from almanaq.retrieval.streams import TermStreams
from almanaq.retrieval.weights import Sight, Styles, choose_weights


@dataclass(frozen=True)
class StoredRerank:
    """An opened index that is searched by words, and by vectors where `dense` is given, then ranked anew.

    Args:
        candidates: how many tables are ranked anew; those behind them keep the order of the search before.
        own: weights in the place of the learned ones that suit the index.
    """

    index: StoredIndex
    dense: StoredHybrid | None = None
    candidates: int = CANDIDATES
    own: Styles | None = None

    def search(self, questions: Sequence[str], k: int) -> list[Ranking]:
        """Return for each question the k tables of the highest score; none where the question is without words."""
        return [found.ranking for found in self.find(questions, k)]

    def find(self, questions: Sequence[str], k: int) -> list[Found]:
        """Return the rankings, and whether their best tables answer."""
        return [found for found, _ in self._best(questions, k)]

    def best(self, question: str, k: int) -> tuple[Found, list[Named]]:
        """Return the ranking of a question, whether its best table answers, and what is shown of each."""
        return self._best([question], k)[0]

    def _best(self, questions: Sequence[str], k: int) -> list[tuple[Found, list[Named]]]:
        check_k(k)
        best = []
        for scored, rest in self.scored(questions, k):
            if not len(scored.tables):
                best.append((Found((), 0.0, fits=False), list[Named]()))
                continue
            named = [self.index.named(int(place)) for place in (*scored.tables, *rest)][:k]
            # Those not ranked anew follow in the order they came in, below the last.
            behind = float(scored.scores[-1]) - 1.0 - np.arange(len(rest))
            scores = map(float, (*scored.scores, *behind))
            ranking = tuple(Hit(each.id, score) for each, score in zip(named, scores, strict=False))
            found = judged(ranking, scored, self.weights.of(scored.question), len(self.index))
            best.append((found, named))
        return best

    @cached_property
    def weights(self) -> Styles:
        """The learned weights that suit the index, or its own."""
        if self.own:
            return self.own
        sight: Sight = "stored" if self.dense else "stored-words"
        return choose_weights(self.index.recipe.fields, several=self.index.several, sight=sight)

    def scored(self, questions: Sequence[str], k: int = 1) -> Iterator[tuple[Scored, NDArray[np.intp]]]:
        """Yield for each question its candidates by place with all that is known, and those behind them up to k."""
        vectors = self.dense.vectors(questions) if self.dense and questions else [None] * len(questions)
        for question, vector in zip(questions, vectors, strict=True):
            places, own = self._searched(question, vector, k)
            databases = self._databases(places)
            own["company"] = databases.pooled(fused(own)[None])[0]
            order = top_k(fused(own), max(k, self.candidates)) if question.strip() else np.zeros(0, np.intp)
            chosen, rest = order[: self.candidates], order[self.candidates :]
            weights = self.weights.of(question)
            streams = candidate_streams(
                self.index, places[chosen], question, weights.association.named if weights.association else ()
            )
            among = Databases(databases.of[chosen], databases.order, databases.starts)
            weighed = Weighed(weights, Featurizer(streams), among)
            found = weighed.scored(question, np.arange(len(chosen)), {name: own[name][chosen] for name in own})
            yield replace(found, tables=places[chosen][found.tables]), places[rest]

    def _searched(self, question: str, vector: Vectors | None, k: int) -> tuple[NDArray[np.intp], dict[str, Scores]]:
        """Return places in order, and their scores by search."""
        if self.dense is not None and vector is not None:
            found = self.dense.candidates(question, vector, k)
            own = {"bm25": found.words / SCALE, "dense": found.dense / SCALE, "cosine": found.cosines}
            return found.places, own
        terms = self.index.terms(question)
        places, _ = best_tables(terms, self.index.size, max(k, self.candidates), self.index.gone())
        places = np.sort(places)
        return places, {"bm25": standardized_words(terms, places, self.index.size) / SCALE}

    def _databases(self, places: NDArray[np.intp]) -> Databases:
        """Return the databases of some places; those of an index of one database are not looked up."""
        if not self.index.several:
            return Databases(np.zeros(len(places), np.intp), np.arange(len(places)), np.array([0, len(places)]))
        return group_by_database([self.index.named(int(place)).id for place in places])


def candidate_streams(
    index: StoredIndex, places: NDArray[np.intp], question: str, more: tuple[str, ...] = ()
) -> TermStreams:
    """Return the streams of some tables, with the rarity that their terms and the question's have in the whole index.

    The question's terms, and `more`, are named.
    """
    bases = index.bases()
    numbers = np.searchsorted(bases, places, side="right") - 1
    parts = [index.segments[n].stream(int(place - bases[n])) for n, place in zip(numbers, places, strict=True)]
    lengths = [len(part) for part in parts]
    tokens = np.concatenate([np.zeros(0, np.int32), *parts])
    real = tokens >= 0
    owners = np.repeat(numbers, lengths)[real]
    asked = list(dict.fromkeys(index.analyzer.terms(question)))
    hashes = np.zeros(len(owners) + len(asked) + len(more), dtype=np.uint64)
    hashes[len(owners) :] = [*map(term_hash, asked), *_hashes(more)]
    for number in np.unique(owners):
        own = np.flatnonzero(owners == number)
        hashes[own] = index.segments[number].terms.at(tokens[real][own])
    distinct, numbered = np.unique(hashes, return_inverse=True)
    held = np.sum([segment.held(distinct) for segment in index.segments], axis=0)
    tokens[real] = numbered[: len(owners)]
    terms = {term: int(n) for term, n in zip((*asked, *more), numbered[len(owners) :], strict=True) if held[n]}
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return TermStreams(index.size, terms, starts, tokens, held.astype(np.int32), index.analyzer)


@lru_cache(maxsize=4)
def _hashes(terms: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(map(term_hash, terms))
