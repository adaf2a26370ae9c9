"""LocalProposer: SUQL for HybridQA questions without a language model, by where their words stand in the relation."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from almanaq.benchmark.hybridqa.evidence import FEATURES, Evidence, Field, Spot
from almanaq.benchmark.hybridqa.pipeline import Asked, Proposal, Tried
from almanaq.benchmark.hybridqa.relation import HybridRelation
from almanaq.text.sql_literals import identifier, string_literal


@cache
def fitted_weights() -> Mapping[str, float]:
    """Return the weights that `experiments/hybridqa/fit_places.py` fitted."""
    text = (files("almanaq.benchmark.hybridqa") / "places.json").read_text(encoding="utf-8")
    return {name: float(weight) for name, weight in json.loads(text).items()}


def score_spots(evidence: Evidence, weights: Mapping[str, float]) -> list[tuple[Spot, float]]:
    """Return the places where the answer may stand with their linear scores."""
    order = [weights[name] for name in FEATURES]
    return [
        (spot, sum(w * f for w, f in zip(order, evidence.features(spot), strict=True))) for spot in evidence.spots()
    ]


def rank_spots(evidence: Evidence, weights: Mapping[str, float]) -> list[tuple[Spot, float]]:
    """Return the places where the answer may stand with their probabilities, the likeliest first."""
    scored = score_spots(evidence, weights)
    highest = max((score for _, score in scored), default=0.0)
    shares = [(spot, math.exp(score - highest)) for spot, score in scored]
    total = sum(share for _, share in shares)
    return [(spot, share / total) for spot, share in sorted(shares, key=lambda each: -each[1])]


class LocalProposer:
    """Names the row that a question's words point at, and asks for the likeliest of its places.

    A linear model over words ranks every cell and every cell's passages; the first query asks for the best of them, and
    each further query for the next. Cells are selected; passages are asked the question by `answer`.
    """

    name = "local"

    def __init__(self, weights: Mapping[str, float] | None = None) -> None:
        self._weights = weights or fitted_weights()
        self._last: tuple[str, HybridRelation, Sequence[Field], list[tuple[Spot, float]]] | None = None

    def propose(self, question: str, asked: Asked, tried: Sequence[Tried]) -> Proposal | None:
        """Return the query for the likeliest place that was not asked for yet."""
        seen = {each.suql for each in tried}
        fields, ranked = self._ranked(question, asked.relation)
        for spot, chance in ranked:
            suql = write_query(question, spot, fields, asked.relation)
            if suql not in seen:
                return Proposal(suql, chance)
        return None

    def _ranked(self, question: str, relation: HybridRelation) -> tuple[Sequence[Field], list[tuple[Spot, float]]]:
        """Return the columns and the ranked places; those of the last question are kept for its further queries."""
        last = self._last  # questions may be asked from several threads
        if last is None or last[0] != question or last[1] is not relation:
            evidence = Evidence(question, relation)
            last = self._last = (question, relation, evidence.fields, rank_spots(evidence, self._weights))
        return last[2], last[3]


def write_query(question: str, spot: Spot, fields: Sequence[Field], relation: HybridRelation) -> str:
    """Return the query for one place: its row named by the first cells that tell it from all others."""
    field = fields[spot.column]
    shown = f"answer({identifier(field.info)}, {string_literal(question)})" if spot.info else identifier(field.name)
    where = " AND ".join(_equals(relation, name, spot.row) for name in _key(fields, spot, relation))
    return f"SELECT {shown} FROM {identifier(relation.name)} WHERE {where} LIMIT 1"


def _key(fields: Sequence[Field], spot: Spot, relation: HybridRelation) -> list[str]:
    """Return columns whose values together stand in that row only, or in the fewest rows that any do."""
    columns = {field.name: relation.arrow.column(field.name).to_pylist() for field in fields}
    names = [
        f.name
        for i, f in enumerate(fields)
        if columns[f.name][spot.row] is not None and (spot.info or i != spot.column)
    ]
    alike = set(range(relation.arrow.num_rows))
    chosen: list[str] = []
    while len(alike) > 1 and names:
        held = {n: {r for r in alike if columns[n][r] == columns[n][spot.row]} for n in names}
        best = min(names, key=lambda n: len(held[n]))
        if held[best] == alike:
            break
        chosen.append(best)
        names.remove(best)
        alike = held[best]
    return chosen or names[:1] or [fields[spot.column].name]


def _equals(relation: HybridRelation, name: str, row: int) -> str:
    column = relation.arrow.column(name)
    value = column[row].as_py()
    if isinstance(value, bool | int | float):
        return f"{identifier(name)} = {value}"
    text = string_literal(str(value))
    cast = (
        "" if name not in relation.spelled else f"::{next(c.type for c in relation.report.columns if c.name == name)}"
    )
    return f"{identifier(name)} = {text}{cast}"
