"""Runs a retriever over a dataset and leaves a folder that says what ran, what was found, and how well."""

from __future__ import annotations

import hashlib
import json
import math
import platform
import time
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from almanaq.benchmark.cards import DATASETS, TASKS
from almanaq.benchmark.config import RunConfig, read_config
from almanaq.benchmark.records import Appender, Record, read_records, write_whole
from almanaq.benchmark.score import CONFIG, METRICS, RECORDS, TIMINGS, Scores, score
from almanaq.corpus.dataset import DatasetFolder, ParquetCorpus, Question, open_dataset
from almanaq.corpus.serialize import DEFAULT_FIELDS, parse_fields
from almanaq.corpus.table import TableId
from almanaq.errors import BenchmarkError, SourceError, UsageError, suggest
from almanaq.models.protocols import Embedder
from almanaq.retrieval.protocols import Retriever, TableIndex
from almanaq.retrieval.registry import Opened, Parts, open_retriever

BATCH = 256
"""Questions asked at once. A resumed run asks the same batches, so that it computes the same digits."""

CUTOFFS = (1, 5, 10, 50)


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What to run, as the command line says it.

    Attributes:
        data_dir: the folder that holds the dataset's folder.
        out: the run folder, made when it is not there.
        embedder: opens the embedder, for retrievers that need one.
        cache: the folder of cached vectors; None keeps them in memory.
    """

    task: str
    dataset: str
    data_dir: Path
    split: str
    retriever: str
    out: Path
    embedder: Callable[[], Embedder]
    fields: Sequence[str] = DEFAULT_FIELDS
    cutoffs: Sequence[int] = CUTOFFS
    limit: int | None = None
    seed: int = 0
    resume: bool = False
    cache: Path | None = None


def run(request: RunRequest, *, progress: Callable[[int, int], None] | None = None) -> Scores:
    """Run a retriever over a split, and give its measures.

    `progress` is told after every batch how many of how many questions are done.

    Raises:
        UsageError: an unknown task, dataset, split, retriever or field; a limit or cutoff below 1.
        BenchmarkError: a gold table is not in the corpus; the run folder holds another run.
        SourceError: the data cannot be read.
    """
    _check(request)
    folder = _folder(request)
    questions = folder.questions(request.split)[: request.limit]
    corpus = folder.corpus(request.split)
    opened = _open(request, questions)
    config = _config(request, folder, corpus, opened)
    ids = _check_ids(questions, corpus)
    todo = _prepare(request, config, questions)
    if todo:
        asking = _Asking(request.out, config, ids, progress)
        asking.ask(asking.index(opened.retriever, corpus), todo)
    scores = score(request.out)
    write_whole(request.out / METRICS, json.dumps(scores.metrics, indent=2) + "\n")
    return scores


def _check(request: RunRequest) -> None:
    if request.task not in TASKS:
        raise UsageError(f"unknown task {request.task!r}{suggest(request.task, TASKS)}")
    if request.limit is not None and request.limit < 1:
        raise UsageError(f"--limit must be 1 or more, not {request.limit}")
    if not request.cutoffs or min(request.cutoffs) < 1:
        raise UsageError(f"--k takes numbers of 1 or more between commas, not {list(request.cutoffs)}")


def _folder(request: RunRequest) -> DatasetFolder:
    if not request.data_dir.is_dir():
        raise SourceError(f"no such folder: {request.data_dir}")
    path = request.data_dir / request.dataset
    if not path.is_dir():
        held = [file.parent.name for file in request.data_dir.glob("*/corpus.parquet")]
        known = [*held, *(card.name for card in DATASETS)]
        what = "is not in" if request.dataset in known else "is unknown, and not in"
        hint = suggest(request.dataset, held if request.dataset in known else known)
        raise UsageError(f"dataset {request.dataset!r} {what} {request.data_dir}{hint}")
    return open_dataset(path)


def _open(request: RunRequest, questions: Sequence[Question]) -> Opened:
    gold: dict[str, list[TableId]] = {}
    for question in questions:
        gold.setdefault(question.text, []).extend(question.gold)
    parts = Parts(request.embedder, request.cache, request.seed, {text: tuple(ids) for text, ids in gold.items()})
    return open_retriever(request.retriever, parts)


def _config(request: RunRequest, folder: DatasetFolder, corpus: ParquetCorpus, opened: Opened) -> RunConfig:
    files = (folder.corpus_file, folder.queries_file(request.split))
    return RunConfig(
        task=request.task,
        dataset=request.dataset,
        split=request.split,
        retriever=request.retriever,
        resolved=opened.name,
        fields=tuple(map(str, parse_fields(request.fields))),
        cutoffs=tuple(sorted(set(request.cutoffs))),
        embedder=opened.embedder,
        note=opened.note,
        limit=request.limit,
        seed=request.seed,
        tables=len(corpus),
        corpus_split=corpus.split or "all",
        data={file.name: _sha256(file) for file in files},
        versions=_versions(),
    )


def _check_ids(questions: Sequence[Question], corpus: ParquetCorpus) -> Set[TableId]:
    """Give the ids of the corpus, after checking that they are distinct and hold every gold table."""
    wanted = {table: question for question in questions for table in question.gold}
    ids: set[TableId] = set()
    for table in corpus:
        wanted.pop(table.id, None)
        if table.id in ids:
            raise BenchmarkError(f"{corpus.file}: table {table.id} stands more than once")
        ids.add(table.id)
    if wanted:
        table_id, question = next(iter(wanted.items()))
        raise BenchmarkError(
            f"{len(wanted)} gold tables are not among the {len(corpus)} tables of {corpus.file} that were searched"
            f"; the first is {table_id} of question {question.id!r}: is this the corpus of the split?"
        )
    return ids


def _prepare(request: RunRequest, config: RunConfig, questions: Sequence[Question]) -> Sequence[Sequence[Question]]:
    """Make the run folder or check that it holds this run; give the batches that are not all done."""
    file = request.out / CONFIG
    if file.exists():
        before = read_config(file)
        if before.hash != config.hash:
            changes = "; ".join(before.changed(config))
            raise BenchmarkError(f"{request.out} holds a run of another configuration ({changes}): name another --out")
        if not request.resume:
            raise BenchmarkError(f"{request.out} holds this run already: go on with --resume, or name another --out")
    else:
        _make_folder(request.out)
        write_whole(file, config.to_json())
    done = {record.query_id for record in read_records(request.out / RECORDS)}
    batches = [questions[start : start + BATCH] for start in range(0, len(questions), BATCH)]
    return [batch for batch in batches if any(question.id not in done for question in batch)]


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        foreign = next(iter(out.iterdir()), None)
    except OSError as error:
        raise BenchmarkError(f"cannot make the run folder {out}: {error}") from error
    if foreign is not None:
        raise BenchmarkError(f"{out} is not empty and holds no run ({foreign.name}): name another --out")


@dataclass(frozen=True, slots=True)
class _Asking:
    """Asks batch by batch, and writes each batch's records before the next."""

    out: Path
    config: RunConfig
    ids: Set[TableId]
    progress: Callable[[int, int], None] | None

    def index(self, retriever: Retriever, corpus: ParquetCorpus) -> TableIndex:
        started = time.perf_counter()
        index = retriever.index(corpus, self.config.fields)
        self._time({"stage": "index", "seconds": time.perf_counter() - started})
        return index

    def ask(self, index: TableIndex, todo: Sequence[Sequence[Question]]) -> None:
        records = Appender(self.out / RECORDS)
        done = {record.query_id for record in read_records(self.out / RECORDS)}
        total, asked = sum(map(len, todo)), 0
        for batch in todo:
            started = time.perf_counter()
            found = _search(index, batch, self.config, self.ids)
            seconds = time.perf_counter() - started
            records.add(record.to_json() for record in found if record.query_id not in done)
            self._time({"stage": "search", "queries": len(batch), "seconds": seconds})
            asked += len(batch)
            if self.progress is not None:
                self.progress(asked, total)

    def _time(self, timing: Mapping[str, object]) -> None:
        Appender(self.out / TIMINGS).add([json.dumps(timing)])


