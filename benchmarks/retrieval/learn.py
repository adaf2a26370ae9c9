"""Learn the reranker's weights on validation splits, and measure them on tables that they were not learned from.

A conditional logistic model: among a question's candidates, the gold tables should score highest. Five folds by the
gold table (by its database where there are several): each question's reported ranking uses weights learned without
any question about its table. The weights that are written are learned from all folds.

    python benchmarks/retrieval/learn.py DATA_DIR --out src/almanaq/retrieval/weights.json
"""

from __future__ import annotations

import argparse
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from almanaq.corpus.dataset import open_dataset
from almanaq.corpus.serialize import parse_fields
from almanaq.models.registry import open_embedder
from almanaq.retrieval.aspects import Aspects
from almanaq.retrieval.features import FEATURES
from almanaq.retrieval.ranking import BATCH
from almanaq.retrieval.rerank import Rerank, fused, with_databases
from almanaq.retrieval.vectors import VectorStore, default_cache_folder
from almanaq.retrieval.weights import Weights

FOLDS = 5
PENALTY = 1e-4
MOST_QUESTIONS = 4000  # of a dataset: drawn by hash, so that one with many statements does not take all day
PAGES = ("fetaqa", "ottqa", "tabfact")
SCHEMAS = ("spider", "bird")
KINDS = {
    "titled": (PAGES, "title,section,header,cells"),
    "untitled": (PAGES, "header,cells"),
    "databases": (SCHEMAS, "title,section,header,cells,description,keys,database"),
}
SEARCHES = ("bm25", "bm25_title", "dense", "dense_title", "dense_header", "dense_description", "dense_row", "company")


@dataclass
class Examples:
    """The candidates of a dataset's questions: `x` by question, candidate, feature; `gold` by question, candidate."""

    dataset: str
    index: object
    tables: np.ndarray
    x: np.ndarray
    gold: np.ndarray
    wanted: np.ndarray
    folds: np.ndarray
    databases: np.ndarray


def collect(folder: Path, name: str, fields: str, store: VectorStore | None) -> Examples:
    """Give the examples of a dataset's validation split."""
    dataset = open_dataset(folder / name)
    corpus, asked = dataset.corpus("validation"), dataset.questions("validation")
    asked = sorted(asked, key=lambda question: _hash(question.id + question.text))[:MOST_QUESTIONS]
    aspects = Aspects(store) if store is not None else None
    index = Rerank(aspects=aspects, weights=Weights("none", {})).index(corpus, parse_fields(fields))
    number = {table: place for place, table in enumerate(index.ids)}
    tables, xs = [], []
    for start in range(0, len(asked), BATCH):
        batch = asked[start : start + BATCH]
        scores = index.searches.scores([question.text for question in batch])
        first = fused(scores)
        for row, question in enumerate(batch):
            chosen = index.candidates_of(first[row])
            if len(chosen) < min(index.candidates, len(number)):  # no more tables share a word: fill up
                rest = np.setdiff1d(np.arange(len(number)), chosen)
                chosen = np.concatenate([chosen, rest])[: index.candidates]
            columns = [scores[each][row][chosen] if each in scores else np.zeros(len(chosen)) for each in SEARCHES]
            xs.append(np.column_stack([index.featurizer.features(question.text, chosen), *columns]))
            tables.append(chosen)
    gold = [[number[table] for table in question.gold] for question in asked]
    several = len(index.searches.databases.starts) > 2
    keys = [question.gold[0].database if several else str(question.gold[0]) for question in asked]
    return Examples(
        name,
        index,
        np.array(tables),
        np.array(xs, dtype=np.float32),
        np.array([np.isin(row, own) for row, own in zip(tables, gold, strict=True)]),
        np.array([len(own) for own in gold]),
        np.array([_hash(key) % FOLDS for key in keys]),
        np.array([index.searches.databases.of[own[0]] for own in gold]),
    )


