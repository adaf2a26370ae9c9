"""Retrievers by name, by plug-in, or by `module:object`; almanaq-bench adapts objects of other libraries."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from almanaq.corpus.table import TableId
from almanaq.errors import UsageError, suggest
from almanaq.models.budget import Budget
from almanaq.models.embedders.local import local_is_installed
from almanaq.models.protocols import Embedder, LanguageModel
from almanaq.plugins import Group, call_plugin, load_plugin, open_with_bench, plugin_names
from almanaq.retrieval.protocols import Retriever

if TYPE_CHECKING:
    from almanaq.retrieval.dense import Aspects


_GROUP: Group = "almanaq.retrievers"


@dataclass(frozen=True, slots=True)
class RetrieverParts:
    """What retrievers are built from.

    Attributes:
        embedder: opens the embedder; called only for retrievers that need one.
        cache: the folder of cached vectors; None keeps them in memory.
        seed: of the random retriever.
        gold: gold tables by question, for the oracle.
        model: opens the language model of a name such as `openai:MODEL`; None where none is available.
        language: writes summaries; None opens the model of the environment, else the paper's.
        tell: receives the expected cost of paid work, before it starts.
        budget: what that work may cost.
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
class OpenedRetriever:
    """A retriever, and how its name was resolved.

    Attributes:
        name: the retriever that runs: `bm25` where `hybrid` was requested without a semantic embedder.
        embedder: the embedder's name; "" where none is used.
        note: why another retriever runs than was named; "" where it does not.
    """

    retriever: Retriever
    name: str
    embedder: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class RetrieverOpener:
    """Returned by an entry point of `almanaq.retrievers` whose retriever needs an embedder, a model or a budget.

    Attributes:
        open: builds the retriever.
        sees_own_text: whether it ignores the declared fields and indexes its own text: `--fields` is then wrong usage.
        is_bound: whether it only marks a bound for measurements, and is of no use to users.
    """

    open: Callable[[RetrieverParts], OpenedRetriever]
    sees_own_text: bool = False
    is_bound: bool = False


def default_embedder() -> str:
    """Return `local` where its package and weights are installed, else `lexical`."""
    return "local" if local_is_installed() else "lexical"


_LOOK_HERE: ContextVar[bool] = ContextVar("almanaq_modules_here", default=False)


def look_here() -> None:
    """Let `module:object` import modules of the working folder from now on."""
    _LOOK_HERE.set(True)


def import_object(name: str, kind: str) -> Any:
    """Import the object that `module:object` names; a class is instantiated.

    Args:
        kind: what the object should be, for messages.

    Raises:
        UsageError: there is no such module or object, or importing or creating it fails.
    """
    module_name, _, path = name.partition(":")
    if _LOOK_HERE.get() and os.getcwd() not in sys.path:
        # Appended, so that a file of the folder cannot shadow an installed module.
        sys.path.append(os.getcwd())
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as error:
        raise UsageError(f"{kind} {name!r}: cannot import {module_name!r}: {_describe_error(error)}") from error
    for part in path.split("."):
        if not hasattr(found, part):
            raise UsageError(f"{kind} {name!r}: {module_name} has no {part!r}{suggest(part, dir(found))}")
        found = getattr(found, part)
    if not isinstance(found, type):
        return found
    try:
        return found()
    except Exception as error:
        raise UsageError(f"{kind} {name!r}: it cannot be created: {_describe_error(error)}") from error


def _describe_error(error: Exception) -> str:
    return str(error) if isinstance(error, ImportError) else f"{type(error).__name__}: {' '.join(str(error).split())}"


def open_retriever(name: str, parts: RetrieverParts) -> OpenedRetriever:
    """Open a retriever by its name, by `rerank:` and the name of a model that reads tables, or by `module:object`.

    Raises UsageError where there is no such retriever, model, module or object.
    """
    if name in RETRIEVERS:
        return RETRIEVERS[name](parts)
    if name.startswith("rerank:"):
        opened: OpenedRetriever = open_with_bench("rerank", f"retriever {name!r} asks a model", name, parts)
        return opened
    if ":" in name:
        return OpenedRetriever(_adapt(import_object(name, "retriever"), name), name)
    if (opener := plugin_opener(name)) is not None:
        return opener.open(parts)
    raise _unknown_error(name)


