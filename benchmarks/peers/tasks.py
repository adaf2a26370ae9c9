"""What every system is asked: SemBench Movie's ten queries, and some tasks over 200 rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from benchmarks.text_calls import tasks as rows_200

from almanaq.models.protocols import TextCall
from almanaq_bench.sembench.dataset import QUERIES, SembenchData, measure_query
from almanaq_bench.sembench.generator import LabelReader

NAMES = ("limit 3", "no limit", "or", "equal texts", "order by rating, limit 3", "count and limit")
Answer = Callable[[str, str], str | None]
"""What a model that is always right says of a text when it is asked a question."""


@dataclass(frozen=True)
class PeerTask:
    """A query: its name, its SUQL, the tables it is over, and how good rows are (1: all right)."""

    name: str
    sql: str
    tables: dict[str, pa.Table]
    quality: Callable[[Sequence[Sequence[Any]]], float]


def tasks(folder: Path) -> tuple[list[PeerTask], Answer]:
    """Return the tasks and what the model says."""
    data = SembenchData(folder)
    once = data.tables["reviews"].combine_chunks()
    movie = {"movies": data.tables["movies"], "reviews": once}
    found = [
        PeerTask(query.id, query.suql, movie, lambda rows, q=query: measure_query(q, rows, data.gold(q))["quality"])
        for query in QUERIES
    ]
    return found + row_tasks(), _answer(data)


def row_tasks() -> list[PeerTask]:
    """Return the tasks over 200 rows."""
    found = []
    for task in rows_200.TASKS:
        if task.name in NAMES:
            table = rows_200.table(equal_texts=task.equal_texts)
            found.append(PeerTask(task.name, task.sql, {"t": table}, _rows_of(task.name, table)))
    return found


def _answer(data: SembenchData) -> Answer:
    labels = LabelReader(data.labels)

    def answer(text: str, question: str) -> str | None:
        if text not in data.labels:
            return rows_200.reply(text, question)
        options = ("POSITIVE", "NEGATIVE") if "or negative" in question else ()
        return labels.said(TextCall("answer", (text,), question, options=options))

    return answer


def _rows_of(name: str, table: pa.Table) -> Callable[[Sequence[Sequence[Any]]], float]:
    """Return the share of a task's rows that are right, 0 where there are too many or too few."""
    rows = table.to_pylist()
    cozy = {row["id"]: rows_200.reply(row["body"], "cozy?") == "Yes" for row in rows}
    paris = [row for row in rows if row["city"] == "Paris"]
    both = [row for row in paris if cozy[row["id"]]]
    by_rating = sorted(both, key=lambda row: -row["rating"])
    right, size = {
        "limit 3": ([row["id"] for row in both], 3),
        "or": ([row["id"] for row in rows if row in paris or cozy[row["id"]]], None),
        "order by rating, limit 3": ([row["id"] for row in by_rating[:3]], 3),
        "count and limit": ([len(both)], 1),
    }.get(name, ([row["id"] for row in both], None))
    size = len(right) if size is None else size

    def quality(found: Sequence[Sequence[Any]]) -> float:
        hits = len({row[0] for row in found} & set(right))
        return hits / size if len(found) == size else 0.0

    return quality
