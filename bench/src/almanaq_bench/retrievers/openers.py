"""The retrievers that this package adds to almanaq's, by name: baselines, those of papers, variants of experiments.

Each is an entry point of `almanaq.retrievers` in `pyproject.toml`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial

from almanaq.errors import UsageError
from almanaq.models.embedders.vector_store import VectorStore
from almanaq.models.model_names import ModelSettings, open_embedder, open_models
from almanaq.retrieval.bm25 import BM25
from almanaq.retrieval.dense import Dense
from almanaq.retrieval.protocols import Retriever
from almanaq.retrieval.retriever_names import RETRIEVERS, OpenedRetriever, RetrieverOpener, RetrieverParts
from almanaq_bench.cost_forecast import CostForecast
from almanaq_bench.retrievers import target_dense
from almanaq_bench.retrievers.baselines import NoRetriever, Oracle, RandomRetriever
from almanaq_bench.retrievers.target_lexical import TARGET_LEXICAL
from almanaq_bench.retrievers.variants import DenseGraph, DenseParts, Hybrid


def _open_baseline(
    name: str, make: Callable[[RetrieverParts], Retriever]
) -> Callable[[RetrieverParts], OpenedRetriever]:
    return lambda parts: OpenedRetriever(make(parts), name)


def _lexical(name: str, _: RetrieverParts) -> Retriever:
    return TARGET_LEXICAL[name]


def _open_variant(name: str, make: Callable[[VectorStore], Retriever]) -> Callable[[RetrieverParts], OpenedRetriever]:
    """Return what opens a retriever over the vectors of the embedder that was chosen."""

    def open_variant(parts: RetrieverParts) -> OpenedRetriever:
        embedder = parts.embedder()
        return OpenedRetriever(make(VectorStore(parts.cache, embedder)), name, embedder.name)

    return open_variant


def _open_published(
    name: str, embedder: str, make: Callable[[VectorStore, CostForecast], Retriever]
) -> Callable[[RetrieverParts], OpenedRetriever]:
    """Return what opens a retriever over the vectors of the embedder that its paper has, or that the user named."""

    def open_published(parts: RetrieverParts) -> OpenedRetriever:
        store, note = _open_published_store(name, embedder, parts)
        return OpenedRetriever(make(store, CostForecast(parts.tell, parts.budget)), name, store.embedder.name, note)

    return open_published


def _open_markdown(
    name: str, rows: int, embedder: str = target_dense.EMBEDDER
) -> Callable[[RetrieverParts], OpenedRetriever]:
    return _open_published(
        name, embedder, lambda store, foreseen: target_dense.MarkdownEmbedding(store, rows, foreseen, name)
    )


def _open_summaries(parts: RetrieverParts) -> OpenedRetriever:
    store, note = _open_published_store("llm-summary", target_dense.SUMMARY_EMBEDDER, parts)
    named = os.environ.get("ALMANAQ_MODEL", "local")
    spec = parts.language or (target_dense.SUMMARY_MODEL if named == "local" else named)
    language = open_models(spec, embedder=store.embedder, settings=ModelSettings(budget=parts.budget)).language
    if language is None:
        raise UsageError(f"llm-summary needs a language model, and {named!r} is none: set ALMANAQ_MODEL")
    made = target_dense.Summaries(language, store, CostForecast(parts.tell, parts.budget))
    return OpenedRetriever(made, "llm-summary", store.embedder.name, note)


def _open_published_store(name: str, published: str, parts: RetrieverParts) -> tuple[VectorStore, str]:
    """Return the store of the paper's embedder, or of the one that the user named, and a note that says so.

    The embedders of this machine are defaults: nobody named them.
    """
    embedder = parts.embedder()
    if embedder.name not in ("local", "lexical"):
        note = f"{name} embeds with {embedder.name}, where the paper has {published}"
        return VectorStore(parts.cache, embedder), note
    return VectorStore(parts.cache, open_embedder(published)), ""


_OPEN: Mapping[str, Callable[[RetrieverParts], OpenedRetriever]] = {
    "none": _open_baseline("none", lambda _: NoRetriever()),
    "random": _open_baseline("random", lambda parts: RandomRetriever(parts.seed)),
    "oracle": _open_baseline("oracle", lambda parts: Oracle(parts.gold)),
    "dense-rows": _open_variant("dense-rows", lambda store: DenseParts(store, rows=True, name="dense-rows")),
    "dense-columns": _open_variant(
        "dense-columns", lambda store: DenseParts(store, columns=True, name="dense-columns")
    ),
    "dense-rows-columns": _open_variant(
        "dense-rows-columns", lambda store: DenseParts(store, rows=True, columns=True, name="dense-rows-columns")
    ),
    "dense-hnsw": _open_variant("dense-hnsw", lambda store: DenseGraph(Dense(store))),
    "hybrid-untuned": _open_variant(
        "hybrid-untuned", lambda store: Hybrid(BM25(), Dense(store), name="hybrid-untuned")
    ),
    **{name: _open_baseline(name, partial(_lexical, name)) for name in TARGET_LEXICAL},
    "llm-summary": _open_summaries,
    "openai-embedding": _open_markdown("openai-embedding", 100),
    "openai-embedding-header": _open_markdown("openai-embedding-header", 0),
    "hnsw-openai": _open_markdown("hnsw-openai", target_dense.ALL_ROWS),
    "stella": _open_markdown("stella", target_dense.ALL_ROWS, target_dense.STELLA),
    "e5": _open_markdown("e5", target_dense.ALL_ROWS, target_dense.E5),
    "row-serial": _open_published("row-serial", target_dense.STELLA, target_dense.RowSerial),
}

_BOUNDS = ("none", "oracle")
_DECLARED = ("random", *_BOUNDS, "dense-rows", "dense-columns", "dense-rows-columns", "dense-hnsw", "hybrid-untuned")
"""Those that a declaration of fields changes, or that see nothing of a table at all."""

OPENERS: Mapping[str, RetrieverOpener] = {
    name: RetrieverOpener(open_named, sees_own_text=name not in _DECLARED, is_bound=name in _BOUNDS)
    for name, open_named in _OPEN.items()
}
"""The retrievers that `bench run --retriever` takes beside almanaq's own."""

NAMES = ("none", "random", "oracle", *RETRIEVERS, *(name for name in OPENERS if name not in (*_BOUNDS, "random")))
"""All retrievers by name, as `bench list` shows them."""