def fit(parts: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Give the weights that make gold candidates likeliest; every dataset counts the same."""
    parts = [(x[gold.any(1)], gold[gold.any(1)]) for x, gold in parts]

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        total, slope = 0.0, np.zeros_like(weights)
        for x, gold in parts:
            scores = x @ weights.astype(np.float32)
            odds = np.exp(scores - scores.max(1, keepdims=True))
            odds /= odds.sum(1, keepdims=True)
            right = np.where(gold, odds, 0)
            share = np.maximum(right.sum(1, keepdims=True), 1e-12)
            total -= np.log(share).sum() / len(x)
            slope += np.einsum("qc,qcf->f", odds - right / share, x) / len(x)
        total, slope = total / len(parts), slope / len(parts)
        return total + PENALTY * weights @ weights, slope + 2 * PENALTY * weights

    start = np.zeros(parts[0][0].shape[2])
    return minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 400}).x


def measure(examples: Examples, scores: np.ndarray) -> dict[str, float]:
    """Give recall, and for databases how often the first lies in the right one and all gold is near the top."""
    databases = examples.index.searches.databases
    several = len(databases.starts) > 2
    if several:
        scores = np.array([with_databases(s, databases, t) for s, t in zip(scores, examples.tables, strict=True)])
    order = np.argsort(-scores, axis=1, kind="stable")
    hits = np.take_along_axis(examples.gold, order, 1)
    found = {f"recall@{k}": float((hits[:, :k].sum(1) / examples.wanted).mean()) for k in (1, 10)}
    if several:
        first = np.take_along_axis(examples.tables, order, 1)[:, 0]
        found["database_recall@1"] = float((databases.of[first] == examples.databases).mean())
        found |= {f"complete_recall@{k}": float((hits[:, :k].sum(1) == examples.wanted).mean()) for k in (5, 10)}
    return {name: round(value, 4) for name, value in found.items()}


def learn(sets: list[Examples]) -> tuple[np.ndarray, dict[str, dict[str, dict[str, float]]]]:
    """Give the weights learned from everything, and what held-out folds measure beside the untuned order."""
    held = [np.zeros(each.gold.shape, dtype=np.float32) for each in sets]
    for fold in range(FOLDS):
        weights = fit([(each.x[each.folds != fold], each.gold[each.folds != fold]) for each in sets])
        for each, scores in zip(sets, held, strict=True):
            scores[each.folds == fold] = each.x[each.folds == fold] @ weights.astype(np.float32)
    untuned = [-np.tile(np.arange(each.gold.shape[1], dtype=np.float32), (len(each.gold), 1)) for each in sets]
    told = {
        each.dataset: {"held_out": measure(each, mine), "untuned": measure(each, first)}
        for each, mine, first in zip(sets, held, untuned, strict=True)
    }
    return fit([(each.x, each.gold) for each in sets]), told


def _hash(text: str) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest()[:15], 16)


def _digest(folder: Path, name: str) -> dict[str, str]:
    return {
        file: hashlib.sha256((folder / name / file).read_bytes()).hexdigest()[:16]
        for file in ("corpus.parquet", "queries_validation.parquet")
    }


def main() -> None:
    """Learn what is asked for and write it."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("data", type=Path)
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--cache", type=Path, default=default_cache_folder())
    options.add_argument("--kinds", default="titled,untitled,databases")
    asked = options.parse_args()
    store = VectorStore(asked.cache, open_embedder("local"))
    file: Path = asked.out
    record = json.loads(file.read_text()) if file.exists() else {"provenance": {"measured": {}}, "weights": {}}
    for kind in asked.kinds.split(","):
        datasets, fields = KINDS[kind]
        for name, vectors in ((kind, store), (f"{kind}-lexical", None)):
            weights, told = learn([collect(asked.data, dataset, fields, vectors) for dataset in datasets])
            labels = (*FEATURES, *SEARCHES)
            named = zip(labels, map(float, weights), strict=True)
            record["weights"][name] = {label: round(each, 3) for label, each in named if abs(each) > 0.0005}
            record["provenance"]["measured"][name] = told
            print(name, json.dumps(told), flush=True)
    record["provenance"] |= {
        "script": "benchmarks/retrieval/learn.py",
        "split": "validation",
        "folds": f"{FOLDS}, by gold table; by database where there are several",
        "penalty": PENALTY,
        "most_questions_per_dataset": MOST_QUESTIONS,
        "embedder": store.embedder.name,
        "data": {name: _digest(asked.data, name) for name in (*PAGES, *SCHEMAS)},
    }
    file.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
