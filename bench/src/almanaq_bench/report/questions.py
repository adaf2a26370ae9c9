"""What a report shows of single questions: how runs do on parts of them, and which were lost to what."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from almanaq.corpus.table import Table, TableId
from almanaq.text.index_terms import Analyzer
from almanaq_bench.evaluation.evaluate import PerQuery
from almanaq_bench.evaluation.measures import Measure
from almanaq_bench.hybridqa.places import PLACES
from almanaq_bench.records import Record
from almanaq_bench.report.values import Failure, Run, Slice
from almanaq_bench.run_measures import measured

ABOVE = 3
"""Tables that are named of those that ranked above a gold table."""

_FAILURES = 6
_WORDS = {"up to 9 words": 9, "10 to 15 words": 15, "16 words or more": math.inf}
_ROWS = {"up to 9 rows": 9, "10 to 29 rows": 29, "30 rows or more": math.inf}
_SHARES = {"none of them": 0, "up to half": 0.5, "more than half": 1}
_DIFFICULTIES = ("easy", "simple", "medium", "moderate", "hard", "extra", "challenging")
_ORDER = (*_WORDS, *_ROWS, *_SHARES, *_DIFFICULTIES, *PLACES)


def slices_of(runs: Sequence[Run], measure: str, tables: Mapping[TableId, Table]) -> list[Slice]:
    """Cut the questions by their length, their gold table's size and title, and by what the dataset says of them."""
    per_query = {run.name: measured(run.records, [1]) for run in runs}
    cuts: dict[str, dict[str, list[str]]] = {}
    analyzer = Analyzer()
    for record in runs[0].records:
        for by, name in _parts(record, tables, analyzer):
            cuts.setdefault(by, {}).setdefault(name, []).append(record.query_id)
    for record in runs[0].records:
        reply = next((run.replies[record.query_id] for run in runs if record.query_id in run.replies), None)
        if reply is not None and reply.slice:
            by = "where the answer lies" if reply.slice in PLACES else "difficulty"
            cuts.setdefault(by, {}).setdefault(reply.slice, []).append(record.query_id)
    return [
        Slice(by, name, len(ids), {run.name: _mean(per_query[run.name], measure, ids) for run in runs})
        for by, parts in cuts.items()
        for name, ids in sorted(parts.items(), key=lambda part: _ORDER.index(part[0]) if part[0] in _ORDER else 99)
        if len(parts) > 1
    ]


def _parts(record: Record, tables: Mapping[TableId, Table], analyzer: Analyzer) -> list[tuple[str, str]]:
    parts = [("question length", _within(_WORDS, len(record.question.split())))]
    table = tables.get(record.gold[0])
    if table is not None:
        parts.append(("rows of the gold table", _within(_ROWS, len(table.rows))))
        title = set(analyzer.terms(f"{table.title} {table.section}"))
        shared = len(title & set(analyzer.terms(record.question))) / len(title) if title else 0.0
        parts.append(("title words in the question", _within(_SHARES, shared)))
    return parts


def _within(bounds: Mapping[str, float], value: float) -> str:
    return next(name for name, most in bounds.items() if value <= most)


def _mean(found: PerQuery[Measure], name: str, ids: Sequence[str]) -> float:
    column = [measure.name for measure in found.measures].index(name)
    place = {query: number for number, query in enumerate(found.queries)}
    return float(found.values[[place[query] for query in ids], column].mean())


def failures_of(run: Run, tables: Mapping[TableId, Table]) -> list[Failure]:
    """Return the first questions whose gold table stands lowest, spread over the split."""
    ranked = []
    for record in run.records:
        gold = set(record.gold)
        rank = next((place for place, hit in enumerate(record.hits, 1) if hit.id in gold), 0)
        if rank != 1 and record.hits:
            ranked.append((-(rank or 10**6), record.query_id, rank, record))
    worst = sorted(ranked)[: 10 * _FAILURES : 10] if len(ranked) > 10 * _FAILURES else sorted(ranked)[:_FAILURES]
    return [_failure(run.name, record, rank, tables) for _, _, rank, record in worst]


def _failure(run: str, record: Record, rank: int, tables: Mapping[TableId, Table]) -> Failure:
    above = [hit.id for hit in record.hits[: min(ABOVE, rank - 1 if rank else ABOVE)]]
    return Failure(
        run,
        record.question,
        ", ".join(_shown(table, tables) for table in record.gold),
        rank,
        [(_shown(table, tables), _words(record.question, table, tables)) for table in above],
        _words(record.question, record.gold[0], tables),
    )


def _shown(name: TableId, tables: Mapping[TableId, Table]) -> str:
    table = tables.get(name)
    titles = [text for text in (table.title, table.section) if text] if table else []
    return f"{' – '.join(titles)} ({name})" if titles else str(name)


def _words(question: str, name: TableId, tables: Mapping[TableId, Table]) -> str:
    """Say which of the question's words a table holds: in its title and header, and in its cells."""
    table = tables.get(name)
    if table is None:
        return ""
    analyzer = Analyzer()
    asked = list(dict.fromkeys(analyzer.terms(question)))
    head = set(analyzer.terms(" ".join((table.title, table.section, *table.header))))
    cells = set(analyzer.terms(" ".join(cell for row in table.rows for cell in row)))
    found = {
        "title, header": [word for word in asked if word in head],
        "cells": [word for word in asked if word in cells - head],
    }
    return "; ".join(f"{where}: {', '.join(words)}" for where, words in found.items() if words) or "none of its words"
