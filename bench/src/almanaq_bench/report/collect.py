"""What a report shows, as plain values: from run folders, and from their datasets where these are at hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from almanaq.corpus.table import Corpus, Table, TableId
from almanaq.errors import AlmanaqError
from almanaq_bench.compare import alike
from almanaq_bench.config import RunConfig
from almanaq_bench.data import find_dataset, is_unchanged, kept_place
from almanaq_bench.evaluation.short_answers import exact_match
from almanaq_bench.generation.reply_measures import is_flawless, label
from almanaq_bench.generation.reply_records import ReplyRecord
from almanaq_bench.records import Record
from almanaq_bench.report.questions import ABOVE, failures_of, slices_of
from almanaq_bench.report.values import Group, Run
from almanaq_bench.restaurants.play import from_text
from almanaq_bench.run_measures import measured, read_run, read_run_replies, scored

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
    scores = scored(read.folder, read.config, read.records, replies)
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
    found = measured(run.records, cutoffs, [measure])
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
    kinds = _told(run.replies) or [
        _error(record, run.replies[record.query_id], run.scores.config.context_k)
        for record in run.records
        if record.query_id in run.replies
    ]
    return dict(Counter(kinds).most_common())


def _told(replies: Mapping[str, ReplyRecord]) -> list[str]:
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
