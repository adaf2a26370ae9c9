"""Retrievers by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from almanaq.corpus.table import TableId
from almanaq.errors import UsageError, suggest
from almanaq.models.budget import Budget
from almanaq.models.embedders.local import local_is_installed
from almanaq.models.protocols import Embedder, LanguageModel
from almanaq.plugins import Group, call_plugin, load_plugin, plugin_names
from almanaq.retrieval.protocols import Retriever

if TYPE_CHECKING:
    from almanaq.retrieval.aspects import Aspects

_GROUP: Group = "almanaq.retrievers"

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


@dataclass(frozen=True, slots=True)
class RetrieverOpener:
    """What an entry point of `almanaq.retrievers` gives where its retriever needs an embedder, a model or a budget.

    Attributes:
        open: makes the retriever.
        sees_own_text: whether it sees a text of its own, whatever fields are declared: `--fields` is wrong usage.
        is_bound: whether it marks a bound of what can be reached, and finds nothing for users.
    """

    open: Callable[[Parts], Opened]
    sees_own_text: bool = False
    is_bound: bool = False


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
    if (opener := plugin_opener(name)) is not None:
        return opener.open(parts)
    raise _unknown(name)


def check_retriever(name: str) -> None:
    """Raise UsageError for a name that no retriever has, before tables are read for it."""
    if name not in RETRIEVERS and ":" not in name and name not in plugin_names(_GROUP):
        raise _unknown(name)


def plugin_opener(name: str) -> RetrieverOpener | None:
    """Return what opens the retriever that another package adds under a name, None where none does."""
    if name in RETRIEVERS or ":" in name:
        return None
    found = load_plugin(_GROUP, name)
    if isinstance(found, Mapping):
        found = found.get(name)
    if found is None or isinstance(found, RetrieverOpener):
        return found
    from almanaq.retrieval.adapters import adapt

    made = adapt(call_plugin(_GROUP, name) if isinstance(found, type) else found, name)
    return RetrieverOpener(lambda _: Opened(made, name))


def sees_own_text(name: str) -> bool:
    """Return whether a retriever sees a text of its own, whatever fields are declared."""
    opener = plugin_opener(name)
    return opener is not None and opener.sees_own_text


def check_fields_apply(name: str) -> None:
    """Raise UsageError for declared fields beside a retriever that sees a text of its own."""
    if sees_own_text(name):
        raise UsageError(f"--fields does not go with --retriever {name}: it sees a text of its own; leave --fields out")


def _unknown(name: str) -> UsageError:
    known = (*RETRIEVERS, *plugin_names(_GROUP))
    more = "" if find_spec("almanaq_bench") else "; those of papers and experiments come with  pip install ./bench"
    return UsageError(f"unknown retriever {name!r}{suggest(name, known)}{more}")


def _bm25(_: Parts) -> Opened:
    from almanaq.retrieval.bm25 import BM25

    return Opened(BM25(), "bm25")


def _dense(parts: Parts) -> Opened:
    from almanaq.models.embedders.vector_store import VectorStore
    from almanaq.retrieval.dense import Dense

    embedder = parts.embedder()
    return Opened(Dense(VectorStore(parts.cache, embedder)), "dense", embedder.name)


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
    from almanaq.models.embedders.vector_store import VectorStore
    from almanaq.retrieval.aspects import Aspects

    return Aspects(VectorStore(parts.cache, embedder), rows=rows)


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
        from almanaq.models.hub_models import CrossEncoder

        judge = CrossEncoderJudge(CrossEncoder(model))
    else:
        raise UsageError(
            f"retriever {name!r} names no model: write rerank:openai:MODEL, or rerank: and the path or hub name of a "
            "cross-encoder, which has a slash"
        )
    return Opened(Judged(first.retriever, judge), name, first.embedder, first.note)


def _imported(name: str) -> Retriever:
    """Return the retriever that `module:object` names: ours, or one of the kinds that adapters knows."""
    from almanaq.retrieval.adapters import adapt
    from almanaq.retrieval.imported import import_object

    return adapt(import_object(name, "retriever"), name)


RETRIEVERS: Mapping[str, Callable[[Parts], Opened]] = {
    "bm25": _bm25,
    "dense": _dense,
    "hybrid": _hybrid,
    "rerank": _rerank,
}
