"""`almanaq bench`: run retrievers over datasets, and score what they found."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from almanaq.cli.find import DEFAULT_FIELDS, embedder_opener
from almanaq.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from almanaq.benchmark.score import Scores

_Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else on stdout.")]


def register(app: typer.Typer) -> None:
    """Add the command group to the app."""
    bench = typer.Typer(no_args_is_help=True, help="Run benchmarks and score what was found.")
    bench.command("list")(list_all)
    bench.command("run")(run)
    bench.command("score")(score)
    app.add_typer(bench, name="bench")


def list_all(as_json: _Json = False) -> None:
    """List tasks, datasets, retrievers and what each sees of a table, and measures."""
    from almanaq.benchmark.cards import DATASETS, SEES, TASKS
    from almanaq.evaluation.measures import MEASURES
    from almanaq.retrieval.registry import RETRIEVERS

    datasets = [
        {"name": card.name, "about": card.about, "licence": card.licence, "tasks": list(card.tasks)}
        for card in DATASETS
    ]
    retrievers = [{"name": name, "sees": SEES[name]} for name in RETRIEVERS]
    if as_json:
        listed = {"tasks": TASKS, "datasets": datasets, "retrievers": retrievers, "measures": [*MEASURES]}
        print(json.dumps(listed, ensure_ascii=False))
        return
    print("tasks:", ", ".join(TASKS))
    print("\ndatasets (or any folder in the same layout):")
    print("\n".join(f"  {entry['name']:12} {entry['about']} ({entry['licence']})" for entry in datasets))
    print("\nretrievers (or module:object), and what they see of a table:")
    print("\n".join(f"  {entry['name']:12} {entry['sees']}" for entry in retrievers))
    print("\nmeasures:", ", ".join(f"{name}@K" for name in MEASURES))


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
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", help="Only the first N questions.")] = None,
    seed: Annotated[int, typer.Option("--seed")] = 0,
    embedder: Annotated[
        str | None,
        typer.Option("--embedder", metavar="NAME", help="lexical, static, local, openai:MODEL, a path or a hub name."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run that RUN_DIR holds.")] = False,
    as_json: _Json = False,
) -> None:
    """Run a retriever over a dataset; RUN_DIR gets its configuration, a record per query, and the measures."""
    from almanaq.benchmark import runner
    from almanaq.corpus.serialize import parse_fields
    from almanaq.retrieval.registry import check_fields_apply
    from almanaq.retrieval.vectors import default_cache_folder

    if fields is not None:
        check_fields_apply(retriever)
    request = runner.RunRequest(
        task,
        dataset,
        data_dir,
        split,
        retriever,
        out,
        embedder_opener(embedder),
        fields=parse_fields(DEFAULT_FIELDS if fields is None else fields),
        cutoffs=_cutoffs(k),
        limit=limit,
        seed=seed,
        resume=resume,
        cache=default_cache_folder(),
    )
    scores = runner.run(request, progress=_progress())
    if scores.config.note:
        print(f"almanaq: {scores.config.note}", file=sys.stderr)
    _print(scores, as_json)


def score(
    run_dir: Annotated[Path, typer.Argument(metavar="RUN_DIR")],
    as_json: _Json = False,
) -> None:
    """Compute the measures of a run from its records."""
    from almanaq.benchmark.score import score as scored

    _print(scored(run_dir), as_json)


def _cutoffs(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise UsageError(f"--k takes numbers between commas, not {text!r}") from None


def _progress() -> Callable[[int, int], None]:
    """Give what rewrites one line of stderr, or nothing where that is no terminal."""

    def show(done: int, total: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{done} of {total} questions", end="\n" if done == total else "", file=sys.stderr, flush=True)

    return show


def _print(scores: Scores, as_json: bool) -> None:
    told = scores.to_dict()
    if as_json:
        print(json.dumps(told, ensure_ascii=False))
        return
    config = scores.config
    print(f"{config.task} · {config.dataset} {config.split} · {config.resolved} over {', '.join(config.fields)}")
    print(f"{scores.queries} questions, {config.tables} tables")
    width = max(map(len, told["metrics"]))
    print("\n".join(f"  {name:{width}}  {value:.4f}" for name, value in told["metrics"].items()))
