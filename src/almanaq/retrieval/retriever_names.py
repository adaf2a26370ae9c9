"""Retrievers by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from almanaq.corpus.table import TableId
from almanaq.errors import UsageError, suggest
from almanaq.models.budget import Budget
from almanaq.models.local_embedder import local_is_installed
from almanaq.models.protocols import Embedder, LanguageModel
from almanaq.plugins import call_plugin, load_plugin, plugin_names
from almanaq.retrieval.protocols import Retriever

if TYPE_CHECKING:
    from almanaq.models.vector_store import VectorStore
    from almanaq.retrieval.aspects import Aspects

TARGET_LEXICAL_NAMES = (
    "target-bm25",
    "target-bm25-notitle",
    "target-tfidf",
    "target-tfidf-notitle",
    "target-bm25-described",
    "target-tfidf-described",
)
"""OTT-QA's BM25 and TF-IDF as the TARGET paper has them; see target_lexical."""

PUBLISHED_DENSE = (
    "llm-summary",
    "openai-embedding",
    "openai-embedding-header",
    "hnsw-openai",
    "stella",
    "e5",
    "row-serial",
)
"""The dense retrievers of the TARGET paper and of its published code; see published.dense."""

JUDGED = "rerank:"
"""What stands before the name of a model that ranks the candidates of `rerank` anew."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What retrievers are made from.

    Attributes:
        embedder: makes vectors; called only for retrievers that need them.
        cache: the folder that vectors are kept in; None keeps them in memory.
        seed: of the retriever that draws by chance.
        gold: gold tables by question, for the oracle.
        model: opens the language model of a name such as `openai:MODEL`; None where there is none to be had.
        language: writes summaries; None opens the model of the environment, else the paper's.
        tell: is given what paid work will cost, before it starts.
        budget: what it may cost.
    """

    embedder: Callable[[], Embedder]
    cache: Path | None = None
    seed: int = 0
    gold: Mapping[str, Sequence[TableId]] = field(default_factory=dict)
    model: Callable[[str], LanguageModel] | None = None
    language: LanguageModel | None = None
    tell: Callable[[str], None] = field(default=lambda _: None)
    budget: Budget = field(default_factory=Budget)


@dataclass(frozen=True, slots=True)
class Opened:
    """A retriever, and how its name was understood.

    Attributes:
        name: the retriever that runs: `bm25` where `hybrid` was asked for without an embedder of meaning.
        embedder: the embedder's name; "" where none is used.
        note: why another than the named retriever runs; "" where it does not.
    """

    retriever: Retriever
    name: str
    embedder: str = ""
    note: str = ""


def default_embedder() -> str:
    """Return `local` where its package and weights are installed, else `lexical`."""
    return "local" if local_is_installed() else "lexical"


def open_retriever(name: str, parts: Parts) -> Opened:
    """Open a retriever by its name, by `rerank:` and the name of a model that reads tables, or by `module:object`.

    The name may be one that another package adds (the entry points `almanaq.retrievers`).

    Raises:
        UsageError: there is no such retriever, model, module or object.
    """
    if name in RETRIEVERS:
        return RETRIEVERS[name](parts)
    if name.startswith(JUDGED):
        return _judged(name, parts)
    if ":" in name:
        return Opened(_imported(name), name)
    if (added := _added(name)) is not None:
        return Opened(added, name)
    raise _unknown(name)


def check_retriever(name: str) -> None:
    """Raise UsageError for a name that no retriever has, before tables are read for it."""
    if name not in RETRIEVERS and ":" not in name and name not in plugin_names("almanaq.retrievers"):
        raise _unknown(name)


def _unknown(name: str) -> UsageError:
    known = (*RETRIEVERS, *plugin_names("almanaq.retrievers"))
    return UsageError(f"unknown retriever {name!r}{suggest(name, known)}")


def sees_its_own(name: str) -> bool:
    """Return whether a retriever sees a text of its own, whatever fields are declared: `--fields` is
    wrong usage then.
    """
    return name.startswith("target-") or name in PUBLISHED_DENSE


def check_fields_apply(name: str) -> None:
    """Raise UsageError for declared fields beside a retriever that sees what it sees."""
    if sees_its_own(name):
        raise UsageError(f"--fields does not go with --retriever {name}: it sees a text of its own; leave --fields out")


