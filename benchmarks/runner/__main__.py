"""What the benchmark's runner costs over the bare retriever, and how many texts a second run with other k embeds.

Run `python -m benchmarks.runner`, with `--write` to keep the figures in results.json beside this file. The retriever
takes no time worth mentioning, so that what is measured is the runner: checks, records, flushes to disk. Reading the
data and scoring are told apart. Processor time, which other work on the machine hardly changes; the best of five.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from almanaq.corpus.table import TableId
from almanaq.models.embedders.base import LexicalEmbedder
from almanaq.retrieval.protocols import Hit, Ranking
from almanaq_bench.config import RunConfig, RunRequest
from almanaq_bench.data import open_data
from almanaq_bench.run_measures import keep_score
from almanaq_bench.runner import run
from almanaq_bench.search import BATCH, Search

TABLES, QUESTIONS, K = 2_000, 10_000, 50


class Ready:
    """Gives rankings that are there already."""

    name = "ready"

    def __init__(self) -> None:
        ids = [TableId("db", f"table{n}") for n in range(TABLES)]
        self._rankings: list[Ranking] = [
            tuple(Hit(ids[(7 * start + n) % TABLES], 20.0 - n / 10) for n in range(K)) for start in range(500)
        ]

    def index(self, corpus, fields):
        return self

    def search(self, questions, k):
        return [self._rankings[hash(question) % 500] for question in questions]


class Counting:
    """Gives vectors, and counts the texts."""

    name = "counting"

    def __init__(self) -> None:
        self.texts = 0

    def embed(self, texts):
        self.texts += len(texts)
        vectors = np.random.default_rng(len(texts)).normal(size=(len(texts), 8)).astype(np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def count_embedded(request: RunRequest) -> dict[str, int]:
    """Return how many texts a run embeds, and how many the same with other cutoffs embeds after it."""
    counting = Counting()
    request = replace(
        request, retriever="dense", made=None, embedder=lambda: counting, cache=request.out / "cache", limit=500
    )
    run(replace(request, out=request.out / "first"))
    first = counting.texts
    run(replace(request, out=request.out / "other-k", cutoffs=(3, 20)))
    return {"first_run": first, "second_run_with_other_k": counting.texts - first}


def write_dataset(folder: Path) -> None:
    folder.mkdir(parents=True)
    tables = [
        {
            "database_id": "db",
            "table_id": f"table{n}",
            "header": ["a"],
            "rows": [["b"]],
            "context": "{}",
            "split": "test",
        }
        for n in range(TABLES)
    ]
    questions = [
        {
            "query_id": f"q{n}",
            "query": f"question {n}",
            "database_id": "db",
            "table_id": f"table{n % TABLES}",
            "answer": "",
        }
        for n in range(QUESTIONS)
    ]
    pq.write_table(pa.Table.from_pylist(tables), folder / "corpus.parquet")
    pq.write_table(pa.Table.from_pylist(questions), folder / "queries_test.parquet")


def best(work, rounds: int = 5) -> float:
    seconds = []
    for number in range(rounds):
        started = time.process_time()
        work(number)
        seconds.append(time.process_time() - started)
    return min(seconds)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_dataset(root / "data" / "synthetic")
        ready = Ready()
        request = RunRequest(
            "table-retrieval", "synthetic", root / "data", "test", "ready", root / "out", LexicalEmbedder, made=ready
        )
        data = open_data(request)
        texts = [question.text for question in data.questions]
        batches = [texts[start : start + BATCH] for start in range(0, QUESTIONS, BATCH)]
        bare = best(lambda _: [ready.search(batch, K) for batch in batches])
        config = RunConfig("table-retrieval", "synthetic", "test", "ready", "ready", ("title",), (1, 5, 10, K))

        def ask(number: int) -> None:
            out = root / f"ask{number}"
            out.mkdir()
            Search(out, config, data.ids).run(ready, data.corpus, data.questions)

        asked = best(ask)
        whole = best(lambda number: run(replace(request, out=root / f"out{number}")), 2)
        scored = best(lambda _: keep_score(root / "out0"), 2)
        texts_embedded = count_embedded(replace(request, out=root / "dense"))
    per_question = {
        "bare_ms": bare / QUESTIONS * 1e3,
        "asked_and_recorded_ms": asked / QUESTIONS * 1e3,
        "overhead_ms": (asked - bare) / QUESTIONS * 1e3,
        "scored_ms": scored / QUESTIONS * 1e3,
        "whole_run_ms": whole / QUESTIONS * 1e3,
    }
    found = {
        "command": "python -m benchmarks.runner --write",
        "tables": TABLES,
        "questions": QUESTIONS,
        "k": K,
        "load": round(os.getloadavg()[0], 1),
        "per_question": {name: round(value, 4) for name, value in per_question.items()},
        "texts_embedded": texts_embedded,
    }
    print(json.dumps(found, indent=1))
    if "--write" in sys.argv[1:]:
        Path(__file__).with_name("results.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
