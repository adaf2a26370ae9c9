"""`almanaq bench`: run systems over datasets, score what they found, compare, and report."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import typer

from almanaq_bench.cli.commands import compare, export, fetch, list_all, report, reproduce, score
from almanaq_bench.cli.run import run

COMMANDS: Mapping[str, Callable[..., None]] = {
    "list": list_all,
    "run": run,
    "score": score,
    "compare": compare,
    "report": report,
    "reproduce": reproduce,
    "export": export,
    "fetch": fetch,
}
"""In `--help` order."""

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Run benchmarks, and score and compare the results.",
)
"""What the entry point `bench` of `almanaq.commands` gives."""

for name, command in COMMANDS.items():
    app.command(name)(command)
