"""`almanaq bench`: run systems over datasets, score what they found, compare, and report; one file per command."""

from __future__ import annotations

import typer

from almanaq_bench.cli import compare, export, fetch, listing, report, reproduce, run, score

COMMANDS = (listing, run, score, compare, report, reproduce, export, fetch)
"""In the order of `--help`."""

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Run benchmarks, score and compare what was found.",
)
"""What the entry point `bench` of `almanaq.commands` gives."""

for command in COMMANDS:
    command.register(app)
