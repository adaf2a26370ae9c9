"""Retrievers written for the published TARGET benchmark: their base classes, and both kinds behind our seam.

- `embed_corpus(corpus)` and `retrieve(query, top_k)`, each also with the `dataset_name` that the paper's classes take.
- `embed_query(query)` and `embed_corpus(entry)`, the paper's other class: it returns vectors, which are stored here.

An object is recognized by its methods. `almanaq_bench.target.retrievers` is where users import the classes from.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from almanaq.corpus.table import Corpus, Table, TableId, check_distinct
from almanaq.errors import BenchmarkError, MissingExtraError, UsageError, suggest
from almanaq.models.embedders.base import normalize
from almanaq.retrieval.protocols import Ranking, Retriever, TableIndex, check_k, top_k
from almanaq_bench.retrievers.adapters import (
    CallableIndex,
    adapt_library_retriever,
    has_methods,
    instantiate,
    make_ranking,
)

BATCH = 64
"""Tables per entry of the corpus that `embed_corpus` gets."""

NESTED, ROWS, FRAME = "nested array", "dictionary", "dataframe"
"""The forms of a table: rows with the header first, one dictionary for each row, a pandas data frame."""

_FORM_NAMES = {
    NESTED: NESTED, "array": NESTED, "nested list": NESTED, "list": NESTED,
    ROWS: ROWS, "dict": ROWS, "json": ROWS,
    FRAME: FRAME, "pandas": FRAME, "pandas df": FRAME, "pandas dataframe": FRAME, "df": FRAME,
}  # fmt: skip


def table_form(said: object) -> str:
    """Return the form that an `expected_corpus_format` means. Raises UsageError for a word that means none.

    >>> table_form("pandas df"), table_form("list")
    ('dataframe', 'nested array')
    """
    words = " ".join(str(said).lower().replace("_", " ").split())
    if words in _FORM_NAMES:
        return _FORM_NAMES[words]
    raise UsageError(
        f"expected_corpus_format {said!r} is unknown{suggest(words, _FORM_NAMES)}; the forms are {NESTED!r}, {ROWS!r} "
        f"and {FRAME!r}"
    )


class RetrievalResultDataModel(BaseModel):
    """What was found for one question: (database_id, table_id) of each table, the best first."""

    dataset_name: str
    query_id: int | str
    retrieval_results: list[tuple[Any, ...]] = Field(default_factory=list)


class AbsRetrieverBase(ABC):
    """What all retrievers of TARGET's users are.

    Args:
        expected_corpus_format: the form in which `embed_corpus` is given tables: "nested array" (rows, the header
            first), "dictionary" (one for each row) or "dataframe".

    Raises:
        UsageError: there is no such form.
    """

    def __init__(self, expected_corpus_format: str = NESTED) -> None:
        table_form(expected_corpus_format)
        self.expected_corpus_format = expected_corpus_format

    def get_expected_corpus_format(self) -> str:
        """Return the form in which `embed_corpus` is given tables; a class may override this."""
        return self.expected_corpus_format

    @abstractmethod
    def retrieve_batch(
        self, queries: Mapping[str, Sequence[Any]], dataset_name: str, top_k: int, **kwargs: Any
    ) -> list[RetrievalResultDataModel]:
        """Return what is found for several questions, in their order."""


class AbsCustomEmbeddingRetriever(AbsRetrieverBase):
    """A retriever that keeps what it makes of the tables itself: override `embed_corpus` and `retrieve`.

    >>> class Alphabetical(AbsCustomEmbeddingRetriever):
    ...     def embed_corpus(self, dataset_name, corpus):
    ...         self.found = sorted(pair for part in corpus for pair in zip(part["database_id"], part["table_id"]))
    ...
    ...     def retrieve(self, query, dataset_name, top_k, **kwargs):
    ...         return self.found[:top_k]
    >>> retriever = Alphabetical()
    >>> retriever.embed_corpus("zoo", [{"database_id": ["zoo", "zoo"], "table_id": ["lions", "apes"]}])
    >>> retriever.retrieve_batch({"query_id": [1], "query": ["Which?"]}, "zoo", 1)[0].retrieval_results
    [('zoo', 'apes')]
    """

    def retrieve_batch(
        self, queries: Mapping[str, Sequence[Any]], dataset_name: str, top_k: int, **kwargs: Any
    ) -> list[RetrievalResultDataModel]:
        """Ask `retrieve` question by question."""
        return [
            RetrievalResultDataModel(
                dataset_name=dataset_name,
                query_id=query_id,
                retrieval_results=[tuple(found) for found in self.retrieve(query, dataset_name, top_k, **kwargs)],
            )
            for query_id, query in zip(queries["query_id"], queries["query"], strict=True)
        ]

    @abstractmethod
    def retrieve(self, query: str, dataset_name: str, top_k: int, **kwargs: Any) -> list[tuple[Any, ...]]:
        """Return (database_id, table_id) of the tables found for a question, the best first."""

    @abstractmethod
    def embed_corpus(self, dataset_name: str, corpus: Iterable[dict[str, Any]]) -> None:
        """Take the tables in: batches with `database_id`, `table_id`, `table` and `context`, each a list."""


class AbsStandardEmbeddingRetriever(AbsRetrieverBase):
    """A retriever that gives vectors, which are kept and compared for it: override `embed_corpus`, `embed_query`."""

    def retrieve_batch(
        self, queries: Mapping[str, Sequence[Any]], dataset_name: str, top_k: int, **kwargs: Any
    ) -> list[RetrievalResultDataModel]:
        """Ask `client`, the keyword that holds the vectors, for the tables nearest to each question's."""
        if "client" not in kwargs:
            raise KeyError("retrieve_batch of a standard retriever needs the keyword client, which holds the vectors")
        answers = []
        for query_id, query in zip(queries["query_id"], queries["query"], strict=True):
            vector = self.embed_query(query, dataset_name)
            points = kwargs["client"].search(collection_name=dataset_name, query_vector=vector, limit=top_k)
            found = [(point.payload["database_id"], point.payload["table_id"]) for point in points]
            answers.append(
                RetrievalResultDataModel(dataset_name=dataset_name, query_id=query_id, retrieval_results=found)
            )
        return answers

    @abstractmethod
    def embed_query(self, query: str, dataset_name: str, **kwargs: Any) -> np.ndarray:
        """Return a question's vector."""

    @abstractmethod
    def embed_corpus(self, dataset_name: str, corpus_entry: dict[str, Any]) -> np.ndarray:
        """Return the vector of one table: `database_id`, `table_id`, `table` and `context`."""


