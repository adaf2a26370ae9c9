"""Several short views of each table as vectors: its text, its title, its header, its description, its rows.

A question that names a column and one that names a film each come close to a view of the right table, where one
vector of everything is close to neither. Rows are pooled by their maximum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from almanaq.corpus.serialize import Field, field_lines, field_text, parse_fields, table_text
from almanaq.corpus.table import Corpus, Table
from almanaq.models.embedders.vector_store import Vectors, VectorStore
from almanaq.retrieval.dense import MAX_CHARS, row_texts
from almanaq.retrieval.ranking import Scores

ROWS = 12
"""Rows of a table that are embedded: spread over its length, as neighbours are alike."""


@dataclass(frozen=True)
class Aspects:
    """Makes indexes of several vectors per table.

    Args:
        store: gives the vectors, each text embedded once ever.
        rows: rows of a table that are embedded, without its titles.
    """

    store: VectorStore
    rows: int = ROWS

    def index(self, corpus: Corpus, fields: Sequence[str]) -> AspectsIndex:
        """Embed the views that the declared fields allow. Raises ModelError when the embedder fails."""
        chosen = parse_fields(fields)
        views = _views(chosen, self.rows)
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
        found = {}
        for name, vectors in self.vectors.items():
            cosines = asked @ vectors.T
            if len(self.starts[name]) < len(vectors):
                cosines = np.maximum.reduceat(cosines, self.starts[name], axis=1)
            found[name] = cosines.astype(np.float32, copy=False)
        return found


def main_text(table: Table, fields: Sequence[Field]) -> str:
    """Return the text of a table's first vector: prose would push header and cells out of the embedder's window."""
    short = [name for name in fields if name not in (Field.DESCRIPTION, Field.KEYS, Field.DATABASE)] or fields
    return table_text(table, short, max_chars=MAX_CHARS)


def _views(fields: Sequence[Field], rows: int) -> Mapping[str, Callable[[Table], list[str]]]:
    """Return what makes the texts of each view; every view has at least one text per table."""
    inside = [name for name in fields if name in (Field.HEADER, Field.CELLS)]
    titles = [name for name in fields if name in (Field.TITLE, Field.SECTION)]
    views: dict[str, Callable[[Table], list[str]]] = {
        "dense": lambda table: [main_text(table, fields)],
    }
    if titles:
        views["dense_title"] = lambda table: ["\n".join(line for name in titles for line in field_lines(table, name))]
    if Field.HEADER in fields:
        views["dense_header"] = lambda table: [field_text(table, Field.HEADER)]
    if Field.DESCRIPTION in fields:
        views["dense_description"] = lambda table: [field_text(table, Field.DESCRIPTION)[:MAX_CHARS]]
    if Field.CELLS in fields and rows:
        views["dense_row"] = lambda table: _spread(row_texts(table, inside), rows) or [""]
    return views


def _spread(texts: list[str], most: int) -> list[str]:
    return texts if len(texts) <= most else [texts[place * len(texts) // most] for place in range(most)]
