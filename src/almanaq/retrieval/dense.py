"""Dense retrieval: cosines of question and table vectors, exact; one vector per table, or several views of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from almanaq.corpus.table import (
    Corpus,
    Field,
    Table,
    TableId,
    check_distinct,
    field_lines,
    field_text,
    parse_fields,
    table_text,
)
from almanaq.models.embedders.vector_store import Vectors, VectorStore
from almanaq.retrieval.protocols import Ranking, Scores, search_by_scores

MAX_CHARS = 2048  # of a table that are embedded: more than fit into MiniLM's window of 256 tokens
PART_CHARS = 512  # of a row, with title and column names, that are embedded
VIEW_ROWS = 12  # of a table that are embedded, spread evenly, as neighbouring rows are similar


@dataclass(frozen=True)
class Dense:
    """Builds indexes of one vector per table, of its first MAX_CHARS characters."""

    store: VectorStore
    name: str = "dense"

    def index(self, corpus: Corpus, fields: Sequence[str]) -> DenseIndex:
        chosen = parse_fields(fields)
        ids, texts, starts = collect_texts(corpus, lambda table: [table_text(table, chosen, max_chars=MAX_CHARS)])
        return DenseIndex(ids, self.store.vectors(texts), starts, self.store)


def collect_texts(
    corpus: Corpus, texts_of: Callable[[Table], Iterable[str]]
) -> tuple[list[TableId], list[str], NDArray[np.intp]]:
    """Return the tables of a corpus, the concatenated list of their texts, and where each table's texts start."""
    ids: list[TableId] = []
    texts: list[str] = []
    starts: list[int] = []
    for table in check_distinct(corpus):
        ids.append(table.id)
        starts.append(len(texts))
        texts.extend(texts_of(table))
    return ids, texts, np.array(starts)


@dataclass(frozen=True)
class DenseIndex:
    """Vectors of tables; those of table i start at row `starts[i]` of `vectors`."""

    ids: Sequence[TableId]
    vectors: Vectors
    starts: NDArray[np.intp]
    store: VectorStore

    def search(self, questions: Sequence[str], k: int) -> list[Ranking]:
        return search_by_scores(self, questions, k)

    def scores(self, questions: Sequence[str]) -> Scores:
        """Return the cosines, shape (questions, tables): a table's highest where it has several vectors."""
        if not questions:
            return np.zeros((0, len(self.starts)), np.float32)
        return best_cosines(self.store.question_vectors(questions), self.vectors, self.starts)


def best_cosines(asked: Vectors, vectors: Vectors, starts: NDArray[np.intp]) -> Scores:
    """Return the highest cosine of each question with the vectors of each table, which begin at `starts`."""
    cosines = asked @ vectors.T
    if len(starts) < len(vectors):
        cosines = np.maximum.reduceat(cosines, starts, axis=1)
    return cosines.astype(np.float32, copy=False)


def row_texts(table: Table, fields: Sequence[Field]) -> list[str]:
    """Return each row as one text: the table's declared titles, then column and cell in pairs."""
    if Field.CELLS not in fields:
        return []
    titles = title_lines(table, fields)
    names = table.header if Field.HEADER in fields else ("",) * len(table.header)
    texts = []
    for row in table.rows:
        pairs = [f"{name}: {cell}" if name else cell for name, cell in zip(names, row, strict=True) if cell]
        texts.append("\n".join([*titles, "; ".join(pairs)])[:PART_CHARS])
    return texts


def title_lines(table: Table, fields: Sequence[Field]) -> list[str]:
    return [line for name in (Field.TITLE, Field.SECTION) if name in fields for line in field_lines(table, name)]


@dataclass(frozen=True)
class Aspects:
    """Builds indexes of several vectors per table: of its text, title, header, description and rows.

    A question that names a column and one that names a film each come close to one view of the right table, where a
    single vector of everything is close to neither. `rows` of a table are embedded, without its titles.
    """

    store: VectorStore
    rows: int = VIEW_ROWS

    def index(self, corpus: Corpus, fields: Sequence[str]) -> AspectsIndex:
        """Embed the views that the declared fields allow. Raises ModelError when the embedder fails."""
        chosen = parse_fields(fields)
        views = _make_views(chosen, self.rows)
        texts: dict[str, list[str]] = {name: [] for name in views}
        counts: dict[str, list[int]] = {name: [] for name in views}
        for table in corpus:
            for name, view in views.items():
                made = view(table)
                texts[name].extend(made)
                counts[name].append(len(made))
        vectors = {name: self.store.vectors(listed) for name, listed in texts.items()}
        starts = {name: np.concatenate([[0], np.cumsum(count)[:-1]]).astype(np.intp) for name, count in counts.items()}
        return AspectsIndex(vectors, starts, self.store)


@dataclass(frozen=True)
class AspectsIndex:
    """Vectors by view; those of table i start at row `starts[view][i]` of `vectors[view]`."""

    vectors: Mapping[str, Vectors]
    starts: Mapping[str, NDArray[np.intp]]
    store: VectorStore

    def scores(self, questions: Sequence[str]) -> dict[str, Scores]:
        """Return the cosines by view, each of shape (questions, tables): a table's highest where it has several."""
        asked = self.store.question_vectors(questions)
        return {name: best_cosines(asked, vectors, self.starts[name]) for name, vectors in self.vectors.items()}


def main_text(table: Table, fields: Sequence[Field]) -> str:
    """Return the text of a table's main vector: without prose, which would push cells out of the embedder's window."""
    short = [name for name in fields if name not in (Field.DESCRIPTION, Field.KEYS, Field.DATABASE)] or fields
    return table_text(table, short, max_chars=MAX_CHARS)


def _make_views(fields: Sequence[Field], rows: int) -> Mapping[str, Callable[[Table], list[str]]]:
    inside = [name for name in fields if name in (Field.HEADER, Field.CELLS)]
    views: dict[str, Callable[[Table], list[str]]] = {"dense": lambda table: [main_text(table, fields)]}
    if Field.TITLE in fields or Field.SECTION in fields:
        views["dense_title"] = lambda table: ["\n".join(title_lines(table, fields))]
    if Field.HEADER in fields:
        views["dense_header"] = lambda table: [field_text(table, Field.HEADER)]
    if Field.DESCRIPTION in fields:
        views["dense_description"] = lambda table: [field_text(table, Field.DESCRIPTION)[:MAX_CHARS]]
    if Field.CELLS in fields and rows:

        def sample_rows(table: Table) -> list[str]:
            texts = row_texts(table, inside)
            return [texts[place * len(texts) // rows] for place in range(rows)] if len(texts) > rows else texts or [""]

        views["dense_row"] = sample_rows
    return views