def adapt(found: object, name: str, *, dataset: str | None = None, batch: int = BATCH) -> Retriever:
    """Return an object or class of the paper's two kinds, or of any kind that `adapters.py` knows, as a retriever.

    Args:
        name: what the retriever is called in results.
        dataset: passed to the paper's methods as `dataset_name`; None makes one from the corpus' content, as retrievers
            may store vectors under it.
        batch: tables per batch of the corpus that the paper's `embed_corpus` gets.

    Raises:
        UsageError: the object is of no known kind, or its class needs arguments.

    >>> class Alphabetical:
    ...     def embed_corpus(self, corpus):
    ...         self.found = sorted(pair for part in corpus for pair in zip(part["database_id"], part["table_id"]))
    ...
    ...     def retrieve(self, query, top_k):
    ...         return self.found[:top_k]
    >>> from almanaq.corpus.table import Table, TableId
    >>> corpus = [Table(TableId("zoo", name), ("name",), ()) for name in ("lions", "apes")]
    >>> ((hit,),) = adapt(Alphabetical, "abc").index(corpus, []).search(["Which?"], k=1)
    >>> hit.id.table
    'apes'
    """
    made = instantiate(found, name)
    if not has_methods(made, "index") and has_methods(made, "embed_corpus"):
        if has_methods(made, "embed_query") and not has_methods(made, "retrieve"):
            return PaperEmbedder(made, name, dataset)
        if has_methods(made, "retrieve") or _answers_batches(made):
            return PaperRetriever(made, name, dataset, batch)
    return adapt_library_retriever(made, name, adapt)


@dataclass(frozen=True)
class PaperRetriever:
    """An object with `embed_corpus` and `retrieve`; it gets whole tables, regardless of the declared fields."""

    found: Any
    name: str
    dataset: str | None = None
    batch: int = BATCH

    def index(self, corpus: Corpus, fields: Sequence[str]) -> TableIndex:  # noqa: ARG002
        """Pass the corpus on in batches, as the paper's code does. Raises SourceError where it is empty."""
        tables = list(check_distinct(corpus))
        dataset = self.dataset or _content_name(tables)
        _bind_dataset_name(self.found.embed_corpus, dataset)(_entries(tables, _form_of(self.found), self.batch))
        if _answers_batches(self.found):
            return BatchIndex(partial(self.found.retrieve_batch, dataset_name=dataset), self.name)
        return CallableIndex(_bind_dataset_name(self.found.retrieve, dataset), self.name)


