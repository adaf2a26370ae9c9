"""Measure the index on disk at one size: build, memory, size on disk, time to open, p50 / p95, recall.

python benchmarks/retrieval/scale.py 10000
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from generate import SyntheticCorpus

from almanaq.retrieval.stored import build_index, open_index

FIELDS = ("title", "section", "header", "cells")
QUESTIONS = 500


def main() -> None:
    """Print one line of JSON."""
    corpus = SyntheticCorpus(int(sys.argv[1]))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "index"
        started = time.perf_counter()
        build_index(corpus, folder, FIELDS)
        built = time.perf_counter() - started
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        started = time.perf_counter()
        index = open_index(folder)
        opened = time.perf_counter() - started
        took, ranks = [], []
        for question, gold in corpus.questions(QUESTIONS):
            started = time.perf_counter()
            (ranking,) = index.search([question], 10)
            took.append(time.perf_counter() - started)
            ids = [hit.id for hit in ranking]
            ranks.append(ids.index(gold) + 1 if gold in ids else 0)
    told = {
        "tables": len(corpus),
        "build_seconds": round(built, 1),
        "peak_memory_gb": round(peak, 2),
        "index_gb": round(size / 1e9, 3),
        "open_ms": round(opened * 1e3, 1),
        "p50_ms": round(float(np.percentile(took, 50)) * 1e3, 2),
        "p95_ms": round(float(np.percentile(took, 95)) * 1e3, 2),
        "recall@1": float(np.mean([rank == 1 for rank in ranks])),
        "recall@10": float(np.mean([rank > 0 for rank in ranks])),
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
