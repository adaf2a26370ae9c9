"""Fits the weights by which one of the tables found is chosen, on the half of HybridQA's validation questions for that.

    python experiments/hybridqa/fit_tables.py --data-dir DATA --out bench/src/almanaq_bench/hybridqa/tables.json

Tables are found by `bm25` over titles, header, cells and passages. The weights maximise the probability of the gold
table among the best six, by L2-regularised softmax, on the questions whose gold table is one of them.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from almanaq.corpus.table import parse_fields
from almanaq.retrieval.bm25 import BM25
from almanaq_bench.hybridqa.proposers import MOST_TABLES, TABLE_FEATURES, table_features
from almanaq_bench.hybridqa.relation import make_relation
from almanaq_bench.linked import DescribedByPassages, LinkedTables
from almanaq_bench.question_sets import open_dataset

sys.path.insert(0, str(Path(__file__).parent))
from fit_places import accuracy, fit, is_development
from run import FIELDS


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    dataset = open_dataset(arguments.data_dir / "hybridqa")
    tables = LinkedTables(dataset)
    questions = [question for question in dataset.questions("validation") if is_development(question.id)]
    index = BM25().index(DescribedByPassages(tables), parse_fields(FIELDS))
    found = index.search([question.text for question in questions], MOST_TABLES)
    examples = []
    for question, ranking in zip(questions, found, strict=True):
        ids = [hit.id for hit in ranking]
        rows = [
            table_features(question.text, make_relation(tables.get(each)), rank) for rank, each in enumerate(ids, 1)
        ]
        examples.append((np.array(rows), np.array([each in question.gold for each in ids])))
    first = np.mean([hits[0] for _, hits in examples])
    shares = []
    for fold in range(5):
        weights, scale = fit([e for i, e in enumerate(examples) if i % 5 != fold])
        shares.append(accuracy([e for i, e in enumerate(examples) if i % 5 == fold], weights / scale))
    print(f"gold table: first {first:.3f}, among {MOST_TABLES} {np.mean([hits.any() for _, hits in examples]):.3f}")
    print(f"five-fold: chosen {np.mean(shares):.3f}")
    weights, scale = fit(examples)
    fitted = {name: round(float(w), 4) for name, w in zip(TABLE_FEATURES, weights / scale, strict=True)}
    arguments.out.write_text(json.dumps(fitted, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
