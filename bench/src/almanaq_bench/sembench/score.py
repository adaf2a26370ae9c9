"""Quality of a query's rows, by the measures of SemBench's Movie scenario."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from almanaq_bench.evaluation.ranks import spearman
from almanaq_bench.sembench.queries import SembenchQuery

Rows = Sequence[Sequence[Any]]


def measured(query: SembenchQuery, found: Rows, gold: Rows) -> dict[str, float]:
    """Return the measures of a query: precision, recall and F1; the relative error; or Spearman's correlation.

    Of rows and pairs under a limit the recall is against the limit. The order of a pair does not matter. `quality`
    is F1, 1 / (1 + relative error), or the correlation, so that there is one number for each query.
    """
    match query.measure:
        case "rows" | "pairs":
            measures = _retrieved(_members(query, found), _members(query, gold), query.limit)
            return {**measures, "quality": measures["f1"]}
        case "number":
            error = _relative_error(_number(found), _number(gold))
        case "counts":
            error = _counts_error(found, gold)
        case "ranks":
            correlation = _ranked(found, gold)
            return {"spearman": correlation, "quality": correlation}
    return {"relative_error": error, "quality": 1 / (1 + error)}


def _members(query: SembenchQuery, rows: Rows) -> set[Any]:
    if query.measure == "rows":
        return {row[0] for row in rows if row[0] is not None}
    return {(row[0], *sorted(row[1:3])) for row in rows if None not in row[:3]}


def _retrieved(found: set[Any], gold: set[Any], limit: int | None) -> dict[str, float]:
    right = len(found & gold)
    wanted = len(gold) if limit is None else min(limit, len(gold))
    precision = right / len(found) if found else float(not gold)
    recall = min(right, wanted) / wanted if wanted else 1.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return {"precision": precision, "recall": recall, "f1": f1}


def _number(rows: Rows) -> float | None:
    return None if not rows or rows[0][0] is None else float(rows[0][0])


def _relative_error(found: float | None, gold: float | None) -> float:
    if found is None or gold is None:
        return float(found is not gold)
    return abs(found - gold) / abs(gold) if gold else float(found != gold)


def _counts_error(found: Rows, gold: Rows) -> float:
    """Return the mean of the relative errors of the groups; one that should not be there counts as 1."""
    counted, right = ({str(row[0]).upper(): float(row[1]) for row in rows if row[0]} for rows in (found, gold))
    groups = counted.keys() | right.keys()
    return sum(_relative_error(counted.get(group, 0.0), right.get(group, 0.0)) for group in groups) / len(groups)


def _ranked(found: Rows, gold: Rows) -> float:
    """Return the rank correlation over the members that both have a score for."""
    scores = {row[0]: float(row[1]) for row in found if row[1] is not None}
    pairs = [(scores[row[0]], float(row[1])) for row in gold if row[0] in scores and row[1] is not None]
    return spearman([own for own, _ in pairs], [right for _, right in pairs])
