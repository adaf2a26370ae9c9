"""`almanaq bench export`: a run as TREC files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from almanaq.cli.terminal import say


def register(bench: typer.Typer) -> None:
    """Add the command to the group."""
    bench.command("export")(export)


def export(
    run_dir: Annotated[Path, typer.Argument(metavar="RUN_DIR")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder that the files are written to.")],
) -> None:
    """Write a run as run.trec and qrels.trec, for trec_eval and other tools of its kind."""
    from almanaq_bench.trec import export as exported

    for file in exported(run_dir, out):
        say(str(file))
