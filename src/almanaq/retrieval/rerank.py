"""The best candidates of a search by words and by meaning, ranked anew by what they have in common with the question.

A linear score over the figures of `features` and the standardized scores of the searches. Its few weights are
learned (see `weights`): one set for tables with titles, one for tables without, one for the schemas of databases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from almanaq.corpus.serialize import Field, parse_fields
from almanaq.corpus.table import Corpus, TableId
from almanaq.retrieval.aspects import Aspects, AspectsIndex
from almanaq.retrieval.bm25 import BM25, BM25Index
from almanaq.retrieval.company import Databases, group_by_database
from almanaq.retrieval.features import FEATURES, Featurizer
from almanaq.retrieval.hybrid import standardized
from almanaq.retrieval.protocols import Hit, Ranking
from almanaq.retrieval.ranking import BATCH, Scores, check_k, top_k
from almanaq.retrieval.streams import StreamWriter
from almanaq.retrieval.weights import Weights, choose_weights

CANDIDATES = 100
"""Tables ranked anew; those behind them keep the order of the search before."""

SCALE = 10.0
"""Standardized scores are divided by it, so that their weights are of the size of the features' weights."""

_SHARPNESS = 0.5  # of the sum over a database's tables: between their best score alone and their number


@dataclass(frozen=True)
class Rerank:
    """Makes indexes that search by words, and by meaning where `aspects` is given, then rank the best anew.

    Args:
        weights: of the linear score; None takes the learned set that suits the corpus and the fields.
        candidates: how many tables are ranked anew.
    """

    lexical: BM25 = field(default_factory=BM25)
    aspects: Aspects | None = None
    weights: Weights | None = None
    candidates: int = CANDIDATES
    name: str = "rerank"

    def index(self, corpus: Corpus, fields: Sequence[str]) -> RerankIndex:
        """Index a corpus by words, by meaning and as term streams. Raises as BM25 and Dense do."""
        chosen = parse_fields(fields)
        lexical = self.lexical.index(corpus, chosen)
        titles = self.lexical.index(corpus, [Field.TITLE]) if Field.TITLE in chosen else None
        aspects = self.aspects.index(corpus, chosen) if self.aspects is not None else None
        writer = StreamWriter(chosen, lexical.analyzer)
        for table in corpus:
            writer.add(table)
        databases = group_by_database(lexical.ids)
        several = len(databases.starts) > 2
        weights = self.weights or choose_weights(chosen, several=several, meaning=aspects is not None)
        searches = _Searches(lexical, titles, aspects, databases)
        return RerankIndex(searches, Featurizer(writer.finish()), weights, self.candidates)


@dataclass(frozen=True)
class _Searches:
    """The searches before: each gives a score to every table."""

    lexical: BM25Index
    titles: BM25Index | None
    aspects: AspectsIndex | None
    databases: Databases

    def scores(self, questions: Sequence[str]) -> dict[str, Scores]:
        """Give standardized scores by name, each of shape (questions, tables)."""
        found = {"bm25": self.lexical.sums(questions)}
        if self.titles is not None:
            found["bm25_title"] = self.titles.sums(questions)
        if self.aspects is not None:
            found |= self.aspects.scores(questions)
        standard = {name: standardized(scores) / SCALE for name, scores in found.items()}
        standard["company"] = self.databases.pooled(fused(standard))
        return standard


@dataclass(frozen=True)
class RerankIndex:
    """The searches of one corpus, and what ranking anew needs."""

    searches: _Searches
    featurizer: Featurizer
    weights: Weights
    candidates: int

    @property
    def ids(self) -> Sequence[TableId]:
        return self.searches.lexical.ids

    def search(self, questions: Sequence[str], k: int) -> list[Ranking]:
        """Give for each question the k tables of the highest score; none where the question is without words."""
        check_k(k)
        rankings: list[Ranking] = []
        for start in range(0, len(questions), BATCH):
            batch = questions[start : start + BATCH]
            scores = self.searches.scores(batch)
            first = fused(scores)
            for row, question in enumerate(batch):
                own = {name: each[row] for name, each in scores.items()}
                rankings.append(self._ranking(question, own, first[row], k))
        return rankings

    def candidates_of(self, first: NDArray[np.float32], k: int = 1) -> NDArray[np.intp]:
        """Give the candidates by the fused score of the searches before."""
        return top_k(first, max(k, self.candidates))

    def _ranking(self, question: str, own: dict[str, NDArray[np.float32]], first: Scores, k: int) -> Ranking:
        if not question.strip():
            return ()
        chosen = self.candidates_of(first, k)
        inner, rest = chosen[: self.candidates], chosen[self.candidates :]
        anew = self._scores(question, own, inner)
        order = np.lexsort((inner, -anew))
        hits = [Hit(self.ids[inner[place]], float(anew[place])) for place in order]
        # Those not ranked anew follow in the order they came in, below the last.
        floor = hits[-1].score if hits else 0.0
        hits.extend(Hit(self.ids[table], floor - 1.0 - rank) for rank, table in enumerate(rest))
        return tuple(hits[:k])

    def _scores(self, question: str, own: dict[str, NDArray[np.float32]], tables: NDArray[np.intp]) -> Scores:
        worth = self.weights.worth
        features = self.featurizer.features(question, [int(table) for table in tables])
        scores = features @ np.array([worth.get(name, 0.0) for name in FEATURES], dtype=np.float32)
        for name, each in own.items():
            scores = scores + worth.get(name, 0.0) * each[tables]
        return with_databases(scores, self.searches.databases, tables)


def fused(standard: dict[str, Scores]) -> Scores:
    """Give the untuned score that candidates are taken by: words, and the mean of all views by meaning."""
    views = [scores for name, scores in standard.items() if name.startswith("dense")]
    first = standard["bm25"]
    return (first + sum(views) / len(views)).astype(np.float32) if views else first


def with_databases(scores: Scores, databases: Databases, tables: NDArray[np.intp]) -> Scores:
    """Add to each score the logarithm of a soft sum over its database: what joins belongs together."""
    if len(databases.starts) <= 2 or not len(scores):
        return scores
    of = databases.of[tables]
    sums = np.bincount(of, weights=np.exp(_SHARPNESS * (scores - scores.max())))
    return (scores + np.log(np.maximum(sums[of], 1e-30))).astype(np.float32)
