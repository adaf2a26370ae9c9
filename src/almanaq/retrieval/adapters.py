"""Retrievers of others behind our seam: the paper's two methods, LlamaIndex and LangChain retrievers, functions.

None of these libraries is imported: an object is known by its methods.

- `embed_corpus(corpus)` and `retrieve(query, top_k)`, each also with the `dataset_name` that the paper's classes take.
- `embed_query(query)` and `embed_corpus(entry)`, the paper's other class: it gives vectors, and we keep them.
- A LlamaIndex retriever (`retrieve(query)` gives nodes) or a LangChain one (`invoke(query)` gives documents), whose
  nodes' metadata name their table by `database_id` and `table_id`.
- A function that takes a list of TableText, the corpus of a run, and returns any of these.
"""

from __future__ import annotations

import copy
import hashlib
import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from almanaq.corpus.serialize import parse_fields, table_text
from almanaq.corpus.table import Corpus, Table, distinct
from almanaq.errors import BenchmarkError, MissingExtraError, SourceError, UsageError
from almanaq.models.embedders.base import normalize
from almanaq.retrieval.asked import Asked, AskedTogether, VectorClient
from almanaq.retrieval.paper_classes import (
    FRAME,
    NESTED,
    ROWS,
    AbsCustomEmbeddingRetriever,
    AbsStandardEmbeddingRetriever,
    table_form,
)
from almanaq.retrieval.protocols import Retriever, TableIndex
from almanaq.retrieval.ranking import top_k

BATCH = 64
"""Tables in one entry of the corpus that `embed_corpus` is given."""


@dataclass(frozen=True, slots=True)
class TableText:
    """A table as a document: the text of its declared fields, and which table it is.

    `metadata` holds `database_id`, `table_id` and `title`; a node or document made of it must keep the first two.
    """

    text: str
    metadata: Mapping[str, str]


def adapt(found: object, name: str, *, dataset: str | None = None, batch: int = BATCH) -> Retriever:
    """Return an object of one of the kinds above, or a class of such objects, as a retriever; ours as it is.

    Args:
        name: what the retriever is called in results.
        dataset: the name that the paper's methods are told; None makes one from the corpus' content, as they may keep
            vectors by it.
        batch: how many tables one entry of the corpus holds that the paper's `embed_corpus` is given.

    Raises:
        UsageError: the object is of no kind that is known, or its class cannot be made without arguments.

    >>> class Alphabetical:
    ...     def embed_corpus(self, corpus):
    ...         self.found = sorted(pair for part in corpus for pair in zip(part["database_id"], part["table_id"]))
    ...
    ...     def retrieve(self, query, top_k):
    ...         return self.found[:top_k]
    >>> from almanaq.corpus.table import TableId
    >>> corpus = [Table(TableId("zoo", name), ("name",), ()) for name in ("lions", "apes")]
    >>> ((hit,),) = adapt(Alphabetical, "abc").index(corpus, []).search(["Which?"], k=1)
    >>> hit.id.table
    'apes'
    """
    made = _made(found, name) if isinstance(found, type) else found
    if _has(made, "index"):
        return made  # type: ignore[return-value]
    if _has(made, "embed_corpus", "embed_query") and not _has(made, "retrieve"):
        return PaperEmbedder(made, name, dataset)
    if _has(made, "embed_corpus", "retrieve") or _answers_batches(made):
        return PaperRetriever(made, name, dataset, batch)
    if _has(made, "retrieve") or _has(made, "invoke"):
        return ReadyRetriever(made, name)
    if callable(made):
        return MadeRetriever(made, name)
    raise UsageError(
        f"retriever {name!r} is no retriever: it has neither index(corpus, fields), nor embed_corpus(corpus) and "
        "retrieve(query, top_k), nor a LlamaIndex or LangChain retriever's retrieve(query) or invoke(query)"
    )


