"""The runs, slices and failures that a report shows, read from run folders."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from almanaq.corpus.table import Corpus, Table, TableId
from almanaq.errors import AlmanaqError
from almanaq.text.index_terms import Analyzer
from almanaq_bench.compare import alike
from almanaq_bench.config import RunConfig
from almanaq_bench.data import find_dataset, is_unchanged, kept_place
from almanaq_bench.evaluation.answers import exact_match
from almanaq_bench.evaluation.rankings import Measure, PerQuery
from almanaq_bench.generation.replies import ReplyRecord, is_flawless, label
from almanaq_bench.hybridqa.places import PLACES
from almanaq_bench.records import Record
from almanaq_bench.restaurants.play import from_text
from almanaq_bench.run_measures import Scores, measure_rankings, read_run, read_run_replies, score_records


@dataclass(frozen=True, slots=True)
class Run:
    """One run folder, read.

    Attributes:
        name: what the report calls it; no two runs of a group share it.
        curve: recall, or for databases database recall, at each cutoff that the run reaches.
    """

    name: str
    folder: Path
    scores: Scores
    records: Sequence[Record]
    replies: Mapping[str, ReplyRecord]
    curve: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of the questions, and how each run does on it."""

    by: str
    name: str
    questions: int
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Failure:
    """A question whose gold table was not found early: what stood above, and why as far as words show it.

    Attributes:
        rank: of the first gold table; 0 where it was not found at all.
        above: what ranked first, each with the question's words that it shares.
    """

    run: str
    question: str
    gold: str
    rank: int
    above: Sequence[tuple[str, str]]
    gold_words: str


@dataclass(frozen=True, slots=True)
class Group:
    """The runs over one split of one dataset, for one task.

    Attributes:
        measure: the retrieval measure that is in front: `recall`, or `database_recall` of text-to-SQL data.
        tested: that measure at the smallest cutoff that all runs have; "" where runs could not be compared.
        alike: the largest groups of runs that cannot be told apart by it, best first.
        errors: by run, how many questions ended how: by the stage that lost them.
    """

    title: str
    measure: str
    runs: Sequence[Run]
    tested: str
    alike: Sequence[Sequence[str]]
    slices: Sequence[Slice]
    failures: Sequence[Failure]
    errors: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


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
    per_query = {run.name: measure_rankings(run.records, [1]) for run in runs}
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
        ", ".join(_table_label(table, tables) for table in record.gold),
        rank,
        [(_table_label(table, tables), _words(record.question, table, tables)) for table in above],
        _words(record.question, record.gold[0], tables),
    )


def _table_label(name: TableId, tables: Mapping[TableId, Table]) -> str:
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


CUTOFFS = (1, 2, 3, 5, 10, 20, 50, 100)
_BOUNDS = ("none", "random", "oracle")  # of a comparison: their failures tell nothing
_MAIN = {
    "question-answering": "f1",
    "hybrid-qa": "exact_match",
    "fact-verification": "accuracy",
    "text-to-sql": "execution_accuracy",
    "restaurants": "all_right",
    "sembench-movie": "quality",
}


def collect(folders: Sequence[Path], data_dir: Path | None = None) -> list[Group]:
    """Read run folders into groups of comparable runs.

    Args:
        data_dir: where the datasets lie, from which slices by table, titles, and words that explain failures come;
            None: where they lay when the runs ran, if they are there still and unchanged.

    Raises:
        BenchmarkError: a folder is no run folder, is damaged, or holds no record.
    """
    groups: dict[tuple[object, ...], list[_Read]] = {}
    for folder in folders:
        config, records = read_run(folder)
        key = (config.task, config.dataset, config.split, config.limit, config.tables)
        groups.setdefault(key, []).append(_Read(folder, config, records))
    return [_group(members, data_dir) for members in groups.values()]


@dataclass(frozen=True, slots=True)
class _Read:
    folder: Path
    config: RunConfig
    records: Sequence[Record]


def _group(members: Sequence[_Read], data_dir: Path | None) -> Group:
    first = members[0].config
    runs = [_run(member, name) for member, name in zip(members, _names(members), strict=True)]
    measure = "database_recall" if _many_databases(runs[0].records) else "recall"
    runs = [Run(r.name, r.folder, r.scores, r.records, r.replies, _curve(r, measure)) for r in runs]
    tables = _tables(data_dir, first, runs)
    parts = [first.task, f"{first.dataset} {first.split}", f"{runs[0].scores.queries:,} questions"]
    return Group(
        " · ".join([*parts, f"{first.tables:,} tables"]),
        measure,
        runs,
        *_alike(runs, measure),
        slices_of(runs, measure, tables),
        [failure for run in _telling(runs) for failure in failures_of(run, tables)],
        {run.name: _errors(run) for run in runs if run.replies},
    )


