"""`almanaq bench score`: the measures of a run from its records."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from almanaq_bench.cli.output import Json, cutoffs, print_scores, tell


def register(bench: typer.Typer) -> None:
    """Add the command to the group."""
    bench.command("score")(score)


def score(
    run_dir: Annotated[Path, typer.Argument(metavar="RUN_DIR")],
    k: Annotated[
        str, typer.Option("--k", metavar="K,K,…", help="Other cutoffs than the run's, up to its largest.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Compute the measures of a run from its records; nothing is asked again."""
    from almanaq_bench.run_measures import score as scored
    from almanaq_bench.run_measures import unfinished

    scores = scored(run_dir, cutoffs(k))
    tell(unfinished(run_dir))
    print_scores(scores, as_json)
