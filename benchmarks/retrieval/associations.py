"""Learn which words of questions go with which words of headers (`almanaq.retrieval.features`), for `learn.py`.

A matrix of the worth of each pair of words is learned together with the weights of the other features, by the same
loss and folds, and then cut to the few directions that carry most of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from almanaq.corpus.table import Table
from almanaq.retrieval.features import WordAssociation, question_words
from almanaq.text.index_terms import Analyzer
from almanaq_bench.question_sets import Question

FEWEST_ASKED = 8  # questions that have a word that is learned
FEWEST_NAMED = 5  # headers that have a word that is learned
PENALTY = 1.5e-4
RANK = 32
ROUNDS = 50


@dataclass
class Bags:
    """The words of questions and headers by dataset: rows of length 1 over the words that are learned."""

    asked: tuple[str, ...]
    named: tuple[str, ...]
    questions: list[csr_matrix]
    headers: list[csr_matrix]

    def scores(self, dataset: int, chosen: np.ndarray, pairs: np.ndarray, tables: np.ndarray) -> np.ndarray:
        """Return the worth of the pairs of words of the chosen questions of a dataset and their candidates."""
        every = (self.headers[dataset] @ (self.questions[dataset][chosen] @ pairs).T).T
        return np.take_along_axis(every, tables[chosen], 1).astype(np.float32)


def bags(datasets: Sequence[tuple[Sequence[Question], Sequence[Table]]]) -> Bags:
    """Return the words of the questions and tables of datasets."""
    analyzer = Analyzer()
    asked = [[question_words(question.text, analyzer) for question in questions] for questions, _ in datasets]
    named = [[set(analyzer.terms("\n".join(table.header))) for table in tables] for _, tables in datasets]
    first, second = _common(asked, FEWEST_ASKED), _common(named, FEWEST_NAMED)
    return Bags(first, second, [_matrix(each, first) for each in asked], [_matrix(each, second) for each in named])


def learn_pairs(bags: Bags, parts: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]], other: float):
    """Return the worth of each pair of words that makes gold candidates likeliest; every dataset counts the same.

    Args:
        parts: by dataset, the numbers of questions to learn from, with features, gold and candidates of all.
        other: the penalty on the other features' weights, which are learned along and forgotten.
    """
    shape = (len(bags.asked), len(bags.named))
    width = next(iter(parts.values()))[1].shape[2]

    def loss(values: np.ndarray) -> tuple[float, np.ndarray]:
        weights, pairs = values[:width], values[width:].reshape(shape)
        total, slope, slopes = 0.0, np.zeros(width), np.zeros(shape)
        for dataset, (chosen, x, gold, tables) in parts.items():
            x, gold = x[chosen], gold[chosen]
            scores = x @ weights.astype(np.float32) + bags.scores(dataset, chosen, pairs, tables)
            odds = np.exp(scores - scores.max(1, keepdims=True))
            odds /= odds.sum(1, keepdims=True)
            right = np.where(gold, odds, 0)
            share = np.maximum(right.sum(1, keepdims=True), 1e-12)
            wrong = (odds - right / share) / len(x)
            total -= np.log(share).mean()
            slope += np.tensordot(wrong, x, 2)
            of = (np.repeat(np.arange(len(chosen)), gold.shape[1]), tables[chosen].ravel())
            spread = csr_matrix((wrong.ravel(), of), shape=(len(chosen), bags.headers[dataset].shape[0]))
            slopes += (bags.questions[dataset][chosen].T @ (spread @ bags.headers[dataset])).toarray()
        total, slope, slopes = (each / len(parts) for each in (total, slope, slopes))
        penalty = other * weights @ weights + PENALTY * np.vdot(pairs, pairs)
        return total + penalty, np.r_[slope + 2 * other * weights, (slopes + 2 * PENALTY * pairs).ravel()]

    start = np.zeros(width + shape[0] * shape[1])
    options = {"maxiter": ROUNDS, "maxcor": 6}
    return minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x[width:].reshape(shape)


def cut(bags: Bags, pairs: np.ndarray) -> WordAssociation:
    """Return the vectors of words whose products come closest to the worth of pairs."""
    left, sizes, right = np.linalg.svd(pairs, full_matrices=False)
    root = np.sqrt(sizes[:RANK])
    # As they will be kept: in half precision.
    asking, naming = ((side * root).astype(np.float16).astype(np.float32) for side in (left[:, :RANK], right[:RANK].T))
    return WordAssociation({word: row for row, word in enumerate(bags.asked)}, bags.named, asking, naming)


def write(file: Path, questions: WordAssociation, statements: WordAssociation) -> None:
    """Write what `almanaq.retrieval.features` reads: each of the directions in steps of a 127th."""
    arrays = {"asked": np.array(list(questions.asked)).astype("S"), "named": np.array(questions.named).astype("S")}
    for style, made in (("questions", questions), ("statements", statements)):
        for side, vectors in (("asking", made.asking), ("naming", made.naming)):
            scale = np.abs(vectors).max(axis=0) / 127
            arrays[f"{style}_{side}"] = np.round(vectors / scale).astype(np.int8)
            arrays[f"{style}_{side}_scale"] = scale.astype(np.float32)
    np.savez_compressed(file, **arrays)


def _common(bags: Iterable[Iterable[set[str]]], fewest: int) -> tuple[str, ...]:
    counts = Counter(word for each in bags for words in each for word in words)
    return tuple(sorted(word for word, count in counts.items() if count >= fewest))


def _matrix(bags: Sequence[set[str]], words: Sequence[str]) -> csr_matrix:
    place = {word: column for column, word in enumerate(words)}
    held = [[place[word] for word in sorted(each) if word in place] for each in bags]
    rows = np.repeat(np.arange(len(held)), [len(each) for each in held])
    values = np.concatenate([np.full(len(each), 1 / np.sqrt(max(len(each), 1))) for each in held])
    columns = np.array([column for each in held for column in each], dtype=np.int64)
    return csr_matrix((values, (rows, columns)), shape=(len(held), len(words)), dtype=np.float32)
