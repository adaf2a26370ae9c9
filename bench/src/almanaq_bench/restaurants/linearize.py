"""The paper's baseline: rows as text, the nearest to a search query that is written from the conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from almanaq.agent.prompting import complete, json_object
from almanaq.agent.responder import Found, LocalResponder, PromptedResponder, Responder
from almanaq.agent.small_talk import small_talk
from almanaq.errors import ModelCallError
from almanaq.models.budget import spending
from almanaq.models.embedders.vector_store import VectorStore
from almanaq.models.protocols import LanguageModel, Prompt
from almanaq_bench.cost_forecast import CostForecast
from almanaq_bench.prompts import bench_prompt
from almanaq_bench.restaurants.dataset import cell_text
from almanaq_bench.restaurants.gold import Restaurants
from almanaq_bench.restaurants.play import TurnReply
from almanaq_bench.restaurants.wanted import Id

_LONGEST = 2000

Exchanges = Sequence[tuple[str, str]]
"""What was said and replied before, the oldest first."""


class QueryWriter(Protocol):
    """Writes the search query of a turn; "" where there is nothing to search for."""

    def write(self, words: str, before: Exchanges) -> str: ...


class LocalQueryWriter:
    """Takes the message with all before it, which on the halves `-dev` found more than fewer did; no small talk."""

    def write(self, words: str, before: Exchanges) -> str:
        """Return what was said, as it was said."""
        if small_talk(words) is not None:
            return ""
        utterances = [utterance for utterance, _ in before if small_talk(utterance) is None]
        return " ".join([*utterances, words])


class PromptedQueryWriter:
    """Asks a language model, by the prompt `linearize`."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    def write(self, words: str, before: Exchanges) -> str:
        """Return the model's query. Raises ModelCallError where its reply cannot be read."""
        completion = complete(self._model, search_prompt(words, before))
        text = (json_object(completion.text) or {}).get("text")
        if not isinstance(text, str):
            raise ModelCallError(f"{self._model.name} wrote no search query: {completion.text[:60]!r}")
        return text.strip()


def search_prompt(words: str, before: Exchanges) -> Prompt:
    """Return the request for a search query."""
    history = [{"question": utterance[:_LONGEST], "answer": answer[:_LONGEST]} for utterance, answer in before]
    return bench_prompt("linearize", {"history": history, "question": words[:_LONGEST]})


class Linearized:
    """The rows of a table as one text each, its cell values between commas, and their vectors.

    Args:
        store: gives unit vectors of texts.
        foreseen: is told what the rows' vectors will cost, and may refuse it.
    """

    def __init__(self, restaurants: Restaurants, store: VectorStore, foreseen: CostForecast | None = None) -> None:
        self.restaurants, self._store = restaurants, store
        self._ids = tuple(restaurants.rows)
        texts = [", ".join(map(cell_text, row.values())) for row in restaurants.rows.values()]
        if foreseen is not None:
            foreseen.vectors(store, texts)
        self._vectors = store.vectors(texts)

    def nearest(self, query: str, k: int) -> tuple[Id, ...]:
        """Return the ids of the k rows nearest to a query, the nearest first; none for an empty query."""
        if not query:
            return ()
        likeness = self._vectors @ self._store.question_vectors([query])[0]
        return tuple(self._ids[place] for place in np.argsort(-likeness, kind="stable")[:k])


class LinearizedDialogue:
    """A Dialogue that replies with the k rows nearest to its query."""

    def __init__(self, rows: Linearized, k: int, language: LanguageModel | None) -> None:
        self._rows, self._k = rows, k
        self._writer: QueryWriter = LocalQueryWriter() if language is None else PromptedQueryWriter(language)
        self._responder: Responder = LocalResponder() if language is None else PromptedResponder(language)
        self._before: list[tuple[str, str]] = []

    def say(self, words: str) -> TurnReply:
        """Return the nearest rows; a call that fails is this turn's fault."""
        with spending() as spent:
            turn = self._say(words)
        self._before.append((words, turn.answer))
        return replace(turn, usage=spent.usage)

    def _say(self, words: str) -> TurnReply:
        try:
            query = self._writer.write(words, self._before)
        except ModelCallError as error:
            return TurnReply("", searched=True, fault=str(error))
        ids = self._rows.nearest(query, self._k)
        answer = self._word_reply(words, query, ids) if ids else ""
        return TurnReply(answer, ids, ids, searched=bool(query), query=query)

    def _word_reply(self, words: str, query: str, ids: Sequence[Id]) -> str:
        rows: list[dict[str, Any]] = [dict(self._rows.restaurants.rows[i]) for i in ids]
        values = tuple(tuple(row.values()) for row in rows)
        return "".join(self._responder.found(Found(words, query, tuple(rows[0]), values)))
