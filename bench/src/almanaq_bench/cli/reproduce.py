"""`almanaq bench reproduce`: a published table, run again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from almanaq.cli.find import embedder_opener, model_opener
from almanaq.cli.options import MaxCalls
from almanaq.cli.terminal import say
from almanaq_bench.cli.output import Json, tell

if TYPE_CHECKING:
    from almanaq_bench.reproduce import Cell


def register(bench: typer.Typer) -> None:
    """Add the command to the group."""
    bench.command("reproduce")(reproduce)


def reproduce(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="target-table-2.")],
    data_dir: Annotated[Path, typer.Option("--data-dir", metavar="DIR")],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Gets a run folder for each row; default runs/TABLE.")
    ] = None,
    dataset: Annotated[
        list[str] | None, typer.Option("--dataset", metavar="NAME", help="Only this; may be repeated.")
    ] = None,
    generator: Annotated[
        str, typer.Option("--generator", metavar="NAME", help="Run the columns of replies too, by this generator.")
    ] = "",
    max_calls: MaxCalls = None,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", help="Only the first N questions.")] = None,
    as_json: Json = False,
) -> None:
    """Run the rows of a published table, and set each beside the printed figure with the reasons they differ.

    Rows that need no paid model always run; the others where OPENAI_API_KEY or OPENAI_BASE_URL is set. Finished rows
    are not run again.
    """
    from almanaq.models.vector_store import default_cache_folder
    from almanaq_bench.reproduce import reproduce as reproduced
    from almanaq_bench.request import RunRequest

    folder = out or Path("runs") / table
    request = RunRequest(
        "table-retrieval",
        "",
        data_dir,
        "",
        "",
        folder,
        embedder_opener(None),
        limit=limit,
        cache=default_cache_folder(),
        model=model_opener(max_calls),
        generator=generator,
        tell=tell,
    )
    cells = []
    for cell in reproduced(table, request, datasets=dataset or (), tell=tell):
        cells.append(cell)
        if not as_json:
            _print(cell, first=len(cells) == 1 or cells[-2].dataset != cell.dataset)
    if as_json:
        from almanaq.cli.output import write_json

        write_json({"table": table, "cells": [cell.to_dict() for cell in cells]}, allow_nan=True)


def _print(cell: Cell, *, first: bool) -> None:
    if first:
        say(f"\n{cell.dataset}: here ({cell.split}) | published ({cell.published_split})")
    ours = "not run" if cell.ours is None else f"{cell.ours:.3f}"
    printed = "–" if cell.printed is None else f"{cell.printed:.3f}"
    figures = f"{cell.measure:18} {ours:>7} | {printed:>6}"
    say(f"  {cell.method:31} {cell.retriever:24} {figures}   {'; '.join(cell.why)}")