def _adapt(found: Any, name: str) -> Retriever:
    what = f"retriever {name!r} has no index(corpus, fields), and is adapted to it"
    retriever: Retriever = (
        found if callable(getattr(found, "index", None)) else open_with_bench("adapter", what, found, name)
    )
    return retriever


def check_retriever(name: str) -> None:
    """Raise UsageError for an unknown retriever, before tables are read for it."""
    if name not in RETRIEVERS and ":" not in name and name not in plugin_names(_GROUP):
        raise _unknown_error(name)


def plugin_opener(name: str) -> RetrieverOpener | None:
    """Return the opener of a retriever that a plugin adds under this name, None where there is none."""
    if name in RETRIEVERS or ":" in name:
        return None
    found = load_plugin(_GROUP, name)
    if isinstance(found, Mapping):
        found = found.get(name)
    if found is None or isinstance(found, RetrieverOpener):
        return found
    made = call_plugin(_GROUP, name) if isinstance(found, type) else found
    return RetrieverOpener(lambda _: OpenedRetriever(_adapt(made, name), name))


def sees_own_text(name: str) -> bool:
    """Return whether a retriever ignores the declared fields and indexes its own text."""
    opener = plugin_opener(name)
    return opener is not None and opener.sees_own_text


def check_fields_apply(name: str) -> None:
    """Raise UsageError for declared fields with a retriever that ignores them."""
    if sees_own_text(name):
        raise UsageError(f"--fields cannot be combined with --retriever {name}, which sees its own text")


def _unknown_error(name: str) -> UsageError:
    known = (*RETRIEVERS, *plugin_names(_GROUP))
    more = "" if find_spec("almanaq_bench") else "; those of papers and experiments come with  pip install ./bench"
    return UsageError(f"unknown retriever {name!r}{suggest(name, known)}{more}")


def _open_bm25(_: RetrieverParts) -> OpenedRetriever:
    from almanaq.retrieval.bm25 import BM25

    return OpenedRetriever(BM25(), "bm25")


def _open_dense(parts: RetrieverParts) -> OpenedRetriever:
    from almanaq.models.embedders.vector_store import VectorStore
    from almanaq.retrieval.dense import Dense

    embedder = parts.embedder()
    return OpenedRetriever(Dense(VectorStore(parts.cache, embedder)), "dense", embedder.name)


def _open_hybrid(parts: RetrieverParts) -> OpenedRetriever:
    from almanaq.retrieval.bm25 import BM25
    from almanaq.retrieval.rerank import Rerank

    embedder = parts.embedder()
    if embedder.name.startswith("lexical"):
        # The lexical embedder counts the same words as BM25: fusing the two adds nothing.
        note = "hybrid runs as bm25: the lexical embedder adds nothing; install 'almanaq[local]' or name another"
        return OpenedRetriever(BM25(), "bm25", note=note)
    return OpenedRetriever(Rerank(aspects=_make_aspects(parts, embedder, 0), name="hybrid"), "hybrid", embedder.name)


def _open_rerank(parts: RetrieverParts) -> OpenedRetriever:
    from almanaq.retrieval.dense import VIEW_ROWS
    from almanaq.retrieval.rerank import Rerank

    embedder = parts.embedder()
    if embedder.name.startswith("lexical"):
        note = "rerank runs without vectors: the lexical embedder adds nothing; install 'almanaq[local]'"
        return OpenedRetriever(Rerank(name="rerank"), "rerank-lexical", note=note)
    return OpenedRetriever(
        Rerank(aspects=_make_aspects(parts, embedder, VIEW_ROWS), name="rerank"), "rerank", embedder.name
    )


def _make_aspects(parts: RetrieverParts, embedder: Embedder, rows: int) -> Aspects:
    from almanaq.models.embedders.vector_store import VectorStore
    from almanaq.retrieval.dense import Aspects

    return Aspects(VectorStore(parts.cache, embedder), rows=rows)


RETRIEVERS: Mapping[str, Callable[[RetrieverParts], OpenedRetriever]] = {
    "bm25": _open_bm25,
    "dense": _open_dense,
    "hybrid": _open_hybrid,
    "rerank": _open_rerank,
}
