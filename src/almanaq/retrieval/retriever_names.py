"""Retrievers by name, by plug-in, or by `module:object`; almanaq-bench adapts objects of other libraries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from almanaq.benchmark import import_bench
from almanaq.corpus.table import TableId
from almanaq.errors import UsageError, suggest
from almanaq.models.budget import Budget
from almanaq.models.embedders.minilm import local_is_installed
from almanaq.models.protocols import Embedder, LanguageModel
from almanaq.plugins import Group, call_plugin, load_plugin, plugin_names
from almanaq.retrieval.protocols import Retriever

_GROUP: Group = "almanaq.retrievers"
RETRIEVERS = ("bm25", "dense", "hybrid", "rerank")


@dataclass(frozen=True, slots=True)
class RetrieverParts:
    embedder: Callable[[], Embedder]  # called only for retrievers that need one
    cache: Path | None = None  # the folder of cached vectors; None keeps them in memory
    seed: int = 0  # of the random retriever
    gold: Mapping[str, Sequence[TableId]] = field(default_factory=dict)  # by question, for the oracle
    model: Callable[[str], LanguageModel] | None = None  # opens `openai:MODEL`; None where none is available
    language: LanguageModel | None = None  # writes summaries; None: the model of the environment, else the paper's
    tell: Callable[[str], None] = field(default=lambda _: None)  # the expected cost of paid work, before it starts
    budget: Budget = field(default_factory=Budget)  # of that work


@dataclass(frozen=True, slots=True)
class OpenedRetriever:
    retriever: Retriever
    name: str  # of the one that runs: `bm25` where `hybrid` was requested without a semantic embedder
    embedder: str = ""  # its name; "" where none is used
    note: str = ""  # why another retriever runs than was named


@dataclass(frozen=True, slots=True)
class RetrieverOpener:
    """Returned by an entry point of `almanaq.retrievers` whose retriever needs an embedder, a model or a budget."""

    open: Callable[[RetrieverParts], OpenedRetriever]
    sees_own_text: bool = False  # ignores the declared fields: `--fields` is then wrong usage
    is_bound: bool = False  # only marks a bound for measurements, of no use to users


def default_embedder() -> str:
    return "local" if local_is_installed() else "lexical"


def open_retriever(name: str, parts: RetrieverParts) -> OpenedRetriever:
    """Open a retriever by its name, by `rerank:` and the name of a model that reads tables, or by `module:object`."""
    if name in RETRIEVERS:
        return _open_own(name, parts)
    if name.startswith("rerank:"):
        rerankers = import_bench("retrievers.model_reranker", f"retriever {name!r}")
        opened: OpenedRetriever = rerankers.open_model_reranker(name, parts)
        return opened
    if ":" in name:
        found = import_bench("retrievers.adapters", f"retriever {name!r}").import_object(name, "retriever")
        return OpenedRetriever(_adapt(found, name), name)
    if (opener := plugin_opener(name)) is not None:
        return opener.open(parts)
    raise _unknown_error(name)


def _adapt(found: Any, name: str) -> Retriever:
    retriever: Retriever = found
    if not callable(getattr(found, "index", None)):
        purpose = f"retriever {name!r} has no index(corpus, fields), so it"
        retriever = import_bench("retrievers.paper_retrievers", purpose).adapt(found, name)
    return retriever


def check_retriever(name: str) -> None:
    """Raise UsageError for an unknown retriever, before tables are read for it."""
    if name not in RETRIEVERS and ":" not in name and name not in plugin_names(_GROUP):
        raise _unknown_error(name)


def plugin_opener(name: str) -> RetrieverOpener | None:
    """Return the opener of a retriever that a plug-in adds under this name, None where there is none."""
    if name in RETRIEVERS or ":" in name:
        return None
    found = load_plugin(_GROUP, name)
    if isinstance(found, Mapping):
        found = found.get(name)
    if found is None or isinstance(found, RetrieverOpener):
        return found
    made = call_plugin(_GROUP, name) if isinstance(found, type) else found
    return RetrieverOpener(lambda _: OpenedRetriever(_adapt(made, name), name))


def check_fields_apply(name: str) -> None:
    opener = plugin_opener(name)
    if opener is not None and opener.sees_own_text:
        raise UsageError(f"--fields cannot be combined with --retriever {name}, which sees its own text")


def _unknown_error(name: str) -> UsageError:
    known = (*RETRIEVERS, *plugin_names(_GROUP))
    more = "" if find_spec("almanaq_bench") else "; those of papers and experiments come with  pip install ./bench"
    return UsageError(f"unknown retriever {name!r}{suggest(name, known)}{more}")


def _open_own(name: str, parts: RetrieverParts) -> OpenedRetriever:
    from almanaq.models.embedders.vector_store import VectorStore
    from almanaq.retrieval.bm25 import BM25
    from almanaq.retrieval.dense import VIEW_ROWS, Aspects, Dense
    from almanaq.retrieval.rerank import Rerank

    if name == "bm25":
        return OpenedRetriever(BM25(), name)
    embedder = parts.embedder()
    # The lexical embedder counts the same words as BM25: fusing the two adds nothing.
    if embedder.name.startswith("lexical") and name == "hybrid":
        note = "hybrid runs as bm25: the lexical embedder adds nothing; install 'almanaq[local]' or name another"
        return OpenedRetriever(BM25(), "bm25", note=note)
    if embedder.name.startswith("lexical") and name == "rerank":
        note = "rerank runs without vectors: the lexical embedder adds nothing; install 'almanaq[local]'"
        return OpenedRetriever(Rerank(name=name), "rerank-lexical", note=note)
    store = VectorStore(parts.cache, embedder)
    aspects = Aspects(store, rows=VIEW_ROWS if name == "rerank" else 0)
    return OpenedRetriever(Dense(store) if name == "dense" else Rerank(aspects=aspects, name=name), name, embedder.name)
