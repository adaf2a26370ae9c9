"""Measure the index on disk at one size: build, memory, size on disk, time to open, p50 / p95, recall, an update.

python benchmarks/retrieval/scale.py 10000 [FOLDER [EMBEDDER [WORD]]] [--out benchmarks/retrieval/results/scale.json]

With FOLDER the index is kept there; one that is there is searched, not built, and updated only with WORD, which a
hundred titles then begin with. With EMBEDDER it holds vectors, and is searched by words, and by both; in either way
also by the learned score (`lexical_anew`, `hybrid`). One line of JSON is printed, and kept in the file of results that
`--out` names in the place of the run of this size. Beside the seconds of the clock stand those of the processor, which
other work on the machine does not lengthen as much.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from generate import SyntheticCorpus
from kept import tell
from numpy.typing import NDArray

from almanaq.corpus.table import Table
from almanaq.models.embedders.vector_store import VectorStore
from almanaq.models.model_names import open_embedder
from almanaq.models.protocols import Embedder
from almanaq.retrieval.protocols import TableIndex
from almanaq.retrieval.stored import build_index, open_index, update_index
from almanaq.retrieval.stored_search import StoredHybrid, StoredRerank

FIELDS = ("title", "section", "header", "cells")
QUESTIONS = 500
CHANGED = 100


def main() -> None:
    """Measure one size and tell."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("size", type=int)
    options.add_argument("folder", type=Path, nargs="?")
    options.add_argument("embedder", nargs="?")
    options.add_argument("word", nargs="?")
    options.add_argument("--out", type=Path)
    asked = options.parse_args()
    corpus = SyntheticCorpus(asked.size)
    with tempfile.TemporaryDirectory() as name:
        folder = asked.folder or Path(name) / "index"
        store = VectorStore(None, open_embedder(asked.embedder)) if asked.embedder else None
        told: dict[str, object] = {"tables": len(corpus)}
        new = not folder.exists()
        if new:
            told |= build(corpus, folder, store)
        started = time.perf_counter()
        index = open_index(folder)
        told["open_ms"] = round((time.perf_counter() - started) * 1e3, 1)
        told["lexical"] = searches(corpus, index)
        told["lexical_anew"] = searches(corpus, StoredRerank(index))
        if store is not None:
            dense = StoredHybrid(index, store.embedder)
            told["hybrid_untuned"] = searches(corpus, dense)
            told["hybrid"] = searches(corpus, StoredRerank(index, dense))
        if new or asked.word:
            told |= update(Changed(corpus, CHANGED, asked.word or "Changed"), folder, store)
    tell(told | {"peak_memory_gb_whole_run": peak(), "load": round(os.getloadavg()[0], 1)}, asked.out)


def build(corpus: SyntheticCorpus, folder: Path, store: VectorStore | None) -> dict[str, object]:
    """Build the index, and count distinct schemas and titles; the seconds include making the tables."""
    counted = Counted(corpus)
    started, worked = time.perf_counter(), time.process_time()
    build_index(counted, folder, FIELDS, store=store)
    return {
        "distinct_schemas": len(np.unique(counted.schemas)),
        "distinct_titles": len(np.unique(counted.titles)),
        "build_seconds": round(time.perf_counter() - started, 1),
        "build_cpu_seconds": round(time.process_time() - worked, 1),
        "generate_cpu_seconds": round(seconds_to_make(corpus), 1),
        "peak_memory_gb": peak(),
        "index_gb": round(size_of(folder) / 1e9, 4),
    }


def seconds_to_make(corpus: SyntheticCorpus, sample: int = 2000) -> float:
    """Return the processor's seconds that making all tables takes, from a sample."""
    started = time.process_time()
    for place in range(sample):
        corpus.table(place * len(corpus) // sample)
    return (time.process_time() - started) / sample * len(corpus)


def searches(corpus: SyntheticCorpus, index: TableIndex) -> dict[str, object]:
    """Ask the planted questions one by one, after some that warm caches."""
    index.search([question for question, _ in corpus.questions(20)], 10)
    took, worked, ranks = [], [], []
    for question, gold in corpus.questions(QUESTIONS):
        started, cpu = time.perf_counter(), time.process_time()
        (ranking,) = index.search([question], 10)
        took.append(time.perf_counter() - started)
        worked.append(time.process_time() - cpu)
        ids = [hit.id for hit in ranking]
        ranks.append(ids.index(gold) + 1 if gold in ids else 0)
    found = [rank > 0 for rank in ranks]
    return {
        **quantiles("", took),
        **quantiles("cpu_", worked),
        "recall@1": float(np.mean([rank == 1 for rank in ranks])),
        "recall@10": float(np.mean(found)),
        "recall@10_by_decile": [round(float(np.mean(part)), 3) for part in np.array_split(found, 10)],
    }


def update(corpus: Changed, folder: Path, store: VectorStore | None) -> dict[str, object]:
    """Bring the index up to a corpus some of whose tables changed."""
    before, files = size_of(folder), {file: file.stat().st_mtime_ns for file in folder.rglob("*")}
    started, worked = time.perf_counter(), time.process_time()
    embedder = Counting(store.embedder) if store else None
    _, change = update_index(corpus, folder, store=VectorStore(None, embedder) if embedder else None)
    written = [f for f in folder.rglob("*") if f.is_file() and files.get(f) != f.stat().st_mtime_ns]
    return {
        "update_seconds": round(time.perf_counter() - started, 1),
        "update_cpu_seconds": round(time.process_time() - worked, 1),
        "changed": change.changed,
        **({"embedded": embedder.texts} if embedder else {}),
        "update_writes_share": round(sum(file.stat().st_size for file in written) / before, 6),
    }


class Counted:
    """A corpus that notes the hashes of schemas and titles as it is read."""

    def __init__(self, corpus: SyntheticCorpus) -> None:
        self.corpus = corpus
        self.schemas, self.titles = array("q"), array("q")

    def __len__(self) -> int:
        return len(self.corpus)

    def __iter__(self) -> Iterator[Table]:
        for table in self.corpus:
            self.schemas.append(hash(table.header))
            self.titles.append(hash(table.title))
            yield table


class Counting:
    """An embedder that counts the texts that it embeds."""

    cheap = True  # so that each text that is asked for is counted

    def __init__(self, embedder: Embedder) -> None:
        self.name, self.embedder, self.texts = embedder.name, embedder, 0

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.texts += len(texts)
        return self.embedder.embed(texts)


@dataclass(frozen=True)
class Changed:
    """A corpus in which `count` tables, spread over it, have another title, which begins with `word`."""

    corpus: SyntheticCorpus
    count: int
    word: str

    def __len__(self) -> int:
        return len(self.corpus)

    def __iter__(self) -> Iterator[Table]:
        step = len(self.corpus) // self.count
        for number, table in enumerate(self.corpus):
            yield replace(table, title=f"{self.word} {table.title}") if number % step == 0 else table


def quantiles(prefix: str, seconds: list[float]) -> dict[str, float]:
    """Return p50 and p95 in milliseconds."""
    return {f"{prefix}p{p}_ms": round(float(np.percentile(seconds, p)) * 1e3, 2) for p in (50, 95)}


def size_of(folder: Path) -> int:
    """Return the bytes of all files in a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def peak() -> float:
    """Return the most memory that this process has held, in gigabytes."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2)


if __name__ == "__main__":
    main()
