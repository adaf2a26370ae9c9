"""Fits the weights by which `local` chooses where an answer stands, on half of HybridQA's validation questions.

    python experiments/hybridqa/fit_places.py --data-dir DATA --out bench/src/almanaq_bench/hybridqa/places.json

The half: questions whose id has an even sha256. The other half is for reports alone. The weights maximise the
probability of the places that the data traces the gold answer to, by L2-regularised softmax over a table's places.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from almanaq_bench.hybridqa.evidence import FEATURES, CellPlace, Evidence
from almanaq_bench.hybridqa.relation import make_relation
from almanaq_bench.linked import LinkedTables
from almanaq_bench.question_sets import Question, open_dataset

PENALTY = 0.005


def is_development(question_id: str) -> bool:
    """Tell the half that may be looked at."""
    return int(hashlib.sha256(question_id.encode()).hexdigest(), 16) % 2 == 0


def example(question: Question, tables: LinkedTables) -> tuple[np.ndarray, np.ndarray, list[CellPlace]]:
    """Return the features of every place, which of them hold the answer, and the places."""
    evidence = Evidence(question.text, make_relation(tables.get(question.gold[0])))
    spots = evidence.spots()
    gold = {(n["row"], n["col"], n["where"] == "passage") for n in question.fields["answer_nodes"]}
    hits = np.array([(s.row, s.column, s.info) in gold for s in spots], dtype=bool)
    return np.array([evidence.features(s) for s in spots]), hits, spots


def fit(examples: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Return weights and scales."""
    scale = np.concatenate([features for features, _ in examples]).std(axis=0) + 1e-6
    scaled = [(features / scale, hits) for features, hits in examples if hits.any()]

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        total, slope = 0.0, np.zeros_like(weights)
        for features, hits in scaled:
            scores = features @ weights
            shares = np.exp(scores - scores.max())
            shares /= shares.sum()
            gold = shares * hits
            total -= np.log(gold.sum() + 1e-12)
            slope -= features.T @ (gold / (gold.sum() + 1e-12) - shares)
        count = len(scaled)
        return total / count + PENALTY * weights @ weights, slope / count + 2 * PENALTY * weights

    found = minimize(loss, np.zeros(len(scale)), jac=True, method="L-BFGS-B")
    return found.x, scale


def accuracy(examples: list[tuple[np.ndarray, np.ndarray]], weights: np.ndarray, most: int = 1) -> float:
    """Return the share of questions whose best places hold the answer."""
    right = [hits[np.argsort(-(features @ weights), kind="stable")[:most]].any() for features, hits in examples]
    return float(np.mean(right))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    folder = open_dataset(arguments.data_dir / "hybridqa")
    tables = LinkedTables(folder)
    questions = [q for q in folder.questions("validation") if is_development(q.id)]
    examples = [example(question, tables)[:2] for question in questions]
    folds = [[e for i, e in enumerate(examples) if i % 5 != k] for k in range(5)]
    held = [[e for i, e in enumerate(examples) if i % 5 == k] for k in range(5)]
    for most in (1, 3):
        shares = []
        for part, rest in zip(folds, held, strict=True):
            weights, scale = fit(part)
            shares.append(accuracy(rest, weights / scale, most))
        print(f"five-fold: a gold place among the first {most}: {np.mean(shares):.3f}")
    weights, scale = fit(examples)
    fitted = {name: round(float(w), 4) for name, w in zip(FEATURES, weights / scale, strict=True)}
    arguments.out.write_text(json.dumps(fitted, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(dict(sorted(zip(FEATURES, weights.round(2), strict=True), key=lambda kv: -abs(kv[1])))))


if __name__ == "__main__":
    main()
