"""`almanaq bench`: run systems over datasets, score what they found, compare, and report; one file per command."""

from __future__ import annotations

import typer

from almanaq.cli.bench import compare, export, fetch, listing, report, reproduce, run, score

COMMANDS = (listing, run, score, compare, report, reproduce, export, fetch)
"""In the order of `--help`."""


def register(app: typer.Typer) -> None:
    """Add the command group to the app."""
    bench = typer.Typer(no_args_is_help=True, help="Run benchmarks, score and compare what was found.")
    for command in COMMANDS:
        command.register(bench)
    app.add_typer(bench, name="bench")