def _bm25(_: Parts) -> Opened:
    from almanaq.retrieval.bm25 import BM25

    return Opened(BM25(), "bm25")


def _dense(name: str, *, rows: bool = False, columns: bool = False) -> Callable[[Parts], Opened]:
    def opened(parts: Parts) -> Opened:
        from almanaq.models.vector_store import VectorStore
        from almanaq.retrieval.dense import Dense

        embedder = parts.embedder()
        made = Dense(VectorStore(parts.cache, embedder), rows=rows, columns=columns, name=name)
        return Opened(made, name, embedder.name)

    return opened


def _dense_graph(parts: Parts) -> Opened:
    from almanaq.models.vector_store import VectorStore
    from almanaq.retrieval.dense import Dense
    from almanaq.retrieval.hnsw import DenseGraph

    embedder = parts.embedder()
    return Opened(DenseGraph(Dense(VectorStore(parts.cache, embedder))), "dense-hnsw", embedder.name)


def _hybrid(parts: Parts) -> Opened:
    from almanaq.retrieval.bm25 import BM25
    from almanaq.retrieval.rerank import Rerank

    embedder = parts.embedder()
    if embedder.name.startswith("lexical"):
        # A second count of the same words is no second opinion.
        note = "hybrid runs as bm25: the lexical embedder adds nothing to it; install 'almanaq[local]' or name another"
        return Opened(BM25(), "bm25", note=note)
    return Opened(Rerank(aspects=_aspects(parts, embedder, 0), name="hybrid"), "hybrid", embedder.name)


def _rerank(parts: Parts) -> Opened:
    from almanaq.retrieval.aspects import ROWS
    from almanaq.retrieval.rerank import Rerank

    embedder = parts.embedder()
    if embedder.name.startswith("lexical"):
        note = "rerank runs without vectors: the lexical embedder adds nothing to it; install 'almanaq[local]'"
        return Opened(Rerank(name="rerank"), "rerank-lexical", note=note)
    return Opened(Rerank(aspects=_aspects(parts, embedder, ROWS), name="rerank"), "rerank", embedder.name)


def _aspects(parts: Parts, embedder: Embedder, rows: int) -> Aspects:
    from almanaq.models.vector_store import VectorStore
    from almanaq.retrieval.aspects import Aspects

    return Aspects(VectorStore(parts.cache, embedder), rows=rows)


def _hybrid_untuned(parts: Parts) -> Opened:
    from almanaq.models.vector_store import VectorStore
    from almanaq.retrieval.bm25 import BM25
    from almanaq.retrieval.dense import Dense
    from almanaq.retrieval.hybrid import Hybrid

    embedder = parts.embedder()
    made = Hybrid(BM25(), Dense(VectorStore(parts.cache, embedder)), name="hybrid-untuned")
    return Opened(made, "hybrid-untuned", embedder.name)


def _judged(name: str, parts: Parts) -> Opened:
    """Open `rerank:openai:MODEL`, or `rerank:` and the path or hub name of a cross-encoder."""
    from almanaq.retrieval.model_reranker import CrossEncoderJudge, Judge, Judged, LanguageModelJudge

    first, model = _rerank(parts), name.removeprefix(JUDGED)
    judge: Judge
    if model.startswith("openai:"):
        if parts.model is None:
            raise UsageError(f"retriever {name!r} needs a language model, and none can be opened here")
        judge = LanguageModelJudge(parts.model(model))
    elif "/" in model or os.sep in model:
        from almanaq.models.cross_encoder import CrossEncoder

        judge = CrossEncoderJudge(CrossEncoder(model))
    else:
        raise UsageError(
            f"retriever {name!r} names no model: write rerank:openai:MODEL, or rerank: and the path or hub name of a "
            "cross-encoder, which has a slash"
        )
    return Opened(Judged(first.retriever, judge), name, first.embedder, first.note)


def _target_lexical(name: str) -> Callable[[Parts], Opened]:
    def opened(_: Parts) -> Opened:
        from almanaq.retrieval.published.lexical import TARGET_LEXICAL

        return Opened(TARGET_LEXICAL[name], name)

    return opened


