"""The TARGET paper's Python API (its appendix A), on our runner.

    target = TARGET(("Table Question Answering", "OTTQA"), data_dir="data")
    results = target.run(retriever, split="validation", top_k=10)
    results["Table Question Answering"]["OTTQA"].retrieval_performance.recall

A retriever is a name, one of ours, or any object with `embed_corpus(corpus)` and `retrieve(query, top_k)`; see
`almanaq_bench.retrievers.paper_retrievers`.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from almanaq.corpus.table import DEFAULT_FIELDS
from almanaq.errors import UsageError
from almanaq.models.private_files import default_cache_folder
from almanaq.models.protocols import Embedder, LanguageModel
from almanaq_bench.cards import DATASETS, TASKS, find_card, find_task
from almanaq_bench.config import RunRequest
from almanaq_bench.data import find_dataset
from almanaq_bench.generation.generators import adapt_generator
from almanaq_bench.records import RECORDS, REPLIES, write_whole
from almanaq_bench.retrievers.paper_retrievers import BATCH, adapt
from almanaq_bench.run_measures import Scores
from almanaq_bench.runner import run


@dataclass(frozen=True, slots=True)
class CustomTask:
    """A task over datasets of one's own.

    Attributes:
        name: what results call it.
        datasets: a name for each dataset folder or card file.
        like: the task of the benchmark that it is run and scored as.
        generator: what replies in it; None takes the one that `run` is told.
        distractors: a dataset of the data folder all of whose tables are added to each corpus; "" for none.
    """

    name: str
    datasets: Mapping[str, str | Path]
    like: str = "table-retrieval"
    generator: Any = None
    distractors: str = ""


TaskSpec = str | tuple[str, str | Sequence[str]] | CustomTask


@dataclass(frozen=True, slots=True)
class RetrievalPerformance:
    """How well tables were found among the first k; for text-to-SQL also their databases."""

    k: int
    recall: float
    capped_recall: float
    precision: float
    mrr: float
    ndcg: float
    database_recall: float
    seconds_per_query: float

    @property
    def accuracy(self) -> float:
        """What the paper's table has under recall: of tables, each query's share found."""
        return self.recall


@dataclass(frozen=True, slots=True)
class TaskResults:
    """One dataset's results: of the retrieval, of the replies ({} without any), and all with intervals, provenance."""

    retrieval_performance: RetrievalPerformance
    scores: Scores
    downstream_task_performance: Mapping[str, float] = field(default_factory=dict)


Results = dict[str, dict[str, TaskResults]]
"""By task, then by dataset, both as they were named."""


class TARGET:
    """Evaluates retrievers on tasks.

    Args:
        downstream_tasks: a task's name, a task with a dataset or several, a CustomTask, or a list of these; by default
            table retrieval on all datasets at hand. Names are those of the paper or of `almanaq bench list`. A dataset
            that nobody asks about, as GitTables, adds its tables to the corpora of the others: the needle in the
            haystack.
        data_dir: the folder of the datasets; by default `datasets` in the cache folder. Nothing is downloaded here:
            `almanaq bench fetch NAME --data-dir DIR` does that.

    Raises:
        UsageError: there is no such task, or the dataset is not of that task.
    """

    def __init__(
        self, downstream_tasks: TaskSpec | list[TaskSpec] | None = None, *, data_dir: str | Path | None = None
    ) -> None:
        self.data_dir = Path(data_dir) if data_dir is not None else default_cache_folder() / "datasets"
        self._tasks: dict[str, CustomTask] = {}
        for spec in downstream_tasks if isinstance(downstream_tasks, list) else [downstream_tasks]:
            task = self._task("Table Retrieval" if spec is None else spec)
            if task.name in self._tasks:
                raise UsageError(f"task {task.name!r} is listed twice: list it once, with all its datasets")
            self._tasks[task.name] = task

    def get_loaded_tasks(self) -> list[str]:
        """Return the names of the tasks that `run` evaluates."""
        return list(self._tasks)

    def run(
        self,
        retriever: Any,
        split: str = "test",
        top_k: int = 5,
        *,
        batch_size: int = BATCH,
        generator: Any = "local",
        fields: Sequence[str] = DEFAULT_FIELDS,
        limit: int | None = None,
        seed: int = 0,
        embedder: str | Embedder | None = None,
        out: str | Path | None = None,
        retrieval_results_file: str | Path | None = None,
        downstream_results_file: str | Path | None = None,
    ) -> Results:
        """Evaluate a retriever, and give the results by task and dataset.

        Args:
            top_k: how many tables are looked at, and handed to the generator.
            batch_size: how many tables each batch holds that the paper's `embed_corpus` is given.
            generator: what replies in tasks that ask for replies: a name, or an object with `generate(table_str,
                query)`.
            fields: what is indexed of a table, for retrievers that take a declaration.
            out: gets a run folder for each task and dataset; a run that is there already is gone on with. By default
                the records are not kept.
            retrieval_results_file: gets what was found for each query, one JSON line each, whichever its dataset;
                `downstream_results_file` what was replied.

        Raises:
            UsageError: there is no such split or retriever, or a number is out of its range.
            BenchmarkError, SourceError: as `almanaq bench run`.
        """
        if top_k < 1:
            raise UsageError(f"top_k must be 1 or more, not {top_k}")
        with _folder(out) as root:
            made, name = _retriever(retriever, batch_size)
            base = RunRequest(
                "", "", self.data_dir, split, name, root, _opener(embedder), fields, (top_k,), limit, seed,
                resume=out is not None, cache=default_cache_folder(), made=made, model=_model, context_k=top_k,
            )  # fmt: skip
            results, kept = self._run(base, generator)
        _write(retrieval_results_file, kept[RECORDS])
        _write(downstream_results_file, kept[REPLIES])
        return results

    def _run(self, base: RunRequest, generator: Any) -> tuple[Results, dict[str, list[str]]]:
        """Return the results by task and dataset, and the records of all."""
        results: Results = {}
        kept: dict[str, list[str]] = {RECORDS: [], REPLIES: []}
        for task in self._tasks.values():
            results[task.name] = {}
            for dataset, path in task.datasets.items():
                placed = _place_request(base, task, dataset, Path(path))
                request = _generating(placed, generator if task.generator is None else task.generator)
                results[task.name][dataset] = _results(run(request), base.context_k)
                for name in kept:
                    kept[name] += _lines(request.out / name, task.name, dataset)
        return results, kept

    def _task(self, spec: TaskSpec) -> CustomTask:
        if isinstance(spec, CustomTask):
            find_task(spec.like)
            return spec
        name, datasets = spec if isinstance(spec, tuple) else (spec, None)
        task = find_task(name)
        if datasets is None:
            return CustomTask(name, {each: self.data_dir / each for each in self._at_hand(task.name)}, task.name)
        named = [datasets] if isinstance(datasets, str) else list(datasets)
        hay = [each for each in named if _is_hay(each)]
        chosen = [each for each in named if each not in hay]
        if not chosen or len(hay) > 1:
            raise UsageError(f"task {name!r} needs a dataset that is asked about, and one haystack at most: {named}")
        for each in chosen:
            card = find_card(each)
            if card is not None and task.name not in card.tasks:
                fits = ", ".join(known.name for known in DATASETS if task.name in known.tasks)
                raise UsageError(f"dataset {each!r} has no task {name!r}; those that have: {fits}")
        paths = {each: self.data_dir / each for each in chosen}
        return CustomTask(name, paths, task.name, distractors="".join(hay))

    def _at_hand(self, task: str) -> list[str]:
        found = []
        for card in DATASETS:
            if task in card.tasks:
                try:
                    find_dataset(self.data_dir, card.name)
                except UsageError:
                    continue
                found.append(card.name)
        if not found:
            raise UsageError(f"{self.data_dir} holds no dataset of {task!r}; name one, or another data_dir")
        return found


