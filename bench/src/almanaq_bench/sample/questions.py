"""Twelve natural questions over the sample, and which restaurants are right for each by the ground truth."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal

from almanaq.sample import load
from almanaq_bench.sample.truth import TRUTH


@dataclass(frozen=True, slots=True)
class Question:
    """A person's words, and what a right reply to them is (the kinds of `expect` stand in questions.toml)."""

    question: str
    where: str
    expect: Literal["some", "top", "count"]
    attributes: Mapping[str, bool] = field(default_factory=dict)
    order: str = "id"
    limit: int | None = None


@lru_cache(maxsize=1)
def questions() -> tuple[Question, ...]:
    """Return the twelve questions."""
    written = tomllib.loads(files(__package__).joinpath("questions.toml").read_text("utf-8"))
    return tuple(Question(**entry) for entry in written["question"])


def right_ids(question: Question) -> tuple[int, ...]:
    """Return the ids of all restaurants that fulfil the question, in its order."""
    return tuple(row[0] for row in _right_rows(question))


def is_right(question: Question, ids: Sequence[int] = (), count: int | None = None) -> bool:
    """Tell whether a reply is right: the ids of the restaurants it gives, or the number for a "count"."""
    rows = _right_rows(question)
    if question.expect == "count":
        return count == len(rows)
    keys = dict(rows)
    if not ids or len(set(ids)) != len(ids) or any(i not in keys for i in ids):
        return False
    best = [key for _, key in rows[: question.limit]]
    return question.expect == "some" or sorted(map(str, (keys[i] for i in ids))) == sorted(map(str, best))


def _right_rows(question: Question) -> list[tuple[int, Any]]:
    """Return (id, sort key) of the right restaurants, best first."""
    import duckdb
    import pyarrow.parquet as pq

    holds = "".join(f" AND {'' if value else 'NOT '}truth.{name}" for name, value in question.attributes.items())
    key = question.order.split()[0]
    connection = duckdb.connect()
    try:
        connection.register("restaurants", load("restaurants").tables["restaurants"])
        connection.register("truth", pq.read_table(TRUTH))
        text = f"SELECT id, {key} FROM restaurants JOIN truth USING (id) WHERE ({question.where}){holds}"
        return list(connection.execute(f"{text} ORDER BY {question.order}, id").fetchall())
    finally:
        connection.close()
