"""Dense retrieval: cosine of question and table vectors, exact."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from almanaq.corpus.serialize import Field, field_lines, parse_fields, table_text
from almanaq.corpus.table import Corpus, Table, TableId, distinct
from almanaq.errors import SourceError
from almanaq.models.embedders.vector_store import Vectors, VectorStore
from almanaq.retrieval.protocols import Ranking
from almanaq.retrieval.ranking import Scores, search

MAX_CHARS = 2048
"""Characters of a table that are embedded: more than MiniLM's window of 256 tokens ever holds of them."""

PART_CHARS = 512
"""Characters of a row with its title and column names that are embedded."""


@dataclass(frozen=True)
class Dense:
    """Makes indexes of one vector per table.

    Args:
        store: gives the vectors, each text embedded once ever.
        max_chars: how much of a table's text is embedded.
    """

    store: VectorStore
    max_chars: int = MAX_CHARS
    name: str = "dense"

    def index(self, corpus: Corpus, fields: Sequence[str]) -> DenseIndex:
        """Embed a corpus.

        Raises:
            UsageError: an unknown field.
            SourceError: the corpus is empty or repeats an id.
            ModelError: the embedder fails.
        """
        chosen = parse_fields(fields)
        ids, texts, starts = texts_by_table(corpus, lambda table: [table_text(table, chosen, max_chars=self.max_chars)])
        return DenseIndex(ids, self.store.vectors(texts), starts, self.store)


def texts_by_table(
    corpus: Corpus, texts_of: Callable[[Table], Iterable[str]]
) -> tuple[list[TableId], list[str], NDArray[np.intp]]:
    """Return the tables of a corpus, their texts one after the other, and where each table's begin.

    Raises:
        SourceError: the corpus is empty or repeats an id.
    """
    ids: list[TableId] = []
    texts: list[str] = []
    starts: list[int] = []
    for table in distinct(corpus):
        ids.append(table.id)
        starts.append(len(texts))
        texts.extend(texts_of(table))
    if not ids:
        raise SourceError("the corpus holds no table")
    return ids, texts, np.array(starts)


@dataclass(frozen=True)
class DenseIndex:
    """Vectors of tables; those of table i start at row `starts[i]` of `vectors`."""

    ids: Sequence[TableId]
    vectors: Vectors
    starts: NDArray[np.intp]
    store: VectorStore

    def search(self, questions: Sequence[str], k: int) -> list[Ranking]:
        """Return for each question the k tables of the highest cosine."""
        return search(self, questions, k)

    def scores(self, questions: Sequence[str]) -> Scores:
        """Return the cosines, shape (questions, tables): a table's highest where it has several vectors."""
        if not questions:
            return np.zeros((0, len(self.starts)), np.float32)
        cosines = self.store.question_vectors(questions) @ self.vectors.T
        if len(self.starts) == len(self.vectors):
            return cosines.astype(np.float32, copy=False)
        return np.maximum.reduceat(cosines, self.starts, axis=1).astype(np.float32, copy=False)


def row_texts(table: Table, fields: Sequence[Field]) -> list[str]:
    """Return each row as one text: the table's declared titles, then column and cell in pairs."""
    if Field.CELLS not in fields:
        return []
    titles = title_lines(table, fields)
    named = Field.HEADER in fields
    return [
        "\n".join([*titles, "; ".join(_pairs(table.header if named else (), row))])[:PART_CHARS] for row in table.rows
    ]


def title_lines(table: Table, fields: Sequence[Field]) -> list[str]:
    """Return the table's title and section, where they are declared."""
    return [line for name in (Field.TITLE, Field.SECTION) if name in fields for line in field_lines(table, name)]


def _pairs(header: Sequence[str], row: Sequence[str]) -> list[str]:
    names = header or ("",) * len(row)
    return [f"{name}: {cell}" if name else cell for name, cell in zip(names, row, strict=True) if cell]
