"""The best tables of any retriever, reordered by a model that reads each of them beside the question."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from almanaq.corpus.table import Corpus, TableId, parse_fields, table_text
from almanaq.errors import ModelError, UsageError
from almanaq.event_loops import run_sync
from almanaq.models.hub_models import load_hub_model
from almanaq.models.prompted_reader import ask_model
from almanaq.models.protocols import LanguageModel
from almanaq.models.retrying import UnusableReply
from almanaq.models.text_calls import MalformedReply, parse_object
from almanaq.retrieval.protocols import Hit, JudgedRanking, Ranking, Retriever, TableIndex, check_k
from almanaq.retrieval.retriever_names import OpenedRetriever, RetrieverParts, open_retriever
from almanaq_bench.prompts import bench_prompt

_SCORE_BATCH = 16
CANDIDATES = 20
"""Tables that the model reads per question."""

MAX_CHARS = 1500
"""Characters of a table that the model reads: about 400 tokens."""


Verdict = Sequence[float] | UnusableReply
"""Scores, or why there are none: the candidates of that question then keep their order."""


class Judge(Protocol):
    """Reads tables beside questions."""

    @property
    def name(self) -> str: ...

    def judge(self, questions: Sequence[str], texts: Sequence[Sequence[str]]) -> Sequence[Verdict]:
        """Return for each question a score for each of its texts, higher for a better fit."""


@dataclass(frozen=True)
class JudgeReranker:
    """Builds indexes that reorder the candidates of another retriever by a judge.

    Args:
        first: finds the candidates.
        judge: scores them; ties keep their order.
    """

    first: Retriever
    judge: Judge
    candidates: int = CANDIDATES

    @property
    def name(self) -> str:
        return f"rerank:{self.judge.name}"

    def index(self, corpus: Corpus, fields: Sequence[str]) -> JudgeRerankerIndex:
        """Index a corpus with the first retriever, and keep the start of each table's text for the judge."""
        chosen = parse_fields(fields)
        index = self.first.index(corpus, fields)
        texts = {table.id: table_text(table, chosen, max_chars=MAX_CHARS) for table in corpus}
        return JudgeRerankerIndex(index, self.judge, texts, self.candidates)


@dataclass(frozen=True)
class JudgeRerankerIndex:
    """An index, and the texts that the judge reads."""

    first: TableIndex
    judge: Judge
    texts: Mapping[TableId, str]
    candidates: int

    def search(self, questions: Sequence[str], k: int) -> list[Ranking]:
        """Return the k best; tables that the judge did not read follow in their order.

        Where its reply is unusable, the first order is kept: `find` tells for which questions.

        Raises:
            ModelError: the judge cannot be asked.
            BudgetExceeded: asking it would exceed the budget.
        """
        return [found.ranking for found in self.find(questions, k)]

    def find(self, questions: Sequence[str], k: int) -> list[JudgedRanking]:
        """Return rankings as `search` does, each with the fault of the judge's reply."""
        check_k(k)
        found = self.first.search(questions, max(k, self.candidates))
        read = [ranking[: self.candidates] for ranking in found]
        verdicts = self.judge.judge(questions, [[self.texts[hit.id] for hit in hits] for hits in read])
        return [_apply_verdict(*each, k) for each in zip(found, verdicts, map(len, read), strict=True)]


