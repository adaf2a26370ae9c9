"""Small corpora and a small embedder for the tests of retrieval and the benchmark."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from almanaq.corpus.table import Table, TableId
from almanaq.text.index_terms import words


class BagOfWords:
    """Embeds a text as its hashed words; counts what it was asked to embed."""

    name = "bag-of-words"

    def __init__(self, dimensions: int = 64) -> None:
        self.dimensions = dimensions
        self.embedded: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.embedded.extend(texts)
        vectors = np.full((len(texts), self.dimensions), 1e-3, dtype=np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for word in words(text):
                row[hashlib.sha256(word.encode()).digest()[0] % self.dimensions] += 1
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def table(
    name: str, title: str = "", header: Sequence[str] = ("a",), rows: Sequence[Sequence[str]] = (), **more: object
):
    """Return a table named `DATABASE/TABLE`, or TABLE in the database `d`."""
    database, _, own = name.rpartition("/")
    return Table(TableId(database or "d", own), tuple(header), tuple(map(tuple, rows)), title=title, **more)


FILMS = table("films", "Films of Akira Kurosawa", ("Year", "Film"), [("1950", "Rashomon"), ("1954", "Seven Samurai")])
RIVERS = table("rivers", "Longest rivers", ("River", "length_km"), [("Nile", "6,650"), ("Amazon", "6,400")])
TEAMS = table("teams", "Football clubs of Lyon", ("Club", "founded"), [("Olympique", "1950")])
CORPUS = (FILMS, RIVERS, TEAMS)
