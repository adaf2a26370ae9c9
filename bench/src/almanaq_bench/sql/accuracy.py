"""Execution accuracy of generated SQL, as published and strict, and the valid efficiency score."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from almanaq_bench.sql.sandbox import Judged, Limits, Sandbox


@dataclass(frozen=True, slots=True)
class Pair:
    """A generated query, the gold one, and the database of both."""

    database: Path
    gold: str
    reply: str


def judge_all(pairs: Iterable[Pair], limits: Limits | None = None, *, processes: int = 2) -> list[Judged]:
    """Judge pairs side by side; results in their order.

    Raises:
        SourceError: a database is not there, or is none.
    """
    todo = list(pairs)
    parts = [list(islice(todo, start, None, processes)) for start in range(min(processes, len(todo)))]

    def work(part: Sequence[Pair]) -> list[Judged]:
        with Sandbox(limits) as sandbox:
            return [sandbox.judge(pair.database, pair.gold, pair.reply) for pair in part]

    with ThreadPoolExecutor(max(1, len(parts))) as pool:
        done = list(pool.map(work, parts))
    return [done[place % processes][place // processes] for place in range(len(todo))]


def execution_accuracy(judged: Judged) -> bool:
    """Tell whether both give the same set of rows: the published measure, blind to order and to repeated rows."""
    return judged.same_set


def strict_execution_accuracy(judged: Judged, gold: str) -> bool:
    """Tell whether both give the same rows as often, and in the same order where the gold query orders its rows."""
    return judged.same_list if orders(gold) else judged.same_bag


def valid_efficiency(judged: Judged) -> float:
    """Return how much faster than the gold query a right one is, as a root, 0 for a wrong one (BIRD's score).

    The square root of gold seconds over its seconds: 1 is as fast. It is a time: no two runs give the same.
    """
    if not judged.same_set:
        return 0.0
    return math.sqrt(max(judged.gold.seconds, 1e-6) / max(judged.reply.seconds, 1e-6))


def orders(sql: str) -> bool:
    """Tell whether a query orders its rows: whether its outermost SELECT, or set operation, has an ORDER BY."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        tree = sqlglot.parse_one(sql, read="sqlite")
    except (SqlglotError, RecursionError):
        return "order by" in " ".join(sql.lower().rsplit(")", 1)[-1].split())
    return tree.args.get("order") is not None
