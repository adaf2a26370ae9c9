"""`almanaq bench run`: a system over a dataset, into a run folder."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from almanaq.cli.find import DEFAULT_FIELDS, defer_embedder, defer_model, open_budget
from almanaq.cli.options import flag
from almanaq_bench.cli.output import Json, counter, cutoffs, print_scores, tell


class Schema(StrEnum):
    """Which tables of the best table's database a generator of SQL is handed."""

    all = "all"
    retrieved = "retrieved"


def name_model(generator: str) -> str:
    """Return a generator by its full name: `agent` alone takes the model that `auto` does, and says which."""
    from almanaq.models.providers import auto_is_off, choose_model

    if generator != "agent" or auto_is_off():
        return generator
    choice = choose_model()
    tell(f"agent: {choice.name} ({choice.reason})")
    return generator if choice.name == "local" else f"agent:{choice.name}"


def _option(flag: str, help: str = "", metavar: str | None = None) -> Any:
    return typer.Option(flag, metavar=metavar, help=help or None)


_Task = Annotated[str, _option("--task", metavar="TASK")]
_Dataset = Annotated[str, _option("--dataset", "A folder of the data directory.", "NAME")]
_DataDir = Annotated[Path, _option("--data-dir", metavar="DIR")]
_Split = Annotated[str, _option("--split", metavar="SPLIT")]
_Out = Annotated[Path, _option("--out", "The folder for the run.", "RUN_DIR")]
_Retriever = Annotated[str, _option("--retriever", metavar="NAME")]
_Fields = Annotated[str | None, _option("--fields", f"The parts of a table to index; default {DEFAULT_FIELDS}.")]
_K = Annotated[str, _option("--k", "Cutoffs of the measures.", "K,K,…")]
_ContextK = Annotated[int, _option("--context-k", "Tables given to the generator.", "N")]
_GENERATORS = "local, openai:MODEL, agent, linearize@K, majority, not-enough, first-cell or module:object."
_Generator = Annotated[str, _option("--generator", _GENERATORS, "NAME")]
_Schema = Annotated[Schema, _option("--schema", "Text-to-SQL: give all tables of the database, or those retrieved.")]
_Evidence = Annotated[bool, _option("--evidence", "Give the generator the hints that come with BIRD's questions.")]
_Limit = Annotated[int | None, _option("--limit", "Only the first N questions, often of one database.", "N")]
_Sample = Annotated[int | None, _option("--sample", "N questions, drawn by --seed.", "N")]
_Distractors = Annotated[int | None, _option("--distractors", "Add N tables of another dataset to the corpus.", "N")]
_From = Annotated[str, _option("--distractors-from", "The dataset to draw them from.", "NAME")]
_Seed = Annotated[int, _option("--seed", "The seed of random draws.")]
_Embedder = Annotated[
    str | None, _option("--embedder", "lexical, static, local, openai:MODEL, a path or a hub name.", "NAME")
]
_Resume = Annotated[bool, _option("--resume", "Continue the run in RUN_DIR.")]


_OF_REPLIES = {
    "generator": "--generator",
    "context_k": "--context-k",
    "evidence": "--evidence",
    "schema": "--schema",
    "batch": "--batch",
}
"""Flags that say how questions are replied to."""


def run(
    context: typer.Context,
    task: _Task,
    dataset: _Dataset,
    data_dir: _DataDir,
    split: _Split,
    out: _Out,
    retriever: _Retriever = "hybrid",
    fields: _Fields = None,
    k: _K = "1,5,10,50",
    context_k: _ContextK = 10,
    generator: _Generator = "local",
    schema: _Schema = Schema.all,
    evidence: _Evidence = False,
    max_calls: Annotated[int | None, flag("max_calls")] = None,
    batch: Annotated[int | None, flag("batch")] = None,
    limit: _Limit = None,
    sample: _Sample = None,
    distractors: _Distractors = None,
    distractors_from: _From = "gittables",
    seed: _Seed = 0,
    embedder: _Embedder = None,
    resume: _Resume = False,
    as_json: Json = False,
) -> None:
    """Run a retriever, and a generator where the task asks for replies, over a dataset.

    RUN_DIR gets the configuration, a record per query as it goes, and the measures.
    """
    from almanaq.corpus.table import parse_fields
    from almanaq.models.private_files import default_cache_folder
    from almanaq.retrieval.retriever_names import check_fields_apply
    from almanaq_bench import runner
    from almanaq_bench.config import RunRequest
    from almanaq_bench.retrievers.adapters import look_here

    look_here()
    _tell_of_idle_flags(context, task)
    if fields is not None:
        check_fields_apply(retriever)
    request = RunRequest(
        task,
        dataset,
        data_dir,
        split,
        retriever,
        out,
        defer_embedder(embedder),
        fields=parse_fields(DEFAULT_FIELDS if fields is None else fields),
        cutoffs=cutoffs(k),
        limit=limit,
        sample=sample,
        seed=seed,
        resume=resume,
        cache=default_cache_folder(),
        distractors=distractors,
        distractors_from=distractors_from,
        model=defer_model(max_calls),
        generator=name_model(generator),
        context_k=context_k,
        evidence=evidence,
        schema="retrieved" if schema is Schema.retrieved else "all",
        tell=tell,
        batch=batch,
        max_calls=open_budget(max_calls).calls,
    )
    scores = runner.run(request, progress=counter("questions"))
    tell(scores.config.note)
    tell(scores.config.counts)
    print_scores(scores, as_json)


def _tell_of_idle_flags(context: typer.Context, task: str) -> None:
    """Say which flags about replies are given beside a task that asks for none."""
    from almanaq_bench.cards import find_task

    asked = find_task(task)
    given = [flag for name, flag in _OF_REPLIES.items() if _is_given(context, name)]
    if given and not asked.generates:
        verb = "has" if len(given) == 1 else "have"
        tell(f"{' and '.join(given)} {verb} no effect here: --task {asked.name} ranks tables and asks for no replies")


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
