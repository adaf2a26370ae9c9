"""The evaluator, called as the published package's is; the runs are those of `almanaq_bench`."""

from __future__ import annotations

import json
import logging
import tempfile
import warnings
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from almanaq.errors import UsageError, suggest
from almanaq_bench import paper_api
from almanaq_bench.paper_api import CustomTask
from almanaq_bench.paper_api import TaskResults as Measured
from almanaq_bench.records import write_whole
from almanaq_bench.target.data_models import (
    DatasetConfigDataModel,
    DownstreamTaskPerformanceDataModel,
    EmbeddingStatisticsDataModel,
    NeedleInHaystackDatasetConfigDataModel,
    RetrievalPerformanceDataModel,
    RetrievalResultDataModel,
    TaskResultsDataModel,
)
from almanaq_bench.target.dataset_loaders import (
    OTHER_NAMES,
    AbsDatasetLoader,
    dataset_path,
    default_data_folder,
    make_loader,
)
from almanaq_bench.target.retrievers import NamedRetriever
from almanaq_bench.target.tasks import TASKS, AbsTask, TableRetrievalTask

__all__ = ["TARGET", "get_task_names"]

_BATCH = 64


def get_task_names() -> list[str]:
    """Return the names of all tasks.

    >>> get_task_names()
    ['Table Retrieval Task', 'Table Question Answering Task', 'Fact Verification Task', 'Text to SQL Task']
    """
    return [task.get_default_task_name() for task in TASKS]


