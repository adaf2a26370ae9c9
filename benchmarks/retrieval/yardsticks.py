"""Measure our index on disk, bm25s and tantivy, each called bare on the same text, in one run at one size.

python benchmarks/retrieval/yardsticks.py 10000 [--out benchmarks/retrieval/results/yardsticks.json]

Each runs in a process of its own, so that memory is its own; one line of JSON is printed, and kept where `--out` says.
bm25s and tantivy index all fields as one text; tantivy stems as we do, bm25s by the same stemmer. Ratios are to be
read, not milliseconds.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from generate import SyntheticCorpus
from kept import tell
from scale import FIELDS, peak, quantiles, size_of

from almanaq.corpus.table import parse_fields, table_text
from almanaq.retrieval.stored import build_index

QUESTIONS, K = 200, 10
Search = Callable[[str], list[int]]


def main() -> None:
    """Measure all systems at one size and tell."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("size", type=int)
    options.add_argument("--out", type=Path)
    asked = options.parse_args()
    told: dict[str, object] = {"tables": asked.size}
    for name in SYSTEMS:
        with multiprocessing.get_context("spawn").Pool(1) as process:
            told[name] = process.apply(measure_system, (name, asked.size))
    tell(told | {"load": round(os.getloadavg()[0], 1)}, asked.out)


def measure_system(name: str, size: int) -> dict[str, object]:
    """Build one system's index and ask it the planted questions."""
    corpus = SyntheticCorpus(size)
    with tempfile.TemporaryDirectory() as folder:
        started, cpu = time.perf_counter(), time.process_time()
        search = SYSTEMS[name](corpus, Path(folder) / "index")
        built = {"build_seconds": time.perf_counter() - started, "build_cpu_seconds": time.process_time() - cpu}
        took, worked, found = [], [], []
        for question, gold in corpus.questions(QUESTIONS):
            started, cpu = time.perf_counter(), time.process_time()
            numbers = search(question)
            took.append(time.perf_counter() - started)
            worked.append(time.process_time() - cpu)
            found.append(int(gold.table[1:]) in numbers)
        return {
            **{key: round(value, 1) for key, value in built.items()},
            **quantiles("", took),
            **quantiles("cpu_", worked),
            "recall@10": float(np.mean(found)),
            "peak_memory_gb": peak(),
            "index_gb": round(size_of(Path(folder)) / 1e9, 3),
        }


def texts(corpus: SyntheticCorpus) -> Iterator[str]:
    """Return what each table holds as one text."""
    fields = parse_fields(FIELDS)
    return (table_text(table, fields) for table in corpus)


def ours(corpus: SyntheticCorpus, folder: Path) -> Search:
    """Build our index on disk."""
    index = build_index(corpus, folder, FIELDS)
    return lambda question: [int(hit.id.table[1:]) for hit in index.search([question], K)[0]]


def by_bm25s(corpus: SyntheticCorpus, folder: Path) -> Search:
    """Build bm25s's index, kept in memory."""
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("english")
    index = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    tokens = bm25s.tokenize(list(texts(corpus)), stopwords="en", stemmer=stemmer, show_progress=False)
    index.index(tokens, show_progress=False)
    index.save(folder)

    def search(question: str) -> list[int]:
        asked = bm25s.tokenize([question], stopwords="en", stemmer=stemmer, show_progress=False)
        found, _ = index.retrieve(asked, k=K, show_progress=False)
        return [int(number) for number in found[0]]

    return search


def by_tantivy(corpus: SyntheticCorpus, folder: Path) -> Search:
    """Build tantivy's index on disk, with one thread."""
    import tantivy

    schema = tantivy.SchemaBuilder()
    schema.add_text_field("body", tokenizer_name="en_stem")
    schema.add_unsigned_field("number", stored=True)
    folder.mkdir()
    index = tantivy.Index(schema.build(), path=str(folder))
    writer = index.writer(heap_size=256_000_000, num_threads=1)
    for number, text in enumerate(texts(corpus)):
        writer.add_document(tantivy.Document(body=text, number=number))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def search(question: str) -> list[int]:
        query, _ = index.parse_query_lenient(question, ["body"])
        return [searcher.doc(address)["number"][0] for _, address in searcher.search(query, K).hits]

    return search


SYSTEMS = {"ours": ours, "bm25s": by_bm25s, "tantivy": by_tantivy}

if __name__ == "__main__":
    main()
