"""The TARGET paper's dense retrievers: embedded markdown in an HNSW index, and embedded summaries by a language model.

Like its lexical ones they see a text of their own, whatever fields are declared: no title, header and rows only.
"""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from almanaq.corpus.table import Corpus, Table, check_distinct
from almanaq.errors import ModelCallError
from almanaq.event_loops import run_sync
from almanaq.models.budget import estimate_tokens
from almanaq.models.cached import request_key
from almanaq.models.embedders.vector_store import VectorStore
from almanaq.models.prompted_reader import ask_model
from almanaq.models.protocols import LanguageModel, Prompt
from almanaq.models.text_calls import MalformedReply, parse_object
from almanaq.retrieval.dense import DenseIndex, collect_texts
from almanaq_bench.cost_forecast import CostForecast
from almanaq_bench.prompts import bench_prompt
from almanaq_bench.retrievers.variants import GraphIndex, graph_index

EMBEDDER, SUMMARY_EMBEDDER = "openai:text-embedding-3-small", "openai:text-embedding-ada-002"
"""The paper's, taken where the run names no other embedder than one of this machine."""

SUMMARY_MODEL = "openai:gpt-4o-mini"

STELLA, E5 = "NovaSearch/stella_en_400M_v5", "intfloat/multilingual-e5-large-instruct"
"""The open embedders of the published code, by their names on the Hugging Face hub."""

ALL_ROWS = 10**9

_MOST_TOKENS = 8_000  # what the paper's embedder takes is 8,191
_FEWER = 10  # rows left out at a time where a table is longer
_SUMMARY_ROWS = 10
_CELL_CHARS = 500  # of a cell that a language model is shown
_SUMMARY_TOKENS = 100  # of a reply, foreseen
_AT_ONCE = 256  # tables that are summarised at once


@dataclass(frozen=True)
class MarkdownEmbedding:
    """Embeds each table as a markdown string of its header and first rows, and keeps the vectors in an HNSW graph.

    Args:
        rows: how many rows at most: 100 in the paper, 0 for its row of headers only.
    """

    store: VectorStore
    rows: int
    foreseen: CostForecast
    name: str

    def index(self, corpus: Corpus, fields: Sequence[str]) -> GraphIndex:  # noqa: ARG002
        """Embed a corpus.

        Raises:
            SourceError: the corpus is empty.
            ModelError: the embedder fails.
            BudgetExceeded: it would cost more than the budget allows.
        """
        listed = [(table.id, format_markdown(table, self.rows)) for table in check_distinct(corpus)]
        ids, texts = zip(*listed, strict=True)
        self.foreseen.vectors(self.store, texts)
        return graph_index(ids, self.store.vectors(texts), self.store)


@dataclass(frozen=True)
class RowSerial:
    """Embeds every row as "column is value, column is value", and takes a table for as near as its nearest row."""

    store: VectorStore
    foreseen: CostForecast
    name: str = "row-serial"

    def index(self, corpus: Corpus, fields: Sequence[str]) -> DenseIndex:  # noqa: ARG002
        """Embed a corpus; a table without rows is embedded by its header. Raises as MarkdownEmbedding's."""
        ids, texts, starts = collect_texts(corpus, _rows_in_words)
        self.foreseen.vectors(self.store, texts)
        return DenseIndex(ids, self.store.vectors(texts), starts, self.store)


def _rows_in_words(table: Table) -> list[str]:
    pairs = [zip(table.header, row, strict=True) for row in table.rows]
    return [", ".join(f"{name} is {cell}" for name, cell in row) for row in pairs] or [", ".join(table.header)]


@dataclass(frozen=True)
class Summaries:
    """Has a language model write a title and a summary of each table, and embeds these: LlamaIndex's method.

    Args:
        store: embeds the summaries.
    """

    language: LanguageModel
    store: VectorStore
    foreseen: CostForecast
    name: str = "llm-summary"

    def index(self, corpus: Corpus, fields: Sequence[str]) -> DenseIndex:  # noqa: ARG002
        """Summarise and embed a corpus; what is in the caches is not asked for again. Raises as MarkdownEmbedding's."""
        tables = [(table.id, summary_prompt(table)) for table in check_distinct(corpus)]
        ids, prompts = zip(*tables, strict=True)
        new = ["\n".join(m.content for m in prompt.messages) for prompt in prompts if not self._is_kept(prompt)]
        self.foreseen.replies(f"summaries of {len(new):,} tables", self.language.name, new, _SUMMARY_TOKENS)
        texts: list[str] = run_sync(self._texts(prompts))
        self.foreseen.vectors(self.store, texts)
        return DenseIndex(ids, self.store.vectors(texts), np.arange(len(ids)), self.store)

    def _is_kept(self, prompt: Prompt) -> bool:
        cache, identity = getattr(self.language, "cache", None), getattr(self.language, "identity", "")
        return cache is not None and cache.get(request_key(identity, prompt)) is not None

    async def _texts(self, prompts: Sequence[Prompt]) -> list[str]:
        texts: list[str] = []
        for start in range(0, len(prompts), _AT_ONCE):
            # Where one fails, the others under way are paid for: they are waited for, and kept.
            written = map(self._text, prompts[start : start + _AT_ONCE])
            for text in await asyncio.gather(*written, return_exceptions=True):
                if isinstance(text, BaseException):
                    raise text
                texts.append(text)
        return texts

    async def _text(self, prompt: Prompt) -> str:
        try:
            text, _, _ = await ask_model(self.language, prompt, _summary)
        except ModelCallError as problem:
            raise type(problem)(f"llm-summary: a table has no summary: {problem}; run again to go on") from problem
        return text


def format_markdown(table: Table, rows: int) -> str:
    """Return a table as markdown, with no more rows than an embedder takes."""
    while True:
        lines = [table.header, *([["---"] * len(table.header), *table.rows[:rows]] if rows else [])]
        text = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
        if rows <= 0 or estimate_tokens(text) <= _MOST_TOKENS:
            return text
        rows = min(rows, len(table.rows)) - _FEWER


def summary_prompt(table: Table) -> Prompt:
    """Return the request for a table's title and summary, from its header and first rows."""
    written = io.StringIO()
    shown = [table.header, *table.rows[:_SUMMARY_ROWS]]
    csv.writer(written, lineterminator="\n").writerows([[cell[:_CELL_CHARS] for cell in row] for row in shown])
    return bench_prompt("table_summary", {"table": written.getvalue()})


def _summary(reply: str) -> str:
    fields = parse_object(reply)
    title, summary = fields.get("title"), fields.get("summary")
    if not isinstance(title, str) or not isinstance(summary, str) or not (title + summary).strip():
        raise MalformedReply("it must have a title and a summary")
    return f"{title}\n{summary}"
