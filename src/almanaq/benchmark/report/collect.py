"""What a report shows, as plain values: from run folders, and from their datasets where these are at hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from almanaq.benchmark.compare import compare
from almanaq.benchmark.config import RunConfig
from almanaq.benchmark.data import find_dataset
from almanaq.benchmark.generation.replies import ReplyRecord, read_replies
from almanaq.benchmark.generation.score import is_flawless, label
from almanaq.benchmark.records import REPLIES, Record
from almanaq.benchmark.score import Scores, measured, read_run, score
from almanaq.corpus.table import Corpus, Table, TableId
from almanaq.errors import AlmanaqError
from almanaq.evaluation.evaluate import PerQuery
from almanaq.evaluation.measures import Measure
from almanaq.evaluation.short_answers import exact_match
from almanaq.retrieval.words import Analyzer

CUTOFFS = (1, 2, 3, 5, 10, 20, 50, 100)
FAILURES = 6
_BOUNDS = ("none", "random", "oracle")  # of a comparison: their failures tell nothing
_ABOVE = 3
_MAIN = {
    "question-answering": "f1",
    "fact-verification": "accuracy",
    "text-to-sql": "execution_accuracy",
    "restaurants": "all_right",
}


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
        alike: groups of runs that cannot be told apart, by that measure at its smallest cutoff; [] for a single run.
        errors: by run, how many questions ended how: by the stage that lost them.
    """

    title: str
    measure: str
    runs: Sequence[Run]
    alike: Sequence[Sequence[str]]
    slices: Sequence[Slice]
    failures: Sequence[Failure]
    errors: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


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
        _alike(runs, measure),
        _slices(runs, measure, tables),
        [failure for run in _telling(runs) for failure in _failures(run, tables)],
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


def _alike(runs: Sequence[Run], measure: str) -> list[Sequence[str]]:
    if len(runs) < 2:
        return []
    names = {str(run.folder): run.name for run in runs}
    try:
        found = compare([run.folder for run in runs]).groups
    except AlmanaqError:
        return []  # runs that are not over the same questions stand side by side untested
    smallest = next(name for name in found if name.startswith(f"{measure}@"))
    return [[names[name] for name in group] for group in found[smallest]]


def _errors(run: Run) -> dict[str, int]:
    """Count questions by the stage that lost them: retrieval, generator, or the answer itself."""
    k = run.scores.config.context_k
    role = next(iter(run.replies.values())).role
    counts: dict[str, int] = {}
    for record in run.records:
        reply = run.replies.get(record.query_id)
        if reply is not None:
            kind = _error(record, reply, k, role)
            counts[kind] = counts.get(kind, 0) + 1
    return dict(sorted(counts.items(), key=lambda entry: -entry[1]))


def _error(record: Record, reply: ReplyRecord, k: int, role: str) -> str:
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
    return f"SQL: {reply.outcome}" if reply.outcome not in ("", "ok") else "wrong answer"


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
    wanted |= {hit.id for run in runs for record in run.records for hit in record.hits[:_ABOVE]}
    try:
        corpus: Corpus = find_dataset(data_dir, config.dataset).corpus(config.split)
    except AlmanaqError:
        return {}
    return {table.id: table for table in corpus if table.id in wanted}


def _slices(runs: Sequence[Run], measure: str, tables: Mapping[TableId, Table]) -> list[Slice]:
    """Cut the questions by their length, by difficulty, and by their gold table's size and title."""
    per_query = {run.name: measured(run.records, [1]) for run in runs}
    cuts: dict[str, dict[str, list[str]]] = {}
    analyzer = Analyzer()
    for record in runs[0].records:
        for by, name in _parts(record, tables, analyzer):
            cuts.setdefault(by, {}).setdefault(name, []).append(record.query_id)
    for record in runs[0].records:
        reply = next((run.replies[record.query_id] for run in runs if record.query_id in run.replies), None)
        if reply is not None and reply.slice:
            cuts.setdefault("difficulty", {}).setdefault(reply.slice, []).append(record.query_id)
    return [
        Slice(by, name, len(ids), {run.name: _mean(per_query[run.name], measure, ids) for run in runs})
        for by, parts in cuts.items()
        for name, ids in sorted(parts.items())
        if len(parts) > 1
    ]


def _parts(record: Record, tables: Mapping[TableId, Table], analyzer: Analyzer) -> list[tuple[str, str]]:
    words = len(record.question.split())
    parts = [
        ("question length", "1: up to 9 words" if words < 10 else "2: 10 to 15" if words < 16 else "3: 16 or more")
    ]
    table = tables.get(record.gold[0])
    if table is not None:
        rows = len(table.rows)
        parts.append(
            ("rows of the gold table", "1: up to 9" if rows < 10 else "2: 10 to 29" if rows < 30 else "3: 30 or more")
        )
        title = set(analyzer.terms(f"{table.title} {table.section}"))
        shared = len(title & set(analyzer.terms(record.question))) / len(title) if title else 0.0
        overlap = "1: nothing" if not shared else "2: up to half" if shared <= 0.5 else "3: more than half"
        parts.append(("title words in the question", overlap))
    return parts


def _mean(found: PerQuery[Measure], name: str, ids: Sequence[str]) -> float:
    column = [measure.name for measure in found.measures].index(name)
    place = {query: number for number, query in enumerate(found.queries)}
    return float(found.values[[place[query] for query in ids], column].mean())


def _telling(runs: Sequence[Run]) -> list[Run]:
    """Give the best two runs, by the curve's beginning, that are more than bounds."""
    systems = [run for run in runs if run.scores.config.resolved not in _BOUNDS]
    return sorted(systems, key=lambda run: -run.curve[min(run.curve)])[:2]


def _failures(run: Run, tables: Mapping[TableId, Table]) -> list[Failure]:
    """Give the first questions whose gold table stands lowest, spread over the split."""
    ranked = []
    for record in run.records:
        gold = set(record.gold)
        rank = next((place for place, hit in enumerate(record.hits, 1) if hit.id in gold), 0)
        if rank != 1 and record.hits:
            ranked.append((-(rank or 10**6), record.query_id, rank, record))
    worst = sorted(ranked)[: 10 * FAILURES : 10] if len(ranked) > 10 * FAILURES else sorted(ranked)[:FAILURES]
    return [_failure(run.name, record, rank, tables) for _, _, rank, record in worst]


def _failure(run: str, record: Record, rank: int, tables: Mapping[TableId, Table]) -> Failure:
    above = [hit.id for hit in record.hits[: min(_ABOVE, rank - 1 if rank else _ABOVE)]]
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
    parts = [
        f"{where}: {', '.join(word for word in asked if word in held) or 'nothing'}"
        for where, held in (("title, header", head), ("cells", cells - head))
    ]
    return "; ".join(parts)


def main_measure(task: str) -> str:
    """Give the measure of replies that is in front; "" for retrieval alone."""
    return _MAIN.get(task, "")
