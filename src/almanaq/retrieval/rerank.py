"""The learned reranker: the best candidates by words and vectors, ranked by what they share with the question.

A linear score over `features` and the standardized scores of the searches. Its weights are learned: sets for tables
with titles, tables without, and schemas of databases, for questions and for statements to be checked. They are in
`weights.json`, made by `benchmarks/retrieval/learn.py` and `doubt.py`; `benchmarks/retrieval/results/weights.json`
records the data, and the results on held-out tables.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from almanaq.corpus.table import Corpus, Field, TableId, parse_fields
from almanaq.retrieval.bm25 import BM25, BM25Index
from almanaq.retrieval.dense import Aspects, AspectsIndex
from almanaq.retrieval.features import (
    FEATURES,
    Featurizer,
    Floats,
    StreamWriter,
    WordAssociation,
    load_word_association,
)
from almanaq.retrieval.protocols import (
    BATCH,
    Databases,
    Hit,
    JudgedRanking,
    Ranking,
    Scores,
    check_k,
    group_by_database,
    standardize,
    top_k,
)

DOUBT_FEATURES = (  # the inputs of `Doubt`, in addition to FEATURES
    "unknown",  # share of the question's words that no table contains
    "cosine",  # the best cosine between the question and the best table; 0 without vectors
    "margin",  # how far its score is above the next one's
    "share",  # its share of the candidates' odds
    "tables",  # logarithm of the corpus' size over 10
)


@dataclass(frozen=True, slots=True)
class Doubt:
    """A logistic model of the chance that a table fits, learned from questions whose right tables were removed."""

    worth: Mapping[str, float]
    bias: float
    threshold: float

    def chance(self, figures: Mapping[str, float]) -> float:
        total = self.bias + sum(worth * figures.get(name, 0.0) for name, worth in self.worth.items())
        return 1 / (1 + math.exp(-max(-50.0, min(50.0, total))))


# Which searches take part: words alone, or also vectors of short views of each table, or also those of its rows. For an
# index on disk: words without a separate search of titles, or also one vector per table.
Sight = Literal["lexical", "short", "rows", "stored-words", "stored"]


@dataclass(frozen=True, slots=True)
class Weights:
    """A linear score: the weight of each feature and of each search's standardized score, by name; absent is 0."""

    name: str
    worth: Mapping[str, float]
    doubt: Doubt | None = None  # estimates from the best table whether any fits; None where it was not learned
    association: WordAssociation | None = None  # computes that feature, for tables without titles; None leaves it 0


@dataclass(frozen=True, slots=True)
class Styles:
    questions: Weights
    statements: Weights

    def of(self, text: str) -> Weights:
        return self.statements if is_statement(text) else self.questions


def choose_weights(fields: Sequence[Field], *, several: bool, sight: Sight) -> Styles:
    """Return the learned weights for a corpus; one of `several` databases holds schemas rather than web pages."""
    if several:
        kind = "databases" if Field.DESCRIPTION in fields else "bare-databases"
    else:
        kind = "titled" if Field.TITLE in fields else "untitled"
    questions = _make_weights(f"{kind}-{sight}")
    return Styles(questions, questions if several else _make_weights(f"{kind}-statements-{sight}"))


_QUESTION_START = re.compile(
    r"\W*(who|whom|whose|what|which|when|where|why|how|is|are|was|were|do|does|did|has|have|had|can|could|will|would"
    r"|should|list|show|find|give|name|tell|count|return|identify|describe|state|compare|calculate)\b",
    re.IGNORECASE,
)
_MIN_STATEMENT_WORDS = 5  # fewer are keywords


def is_statement(text: str) -> bool:
    """Return whether a text is a statement: no question mark, no initial question word, and not just keywords."""
    return "?" not in text and not _QUESTION_START.match(text) and len(text.split()) >= _MIN_STATEMENT_WORDS