def _search(index: TableIndex, batch: Sequence[Question], config: RunConfig, ids: Set[TableId]) -> list[Record]:
    rankings = index.search([question.text for question in batch], config.depth)
    if len(rankings) != len(batch):
        raise BenchmarkError(f"retriever {config.resolved} gave {len(rankings)} rankings for {len(batch)} questions")
    records = [Record(asked.id, asked.gold, tuple(ranking)) for asked, ranking in zip(batch, rankings, strict=True)]
    for record in records:
        fault = _fault(record, ids)
        if fault:
            raise BenchmarkError(f"retriever {config.resolved}, question {record.query_id!r}: {fault}")
    return records


def _fault(record: Record, ids: Set[TableId]) -> str:
    """Say what is wrong with a ranking; "" where nothing is."""
    seen: set[TableId] = set()
    before = math.inf
    for hit in record.hits:
        if hit.id not in ids:
            return f"it found {hit.id}, which is not in the corpus"
        if hit.id in seen:
            return f"it lists {hit.id} twice"
        if not math.isfinite(hit.score):
            return f"it gave {hit.id} a score that is no number"
        if hit.score > before:
            return f"it gave scores that rise at {hit.id}: the best must come first"
        seen.add(hit.id)
        before = hit.score
    return ""


def _sha256(file: Path) -> str:
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in ("almanaq", "numpy", "PyStemmer", "torch", "sentence-transformers"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
