"""Measure texts a second: plain sentence-transformers, `local`, and `static`, on the same texts in one run.

OMP_NUM_THREADS=1 python benchmarks/retrieval/embedders.py DATA_DIR

Rates are by processor seconds of one thread, which other work on the machine does not change much.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from almanaq.corpus.table import parse_fields, table_text
from almanaq.models.embedders.minilm import find_weights
from almanaq.models.hub_models import silence_libraries
from almanaq.models.model_names import open_embedder
from almanaq_bench.question_sets import open_dataset

TEXTS, MANY = 128, 1_000


def main() -> None:
    """Print one line of JSON."""
    fields = parse_fields("title,section,header,cells")
    corpus = open_dataset(Path(sys.argv[1]) / "fetaqa").corpus("validation")
    texts = [table_text(table, fields, max_chars=2048) for table in corpus]
    with silence_libraries():
        from sentence_transformers import SentenceTransformer

        plain = SentenceTransformer(str(find_weights()), device="cpu")
    static, local = open_embedder("static"), open_embedder("local")
    rates = {
        "sentence-transformers": rate(lambda some: plain.encode(some, show_progress_bar=False), texts[:TEXTS]),
        "local": rate(local.embed, texts[:TEXTS]),
        "static": rate(static.embed, texts[:MANY]),
    }
    told = {f"{name} texts/s": round(value, 1) for name, value in rates.items()}
    told |= {f"{name} ×": round(value / rates["sentence-transformers"], 1) for name, value in rates.items()}
    print(json.dumps(told | {"mean_chars": sum(map(len, texts)) // len(texts), "load": round(os.getloadavg()[0], 1)}))


def rate(embed: Callable[[list[str]], object], texts: Sequence[str]) -> float:
    """Return texts per processor second, after a short warm-up."""
    embed(list(texts[:8]))
    started = time.process_time()
    embed(list(texts))
    return len(texts) / (time.process_time() - started)


if __name__ == "__main__":
    main()
