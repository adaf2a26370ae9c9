"""The hybrid-qa task behind the benchmark's seam to generators: the best table is asked in SUQL."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from almanaq.benchmark.generation.protocol import Asked, Reply
from almanaq.benchmark.hybridqa.expected import expected_usage
from almanaq.benchmark.hybridqa.local_proposer import LocalProposer
from almanaq.benchmark.hybridqa.pipeline import TRIES, HybridPipeline, Prediction
from almanaq.benchmark.hybridqa.prompted import PromptedProposer, PromptedShortener, prompt_versions
from almanaq.benchmark.hybridqa.relation import make_relation
from almanaq.corpus.dataset import DatasetFolder
from almanaq.corpus.linked import LinkedTables
from almanaq.models.protocols import LanguageModel, Models, Usage
from almanaq.models.registry import models_of, open_models
from almanaq.models.spending import spending


def open_pipeline(models: Models, tries: int = TRIES) -> HybridPipeline:
    """Give the pipeline of these models; `local` asks for twice as many places and weighs so many readings."""
    if models.language is None:
        return HybridPipeline(models, LocalProposer(), tries=2 * tries, readings=tries)
    return HybridPipeline(models, PromptedProposer(models.language), PromptedShortener(models.language), tries=tries)


class HybridGenerator:
    """A Generator that makes a relation of the best table and its passages, and runs the pipeline over it.

    Args:
        name: what it goes by: `local` or `openai:MODEL`.
        folder: holds the passages; read when the first question comes.
        models: opens the models.
    """

    def __init__(self, name: str, folder: DatasetFolder, models: Callable[[], Models]) -> None:
        self.name = name
        self._folder, self._models = folder, models

    @property
    def model(self) -> str:
        """The language model's name; "" for `local`."""
        return "" if self.name == "local" else self.name.partition(":")[2]

    @property
    def prompts(self) -> Mapping[str, str]:
        """The versions of the prompt files."""
        return {} if self.name == "local" else prompt_versions()

    @cached_property
    def _tables(self) -> LinkedTables:
        return LinkedTables(self._folder)

    @cached_property
    def _opened(self) -> Models:
        return self._models()

    @cached_property
    def _pipeline(self) -> HybridPipeline:
        return open_pipeline(self._opened)

    def expected(self, asked: Sequence[Asked]) -> Usage:
        """Give what the answers to these questions are expected to take; nothing by `local`."""
        if self.name == "local" or self._opened.language is None:
            return Usage()
        proposer = PromptedProposer(self._opened.language)
        each = (
            expected_usage(one.question, make_relation(self._tables.get(one.tables[0].id)), proposer)
            for one in asked
            if one.tables
        )
        return sum(each, Usage())

    async def reply(self, asked: Asked) -> Reply:
        """Give the short answer, with the queries that led to it as the reasoning."""
        if not asked.tables:
            return Reply("")
        relation = make_relation(self._tables.get(asked.tables[0].id))
        with spending() as spent:
            prediction = await asyncio.to_thread(self._pipeline.answer, asked.question, relation)
        return _reply(prediction, spent.usage)


def open_hybrid_generator(
    name: str, folder: DatasetFolder, language: Callable[[str], LanguageModel] | None = None
) -> HybridGenerator | None:
    """Give the generator of a name; None for one that is none of ours, and sees tables without their passages.

    Args:
        language: opens language models by name, within a budget that all calls of the run share.
    """
    if name != "local" and not name.startswith("openai:"):
        return None
    if name == "local" or language is None:
        return HybridGenerator(name, folder, lambda: open_models(name, embedder="lexical"))
    return HybridGenerator(name, folder, lambda: models_of(language(name)))


def _reply(prediction: Prediction, usage: Usage) -> Reply:
    tried = [{"suql": each.suql, "outcome": each.outcome, "message": each.message} for each in prediction.tried]
    ran = any(each.outcome in ("rows", "empty") for each in prediction.tried)
    fault = "" if ran or not prediction.tried else prediction.tried[-1].message
    return Reply(prediction.answer, fault, json.dumps(tried, ensure_ascii=False), usage)