class TARGET:
    """Evaluates retrievers, and what replies after them, on tasks.

    Args:
        downstream_tasks: a task's name, `(name, dataset or list of datasets)`, a task object, or a list of these; by
            default table retrieval on all its datasets. A task named twice is the later one, and the log says so.
        persist_log: whether the log is written to a file, too.
        log_file_path: that file; by default `logs/target_run_log_TIME.txt`.
        data_dir: the folder that the datasets were fetched into; by default ALMANAQ_DATA, else the cache folder's.

    Raises:
        UsageError: there is no such task, the dataset is not of that task, or something else is given for a task.
    """

    def __init__(
        self, downstream_tasks: Any = None, persist_log: bool = True, log_file_path: str | None = None, *,
        data_dir: str | Path | None = None,
    ) -> None:  # fmt: skip
        self.data_dir = Path(data_dir) if data_dir is not None else default_data_folder()
        self.logger = _logger(persist_log, log_file_path)
        self.tasks = self._load(downstream_tasks)
        self.logger.info("tasks: %s", ", ".join(self.tasks))
        self.dataset_info: dict[str, DatasetConfigDataModel] = {}
        for task in self.tasks.values():
            for name, config in task.get_dataset_config().items():
                self.dataset_info.setdefault(name, config)
        self.dataloaders: dict[str, AbsDatasetLoader] = {}

    def get_loaded_tasks(self) -> list[str]:
        """Return the names of the tasks that `run` evaluates."""
        return list(self.tasks)

    def create_dataloaders(
        self, dataset_config: Mapping[str, DatasetConfigDataModel], split: str = "test"
    ) -> dict[str, AbsDatasetLoader]:
        """Return a loader for each dataset; nothing is read before a loader's `load`."""
        return {name: make_loader(config, split, self.data_dir) for name, config in dataset_config.items()}

    def run(
        self,
        retriever: Any,
        split: str = "test",
        batch_size: int = _BATCH,
        top_k: int = 5,
        retrieval_results_file: str | Path | None = None,
        downstream_results_file: str | Path | None = None,
        retrieval_results_dir: str | Path | None = None,
        downstream_results_dir: str | Path | None = None,
        **settings: Any,
    ) -> dict[str, dict[str, TaskResultsDataModel]]:
        """Evaluate a retriever, and give the results by task and dataset.

        Args:
            retriever: an object of a class that derives from `AbsCustomEmbeddingRetriever` or
                `AbsStandardEmbeddingRetriever`, or one that `almanaq_bench.TARGET` takes.
            batch_size: how many tables each batch holds that `embed_corpus` is given.
            retrieval_results_file: gets what was found, one JSON line for each question; `downstream_results_file`
                what was replied. The `_dir`s get such a file for each dataset, `DATASET_K.jsonl`.
            settings: whatever else `almanaq_bench.TARGET.run` takes: `generator`, `embedder`, `limit`, `out`.

        Raises:
            UsageError, BenchmarkError, SourceError: as `almanaq_bench.TARGET.run`; a generator that fails at all
                of the first questions is a BenchmarkError.

        Warns:
            UserWarning: some replies failed; `failed_replies` of the scores counts them.
        """
        named = retriever.name() if isinstance(retriever, NamedRetriever) else retriever
        self.dataloaders = self.create_dataloaders(self.dataset_info, split)
        results: dict[str, dict[str, TaskResultsDataModel]] = {}
        lines: dict[str, list[str]] = {"found": [], "replied": []}
        with tempfile.TemporaryDirectory() as folder:
            for name, task in self.tasks.items():
                self.logger.info("%s starts, on the split %r", name, split)
                found, replied = Path(folder, "found.jsonl"), Path(folder, "replied.jsonl")
                measured = paper_api.TARGET(self._as_run(task), data_dir=self.data_dir).run(
                    named, split, top_k, batch_size=batch_size, retrieval_results_file=found,
                    downstream_results_file=replied, **settings,
                )  # fmt: skip
                self._warn(name, measured[name])
                records, replies = _read(found), _read(replied)
                results[name] = {
                    dataset: self._results(task, dataset, each, records, replies)
                    for dataset, each in measured[name].items()
                }
                lines["found"] += map(_found_line, records)
                lines["replied"] += map(_format_reply, replies)
        _write(lines["found"], retrieval_results_file, retrieval_results_dir, top_k)
        _write(lines["replied"], downstream_results_file, downstream_results_dir, top_k)
        self.logger.info("all tasks are done")
        return results

    def _warn(self, task: str, measured: Mapping[str, Measured]) -> None:
        """Say what lowers a score and is no wrong answer: in the log, and of replies that failed as a warning, too."""
        for dataset, each in measured.items():
            for warning in each.scores.warnings:
                self.logger.warning("%s, %s: %s", task, dataset, warning)
            if each.scores.outcomes.get("fault"):
                failed = f"{each.scores.outcomes['fault']} of {sum(each.scores.outcomes.values())} replies failed"
                warnings.warn(f"{task}, {dataset}: {failed} and count 0; the log says why", stacklevel=3)

    def _load(self, given: Any) -> dict[str, AbsTask]:
        listed = given if isinstance(given, list) else [given or TableRetrievalTask()]
        loaded: dict[str, AbsTask] = {}
        for spec in listed:
            task = _task(spec)
            if task.get_task_name() in loaded:
                self.logger.warning("task %r is named twice: the later one is used", task.get_task_name())
            loaded[task.get_task_name()] = task
        return loaded

    def _as_run(self, task: AbsTask) -> CustomTask:
        """Return a task as our benchmark runs it; measures of its own are computed afterwards."""
        paths, hay = {}, []
        for name, config in task.get_dataset_config().items():
            if isinstance(config, NeedleInHaystackDatasetConfigDataModel):
                hay.append(dataset_path(config, self.data_dir).name)
            else:
                paths[name] = dataset_path(config, self.data_dir)
        if not paths or len(hay) > 1:
            raise UsageError(
                f"task {task.get_task_name()!r} needs a dataset that is asked about, and one haystack at most"
            )
        like = "table-retrieval" if task.measures_itself() else task.like
        return CustomTask(task.get_task_name(), paths, like, task.task_generator, "".join(hay))

    def _results(
        self,
        task: AbsTask,
        dataset: str,
        measured: Measured,
        records: Sequence[Mapping[str, Any]],
        replies: Sequence[Mapping[str, Any]],
    ) -> TaskResultsDataModel:
        if task.measures_itself():
            downstream = self._own_measures(task, dataset, [each for each in records if each["dataset"] == dataset])
        else:
            pairs = [(each["text"], each["gold"]) for each in replies if each["dataset"] == dataset]
            scores = task.scores_of(pairs, measured.downstream_task_performance)
            if failed := measured.scores.outcomes.get("fault"):
                scores["failed_replies"] = failed
            downstream = DownstreamTaskPerformanceDataModel(task_name=task.get_task_name(), scores=scores or None)
        return TaskResultsDataModel(
            retrieval_performance=_performance(measured),
            downstream_task_performance=downstream,
            embedding_statistics=_statistics(measured),
        )

    def _own_measures(
        self, task: AbsTask, dataset: str, records: Sequence[Mapping[str, Any]]
    ) -> DownstreamTaskPerformanceDataModel:
        """Have a task of the user's own reply and measure, batch by batch, as the published evaluator does."""
        loader = self.dataloaders[dataset]
        loader.load()
        tables = loader.get_table_id_to_table()
        found = {str(each["query_id"]): RetrievalResultDataModel(**json.loads(_found_line(each))) for each in records}
        for batch in loader.get_queries_for_task(_BATCH):
            asked = [at for at, query in enumerate(batch["query_id"]) if str(query) in found]
            chosen = {name: [values[at] for at in asked] for name, values in batch.items()}
            results = [found[str(query)] for query in chosen["query_id"]]
            task._update_downstream_task_metrics(
                chosen, task._get_downstream_task_results(chosen, results, dataset, tables)
            )
        return task._calculate_downstream_task_performance()


