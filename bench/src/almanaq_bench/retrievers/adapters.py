"""Retrievers of other libraries behind almanaq's seam: LlamaIndex's, LangChain's, and functions.

None of these libraries is imported: an object is recognized by its methods.

- A LlamaIndex retriever (`retrieve(query)` returns nodes) or a LangChain one (`invoke(query)` returns documents), whose
  nodes' metadata name their table by `database_id` and `table_id`.
- A function that takes a list of TableText, the corpus of a run, and returns either.

Those of the TARGET benchmark's users are adapted in `paper_retrievers.py`.
"""

from __future__ import annotations

import copy
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np

from almanaq.corpus.table import Corpus, Table, TableId, check_distinct, parse_fields, table_text
from almanaq.errors import BenchmarkError, UsageError, suggest
from almanaq.retrieval.protocols import Hit, Ranking, Retriever, TableIndex, check_k

Adapt = Callable[[object, str], Retriever]


@dataclass(frozen=True, slots=True)
class TableText:
    """A table as a document: the text of its declared fields, and which table it is.

    `metadata` holds `database_id`, `table_id` and `title`; a node or document made of it must keep the first two.
    """

    text: str
    metadata: Mapping[str, str]


_LOOK_HERE: ContextVar[bool] = ContextVar("almanaq_modules_here", default=False)


def look_here() -> None:
    _LOOK_HERE.set(True)


def import_object(name: str, kind: str) -> Any:
    """Import the object that `module:object` names; a class is instantiated. `kind` is what it should be, in errors."""
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


def adapt_library_retriever(made: object, name: str, adapt: Adapt) -> Retriever:
    """Return an object of one of the kinds above as a retriever; ours unchanged.

    Args:
        name: what the retriever is called in results.
        adapt: adapts what a function returns.

    Raises:
        UsageError: the object is of no known kind.
    """
    if has_methods(made, "index"):
        return made  # type: ignore[return-value]
    if has_methods(made, "retrieve") or has_methods(made, "invoke"):
        return LibraryRetriever(made, name)
    if callable(made):
        return FunctionRetriever(made, name, adapt)
    raise UsageError(
        f"retriever {name!r} is not a retriever: it has neither index(corpus, fields), nor embed_corpus(corpus) and "
        "retrieve(query, top_k), nor a LlamaIndex or LangChain retriever's retrieve(query) or invoke(query)"
    )


def instantiate(found: object, name: str) -> object:
    """Return an object, created where a class is given. Raises UsageError where the class needs arguments."""
    if not isinstance(found, type):
        return found
    try:
        return found()
    except TypeError as error:
        raise UsageError(f"retriever {name!r} cannot be created without arguments ({error}): name an object") from error


@dataclass(frozen=True)
class LibraryRetriever:
    """A LlamaIndex or LangChain retriever that was filled elsewhere.

    The number of nodes is requested by its `similarity_top_k` or the keyword `k`; a retriever with neither should be
    made with the largest cutoff. Several nodes of one table count as its best one.
    """

    found: Any
    name: str

    def index(self, corpus: Corpus, fields: Sequence[str]) -> TableIndex:  # noqa: ARG002
        """Return the retriever as an index: it has its nodes already."""
        return CallableIndex(_node_finder(self.found), self.name, pieces=True)


@dataclass(frozen=True)
class FunctionRetriever:
    """A function that indexes the corpus of a run and returns a retriever of one of the kinds above."""

    make: Callable[[list[TableText]], object]
    name: str
    adapt: Adapt

    def index(self, corpus: Corpus, fields: Sequence[str]) -> TableIndex:
        """Call the function with the declared text of every table. Raises SourceError for an empty corpus."""
        chosen = parse_fields(fields)
        made = self.make([_to_text(table, table_text(table, chosen)) for table in check_distinct(corpus)])
        if inspect.isroutine(made) or isinstance(made, type):
            raise UsageError(f"retriever {self.name!r} returned a function instead of a retriever")
        return self.adapt(made, self.name).index(corpus, fields)


