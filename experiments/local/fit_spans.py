"""Fits the weights of the span ranker: which words of a text answer an open question.

    python experiments/local/fit_spans.py --data-dir DIR [--write]

Learns from the questions of OTT-QA's validation split that a passage answers, and from one half of HybridQA's (those
whose id hashes to an even number). HybridQA's tables are left out of OTT-QA, so nothing comes from the other half.
A score without fitted weights (form of the words, nearness, shared words; 290 lines against 676) matched 22 % of the
questions of this half that a passage answers, the fitted one 42 %.

Prints exact match and F1 by five-fold cross-validation over the HybridQA half; with --write, all of it is fitted and
the weights are written.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from pathlib import Path

import numpy as np
from hybridqa import Example, exact, f1, hybridqa_examples, ottqa_examples
from scipy.optimize import minimize
from scipy.sparse import csr_matrix, vstack

from almanaq.models.extractive.candidates import Scene, read_question
from almanaq.models.extractive.spans import WEIGHTS_FILE

PENALTY = 1e-3
LEAST_DOCUMENTS = 4
LEAST_WEIGHT = 0.03


class Data:
    """The candidates of many questions as one sparse matrix, a row for each."""

    def __init__(self, examples: list[Example], names: dict[str, int] | None = None) -> None:
        found = [list(Scene(read_question(e.question), e.document).candidates()) for e in examples]
        if names is None:
            spread = Counter(name for each in found for name in {n for c in each for n in c.features})
            names = {name: i for i, name in enumerate(sorted(n for n, k in spread.items() if k >= LEAST_DOCUMENTS))}
        self.names = names
        self.texts = [
            [e.document[c.tokens[0].start : c.tokens[-1].end] for c in each]
            for e, each in zip(examples, found, strict=True)
        ]
        self.examples = examples
        answered = zip(examples, self.texts, strict=True)
        self.right = [np.array([exact(text, e.answer) for text in texts], bool) for e, texts in answered]
        self.rows = [_matrix([c.features for c in each], names) for each in found]


def _matrix(features: list[dict[str, float]], names: dict[str, int]) -> csr_matrix:
    columns, values, starts = [], [], [0]
    for each in features:
        kept = [(names[n], v) for n, v in each.items() if n in names and v]
        columns += [c for c, _ in kept]
        values += [v for _, v in kept]
        starts.append(len(columns))
    return csr_matrix((values, columns, starts), shape=(len(features), len(names)))


def fit(data: Data, which: list[int]) -> np.ndarray:
    """Return weights under which right spans are likeliest among the candidates of their document."""
    which = [i for i in which if data.right[i].any()]
    matrix = vstack([data.rows[i] for i in which]).tocsr()
    starts = np.cumsum([0, *(len(data.right[i]) for i in which)])
    owner = np.repeat(np.arange(len(which)), np.diff(starts))
    right = np.concatenate([data.right[i] for i in which])

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        scores = matrix @ weights
        scores = np.exp(scores - np.maximum.reduceat(scores, starts[:-1])[owner])
        all_ = scores / np.add.reduceat(scores, starts[:-1])[owner]
        good = np.add.reduceat(all_ * right, starts[:-1])
        gradient = matrix.T @ (all_ - all_ * right / good[owner]) / len(which) + 2 * PENALTY * weights
        return -np.log(good).mean() + PENALTY * weights @ weights, gradient

    return minimize(loss, np.zeros(len(data.names)), jac=True, method="L-BFGS-B", options={"maxiter": 120}).x


def score(data: Data, which: list[int], weights: np.ndarray) -> tuple[float, float]:
    """Return exact match and F1 in per cent."""
    best = {i: int(np.argmax(data.rows[i] @ weights)) for i in which if data.texts[i]}
    said = [(data.texts[i][best[i]] if i in best else "", data.examples[i].answer) for i in which]
    return 100 * float(np.mean([exact(a, b) for a, b in said])), 100 * float(np.mean([f1(a, b) for a, b in said]))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--data-dir", type=Path, required=True)
    arguments.add_argument("--write", action="store_true")
    given = arguments.parse_args()
    ours = [e for e in hybridqa_examples(given.data_dir) if e.development and e.passage_only]
    examples = ours + ottqa_examples(given.data_dir)
    data, order = Data(examples), list(range(len(examples)))
    random.Random(0).shuffle(order)
    folds = [order[k::5] for k in range(5)]
    parts = []
    for fold in folds:
        held = [i for i in fold if i < len(ours)]
        parts.append((len(held), *score(data, held, fit(data, [i for i in order if i not in set(fold)]))))
    total = sum(n for n, _, _ in parts)
    match = sum(n * e for n, e, _ in parts) / total
    overlap = sum(n * f for n, _, f in parts) / total
    print(f"exact match {match:.1f}, F1 {overlap:.1f} over {total} questions, {len(data.names)} features")
    if given.write:
        weights = fit(data, order)
        kept = {n: round(float(weights[i]), 2) for n, i in data.names.items() if abs(weights[i]) >= LEAST_WEIGHT}
        WEIGHTS_FILE.write_text(json.dumps(kept, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
        print(len(kept), "weights")


if __name__ == "__main__":
    main()