def get_task_names() -> list[str]:
    """Return the names of all tasks, as the paper has them."""
    return [task.aliases[0] for task in TASKS]


def _place_request(base: RunRequest, task: CustomTask, dataset: str, path: Path) -> RunRequest:
    """Return the request for one dataset of a task; a card's file is named without its ending."""
    name = path.stem if path.is_file() else path.name
    out = base.out / f"{find_task(task.like).name}-{dataset}-{base.split}"
    placed = replace(base, task=task.like, dataset=name, data_dir=path.parent, out=out)
    if not task.distractors:
        return placed
    many = len(find_dataset(path.parent, task.distractors).corpus())
    return replace(placed, out=Path(f"{out}-{task.distractors}"), distractors=many, distractors_from=task.distractors)


def _is_hay(dataset: str) -> bool:
    """Return whether a dataset is known as one that nobody asks about."""
    card = find_card(dataset)
    return card is not None and not card.tasks


def _results(scores: Scores, k: int) -> TaskResults:
    recall, capped, precision, mrr, ndcg, database = (
        scores.metrics[f"{name}@{k}"]
        for name in ("recall", "capped_recall", "precision", "mrr", "ndcg", "database_recall")
    )
    seconds = scores.timings["seconds_per_query"]
    performance = RetrievalPerformance(k, recall, capped, precision, mrr, ndcg, database, seconds)
    replies = {name: value for name, value in scores.metrics.items() if "@" not in name}
    return TaskResults(performance, scores, replies)


def _write(file: str | Path | None, lines: Sequence[str]) -> None:
    if file is not None:
        write_whole(Path(file), "".join(f"{line}\n" for line in lines))


def _lines(file: Path, task: str, dataset: str) -> list[str]:
    """Return the records of a run with their task and dataset; none where the task has none."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [json.dumps({"task": task, "dataset": dataset, **json.loads(line)}, ensure_ascii=False) for line in lines]


def _generating(request: RunRequest, generator: Any) -> RunRequest:
    """Return the request with its generator: a name, or an object."""
    if isinstance(generator, str):
        return replace(request, generator=generator)
    kind = type(generator)
    return replace(request, replies=adapt_generator(generator, f"{kind.__module__}:{kind.__qualname__}"))


def _model(name: str) -> LanguageModel:
    from almanaq.models.model_names import open_models

    language = open_models(name, embedder="lexical").language
    if language is None:
        raise UsageError(f"{name!r} is not a language model: name one, such as openai:MODEL")
    return language


def _retriever(given: Any, batch: int) -> tuple[Any, str]:
    if batch < 1:
        raise UsageError(f"batch_size must be 1 or more, not {batch}")
    if isinstance(given, str):
        return None, given
    kind = given if isinstance(given, type) else type(given)
    name = getattr(given, "name", None) if callable(getattr(given, "index", None)) else None
    label = str(name or f"{kind.__module__}:{kind.__qualname__}")
    return adapt(given, label, batch=batch), label


def _opener(embedder: str | Embedder | None) -> Any:
    def open_lazily() -> Embedder:
        from almanaq.models.embedders.base import as_embedder
        from almanaq.models.model_names import open_embedder
        from almanaq.retrieval.retriever_names import default_embedder

        if embedder is not None and not isinstance(embedder, str):
            return as_embedder(embedder)
        return open_embedder(embedder or default_embedder())

    return open_lazily


@contextmanager
def _folder(out: str | Path | None) -> Iterator[Path]:
    if out is not None:
        yield Path(out)
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)