@dataclass(frozen=True)
class PaperRetriever:
    """An object with `embed_corpus` and `retrieve`. It sees whole tables, whatever fields are declared."""

    found: Any
    name: str
    dataset: str | None = None
    batch: int = BATCH

    def index(self, corpus: Corpus, fields: Sequence[str]) -> TableIndex:  # noqa: ARG002
        """Hand the corpus over, in the batches of the paper's code. Raises SourceError where it is empty."""
        tables = _at_least_one(corpus)
        dataset = self.dataset or _content_name(tables)
        _told(self.found.embed_corpus, dataset)(_entries(tables, _form_of(self.found), self.batch))
        if _answers_batches(self.found):
            return AskedTogether(partial(self.found.retrieve_batch, dataset_name=dataset), self.name)
        return Asked(_told(self.found.retrieve, dataset), self.name)


@dataclass(frozen=True)
class PaperEmbedder:
    """An object with `embed_query` and `embed_corpus`, which gives the vector of one entry; searched exactly."""

    found: Any
    name: str
    dataset: str | None = None

    def index(self, corpus: Corpus, fields: Sequence[str]) -> TableIndex:  # noqa: ARG002
        """Embed the corpus, entry by entry. Raises SourceError where it is empty."""
        tables = _at_least_one(corpus)
        dataset = self.dataset or _content_name(tables)
        embed = _told(self.found.embed_corpus, dataset)
        form = _form_of(self.found)
        ids = [table.id for table in tables]
        vectors = normalize(
            np.array([self._finite(embed(table_entry(table, form)), str(table.id)) for table in tables])
        )
        if _answers_batches(self.found):
            client = VectorClient(ids, vectors)
            ask = partial(self.found.retrieve_batch, dataset_name=dataset, client=client)
            return AskedTogether(ask, self.name)
        asked = _told(self.found.embed_query, dataset)

        def search(question: str, k: int) -> list[tuple[str, str, float]]:
            own = normalize(np.atleast_2d(self._finite(asked(question), f"question {question[:80]!r}")))[0]
            scores = (vectors @ own).astype(np.float32)
            return [(*ids[place], float(scores[place])) for place in top_k(scores, k)]

        return Asked(search, self.name)

    def _finite(self, vector: Any, of: str) -> NDArray[np.float32]:
        flat = np.ravel(np.asarray(vector, dtype=np.float32))
        if not np.isfinite(flat).all():
            raise BenchmarkError(f"retriever {self.name!r} gave a vector with values that are no number, for {of}")
        return flat


def _form_of(found: Any) -> str:
    """Return the form in which an object of the paper's kinds wants its tables: what its getter says, if it has one."""
    if _has(found, "get_expected_corpus_format"):
        return table_form(found.get_expected_corpus_format())
    return table_form(getattr(found, "expected_corpus_format", NESTED))


def _answers_batches(found: object) -> bool:
    """Return whether an object answers several questions at once in a way of its own: its
    `retrieve_batch` is written.
    """
    own = getattr(type(found), "retrieve_batch", None)
    return callable(own) and own not in (
        AbsCustomEmbeddingRetriever.retrieve_batch,
        AbsStandardEmbeddingRetriever.retrieve_batch,
    )


@dataclass(frozen=True)
class ReadyRetriever:
    """A LlamaIndex or LangChain retriever that was filled elsewhere: it is asked for as many nodes as are wanted.

    A retriever whose number of nodes is neither its `similarity_top_k` nor the keyword `k` gives what it gives: make
    it with the largest cutoff. Several nodes of one table count as its best one.
    """

    found: Any
    name: str

    def index(self, corpus: Corpus, fields: Sequence[str]) -> TableIndex:  # noqa: ARG002
        """Return it as an index: it holds its nodes already."""
        return Asked(_nodes_of(self.found), self.name, pieces=True)


@dataclass(frozen=True)
class MadeRetriever:
    """A function that indexes the corpus of a run and returns a retriever of one of the kinds above."""

    make: Callable[[list[TableText]], object]
    name: str

    def index(self, corpus: Corpus, fields: Sequence[str]) -> TableIndex:
        """Call the function with the declared text of every table. Raises SourceError where there is none."""
        chosen = parse_fields(fields)
        tables = _at_least_one(corpus)
        made = self.make([_document(table, table_text(table, chosen)) for table in tables])
        if inspect.isroutine(made) or isinstance(made, type):
            raise UsageError(f"retriever {self.name!r} gave a function where it should give a retriever")
        return adapt(made, self.name).index(corpus, fields)


