"""How long `similarity` takes once texts are embedded: `python -m benchmarks.similarity [--out FILE]`.

Vectors are made, not embedded: 384 dimensions whose sizes fall off as those of sentence embedders do, in clusters of
near duplicates. The recall of a join is measured against all products in double precision for some rows of its left.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import almanaq
from almanaq.testing import FunctionModel

DIMENSIONS = 384
SIZES = (np.arange(1, DIMENSIONS + 1) ** -0.35).astype(np.float32)
BOUND = 0.8
CHECKED = 500


class Made:
    """An embedder of texts like `3 17: …`: a vector near that of the second number."""

    name, cheap = "made", True

    def __init__(self, clusters: int) -> None:
        self._centres = np.random.default_rng(0).standard_normal((clusters, DIMENSIONS)).astype(np.float32) * SIZES

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors."""
        numbers = [text.split(":")[0].split() for text in texts]
        near = [int(pair[-1]) if pair[-1].isdecimal() else len(text) for pair, text in zip(numbers, texts, strict=True)]
        draw = np.random.default_rng(int(numbers[0][0]) if numbers[0][0].isdecimal() else 0)
        noise = draw.standard_normal((len(texts), DIMENSIONS)).astype(np.float32) * SIZES
        made = self._centres[np.array(near) % len(self._centres)] + 0.45 * noise
        return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True), np.float32)


def texts(count: int, clusters: int, seed: int) -> list[str]:
    """Return texts that all differ."""
    near = np.random.default_rng(seed).integers(0, clusters, count)
    return [f"{seed * count + i} {k}: a review of some words about a place" for i, k in enumerate(near.tolist())]


def one_query(rows: int) -> dict[str, Any]:
    """Time the ten most similar of many rows."""
    table = pa.table({"id": range(rows), "t": texts(rows, 5000, 1)})
    model = FunctionModel(lambda *_: None)
    with almanaq.connect({"t": table}, model=model, embedder=Made(5000), cache=False) as con:
        query = "SELECT id FROM t ORDER BY similarity(t, ?) DESC LIMIT 10"
        first = _seconds(lambda: con.sql(query, ["some words"]))
        later = [_seconds(lambda i=i: con.sql(query, [f"words of query {'x' * i}"])) for i in range(1, 12)]
    return {"rows": rows, "first": first, "median": float(np.median(later)), "worst": max(later)}


def join(rows: int) -> dict[str, Any]:
    """Time a join of two tables on a bound, and measure its recall."""
    clusters = rows // 3
    left, right, embedder = texts(rows, clusters, 1), texts(rows, clusters, 2), Made(clusters)
    tables = {"a": pa.table({"id": range(rows), "t": left}), "b": pa.table({"id": range(rows), "t": right})}
    with almanaq.connect(tables, model=FunctionModel(lambda *_: None), embedder=embedder, cache=False) as con:
        for name in tables:
            con.sql(f"SELECT max(similarity(t, 'x')) FROM {name}")
        query = f"SELECT a.id, b.id FROM a JOIN b ON similarity(a.t, b.t) >= {BOUND}"
        started = time.perf_counter()
        found = con.sql(query).arrow()
        seconds = time.perf_counter() - started
        vectors = con.engine._vectors
        some, numbers = vectors.vectors(pa.chunked_array([left[:CHECKED]]))
        others, other_numbers = vectors.vectors(pa.chunked_array([right]))
    sides = [side.astype(float) / np.linalg.norm(side.astype(float), axis=1, keepdims=True) for side in (some, others)]
    cosines = np.round(sides[0][numbers] @ sides[1].T, 6)[:, other_numbers]
    true = set(zip(*(side.tolist() for side in np.nonzero(cosines >= BOUND)), strict=True))
    pairs = zip(found.column(0).to_pylist(), found.column(1).to_pylist(), strict=True)
    got = {pair for pair in pairs if pair[0] < CHECKED}
    recall = len(true & got) / len(true)
    return {"rows": [rows, rows], "seconds": seconds, "pairs": found.num_rows, "checked": len(true), "recall": recall}


def _seconds(work: Any) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main() -> None:
    """Measure both and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    found = {
        "command": "python -m benchmarks.similarity",
        "load": os.getloadavg(),
        "join": join(given.pairs),
        "query": one_query(given.rows),
    }
    print(json.dumps(found, indent=1))
    if given.out is not None:
        given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
