"""Judges replies about the sample by its ground truth: which restaurants are right for a turn, and which were given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from almanaq.agent.response import Response
from almanaq.sample import load
from almanaq.sample.truth import load_truth

PRICES = {"cheap": 1, "moderate": 2, "expensive": 3, "luxury": 4}


@dataclass
class Score:
    """Counts over turns: entities that were right and wrong, turns that were wrongly empty, figures told rightly."""

    turns: int = 0
    right: int = 0
    wrong: int = 0
    empty: int = 0
    searches: int = 0
    counts: int = 0
    right_counts: int = 0
    declined: int = 0
    failures: list[str] = field(default_factory=list)

    def record(self) -> dict[str, Any]:
        """Give turn accuracy, ΣTP / Σ(TP + FP) over the entities returned, and wrongly empty turns per search turn."""
        given = self.right + self.wrong
        return {
            "turns": self.turns,
            "entities": given,
            "turn_accuracy": round(self.right / given, 4) if given else None,
            "search_turns": self.searches,
            "false_negatives": round(self.empty / self.searches, 4) if self.searches else None,
            "counts": self.counts,
            "right_counts": self.right_counts,
            "wrong_without_data": self.declined,
        }


@lru_cache(maxsize=1)
def restaurants() -> Mapping[int, Mapping[str, Any]]:
    """Give the rows of the sample by id, without their reviews."""
    table = load("restaurants").tables["restaurants"].drop_columns(["reviews"])
    return {row["id"]: row for row in table.to_pylist()}


def holding(where: str, attributes: Mapping[str, bool]) -> list[int]:
    """Give the ids of the restaurants that fulfil a condition in SQL and have these attributes by the ground truth."""
    import duckdb

    connection = duckdb.connect()
    connection.register("restaurants", load("restaurants").tables["restaurants"])
    rows = connection.execute(f"SELECT id FROM restaurants WHERE {where or 'TRUE'} ORDER BY id").fetchall()
    connection.close()
    truth = load_truth().values
    return [i for (i,) in rows if all(truth[i][name] is value for name, value in attributes.items())]


def value(restaurant: int, column: str) -> Any:
    """Give a value to compare restaurants by; prices as ranks."""
    found = restaurants()[restaurant][column]
    return PRICES[found] if column == "price" else found


def best(ids: Sequence[int], order: str, limit: int) -> list[int]:
    """Give the first restaurants by an order like "rating DESC", and all that tie with the last of them."""
    column, direction = order.split()
    ranked = sorted(ids, key=lambda i: value(i, column), reverse=direction == "DESC")
    last = value(ranked[min(limit, len(ranked)) - 1], column) if ranked else None
    return [i for n, i in enumerate(ranked) if n < limit or value(i, column) == last]


def given(response: Response) -> list[int]:
    """Give the ids of the restaurants in a reply; none where it left out a condition: it says that these are others."""
    if response.status != "answered" or response.relaxed or response.shown is None:
        return []
    return [int(key[0]) for key in response.shown.keys]


def figure(response: Response) -> int | None:
    """Give the number that a reply to "how many" states."""
    numbers = [v for row in response.rows for v in row if isinstance(v, int)]
    return numbers[0] if len(response.rows) == 1 and len(numbers) == 1 else None


def judge(turn: Mapping[str, Any], response: Response, right: Sequence[int], score: Score) -> bool:
    """Add a turn to the score; say whether nothing was wrong with it."""
    score.turns += 1
    if turn.get("expect") == "count":
        score.counts += 1
        told = figure(response) == len(right)
        score.right_counts += told
        return told
    ids = given(response)
    hits = sum(i in right for i in ids)
    score.right, score.wrong = score.right + hits, score.wrong + len(ids) - hits
    score.searches += 1
    missed = not ids and bool(right)
    score.empty += missed
    return hits == len(ids) and not missed