def _markdown(name: str, rows: int | None, embedder: str = "EMBEDDER") -> Callable[[Parts], Opened]:
    def opened(parts: Parts) -> Opened:
        from almanaq.retrieval.paid import Foreseen
        from almanaq.retrieval.published import dense

        store, note = _published_store(name, getattr(dense, embedder), parts)
        most = dense.ALL_ROWS if rows is None else rows
        made = dense.MarkdownEmbedding(store, most, Foreseen(parts.tell, parts.budget), name)
        return Opened(made, name, store.embedder.name, note)

    return opened


def _row_serial(parts: Parts) -> Opened:
    from almanaq.retrieval.paid import Foreseen
    from almanaq.retrieval.published.dense import STELLA, RowSerial

    store, note = _published_store("row-serial", STELLA, parts)
    return Opened(RowSerial(store, Foreseen(parts.tell, parts.budget)), "row-serial", store.embedder.name, note)


def _summaries(parts: Parts) -> Opened:
    from almanaq.models.model_names import ModelSettings, open_models
    from almanaq.retrieval.paid import Foreseen
    from almanaq.retrieval.published.dense import SUMMARY_EMBEDDER, SUMMARY_MODEL, Summaries

    store, note = _published_store("llm-summary", SUMMARY_EMBEDDER, parts)
    named = os.environ.get("ALMANAQ_MODEL", "local")
    spec = parts.language or (SUMMARY_MODEL if named == "local" else named)
    language = open_models(spec, embedder=store.embedder, settings=ModelSettings(budget=parts.budget)).language
    if language is None:
        raise UsageError(f"llm-summary needs a language model, and {named!r} is none: set ALMANAQ_MODEL")
    made = Summaries(language, store, Foreseen(parts.tell, parts.budget))
    return Opened(made, "llm-summary", store.embedder.name, note)


def _published_store(name: str, published: str, parts: Parts) -> tuple[VectorStore, str]:
    """Return the store of the paper's embedder, or of the one that the user named.

    Those of this machine are defaults.
    """
    from almanaq.models.model_names import open_embedder
    from almanaq.models.vector_store import VectorStore

    embedder = parts.embedder()
    if embedder.name not in ("local", "lexical"):
        return VectorStore(
            parts.cache, embedder
        ), f"{name} embeds with {embedder.name}, where the paper has {published}"
    return VectorStore(parts.cache, open_embedder(published)), ""


def _none(_: Parts) -> Opened:
    from almanaq.retrieval.baselines import NoRetriever

    return Opened(NoRetriever(), "none")


def _random(parts: Parts) -> Opened:
    from almanaq.retrieval.baselines import RandomRetriever

    return Opened(RandomRetriever(parts.seed), "random")


def _oracle(parts: Parts) -> Opened:
    from almanaq.retrieval.baselines import Oracle

    return Opened(Oracle(parts.gold), "oracle")


def _added(name: str) -> Retriever | None:
    """Return the retriever that another package adds under a name, None where none does."""
    from almanaq.retrieval.adapters import adapt

    found = load_plugin("almanaq.retrievers", name)
    if isinstance(found, type):
        found = call_plugin("almanaq.retrievers", name)
    return None if found is None else adapt(found, name)


def _imported(name: str) -> Retriever:
    """Return the retriever that `module:object` names: ours, or one of the kinds that adapters knows."""
    from almanaq.retrieval.adapters import adapt
    from almanaq.retrieval.imported import import_object

    return adapt(import_object(name, "retriever"), name)


RETRIEVERS: Mapping[str, Callable[[Parts], Opened]] = {
    "none": _none,
    "random": _random,
    "oracle": _oracle,
    "bm25": _bm25,
    "dense": _dense("dense"),
    "dense-rows": _dense("dense-rows", rows=True),
    "dense-columns": _dense("dense-columns", columns=True),
    "dense-rows-columns": _dense("dense-rows-columns", rows=True, columns=True),
    "dense-hnsw": _dense_graph,
    "hybrid": _hybrid,
    "hybrid-untuned": _hybrid_untuned,
    "rerank": _rerank,
    **{name: _target_lexical(name) for name in TARGET_LEXICAL_NAMES},
    "llm-summary": _summaries,
    "openai-embedding": _markdown("openai-embedding", 100),
    "openai-embedding-header": _markdown("openai-embedding-header", 0),
    "hnsw-openai": _markdown("hnsw-openai", None),
    "stella": _markdown("stella", None, "STELLA"),
    "e5": _markdown("e5", None, "E5"),
    "row-serial": _row_serial,
}
