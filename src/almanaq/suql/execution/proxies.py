"""Proxies: cheap scores of rows, by which an approximate filter decides which to ask the model about."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from almanaq.errors import UsageError, suggest
from almanaq.models.protocols import Embedder
from almanaq.suql.accuracy.regression import Floats, fitted, margins
from almanaq.suql.execution.candidates import Candidate, passages_of, totals
from almanaq.suql.execution.similarity import EmbedderSimilarity
from almanaq.suql.execution.threads import in_thread
from almanaq.suql.plan.stages import SiteInput

Ask = Callable[[Sequence[Candidate]], Awaitable[Mapping[int, float]]]
"""Asks a model about rows; gives by number how likely each passes, 1 or 0 where it does not say how likely."""

PROXIES = ("local", "regression")
_FOLDS = 10
_SCALE, _RIDGE = 4.0, 1.0
"""Unit vectors have small coordinates: so scaled, this ridge fits a hundred labels and does not learn them by heart."""


class Proxy(Protocol):
    """Scores rows; higher where a row more likely passes.

    Attributes:
        labels: rows that are asked before it scores, drawn at random.
    """

    labels: int

    async def scores(self, candidates: Sequence[Candidate], labelled: Mapping[int, bool], /) -> Floats:
        """Return a score for each row; `labelled` says by place which of those asked passed."""
        ...


class SimilarityProxy:
    """Scores a row by how like its documents are to what is asked of them."""

    labels = 60

    def __init__(self, inputs: Sequence[SiteInput], embedder: Embedder) -> None:
        self._inputs = inputs
        self._similarity = EmbedderSimilarity(embedder.embed_documents, embedder.embed_questions)

    async def scores(self, candidates: Sequence[Candidate], labelled: Mapping[int, bool], /) -> Floats:
        """Return the similarity; where several things are asked, weighed as the labels tell."""
        single = [in_thread(totals, candidates, [item], self._similarity) for item in self._inputs]
        features = np.column_stack(await asyncio.gather(*single))
        if features.shape[1] == 1:
            return features[:, 0]
        rows, passed = np.array(list(labelled), np.intp), np.array(list(labelled.values()), bool)
        return margins(features, fitted(features[rows], passed, _RIDGE))


class RegressionProxy:
    """Scores a row by a regression over its documents' vectors, learned from the rows that were asked."""

    labels = 150

    def __init__(self, inputs: Sequence[SiteInput], embedder: Embedder) -> None:
        self._documents = tuple(dict.fromkeys(item.document for item in inputs))
        self._embedder = embedder

    async def scores(self, candidates: Sequence[Candidate], labelled: Mapping[int, bool], /) -> Floats:
        """Return the log odds; those of a labelled row come from a regression that has not seen its label."""
        return await in_thread(self._scores, candidates, labelled)

    def _scores(self, candidates: Sequence[Candidate], labelled: Mapping[int, bool]) -> Floats:
        features = np.hstack([self._vectors(candidates, name) for name in self._documents]) * _SCALE
        rows = np.array(list(labelled), np.intp)
        passed = np.array(list(labelled.values()), bool)
        scores = margins(features, fitted(features[rows], passed, _RIDGE))
        folds = np.arange(len(rows)) % _FOLDS
        for fold in range(min(_FOLDS, len(rows))):
            seen = folds != fold
            weights = fitted(features[rows[seen]], passed[seen], _RIDGE)
            scores[rows[~seen]] = margins(features[rows[~seen]], weights)
        return scores

    def _vectors(self, candidates: Sequence[Candidate], document: str) -> NDArray[np.float64]:
        """Return the mean vector of each row's passages; zeros where there is nothing to read."""
        documents = [passages_of(candidate.values[document]) for candidate in candidates]
        texts = list(dict.fromkeys(passage for passages in documents for passage in passages))
        if not texts:
            return np.zeros((len(candidates), 1))
        vectors = self._embedder.embed_documents(texts)
        place = {text: i for i, text in enumerate(texts)}
        found = np.zeros((len(candidates), vectors.shape[1]))
        for i, passages in enumerate(documents):
            if passages:
                found[i] = vectors[[place[passage] for passage in passages]].mean(axis=0)
        return found


class ModelProxy:
    """Scores a row by what a cheaper model says of it."""

    labels = 60

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def scores(self, candidates: Sequence[Candidate], _: Mapping[int, bool], /) -> Floats:
        """Return how likely each row passes by the cheaper model; 1 or 0 where its server does not tell."""
        verdicts = await self._ask(candidates)
        return np.array([verdicts[candidate.number] for candidate in candidates], np.float64)


def open_proxy(name: str, inputs: Sequence[SiteInput], embedder: Embedder) -> Proxy:
    """Return a proxy that needs no language model; raise UsageError for a name that is none."""
    match name:
        case "local":
            return SimilarityProxy(inputs, embedder)
        case "regression":
            return RegressionProxy(inputs, embedder)
    raise UsageError(f"no proxy is called {name!r}{suggest(name, PROXIES)}; another model is named as openai:MODEL")