@dataclass(frozen=True)
class PaperEmbedder:
    """An object with `embed_query`, and `embed_corpus` for the vector of one entry; searched exactly."""

    found: Any
    name: str
    dataset: str | None = None

    def index(self, corpus: Corpus, fields: Sequence[str]) -> TableIndex:  # noqa: ARG002
        """Embed the corpus, entry by entry. Raises SourceError where it is empty."""
        tables = list(check_distinct(corpus))
        dataset = self.dataset or _content_name(tables)
        embed = _bind_dataset_name(self.found.embed_corpus, dataset)
        form = _form_of(self.found)
        ids = [table.id for table in tables]
        vectors = normalize(
            np.array([self._finite(embed(table_entry(table, form)), str(table.id)) for table in tables])
        )
        if _answers_batches(self.found):
            client = VectorClient(ids, vectors)
            ask = partial(self.found.retrieve_batch, dataset_name=dataset, client=client)
            return BatchIndex(ask, self.name)
        asked = _bind_dataset_name(self.found.embed_query, dataset)

        def search(question: str, k: int) -> list[tuple[str, str, float]]:
            own = normalize(np.atleast_2d(self._finite(asked(question), f"question {question[:80]!r}")))[0]
            scores = (vectors @ own).astype(np.float32)
            return [(*ids[place], float(scores[place])) for place in top_k(scores, k)]

        return CallableIndex(search, self.name)

    def _finite(self, vector: Any, of: str) -> NDArray[np.float32]:
        flat = np.ravel(np.asarray(vector, dtype=np.float32))
        if not np.isfinite(flat).all():
            raise BenchmarkError(f"retriever {self.name!r} gave a vector with values that are not numbers, for {of}")
        return flat


def _form_of(found: Any) -> str:
    """Return the form of tables that an object expects, from its getter or its attribute."""
    if has_methods(found, "get_expected_corpus_format"):
        return table_form(found.get_expected_corpus_format())
    return table_form(getattr(found, "expected_corpus_format", NESTED))


def _answers_batches(found: object) -> bool:
    """Return whether an object overrides `retrieve_batch`, and so answers several questions at once."""
    own = getattr(type(found), "retrieve_batch", None)
    return callable(own) and own not in (
        AbsCustomEmbeddingRetriever.retrieve_batch,
        AbsStandardEmbeddingRetriever.retrieve_batch,
    )


def _bind_dataset_name(method: Callable[..., Any], dataset: str) -> Callable[..., Any]:
    """Return a method of the paper's API with its `dataset_name` bound, if it has that parameter."""
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


def _content_name(tables: Sequence[Table]) -> str:
    """Return a name derived from the content: equal only for equal corpora."""
    digest = hashlib.sha256()
    for table in tables:
        content = json.dumps([table.id, table.title, table.section, table.header, table.rows], ensure_ascii=False)
        digest.update(content.encode("utf-8", "surrogatepass") + b"\n")
    return f"corpus-{digest.hexdigest()[:16]}"


@dataclass(frozen=True)
class BatchIndex:
    """An index that passes several questions at once to an overridden `retrieve_batch`.

    Question ids are running numbers. The gold tables and answers, which the published evaluator passes as well, are
    empty: a retriever that used them would be measured by what it was given.
    """

    ask: Callable[..., Sequence[Any]]
    name: str

    def search(self, questions: Sequence[str], k: int) -> list[Ranking]:
        """Return the rankings. Raises BenchmarkError as `CallableIndex`, or where a question has no result."""
        check_k(k)
        blank: list[Any] = [[] for _ in questions]
        record = {
            "query_id": list(range(len(questions))), "query": list(questions),
            "database_id": blank, "table_id": blank, "answer": [""] * len(questions),
        }  # fmt: skip
        results = list(self.ask(queries=record, top_k=k))
        if len(results) != len(questions):
            raise BenchmarkError(
                f"retriever {self.name!r}: retrieve_batch gave {len(results)} results for {len(questions)} questions"
            )
        found = [getattr(result, "retrieval_results", result) for result in results]
        return [make_ranking(self.name, *each, k, False) for each in zip(questions, found, strict=True)]


@dataclass(frozen=True)
class _Point:
    """A table found by its vector; `payload` has its `database_id` and `table_id`."""

    payload: Mapping[str, str]
    score: float


@dataclass(frozen=True)
class VectorClient:
    """Holds the vectors of a corpus, with the search method of a vector database's client."""

    ids: Sequence[TableId]
    vectors: NDArray[np.float32]

    def search(self, collection_name: str, query_vector: Any, limit: int = 10, **_: Any) -> list[_Point]:  # noqa: ARG002
        """Return the tables whose vectors are nearest by their cosine."""
        own = normalize(np.atleast_2d(np.ravel(np.asarray(query_vector, dtype=np.float32))))[0]
        scores = (self.vectors @ own).astype(np.float32)
        found = top_k(scores, min(limit, len(self.ids)))
        return [
            _Point({"database_id": self.ids[at].database, "table_id": self.ids[at].table}, float(scores[at]))
            for at in found
        ]
