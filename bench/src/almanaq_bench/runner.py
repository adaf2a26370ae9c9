"""Runs a system over a dataset and leaves a folder that says what ran, what was found and replied, and how well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from almanaq.corpus.table import TableId, parse_fields
from almanaq.errors import BenchmarkError, UsageError
from almanaq.models.budget import Budget
from almanaq.retrieval.retriever_names import OpenedRetriever, RetrieverParts, open_retriever
from almanaq_bench.cards import find_task
from almanaq_bench.config import RunConfig, RunRequest, check_request, read_config, versions
from almanaq_bench.cost_forecast import CostForecast
from almanaq_bench.data import RunData, keep_place, open_data
from almanaq_bench.evaluation.answers import check_sacrebleu
from almanaq_bench.generation.generators import open_generator
from almanaq_bench.generation.protocols import Generator
from almanaq_bench.generation.replies import check_labels
from almanaq_bench.generation.run import ROLES, Databases, Generation
from almanaq_bench.hybridqa.generator import open_hybrid_generator
from almanaq_bench.hybridqa.relation import table_faults
from almanaq_bench.linked import LinkedTables
from almanaq_bench.question_sets import DatasetFolder, Question
from almanaq_bench.records import CONFIG, check_unused, hold_folder, write_whole
from almanaq_bench.restaurants.dataset import RestaurantsData
from almanaq_bench.restaurants.generator import open_restaurants_generator
from almanaq_bench.restaurants.wanted import describe_broken_turns
from almanaq_bench.run_measures import Scores, keep_score
from almanaq_bench.search import Progress, Search, log_progress
from almanaq_bench.sembench.dataset import FILES, SembenchData
from almanaq_bench.sembench.generator import open_sembench_generator


def run(request: RunRequest, *, progress: Progress | None = None) -> Scores:
    """Run a retriever, and a generator where the task asks for replies, over a split, and give the measures.

    `progress` is told after every batch how many of how many questions are done.

    Raises:
        UsageError: an unknown task, dataset, split, retriever or field; a number out of its range.
        BenchmarkError: a gold table is not in the corpus; the run folder holds another run; the retriever fails.
        BudgetExceeded: `max_calls` are fewer than the replies are expected to take, or took.
        SourceError: the data cannot be read.
    """
    check_request(request)
    data = open_data(request)
    opened = _open(request, data.questions)
    replying = _replying(request, data)
    config = _config(request, data, opened, replying)
    with hold_folder(request.out):
        _prepare(request, config)
        keep_place(request.out, request.data_dir)
        with log_progress(request.out, progress) as log:
            Search(request.out, config, data.ids, log).run(opened.retriever, data.corpus, data.questions)
            if replying is not None:
                generator, databases = replying.generator, replying.databases
                foreseen = _forecast_cost(request)
                generation = Generation(
                    request.out, config, generator, databases, log, foreseen=foreseen, concurrency=request.concurrency
                )
                generation.run(replying.questions, data.corpus)
        return keep_score(request.out)


def _open(request: RunRequest, questions: Sequence[Question]) -> OpenedRetriever:
    if request.made is not None:
        return OpenedRetriever(request.made, request.retriever)
    gold: dict[str, list[TableId]] = {}
    for question in questions:
        gold.setdefault(question.text, []).extend(question.gold)
    parts = RetrieverParts(
        request.embedder,
        request.cache,
        request.seed,
        {text: tuple(dict.fromkeys(ids)) for text, ids in gold.items()},
        model=request.model,
        tell=request.tell,
        budget=Budget(request.max_calls, setting="--max-calls"),
    )
    return open_retriever(request.retriever, parts)


@dataclass(frozen=True, slots=True)
class _Replying:
    """What is asked of which generator, and which questions were left out."""

    generator: Generator
    databases: Databases
    questions: Sequence[Question]
    left_out: str = ""


def _replying(request: RunRequest, data: RunData) -> _Replying | None:
    """Open the generator; None for a task that asks for no replies."""
    task = find_task(request.task)
    if not task.generates:
        return None
    if ROLES[task.name] == "answer":
        check_sacrebleu()
    if ROLES[task.name] == "verify":
        check_labels(data.questions)
    databases = Databases(data.dataset.path if data.dataset.path.is_dir() else data.dataset.path.parent)
    questions, left_out = data.questions, ""
    if task.name == "text-to-sql":
        questions, left_out = databases.leave_out(questions, data.corpus)
        if not questions:
            raise BenchmarkError(f"no question of {request.dataset} {request.split} can be run: {left_out}")
    if task.name == "hybrid-qa" and request.replies is None and isinstance(data.dataset, DatasetFolder):
        made = open_hybrid_generator(
            request.generator, data.dataset, request.model, questions, embedder=request.embedder, batch=request.batch
        )
        request, left_out = replace(request, replies=made), table_faults(LinkedTables(data.dataset))
    if task.name == "restaurants":
        request, left_out = _restaurants(request, data)
    if task.name == "sembench-movie":
        request = _sembench(request, data)
    generator = request.replies or open_generator(request.generator, questions, request.model, request.batch)
    return _Replying(generator, databases, questions, left_out)


def _restaurants(request: RunRequest, data: RunData) -> tuple[RunRequest, str]:
    """Return the request with its generator, and say which turns cannot be read."""
    if not isinstance(data.dataset, RestaurantsData):
        raise UsageError(f"the restaurants task asks turns of conversations, and {request.dataset} holds none")
    broken = describe_broken_turns(data.dataset.conversations(request.split))
    if request.replies is not None:
        return request, broken
    generator = open_restaurants_generator(
        request.generator,
        data.dataset,
        request.split,
        language=request.model,
        embedder=request.embedder,
        cache=request.cache,
        foreseen=_forecast_cost(request),
        batch=request.batch,
    )
    return replace(request, replies=generator), broken


def _sembench(request: RunRequest, data: RunData) -> RunRequest:
    """Return the request with its generator."""
    if not isinstance(data.dataset, SembenchData):
        raise UsageError(f"the sembench-movie task asks about {' and '.join(FILES)}, not in {request.dataset}")
    if request.replies is not None:
        return request
    made = open_sembench_generator(request.generator, data.dataset, language=request.model, embedder=request.embedder)
    return replace(request, replies=made)


def _forecast_cost(request: RunRequest) -> CostForecast:
    return CostForecast(request.tell, Budget(request.max_calls, setting="--max-calls or ALMANAQ_MAX_CALLS"))


def _config(request: RunRequest, data: RunData, opened: OpenedRetriever, replying: _Replying | None) -> RunConfig:
    return RunConfig(
        task=find_task(request.task).name,
        dataset=request.dataset,
        split=request.split,
        retriever=request.retriever,
        resolved=opened.name,
        fields=tuple(map(str, parse_fields(request.fields))),
        cutoffs=tuple(sorted(set(request.cutoffs))),
        embedder=opened.embedder,
        note=opened.note,
        limit=request.limit or request.sample,
        seed=request.seed,
        tables=len(data.ids),
        distractors=data.distractors,
        distractors_from=data.distractors_from,
        corpus_split=data.corpus_split,
        counts="; ".join(part for part in (data.counts, replying.left_out if replying else "") if part),
        generator=replying.generator.name if replying else "",
        model=replying.generator.model if replying else "",
        context_k=request.context_k if replying else 0,
        evidence=bool(replying) and request.evidence,
        schema=request.schema if find_task(request.task).name == "text-to-sql" else "",
        prompts=dict(replying.generator.prompts) if replying else {},
        data=data.hashes,
        revisions=data.revisions,
        versions=versions(),
    )


def _prepare(request: RunRequest, config: RunConfig) -> None:
    """Make the run folder, or check that it holds this run and is to go on."""
    file = request.out / CONFIG
    if not file.exists():
        check_unused(request.out)
        write_whole(file, config.to_json())
        return
    before = read_config(file)
    if before.hash != config.hash:
        changes = "; ".join(before.describe_changes(config))
        raise BenchmarkError(f"{request.out} holds a run of another configuration ({changes}): name another --out")
    if not request.resume:
        raise BenchmarkError(f"{request.out} holds this run already: continue with --resume, or name another --out")