def _task(spec: Any) -> AbsTask:
    """Return the task that a name, a name with datasets, or an object stands for."""
    if isinstance(spec, AbsTask):
        return spec
    name, datasets = spec if isinstance(spec, tuple) and len(spec) == 2 else (spec, None)
    if not isinstance(name, str):
        raise UsageError(f"{spec!r} is not a task: give a task's name, (name, datasets) or a task object")
    kinds: dict[str, Any] = {kind.get_default_task_name(): kind for kind in TASKS}
    kind = kinds.get(name) or kinds.get(f"{name} Task")
    if kind is None:
        raise UsageError(f"task {name!r} is unknown{suggest(name, kinds)}; get_task_names() lists them")
    if datasets is None:
        return kind()  # type: ignore[no-any-return]
    if not isinstance(datasets, str | list | tuple):
        raise UsageError(f"task {name!r}: {datasets!r} is neither a dataset's name nor a list of names")
    known = kind.get_available_datasets()
    chosen = {}
    for each in [datasets] if isinstance(datasets, str) else datasets:
        config = known.get(each) or OTHER_NAMES.get(each) or known.get(str(each).lower())
        if config is None or (each in OTHER_NAMES and not {"spider", "bird-validation"} & known.keys()):
            raise UsageError(f"dataset {each!r} is not of task {name!r}{suggest(str(each), known)}")
        chosen[each] = config
    return kind(chosen)  # type: ignore[no-any-return]


def _performance(measured: Measured) -> RetrievalPerformanceDataModel:
    found, asked = measured.retrieval_performance, measured.scores.queries
    each, total = round(found.seconds_per_query, 6), round(found.seconds_per_query * asked, 6)
    return RetrievalPerformanceDataModel(
        k=found.k, accuracy=found.recall, precision=found.precision, recall=found.recall,
        capped_recall=found.capped_recall, mrr=found.mrr, ndcg=found.ndcg, database_recall=found.database_recall,
        retrieval_time=total, avg_retrieval_time=each,
        retrieval_duration_process=total, avg_retrieval_duration_process=each,
        retrieval_duration_wall_clock=total, avg_retrieval_duration_wall_clock=each,
    )  # fmt: skip


def _statistics(measured: Measured) -> EmbeddingStatisticsDataModel:
    total = round(measured.scores.timings.get("index_seconds", 0.0), 6)
    each = round(total / max(1, measured.scores.config.tables), 6)
    size = float(measured.scores.timings.get("index_bytes", 0.0))
    return EmbeddingStatisticsDataModel(
        embedding_creation_duration=total, avg_embedding_creation_duration=each,
        embedding_creation_duration_process=total, avg_embedding_creation_duration_process=each,
        embedding_creation_duration_wall_clock=total, avg_embedding_creation_duration_wall_clock=each,
        embedding_size=size, avg_embedding_size=size / max(1, measured.scores.config.tables),
    )  # fmt: skip


def _read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def _found_line(record: Mapping[str, Any]) -> str:
    found = [hit[:2] for hit in record["hits"]]
    line = {"dataset_name": record["dataset"], "query_id": record["query_id"], "retrieval_results": found}
    return json.dumps(line, ensure_ascii=False)


def _format_reply(reply: Mapping[str, Any]) -> str:
    line = {"dataset_name": reply["dataset"], "query_id": reply["query_id"], "generated_results": reply["text"]}
    return json.dumps(line, ensure_ascii=False)


def _write(lines: Iterable[str], file: str | Path | None, folder: str | Path | None, k: int) -> None:
    kept = list(lines)
    if file is not None:
        write_whole(Path(file), "".join(f"{line}\n" for line in kept))
    if folder is not None:
        Path(folder).mkdir(parents=True, exist_ok=True)
        of: dict[str, list[str]] = {}
        for line in kept:
            of.setdefault(json.loads(line)["dataset_name"], []).append(line)
        for name, own in of.items():
            write_whole(Path(folder, f"{name}_{k}.jsonl"), "".join(f"{line}\n" for line in own))


class _ToFile(logging.Handler):
    """Appends each record to a file, which is open no longer than that takes."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.file = file
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        self.setFormatter(logging.Formatter("%(asctime)s - %(name)s - %(levelname)s - %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        with self.file.open("a", encoding="utf-8") as out:
            out.write(self.format(record) + "\n")


def _logger(persist: bool, path: str | None) -> logging.Logger:
    logger = logging.Logger("almanaq_bench.target", logging.DEBUG)
    logger.parent = logging.getLogger("almanaq")
    if persist:
        now = datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
        logger.addHandler(_ToFile(Path(path or f"logs/target_run_log_{now}.txt")))
    return logger
