"""`almanaq bench run`: a system over a dataset, into a run folder."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from almanaq.cli.bench.output import Json, counter, cutoffs, find_modules_here, print_scores, tell
from almanaq.cli.find import DEFAULT_FIELDS, DEFAULT_MAX_CALLS, embedder_opener, model_opener
from almanaq.cli.options import MaxCalls


class Schema(StrEnum):
    """Which tables of the best table's database a generator of SQL is handed."""

    all = "all"
    retrieved = "retrieved"


def register(bench: typer.Typer) -> None:
    """Add the command to the group."""
    bench.command("run")(run)


def run(
    task: Annotated[str, typer.Option("--task", metavar="TASK")],
    dataset: Annotated[str, typer.Option("--dataset", metavar="NAME", help="A folder of the data directory.")],
    data_dir: Annotated[Path, typer.Option("--data-dir", metavar="DIR")],
    split: Annotated[str, typer.Option("--split", metavar="SPLIT")],
    out: Annotated[Path, typer.Option("--out", metavar="RUN_DIR", help="The folder that the run is written to.")],
    retriever: Annotated[str, typer.Option("--retriever", metavar="NAME")] = "hybrid",
    fields: Annotated[
        str | None, typer.Option("--fields", help=f"What is indexed of a table; default {DEFAULT_FIELDS}.")
    ] = None,
    k: Annotated[str, typer.Option("--k", metavar="K,K,…", help="Cutoffs of the measures.")] = "1,5,10,50",
    context_k: Annotated[
        int, typer.Option("--context-k", metavar="N", help="Tables that the generator is handed.")
    ] = 10,
    generator: Annotated[
        str,
        typer.Option(
            "--generator",
            metavar="NAME",
            help="What replies: local, openai:MODEL, agent, majority, not-enough, first-cell or module:object.",
        ),
    ] = "local",
    schema: Annotated[
        Schema, typer.Option("--schema", help="Text-to-SQL: hand over all tables of the database, or those retrieved.")
    ] = Schema.all,
    evidence: Annotated[
        bool, typer.Option("--evidence", help="Hand the generator the hints that BIRD gives with its questions.")
    ] = False,
    max_calls: MaxCalls = None,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", help="Only the first N questions.")] = None,
    distractors: Annotated[
        int | None, typer.Option("--distractors", metavar="N", help="Add N tables of another dataset to the corpus.")
    ] = None,
    distractors_from: Annotated[
        str, typer.Option("--distractors-from", metavar="NAME", help="The dataset that they are drawn from.")
    ] = "gittables",
    seed: Annotated[int, typer.Option("--seed", help="Of what is drawn by chance.")] = 0,
    embedder: Annotated[
        str | None,
        typer.Option("--embedder", metavar="NAME", help="lexical, static, local, openai:MODEL, a path or a hub name."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run that RUN_DIR holds.")] = False,
    as_json: Json = False,
) -> None:
    """Run a retriever, and a generator where the task asks for replies, over a dataset.

    RUN_DIR gets the configuration, a record per query as it goes, and the measures.
    """
    from almanaq.benchmark import runner
    from almanaq.benchmark.request import RunRequest
    from almanaq.corpus.serialize import parse_fields
    from almanaq.retrieval.registry import check_fields_apply
    from almanaq.retrieval.vectors import default_cache_folder

    find_modules_here()
    if fields is not None:
        check_fields_apply(retriever)
    request = RunRequest(
        task,
        dataset,
        data_dir,
        split,
        retriever,
        out,
        embedder_opener(embedder),
        fields=parse_fields(DEFAULT_FIELDS if fields is None else fields),
        cutoffs=cutoffs(k),
        limit=limit,
        seed=seed,
        resume=resume,
        cache=default_cache_folder(),
        distractors=distractors,
        distractors_from=distractors_from,
        model=model_opener(max_calls),
        generator=generator,
        context_k=context_k,
        evidence=evidence,
        schema="retrieved" if schema is Schema.retrieved else "all",
        tell=tell,
        max_calls=DEFAULT_MAX_CALLS if max_calls is None else max_calls,
    )
    scores = runner.run(request, progress=counter("questions"))
    tell(scores.config.note)
    tell(scores.config.counts)
    print_scores(scores, as_json)