def _node_finder(found: Any) -> Callable[[str, int], Iterator[Any]]:
    """Return a function that queries a LlamaIndex or LangChain retriever and yields the table of each node."""
    if has_methods(found, "invoke"):

        def ask(question: str, k: int) -> Iterator[Any]:
            return map(
                _read_node, found.invoke(question, k=k) if _accepts(found.invoke, "k") else found.invoke(question)
            )

        return ask

    def ask_nodes(question: str, k: int) -> Iterator[Any]:
        asked = found
        if hasattr(found, "similarity_top_k"):
            asked = copy.copy(found)
            asked.similarity_top_k = k
        return map(_read_node, asked.retrieve(question))

    return ask_nodes


def _read_node(found: Any) -> tuple[object, ...]:
    """Return a node or document as (database id, table id, score)."""
    metadata = getattr(getattr(found, "node", found), "metadata", None)
    if not isinstance(metadata, Mapping) or not {"database_id", "table_id"} <= metadata.keys():
        raise BenchmarkError(
            f"a node of the retriever does not name its table ({str(found)[:80]!r}): "
            "its metadata must hold database_id and table_id"
        )
    score = getattr(found, "score", None)
    return (metadata["database_id"], metadata["table_id"], *([] if score is None else [score]))


def has_methods(found: object, *methods: str) -> bool:
    return all(callable(getattr(found, method, None)) for method in methods)


def _accepts(method: Callable[..., object], parameter: str) -> bool:
    """Return whether a method takes a keyword."""
    parameters = inspect.signature(method).parameters.values()
    return any(each.name == parameter or each.kind is each.VAR_KEYWORD for each in parameters)


def _to_text(table: Table, text: str) -> TableText:
    return TableText(text, {"database_id": table.id.database, "table_id": table.id.table, "title": table.title})


@dataclass(frozen=True)
class CallableIndex:
    """An index that calls a function per question, and makes rankings of its results.

    With `pieces` the function returns parts of tables, and a table counts as its best part; otherwise it returns each
    table once.
    """

    ask: Callable[[str, int], Iterable[Any]]
    name: str
    pieces: bool = False

    def search(self, questions: Sequence[str], k: int) -> list[Ranking]:
        """Return the rankings.

        Raises:
            BenchmarkError: a result is not a table, repeats a table, or has a score that is not finite.
        """
        check_k(k)
        return [make_ranking(self.name, question, self.ask(question, k), k, self.pieces) for question in questions]


def make_ranking(name: str, question: str, found: Iterable[Any], k: int, pieces: bool) -> Ranking:
    listed: dict[TableId, float | None] = {}
    for item in found:
        table, score = _read_item(item, name)
        fault = ""
        if score is not None and not np.isfinite(score):
            fault = f"it scored {table} as {score}, which is not finite"
        elif table in listed and not pieces:
            fault = f"it lists {table} twice"
        if fault:
            raise BenchmarkError(f"retriever {name!r}, question {question[:80]!r}: {fault}")
        listed.setdefault(table, score)
    return _to_hits(listed, k)


def _to_hits(listed: Mapping[TableId, float | None], k: int) -> Ranking:
    """Return the first k in their order; scored by rank where scores are missing or rise."""
    best = list(listed.items())[:k]
    scores = [score for _, score in best if score is not None]
    if len(scores) < len(best) or scores != sorted(scores, reverse=True):
        scores = [1.0 / rank for rank in range(1, len(best) + 1)]
    return tuple(Hit(table, score) for (table, _), score in zip(best, scores, strict=True))


def _read_item(item: Any, name: str) -> tuple[TableId, float | None]:
    """Return the table and the score of an item: (database_id, table_id), with a score after it, or beside the pair."""
    try:
        if isinstance(item, str):
            raise TypeError
        database, table, *score = item
        if isinstance(database, tuple | list):
            (database, table), score = database, [table]
        return TableId(str(database), str(table)), float(score[0]) if score else None
    except (TypeError, ValueError, LookupError):
        raise BenchmarkError(
            f"retriever {name!r} gave {item!r} for a table: return (database_id, table_id), optionally with a score"
        ) from None