def _nodes_of(found: Any) -> Callable[[str, int], Iterator[Any]]:
    """Return what asks a LlamaIndex or LangChain retriever, and names the table of each of its nodes."""
    if _has(found, "invoke"):

        def ask(question: str, k: int) -> Iterator[Any]:
            return map(_of_node, found.invoke(question, k=k) if _takes(found.invoke, "k") else found.invoke(question))

        return ask

    def ask_nodes(question: str, k: int) -> Iterator[Any]:
        asked = found
        if hasattr(found, "similarity_top_k"):
            asked = copy.copy(found)
            asked.similarity_top_k = k
        return map(_of_node, asked.retrieve(question))

    return ask_nodes


def _of_node(found: Any) -> tuple[object, ...]:
    """Return a node or document as (database id, table id, score)."""
    metadata = getattr(getattr(found, "node", found), "metadata", None)
    if not isinstance(metadata, Mapping) or not {"database_id", "table_id"} <= metadata.keys():
        raise BenchmarkError(
            f"a node of the retriever does not say which table it is ({str(found)[:80]!r}): "
            "its metadata must hold database_id and table_id"
        )
    score = getattr(found, "score", None)
    return (metadata["database_id"], metadata["table_id"], *([] if score is None else [score]))


def _made(found: type, name: str) -> object:
    try:
        return found()
    except TypeError as error:
        raise UsageError(f"retriever {name!r} cannot be made without arguments ({error}): name an object") from error


def _has(found: object, *methods: str) -> bool:
    return all(callable(getattr(found, method, None)) for method in methods)


def _takes(method: Callable[..., object], parameter: str) -> bool:
    """Return whether a method takes a keyword."""
    parameters = inspect.signature(method).parameters.values()
    return any(each.name == parameter or each.kind is each.VAR_KEYWORD for each in parameters)


def _told(method: Callable[..., Any], dataset: str) -> Callable[..., Any]:
    """Return a method of the paper's API that is told its `dataset_name`, where it takes one."""
    parameters = list(inspect.signature(method).parameters)
    if "dataset_name" not in parameters:
        return method
    place = parameters.index("dataset_name")
    return lambda *arguments: method(*arguments[:place], dataset, *arguments[place:])


def _entries(tables: Sequence[Table], form: str, batch: int) -> Iterator[dict[str, list[object]]]:
    """Return the corpus in the paper's form: batches, each a list per column."""
    for start in range(0, len(tables), batch):
        entries = [table_entry(table, form) for table in tables[start : start + batch]]
        yield {key: [entry[key] for entry in entries] for key in entries[0]}


def table_entry(table: Table, form: str) -> dict[str, object]:
    """Return a table as one entry of the paper's corpus, its content in a form."""
    return {
        "database_id": table.id.database,
        "table_id": table.id.table,
        "table": in_form(table.header, table.rows, form),
        "context": dict(table.context),
    }


def in_form(header: Sequence[str], rows: Sequence[Sequence[str]], form: str) -> object:
    """Return a table's content as rows with the header first, as a row's dictionary each, or as a data frame."""
    if form == ROWS:
        return [dict(zip(header, row, strict=True)) for row in rows]
    if form == FRAME:
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtraError(
                "pandas", "pandas", f"a retriever that takes tables in the form {form!r}"
            ) from error

        return pd.DataFrame(list(rows), columns=list(header))
    return [list(header), *map(list, rows)]


def _document(table: Table, text: str) -> TableText:
    return TableText(text, {"database_id": table.id.database, "table_id": table.id.table, "title": table.title})


def _at_least_one(corpus: Corpus) -> list[Table]:
    tables = list(distinct(corpus))
    if not tables:
        raise SourceError("the corpus holds no table")
    return tables


def _content_name(tables: Sequence[Table]) -> str:
    """Return a name that two corpora share only if they are the same."""
    digest = hashlib.sha256()
    for table in tables:
        content = json.dumps([table.id, table.title, table.section, table.header, table.rows], ensure_ascii=False)
        digest.update(content.encode("utf-8", "surrogatepass") + b"\n")
    return f"corpus-{digest.hexdigest()[:16]}"
