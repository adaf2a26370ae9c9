"""What each part of a table is worth to each retriever: recall over field sets, with bootstrap intervals.

At most 600 questions of a validation split, drawn by hash. `hybrid` and `rerank` use the shipped weights, which were
learned on these splits (`benchmarks/retrieval/learn.py` gives the figures of held-out tables).

    python experiments/ablation/fields.py DATA_DIR --out experiments/ablation/fields.json
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path

import numpy as np

from almanaq.models.model_names import open_embedder
from almanaq.models.private_files import default_cache_folder
from almanaq.retrieval.retriever_names import RetrieverParts, open_retriever
from almanaq_bench.evaluation.significance import intervals
from almanaq_bench.question_sets import open_dataset

DATASETS = ("ottqa", "fetaqa", "tabfact")
FIELDS = ("title,section", "header", "header,cells", "title,section,header", "title,section,header,cells")
RETRIEVERS = ("bm25", "dense", "dense-columns", "hybrid-untuned", "hybrid", "rerank")
ONLY_FOR = {
    "rerank": ("header,cells", "title,section,header,cells"),  # without cells it is `hybrid`
    "dense-columns": ("title,section,header,cells",),
}
"""The field sets that the slower retrievers are run on; the others are run on all."""

QUESTIONS = 600
CUTOFFS = (1, 10)


def main() -> None:
    """Run every retriever over every field set of every dataset."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("data", type=Path)
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--datasets", default=",".join(DATASETS))
    options.add_argument("--retrievers", default=",".join(RETRIEVERS), help="the others' figures in the file stay")
    options.add_argument("--fields", nargs="+", default=FIELDS, help="field sets; the figures of others stay")
    asked = options.parse_args()
    embedder = open_embedder("local")
    parts = RetrieverParts(lambda: embedder, default_cache_folder())
    kept = json.loads(asked.out.read_text())["measured"] if asked.out.exists() else {}
    found: dict[str, dict[str, dict[str, object]]] = kept
    for name in asked.datasets.split(","):
        dataset = open_dataset(asked.data / name)
        tables = list(dataset.corpus("validation"))
        questions = sorted(
            dataset.questions("validation"), key=lambda each: hashlib.sha256((each.id + each.text).encode()).digest()
        )[:QUESTIONS]
        for fields in asked.fields:
            for retriever in asked.retrievers.split(","):
                if fields not in ONLY_FOR.get(retriever, FIELDS):
                    continue
                index = open_retriever(retriever, parts).retriever.index(tables, fields.split(","))
                rankings = index.search([question.text for question in questions], max(CUTOFFS))
                values = np.array(
                    [
                        [
                            float(len({hit.id for hit in ranking[:k]} & set(question.gold)) / len(question.gold))
                            for k in CUTOFFS
                        ]
                        for question, ranking in zip(questions, rankings, strict=True)
                    ]
                )
                low, high = intervals(values)
                cell = {
                    f"recall@{k}": [round(float(v), 3) for v in (values[:, n].mean(), low[n], high[n])]
                    for n, k in enumerate(CUTOFFS)
                }
                found.setdefault(name, {}).setdefault(fields, {})[retriever] = cell
                print(name, fields, retriever, cell, flush=True)
    record = {"split": "validation", "questions_at_most": QUESTIONS, "level": 0.95, "measured": found}
    asked.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
