"""The base classes that users of the TARGET benchmark derive their retrievers from.

`almanaq_bench.target.retrievers` is where they are imported from; they stand here because `adapters` must know them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field

from almanaq.errors import UsageError, suggest

if TYPE_CHECKING:
    import numpy as np

NESTED, ROWS, FRAME = "nested array", "dictionary", "dataframe"
"""The forms of a table: rows with the header first, one dictionary for each row, a pandas data frame."""

_FORMS = {
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
    if words in _FORMS:
        return _FORMS[words]
    raise UsageError(
        f"expected_corpus_format {said!r} is unknown{suggest(words, _FORMS)}; the forms are {NESTED!r}, {ROWS!r} "
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
