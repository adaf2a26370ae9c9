"""What a clause says by its meaning, where no known words say it: linear probes over MiniLM's sentence vectors.

For each concept of the lexicon one probe says whether a clause speaks of it, another to which side it leans; a third,
the same for all, says whether a clause finds things good. They are fitted by experiments/local/fit_probes.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from almanaq.models.extractive.clauses import NEGATORS, Clause, concept

PROBES_FILE = Path(__file__).with_name("probes.npz")
LEAST_RELEVANCE = 0.3
"""What the relevance probe must give: four in a thousand clauses about something else reach it (fit_probes.py)."""
_LEAST_SIMILARITY = 0.35
"""Cosine to the question from which a clause speaks of a matter that no concept knows."""

Vectors = NDArray[np.float32]


class MissingVectors(Exception):
    """A clause cannot be judged before the vectors of `texts` are there."""

    def __init__(self, texts: Sequence[str]) -> None:
        super().__init__(texts)
        self.texts = texts


class Meaning:
    """Judges clauses by the vectors of texts that it is given, which may raise MissingVectors."""

    def __init__(self, vectors: Callable[[Sequence[str]], Vectors]) -> None:
        self._vectors = vectors

    def about(self, name: str, clauses: Sequence[Clause]) -> list[float]:
        """Return for each clause how far it says that a concept holds, from -1 to 1; 0 where it is not about it."""
        probes = _probes()
        if name not in probes.places or not clauses:
            return [0.0] * len(clauses)
        at, vectors = probes.places[name], self.vectors([clause.text for clause in clauses])
        relevance, leaning = vectors @ probes.relevance[at], vectors @ probes.leaning[at]
        side = probes.sides[at]
        seen = np.column_stack([leaning, side * (vectors @ probes.valence), _signs(clauses, side)])
        return _weights(seen, probes.known, relevance >= LEAST_RELEVANCE)

    def near(self, question: str, clauses: Sequence[Clause]) -> list[float]:
        """Return the same for a question that names no concept: clauses near to it, by whether they praise."""
        if not clauses:
            return []
        probes, vectors = _probes(), self.vectors([question, *(clause.text for clause in clauses)])
        similarity = vectors[1:, :-1] @ vectors[0, :-1]
        seen = np.column_stack([vectors[1:] @ probes.valence, _signs(clauses, 1.0)])
        return _weights(seen, probes.unknown, similarity >= _LEAST_SIMILARITY)

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return the unit vectors of texts, with a constant at the end."""
        return with_constant(self._vectors(texts))


def look_up(known: Mapping[str, Vectors]) -> Callable[[Sequence[str]], Vectors]:
    """Return what looks vectors up, and raises MissingVectors for texts that are not there."""

    def vectors(texts: Sequence[str]) -> Vectors:
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if missing:
            raise MissingVectors(missing)
        return np.stack([known[text] for text in texts])

    return vectors


def with_constant(vectors: Vectors) -> Vectors:
    """Return vectors with the constant that the probes' last weight multiplies."""
    return np.column_stack([vectors, np.full(len(vectors), 0.5, np.float32)])


def signs(clause: Clause) -> list[float]:
    """Return what words show of a clause's side: one negation, several, something absent, praise, blame."""
    negations = sum(word in NEGATORS for word in clause.stems.split())
    absent = any(hit.kind == "yes" for hit in concept("denial").hits(clause.stems))
    praise = blame = False
    for hit in concept("positive").hits(clause.stems):
        good = (hit.kind == "yes") is not clause.negated(hit.start)
        praise, blame = praise or good, blame or not good
    return [float(negations > 0), float(negations > 1), float(absent), float(praise), float(blame)]


def _signs(clauses: Sequence[Clause], side: float) -> Vectors:
    found = np.array([signs(clause) for clause in clauses], np.float32)
    found[:, 3:] *= side
    return found


def _weights(seen: Vectors, fitted: Vectors, relevant: NDArray[np.bool_]) -> list[float]:
    score = seen @ fitted[:-1] + fitted[-1]
    weights: list[float] = np.where(relevant, np.tanh(score / 2), 0.0).tolist()
    return weights


@dataclass(frozen=True)
class _Probes:
    """The fitted weights: a row for each concept, and which side of it is good."""

    places: Mapping[str, int]
    relevance: Vectors
    leaning: Vectors
    valence: Vectors
    sides: Vectors
    known: Vectors
    unknown: Vectors


@cache
def _probes() -> _Probes:
    with np.load(PROBES_FILE) as stored:
        places = {str(name): i for i, name in enumerate(stored["concepts"])}
        weights = {name: stored[name].astype(np.float32) for name in stored.files if name != "concepts"}
    return _Probes(places, **weights)
