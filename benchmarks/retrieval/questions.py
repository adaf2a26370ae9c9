"""Measure what one question costs at 10,000 tables, alone and in a batch of 1,000: embedded, searched and fused
by the plain sum (`hybrid-untuned`), and ranked anew by the learned weights (`hybrid`).

python benchmarks/retrieval/questions.py [--out benchmarks/retrieval/results/questions.json]

Questions are embedded by the embedder that is named. The tables' vectors are drawn by chance for `local`, as embedding
10,000 tables takes minutes and what a search costs does not depend on them.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from generate import SyntheticCorpus
from kept import tell
from numpy.typing import NDArray
from scale import FIELDS, quantiles

from almanaq.models.embedders.vector_store import VectorStore
from almanaq.models.model_names import open_embedder
from almanaq.models.protocols import Embedder
from almanaq.retrieval.bm25 import BM25
from almanaq.retrieval.dense import Aspects, Dense
from almanaq.retrieval.protocols import Retriever, TableIndex
from almanaq.retrieval.rerank import Rerank
from almanaq_bench.retrievers.variants import Hybrid

TABLES, ALONE, BATCH = 10_000, 200, 1_000


class ByChance:
    """An embedder that embeds questions, and draws the vectors of tables."""

    cheap = True  # so that no vector is kept

    def __init__(self, embedder: Embedder) -> None:
        self.name, self.embedder = embedder.name, embedder

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if len(texts) == TABLES:
            drawn = np.random.default_rng(0).normal(size=(TABLES, 384)).astype(np.float32)
            return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
        return self.embedder.embed(texts)


def main() -> None:
    """Measure both embedders and tell."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--out", type=Path)
    out = options.parse_args().out
    corpus = SyntheticCorpus(TABLES)
    asked = [question for question, _ in corpus.questions(ALONE + BATCH)]
    told: dict[str, object] = {"tables": TABLES}
    for name in ("static", "local"):
        embedder = open_embedder(name)
        store = VectorStore(None, ByChance(embedder) if name == "local" else embedder)
        retrievers: list[Retriever] = [
            Hybrid(BM25(), Dense(store), name="hybrid-untuned"),
            Rerank(aspects=Aspects(store, rows=0), name="hybrid"),
        ]
        told[name] = {each.name: measure_index(each.index(corpus, FIELDS), asked) for each in retrievers}
    tell(told | {"load": round(os.getloadavg()[0], 1)}, out)


def measure_index(index: TableIndex, asked: Sequence[str]) -> dict[str, float]:
    """Ask some questions one by one, after a few that warm caches, and the others at once."""
    index.search(asked[:5], 10)
    took, worked = [], []
    for question in asked[:ALONE]:
        started, cpu = time.perf_counter(), time.process_time()
        index.search([question], 10)
        took.append(time.perf_counter() - started)
        worked.append(time.process_time() - cpu)
    started, cpu = time.perf_counter(), time.process_time()
    index.search(asked[ALONE:], 10)
    return {
        **quantiles("", took),
        **quantiles("cpu_", worked),
        "in_a_batch_ms_each": round((time.perf_counter() - started) / BATCH * 1e3, 2),
        "in_a_batch_cpu_ms_each": round((time.process_time() - cpu) / BATCH * 1e3, 2),
    }


if __name__ == "__main__":
    main()