def _make_weights(name: str) -> Weights:
    learned = _read_weights()
    doubt = learned["doubt"].get(name)
    association = (
        load_word_association(statements="statements" in name) if "association" in learned["weights"][name] else None
    )
    return Weights(name, learned["weights"][name], Doubt(**doubt) if doubt else None, association)


@lru_cache(maxsize=1)
def _read_weights() -> dict[str, Any]:
    text = files("almanaq.retrieval").joinpath("weights.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


CANDIDATES = 100  # tables that are reranked; those behind them keep the order of the first search
SCALE = 10.0  # divides standardized scores, so that their weights have the magnitude of the features' weights
_POOLING_SHARPNESS = 0.5  # of the soft sum over a database: between the maximum and the number of its tables


@dataclass(frozen=True)
class Rerank:
    """Builds indexes that search by words, and by vectors if `aspects` is given, then rerank the best tables."""

    lexical: BM25 = field(default_factory=BM25)
    aspects: Aspects | None = None
    weights: Weights | None = None  # None takes the learned sets for the corpus and the fields
    candidates: int = CANDIDATES
    name: str = "rerank"

    def index(self, corpus: Corpus, fields: Sequence[str]) -> RerankIndex:
        chosen = parse_fields(fields)
        lexical = self.lexical.index(corpus, chosen)
        titles = self.lexical.index(corpus, [Field.TITLE]) if Field.TITLE in chosen else None
        aspects = self.aspects.index(corpus, chosen) if self.aspects is not None else None
        writer = StreamWriter(chosen, lexical.analyzer)
        for table in corpus:
            writer.add(table)
        databases = group_by_database(lexical.ids)
        if self.weights:
            weights = Styles(self.weights, self.weights)
        else:
            weights = choose_weights(chosen, several=len(databases.starts) > 2, sight=self.sight)
        featurizer = Featurizer(writer.finish())
        return RerankIndex(lexical, titles, aspects, databases, featurizer, weights, self.candidates)

    @property
    def sight(self) -> Sight:
        if self.aspects is None:
            return "lexical"
        return "rows" if self.aspects.rows else "short"


@dataclass(frozen=True)
class RerankIndex:
    """The searches of one corpus, each of which scores every table, and the parts of its reranker."""

    lexical: BM25Index
    titles: BM25Index | None
    aspects: AspectsIndex | None
    databases: Databases
    featurizer: Featurizer
    weights: Styles
    candidates: int

    @property
    def ids(self) -> Sequence[TableId]:
        return self.lexical.ids

    def search(self, questions: Sequence[str], k: int) -> list[Ranking]:
        return [found.ranking for found in self.find(questions, k)]

    def find(self, questions: Sequence[str], k: int) -> list[JudgedRanking]:
        check_k(k)
        found: list[JudgedRanking] = []
        for scored, rest in self.score_candidates(questions, k):
            ids = [self.ids[table] for table in (*scored.tables, *rest)][:k]
            found.append(rank_candidates(ids, scored, self.weights.of(scored.question), len(self.ids)))
        return found

    def scores(self, questions: Sequence[str]) -> dict[str, Scores]:
        """Return standardized scores by name, each of shape (questions, tables), and `cosine`, the best raw cosine."""
        found = {"bm25": self.lexical.sums(questions)}
        if self.titles is not None:
            found["bm25_title"] = self.titles.sums(questions)
        views = self.aspects.scores(questions) if self.aspects is not None else {}
        standard = {name: standardize(scores) / SCALE for name, scores in (found | views).items()}
        standard["company"] = self.databases.pool(fuse_scores(standard))
        if views:
            standard["cosine"] = np.maximum.reduce(list(views.values()))
        return standard

    def score_candidates(
        self, questions: Sequence[str], k: int = 1
    ) -> Iterator[tuple[ScoredCandidates, NDArray[np.intp]]]:
        """Yield for each question its scored candidates, and the tables behind them up to k."""
        for start in range(0, len(questions), BATCH):
            batch = questions[start : start + BATCH]
            scores = self.scores(batch)
            first = fuse_scores(scores)
            if self.aspects is None:
                # A table is no candidate if neither it nor its database shares a word with the question.
                nothing = (self.lexical.sums(batch) == 0) & (scores["company"] <= 0)
                first = np.where(nothing, np.float32(-np.inf), first)
            for row, question in enumerate(batch):
                chosen = top_k(first[row], max(k, self.candidates)) if question.strip() else np.zeros(0, np.intp)
                own = {name: each[row][chosen[: self.candidates]] for name, each in scores.items()}
                tables, weights = chosen[: self.candidates], self.weights.of(question)
                yield (
                    score_by_features(question, tables, own, weights, self.featurizer, self.databases),
                    chosen[self.candidates :],
                )


@dataclass(frozen=True, slots=True)
class ScoredCandidates:
    """The candidates of a question, best first."""

    question: str
    tables: NDArray[np.intp]
    scores: Scores
    features: Floats  # shape (tables, FEATURES)
    searched: Mapping[str, Scores]  # by name
    unknown: float  # the share of the question's words that no table contains

    def figures(self, size: int) -> dict[str, float]:
        odds = np.exp(self.scores - self.scores[0])
        return {
            **dict(zip(FEATURES, map(float, self.features[0]), strict=True)),
            "unknown": self.unknown,
            "cosine": float(self.searched["cosine"][0]) if "cosine" in self.searched else 0.0,
            "margin": float(self.scores[0] - self.scores[1]) if len(self.scores) > 1 else 0.0,
            "share": float(1 / odds.sum()),
            "tables": float(np.log1p(size)) / 10,
        }


def score_by_features(
    question: str,
    tables: NDArray[np.intp],
    own: Mapping[str, Scores],
    weights: Weights,
    featurizer: Featurizer,
    databases: Databases,
) -> ScoredCandidates:
    """Return tables, given by number, sorted by the linear score; `own` are their standardized search scores."""
    features = featurizer.features(question, [int(table) for table in tables], weights.association)
    scores = features @ np.array([weights.worth.get(name, 0.0) for name in FEATURES], dtype=np.float32)
    for name, each in own.items():
        scores = scores + weights.worth.get(name, 0.0) * each
    scores = add_database_scores(scores, databases, tables)
    order = np.lexsort((tables, -scores))
    searched = {name: each[order] for name, each in own.items()}
    unknown = featurizer.unknown_share(question)
    return ScoredCandidates(question, tables[order], scores[order], features[order], searched, unknown)


def rank_candidates(ids: Sequence[TableId], scored: ScoredCandidates, weights: Weights, size: int) -> JudgedRanking:
    """Return the ranking of tables, the scored ones first, with the chance that one answers in a corpus of `size`."""
    if not len(scored.tables):
        return JudgedRanking((), 0.0, fits=False)
    scores = list(map(float, scored.scores))
    # Tables that were not reranked follow in their order, below the last score.
    scores += [scores[-1] - 1.0 - rank for rank in range(len(ids) - len(scores))]
    ranking = tuple(map(Hit, ids, scores))
    if weights.doubt is None:
        return JudgedRanking(ranking, None, fits=True)
    chance = weights.doubt.chance(scored.figures(size))
    return JudgedRanking(ranking, chance, chance >= weights.doubt.threshold)


def fuse_scores(standard: Mapping[str, Scores]) -> Scores:
    """Return the unweighted score that selects candidates: words, plus the mean over all vector views."""
    views = [scores for name, scores in standard.items() if name.startswith("dense")]
    first = standard["bm25"]
    return (first + sum(views) / len(views)).astype(np.float32) if views else first


def add_database_scores(scores: Scores, databases: Databases, tables: NDArray[np.intp]) -> Scores:
    """Add to each score the logarithm of a soft sum over its database, as joined tables are in one database."""
    if len(databases.starts) <= 2 or not len(scores):
        return scores
    of = databases.of[tables]
    sums = np.bincount(of, weights=np.exp(_POOLING_SHARPNESS * (scores - scores.max())))
    return (scores + np.log(np.maximum(sums[of], 1e-30))).astype(np.float32)
