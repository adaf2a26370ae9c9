"""Which of the tables that a retriever found a question is asked of: the one whose rows speak of it best."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from almanaq_bench.hybridqa.evidence import Evidence
from almanaq_bench.hybridqa.local_proposer import fitted_weights, score_spots
from almanaq_bench.hybridqa.relation import HybridRelation

MOST = 6
"""Tables that are looked into."""

FEATURES = ("rank", "best_place", "pairs", "triples")
"""What describes a table beside a question: its place in the ranking, how well its best place fits (the linear score of
`places.json`), and the share of the question's runs of two and of three words in the row that has most of them."""


@cache
def fitted_choice() -> Mapping[str, float]:
    """Return the weights that `experiments/hybridqa/fit_tables.py` fitted."""
    text = (files("almanaq_bench.hybridqa") / "tables.json").read_text(encoding="utf-8")
    return {name: float(weight) for name, weight in json.loads(text).items()}


def table_features(question: str, relation: HybridRelation, rank: int) -> list[float]:
    """Return the numbers that describe the table at a rank (1 is the best), as FEATURES names them."""
    evidence = Evidence(question, relation)
    best = max((score for _, score in score_spots(evidence, fitted_weights())), default=0.0)
    return [-math.log(rank), best, evidence.best_row("row_pairs"), evidence.best_row("row_triples")]


def choose_table(question: str, relations: Sequence[HybridRelation]) -> int:
    """Return the place of the table to ask, of at least one, in the order of their ranking."""
    if len(relations) == 1:
        return 0
    order = [fitted_choice()[name] for name in FEATURES]
    described = (table_features(question, relation, rank) for rank, relation in enumerate(relations[:MOST], 1))
    scores = [sum(w * f for w, f in zip(order, features, strict=True)) for features in described]
    return scores.index(max(scores))
