"""The hybrid-qa task behind the benchmark's seam to generators: the best table is asked in SUQL."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from almanaq.agent.turn import run_in_thread
from almanaq.connection import connect
from almanaq.corpus.table import TableId
from almanaq.models.batching import Batching
from almanaq.models.budget import spending
from almanaq.models.embedders.base import LexicalEmbedder
from almanaq.models.model_names import ModelSettings, default_batching, make_models, open_models
from almanaq.models.protocols import Embedder, LanguageModel, Models, Usage
from almanaq_bench.generation.protocols import WRITTEN_QUERY, GenerationRequest, Reply, of_prompt, of_text_call, times
from almanaq_bench.hybridqa.best_rows import BestRows
from almanaq_bench.hybridqa.pipeline import TRIES, HybridPipeline, Prediction, QuestionTable, find_stage
from almanaq_bench.hybridqa.places import answer_nodes
from almanaq_bench.hybridqa.proposers import (
    MOST_TABLES,
    LocalProposer,
    PromptedProposer,
    PromptedShortener,
    choose_table,
    prompt_versions,
)
from almanaq_bench.hybridqa.relation import HybridRelation, make_relation, open_relations
from almanaq_bench.linked import LinkedTables
from almanaq_bench.question_sets import DatasetFolder, Question

TEXTS_READ = 4
"""Requests of one text that cost about what a question does: six texts share the first, the row that passes is read."""


def expected_usage(question: str, relation: HybridRelation, proposer: PromptedProposer) -> Usage:
    """Return a query and the texts that are read until a row is found; few answers have to be shortened."""
    with connect(open_relations([relation]), model="local", embedder="lexical", cache=False) as connection:
        query = proposer.prompt(question, QuestionTable(relation, connection.catalog), ())
    columns = [relation.arrow.column(name).to_pylist() for name in relation.info_columns]
    read = [of_text_call(texts, question) for column in columns for texts in column if texts]
    if not read:
        return of_prompt(query, WRITTEN_QUERY)
    rows = len(read) / len(columns)
    reading = times(sum(read, Usage()), min(rows, TEXTS_READ) / len(read))
    return of_prompt(query, WRITTEN_QUERY) + reading


def open_pipeline(models: Models, tries: int = TRIES) -> HybridPipeline:
    """Return the pipeline of these models; `local` asks for twice as many places and weighs so many readings."""
    if models.language is None:
        return HybridPipeline(models, LocalProposer(), tries=2 * tries, readings=tries)
    language = models.language
    proposer, shortener = PromptedProposer(language), PromptedShortener(language)
    return HybridPipeline(
        models, proposer, shortener, tries=tries, rows=BestRows(getattr(models.reader, "company", 1)), tells=True
    )


class HybridGenerator:
    """A Generator that makes a relation of one of the best tables and its passages, and runs the pipeline over it.

    Args:
        name: what it goes by: `local` or `openai:MODEL`.
        folder: holds the passages; read when the first question comes.
        models: opens the models.
        questions: all that will be asked, to tell afterwards what lost their answers.
    """

    def __init__(
        self, name: str, folder: DatasetFolder, models: Callable[[], Models], questions: Sequence[Question] = ()
    ) -> None:
        self.name = name
        self._folder, self._models = folder, models
        self._questions = {question.id: question for question in questions}

    @property
    def model(self) -> str:
        """The language model's name; of `local`, that of its embedder beside."""
        return f"local, {self._open_models.embedder.name}" if self.name == "local" else self.name.partition(":")[2]

    @property
    def prompts(self) -> Mapping[str, str]:
        """The versions of the prompt files."""
        return {} if self.name == "local" else prompt_versions()

    @cached_property
    def _tables(self) -> LinkedTables:
        return LinkedTables(self._folder)

    @cached_property
    def _open_models(self) -> Models:
        return self._models()

    @cached_property
    def _pipeline(self) -> HybridPipeline:
        return open_pipeline(self._open_models)

    def _relation(self, table: TableId) -> HybridRelation:
        """Return a table as it is asked: a language model reads which article each passage is of."""
        return make_relation(self._tables.get(table), titled=self.name != "local")

    def expected(self, asked: Sequence[GenerationRequest]) -> Usage:
        """Return what the answers to these questions are expected to take; nothing by `local`."""
        if self.name == "local" or self._open_models.language is None:
            return Usage()
        proposer = PromptedProposer(self._open_models.language)
        each = (expected_usage(one.question, self._relation(one.tables[0].id), proposer) for one in asked if one.tables)
        return sum(each, Usage())

    async def reply(self, asked: GenerationRequest) -> Reply:
        """Return the short answer, with the table that was asked and the queries that led to it as the reasoning."""
        return await run_in_thread(self._reply, asked)

    def _reply(self, asked: GenerationRequest) -> Reply:
        if not asked.tables:
            return Reply("", stage="retrieval" if asked.id in self._questions else "")
        relations = [self._relation(table.id) for table in asked.tables[:MOST_TABLES]]
        place = choose_table(asked.question, relations)
        with spending() as spent:
            prediction = self._pipeline.answer(asked.question, relations[place])
        table = asked.tables[place].id
        return _reply(prediction, table, spent.usage, self._stage(asked.id, prediction, relations[place], table))

    def _stage(self, question: str, prediction: Prediction, relation: HybridRelation, table: TableId) -> str:
        """Say what lost the answer; "" where it is not known."""
        known = self._questions.get(question)
        if known is None:
            return ""
        retrieved = table in known.gold
        return find_stage(prediction, known.answer, answer_nodes(known), relation, retrieved=retrieved)


def open_hybrid_generator(
    name: str,
    folder: DatasetFolder,
    language: Callable[[str], LanguageModel] | None = None,
    questions: Sequence[Question] = (),
    *,
    embedder: Callable[[], Embedder] = LexicalEmbedder,
    batch: int | None = None,
) -> HybridGenerator | None:
    """Return the generator of a name; None for one that is none of ours, and sees tables without their passages.

    Args:
        language: opens language models by name, within a budget that all calls of the run share.
        questions: see HybridGenerator; embedder: opens what `local` reads with.
        batch: most text calls that share a request; None: what is usual for the model.
    """
    if name != "local" and not name.startswith("openai:"):
        return None
    batching = default_batching(name) if batch is None else Batching.of(batch)
    if name == "local" or language is None:
        settings = ModelSettings(batching=batching)
        return HybridGenerator(
            name, folder, lambda: open_models(name, embedder=embedder(), settings=settings), questions
        )
    return HybridGenerator(name, folder, lambda: make_models(language(name), batching), questions)


def _reply(prediction: Prediction, table: TableId, usage: Usage, stage: str) -> Reply:
    tried = [{"suql": each.suql, "outcome": each.outcome, "message": each.message} for each in prediction.tried]
    ran = any(each.outcome in ("rows", "empty") for each in prediction.tried)
    fault = "" if ran or not prediction.tried else prediction.tried[-1].message
    led: dict[str, object] = {"table": list(table), "suql": prediction.suql, "tried": tried}
    led |= {"text_calls": prediction.text_calls, "warnings": prediction.warnings}
    return Reply(prediction.answer, fault, json.dumps(led, ensure_ascii=False), usage, stage)
