"""What a report shows, as plain values: from run folders, and from their datasets where these are at hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from almanaq.benchmark.compare import compare
from almanaq.benchmark.config import RunConfig
from almanaq.benchmark.data import find_dataset
from almanaq.benchmark.generation.replies import ReplyRecord, read_replies
from almanaq.benchmark.generation.score import is_flawless, label
from almanaq.benchmark.records import REPLIES, Record
from almanaq.benchmark.report.questions import ABOVE, failures_of, slices_of
from almanaq.benchmark.report.values import Group, Run
from almanaq.benchmark.restaurants.play import from_text
from almanaq.benchmark.score import measured, read_run, score
from almanaq.corpus.table import Corpus, Table, TableId
from almanaq.errors import AlmanaqError
from almanaq.evaluation.short_answers import exact_match

CUTOFFS = (1, 2, 3, 5, 10, 20, 50, 100)
_BOUNDS = ("none", "random", "oracle")  # of a comparison: their failures tell nothing
_MAIN = {
    "question-answering": "f1",
    "hybrid-qa": "exact_match",
    "fact-verification": "accuracy",
    "text-to-sql": "execution_accuracy",
    "restaurants": "all_right",
}


def collect(folders: Sequence[Path], data_dir: Path | None = None) -> list[Group]:
    """Read run folders into groups of comparable runs.

    Args:
        data_dir: where the datasets lie; with it there are slices by table, titles, and words that explain failures.

    Raises:
        BenchmarkError: a folder is no run folder, is damaged, or holds no record.
    """
    groups: dict[tuple[object, ...], list[tuple[Path, RunConfig]]] = {}
    for folder in folders:
        config, _ = read_run(folder)
        key = (config.task, config.dataset, config.split, config.limit, config.tables)
        groups.setdefault(key, []).append((folder, config))
    return [_group(members, data_dir) for members in groups.values()]


def _group(members: Sequence[tuple[Path, RunConfig]], data_dir: Path | None) -> Group:
    first = members[0][1]
    runs = [_run(folder, name) for (folder, _), name in zip(members, _names(members), strict=True)]
    measure = "database_recall" if _many_databases(runs[0].records) else "recall"
    runs = [Run(r.name, r.folder, r.scores, r.records, r.replies, _curve(r, measure)) for r in runs]
    tables = _tables(data_dir, first, runs) if data_dir is not None else {}
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


def _run(folder: Path, name: str) -> Run:
    config, records = read_run(folder)
    replies = {reply.query_id: reply for reply in read_replies(folder / REPLIES)} if config.generator else {}
    return Run(name, folder, score(folder), records, replies, {})


def _names(members: Sequence[tuple[Path, RunConfig]]) -> list[str]:
    """Give each run the shortest name that tells it from the others: retriever, generator, fields, folder."""
    forms: Sequence[Callable[[Path, RunConfig], str]] = (
        lambda _, config: config.resolved,
        lambda _, config: f"{config.resolved} → {config.generator}" if config.generator else config.resolved,
        lambda _, config: f"{config.resolved} ({', '.join(config.fields)})",
        lambda folder, _: str(folder),
    )
    for form in forms:
        names = [form(folder, config) for folder, config in members]
        if len(set(names)) == len(names):
            return names
    return [f"{folder} #{number}" for number, (folder, _) in enumerate(members, 1)]


def _many_databases(records: Sequence[Record]) -> bool:
    return len({table.database for record in records for table in record.gold}) > 1


def _curve(run: Run, measure: str) -> dict[int, float]:
    depth = run.scores.config.depth
    cutoffs = [k for k in CUTOFFS if k < depth] + [depth]
    found = measured(run.records, cutoffs)
    return {each.k: value for each, value in zip(found.measures, found.means(), strict=True) if each.name == measure}


def _alike(runs: Sequence[Run], measure: str) -> tuple[str, list[Sequence[str]]]:
    """Give what runs were compared by, and the groups that cannot be told apart by it."""
    names = {str(run.folder): run.name for run in runs}
    try:
        found = compare([run.folder for run in runs]).groups
    except AlmanaqError:
        return "", []  # a single run, or runs that are not over the same questions: these stand side by side untested
    smallest = next(name for name in found if name.startswith(f"{measure}@"))
    return smallest, [[names[name] for name in group] for group in found[smallest]]


def _errors(run: Run) -> dict[str, int]:
    """Count questions, of conversations turns, by the stage that lost them; as the replies tell it, where they do."""
    kinds = _told(run.replies) or [
        _error(record, run.replies[record.query_id], run.scores.config.context_k)
        for record in run.records
        if record.query_id in run.replies
    ]
    return dict(Counter(kinds).most_common())


def _told(replies: Mapping[str, ReplyRecord]) -> list[str]:
    """Give what lost each question or turn, where the replies tell."""
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


def _tables(data_dir: Path, config: RunConfig, runs: Sequence[Run]) -> dict[TableId, Table]:
    """Give the tables that slices and failures speak of; {} where the dataset is not at hand."""
    wanted = {table for record in runs[0].records for table in record.gold}
    wanted |= {hit.id for run in runs for record in run.records for hit in record.hits[:ABOVE]}
    try:
        corpus: Corpus = find_dataset(data_dir, config.dataset).corpus(config.split)
    except AlmanaqError:
        return {}
    return {table.id: table for table in corpus if table.id in wanted}


def _telling(runs: Sequence[Run]) -> list[Run]:
    """Give the best two runs, by the curve's beginning, that are more than bounds."""
    systems = [run for run in runs if run.scores.config.resolved not in _BOUNDS]
    return sorted(systems, key=lambda run: -run.curve[min(run.curve)])[:2]


def main_measure(task: str) -> str:
    """Give the measure of replies that is in front; "" for retrieval alone."""
    return _MAIN.get(task, "")