class CrossEncoder:
    """Scores pairs of texts; of several labels the last one's: by custom "entailment" or "relevant" comes last."""

    def __init__(self, path: str) -> None:
        self.name = path
        self._lock = threading.Lock()
        self._model: Any = None

    def scores(self, question: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one score per text, higher for a better fit. Raises MissingExtraError, ModelError."""
        if not texts:
            return np.zeros(0, np.float32)
        with self._lock:
            if self._model is None:
                self._model = load_hub_model("CrossEncoder", self.name, "--retriever")
            pairs = [(question, text) for text in texts]
            made = np.asarray(
                self._model.predict(pairs, batch_size=_SCORE_BATCH, show_progress_bar=False), dtype=np.float32
            )
        scores: NDArray[np.float32] = made if made.ndim == 1 else made[:, -1]
        if not np.isfinite(scores).all():
            raise ModelError(f"the cross-encoder {self.name!r} gave a score that is not finite")
        return scores


class CrossEncoderJudge:
    """A judge that scores each table with a cross-encoder."""

    def __init__(self, encoder: CrossEncoder) -> None:
        self.name = encoder.name
        self._encoder = encoder

    def judge(self, questions: Sequence[str], texts: Sequence[Sequence[str]]) -> list[list[float]]:
        """Return the cross-encoder's scores."""
        return [self._encoder.scores(question, own).tolist() for question, own in zip(questions, texts, strict=True)]


class LanguageModelJudge:
    """A judge that asks a language model, once per question, to order all candidates.

    Tables that the model leaves out score 0, and follow the others in their order.
    """

    def __init__(self, model: LanguageModel) -> None:
        self.name = model.name
        self._model = model

    def judge(self, questions: Sequence[str], texts: Sequence[Sequence[str]]) -> list[Verdict]:
        """Return scores that decrease along the model's order; questions are sent concurrently."""

        async def all_orders() -> list[Verdict]:
            return await asyncio.gather(*map(self._scores, questions, texts))

        return list(run_sync(all_orders()))

    async def _scores(self, question: str, texts: Sequence[str]) -> Verdict:
        if len(texts) < 2:
            return [0.0] * len(texts)
        prompt = bench_prompt("table_rank", {"question": question, "tables": texts})
        try:
            order, _, _ = await ask_model(self._model, prompt, _parse_order)
        except UnusableReply as unusable:
            return unusable
        ranks = dict(zip((number for number in order if 0 < number <= len(texts)), count(), strict=False))
        return [float(len(texts) - ranks[number]) if number in ranks else 0.0 for number in range(1, len(texts) + 1)]


def _parse_order(text: str) -> list[int]:
    numbers = parse_object(text).get("tables")
    if not isinstance(numbers, list) or not all(isinstance(n, int) and not isinstance(n, bool) for n in numbers):
        raise MalformedReply('"tables" must be a list of whole numbers')
    return list(dict.fromkeys(numbers))


def _apply_verdict(ranking: Ranking, verdict: Verdict, read: int, k: int) -> JudgedRanking:
    if isinstance(verdict, UnusableReply):
        return JudgedRanking(ranking[:k], None, bool(ranking), str(verdict))
    return JudgedRanking(_reorder(ranking, verdict, read)[:k], None, bool(ranking))


def _reorder(ranking: Ranking, scores: Sequence[float], read: int) -> Ranking:
    order = sorted(range(read), key=lambda place: -scores[place])
    hits = [Hit(ranking[place].id, scores[place]) for place in order]
    floor = hits[-1].score if hits else 0.0
    return (*hits, *(Hit(hit.id, floor - 1.0 - rank) for rank, hit in enumerate(ranking[read:])))


def open_model_reranker(name: str, parts: RetrieverParts) -> OpenedRetriever:
    """Open `rerank:openai:MODEL`, or `rerank:` and the path or hub name of a cross-encoder."""
    first, model = open_retriever("rerank", parts), name.partition(":")[2]
    judge: Judge
    if model.startswith("openai:"):
        if parts.model is None:
            raise UsageError(f"retriever {name!r} needs a language model, and none can be opened here")
        judge = LanguageModelJudge(parts.model(model))
    elif "/" in model or os.sep in model:
        judge = CrossEncoderJudge(CrossEncoder(model))
    else:
        raise UsageError(
            f"retriever {name!r} names no model: write rerank:openai:MODEL, or rerank: and the path or hub name "
            "(with a slash) of a cross-encoder"
        )
    return OpenedRetriever(JudgeReranker(first.retriever, judge), name, first.embedder, first.note)
