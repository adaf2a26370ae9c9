"""`almanaq bench report`: one page that shows runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from almanaq.cli.terminal import say


def register(bench: typer.Typer) -> None:
    """Add the command to the group."""
    bench.command("report")(report)


def report(
    run_dirs: Annotated[list[Path], typer.Argument(metavar="RUN_DIR...", help="Run folders.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="report.html, or report.md.")],
    data_dir: Annotated[
        Path | None,
        typer.Option(
            "--data-dir",
            metavar="DIR",
            help="Where the datasets lie now, for slices by table and the words behind failures.",
        ),
    ] = None,
) -> None:
    """Write a page about runs: tables with intervals, recall over k, against latency and cost, slices, failures.

    The HTML page holds everything that it shows; nothing is fetched when it is opened.
    """
    from almanaq_bench.report.page import write_report

    say(str(write_report(run_dirs, out, data_dir=data_dir)))