def _run(read: _Read, name: str) -> Run:
    replies = read_run_replies(read.folder, read.config)
    scores = score_records(read.folder, read.config, read.records, replies)
    return Run(name, read.folder, scores, read.records, {reply.query_id: reply for reply in replies}, {})


def _names(members: Sequence[_Read]) -> list[str]:
    """Return each run the shortest name that tells it from the others: retriever, generator, fields, folder."""
    forms: Sequence[Callable[[Path, RunConfig], str]] = (
        lambda _, config: config.resolved,
        lambda _, config: f"{config.resolved} → {config.generator}" if config.generator else config.resolved,
        lambda _, config: f"{config.resolved} ({', '.join(config.fields)})",
        lambda folder, _: str(folder),
    )
    for form in forms:
        names = [form(member.folder, member.config) for member in members]
        if len(set(names)) == len(names):
            return names
    return [f"{member.folder} #{number}" for number, member in enumerate(members, 1)]


def _many_databases(records: Sequence[Record]) -> bool:
    return len({table.database for record in records for table in record.gold}) > 1


def _curve(run: Run, measure: str) -> dict[int, float]:
    depth = run.scores.config.depth
    cutoffs = [k for k in CUTOFFS if k < depth] + [depth]
    found = measure_rankings(run.records, cutoffs, [measure])
    return {each.k: value for each, value in zip(found.measures, found.means(), strict=True)}


def _alike(runs: Sequence[Run], measure: str) -> tuple[str, Sequence[Sequence[str]]]:
    """Return what runs were compared by, and the groups that cannot be told apart by it."""
    if len(runs) < 2:
        return "", []
    try:
        found = alike({run.name: run.scores.config for run in runs}, {run.name: run.records for run in runs}, measure)
    except AlmanaqError:
        return "", []  # runs that are not over the same questions: these stand side by side untested
    return found


def _errors(run: Run) -> dict[str, int]:
    """Count questions, of conversations turns, by the stage that lost them; as the replies tell it, where they do."""
    kinds = _lost_stages(run.replies) or [
        _error(record, run.replies[record.query_id], run.scores.config.context_k)
        for record in run.records
        if record.query_id in run.replies
    ]
    return dict(Counter(kinds).most_common())


def _lost_stages(replies: Mapping[str, ReplyRecord]) -> list[str]:
    """Return what lost each question or turn, where the replies tell."""
    turns = [turn for reply in replies.values() if reply.role == "entities" for turn in from_text(reply.text or "[]")]
    return [stage for stage in (*(turn.stage for turn in turns), *(r.stage for r in replies.values())) if stage]


def _error(record: Record, reply: ReplyRecord, k: int) -> str:
    role = reply.role
    if _is_right(reply):
        return "right"
    if role == "sql":
        if reply.outcome == "database" or not record.hits:
            return "retrieval: another database"
    elif not {hit.id for hit in record.hits[:k]} & set(record.gold):
        return f"retrieval: gold table not among the {k}"
    if reply.fault:
        return "generator: no usable reply"
    if not reply.text or reply.text == "not enough":
        return "generator: no answer"
    if reply.outcome not in ("", "ok"):
        return f"SQL: {reply.outcome}"
    return "not the gold answer word for word" if role == "answer" else "wrong answer"


def _is_right(reply: ReplyRecord) -> bool:
    if reply.role == "sql":
        return reply.same_set
    if reply.role == "verify":
        return reply.text == label(reply.gold)
    if reply.role == "entities":
        return is_flawless(reply)
    return exact_match(reply.text, reply.gold)


def _tables(data_dir: Path | None, config: RunConfig, runs: Sequence[Run]) -> dict[TableId, Table]:
    """Return the tables that slices and failures speak of; {} where the dataset is not at hand."""
    wanted = {table for record in runs[0].records for table in record.gold}
    wanted |= {hit.id for run in runs for record in run.records for hit in record.hits[:ABOVE]}
    place = data_dir or kept_place(runs[0].folder)
    try:
        if place is None:
            return {}
        dataset = find_dataset(place, config.dataset)
        if data_dir is None and not is_unchanged(dataset, config.split, config.data):
            return {}
        corpus: Corpus = dataset.corpus(config.split)
    except AlmanaqError:
        return {}
    return {table.id: table for table in corpus if table.id in wanted}


def _telling(runs: Sequence[Run]) -> list[Run]:
    """Return the best two runs, by the curve's beginning, that are more than bounds."""
    systems = [run for run in runs if run.scores.config.resolved not in _BOUNDS]
    return sorted(systems, key=lambda run: -run.curve[min(run.curve)])[:2]


def main_measure(task: str) -> str:
    """Return the measure of replies that is in front; "" for retrieval alone."""
    return _MAIN.get(task, "")
