"""Measure vectors in int8 and binary codes, rescored, beside all vectors in float32: memory, time, recall.

python benchmarks/retrieval/precision.py 100000 [static] [--out benchmarks/retrieval/results/precision.json]

The tables and the planted questions are those of `scale.py`. Recall is of the ten nearest by exact cosine; Of
int8 codes 300 are compared again by their vectors in half precision, of binary ones 1,200.
"""

from __future__ import annotations

import argparse
import functools
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from generate import SyntheticCorpus
from kept import tell
from numpy.typing import NDArray

from almanaq.corpus.table import parse_fields
from almanaq.models.embedders.vector_store import Vectors, VectorStore
from almanaq.models.model_names import open_embedder
from almanaq.retrieval.dense import main_text
from almanaq.retrieval.protocols import top_k
from almanaq.retrieval.segments import Precision

FIELDS = parse_fields(("title", "section", "header", "cells"))
QUESTIONS, NEAREST, RESCORED, _PART = 200, 10, 300, 5000
Found = tuple[list[set[int]], list[float]]


def main() -> None:
    """Measure one size and tell."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("size", type=int)
    options.add_argument("embedder", nargs="?", default="static")
    options.add_argument("--out", type=Path)
    given = options.parse_args()
    corpus, store = SyntheticCorpus(given.size), VectorStore(None, open_embedder(given.embedder))
    parts = [
        store.vectors([main_text(corpus.table(n), FIELDS) for n in range(start, min(start + _PART, given.size))])
        for start in range(0, given.size, _PART)
    ]
    vectors = np.concatenate(parts)
    questions = store.question_vectors([question for question, _ in corpus.questions(QUESTIONS)])
    exact = ask_questions(questions, lambda question: top_k(vectors @ question, NEAREST))
    told: dict[str, object] = {"tables": given.size, "embedder": store.embedder.name, "dimensions": vectors.shape[1]}
    told["float32"] = describe_result(exact, exact, vectors.nbytes)
    half = vectors.astype(np.float16)
    for precision in (Precision.INT8, Precision.BINARY):
        codes = precision.codes(vectors)
        nearest = functools.partial(rescore, precision, codes, half)
        told[str(precision)] = describe_result(ask_questions(questions, nearest), exact, codes.nbytes)
    tell(told | {"load": round(os.getloadavg()[0], 1)}, given.out)


def rescore(precision: Precision, codes: NDArray[np.int8], half: NDArray[np.float16], question: Vectors) -> object:
    """Return the nearest of those that are nearest by their codes."""
    places = np.sort(precision.nearest(codes, question, RESCORED * precision.spare))
    return places[top_k(half[places].astype(np.float32) @ question, NEAREST)]


def ask_questions(questions: Vectors, nearest: Callable[[Vectors], object]) -> Found:
    """Ask one question after another; give what each finds, and the processor's milliseconds."""
    found, took = [], []
    for question in questions:
        started = time.process_time()
        places = nearest(question)
        took.append(1000 * (time.process_time() - started))
        found.append(set(np.asarray(places).tolist()))
    return found, took


def describe_result(found: Found, exact: Found, size: int) -> dict[str, float]:
    """Return how much is scanned for a question, how long that takes, and what it finds."""
    shares = [len(a & b) / len(b) for a, b in zip(found[0], exact[0], strict=True)]
    half, most = np.percentile(found[1], [50, 95])
    return {
        "megabytes": round(size / 1e6, 1),
        "cpu_p50_ms": round(float(half), 2),
        "cpu_p95_ms": round(float(most), 2),
        "recall@10": round(float(np.mean(shares)), 4),
    }


if __name__ == "__main__":
    main()
