"""What the commands of `almanaq bench` print."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from almanaq.cli.terminal import say, warn
from almanaq.errors import UsageError

if TYPE_CHECKING:
    from almanaq_bench.run_measures import Scores

Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else on stdout.")]


def cutoffs(text: str) -> tuple[int, ...]:
    """Return the numbers of `--k`. Raises UsageError for text that is none."""
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise UsageError(f"--k takes numbers between commas, not {text!r}") from None


def counter(what: str) -> Callable[[int, int], None]:
    """Return what rewrites one line of stderr with how many are done, or nothing where that is no terminal."""

    def show(done: int, total: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{done:,} of {total:,} {what}", end="\n" if done == total else "", file=sys.stderr, flush=True)

    return show


def tell(message: str) -> None:
    """Print a message on stderr; nothing where there is none."""
    if message:
        warn([message])


def print_scores(scores: Scores, as_json: bool) -> None:
    """Print the measures of a run; what is to be known beside them on stderr."""
    for warning in scores.warnings:
        tell(warning)
    record = scores.to_dict()
    if as_json:
        from almanaq.cli.output import write_json

        write_json(record, allow_nan=True)
        return
    config = scores.config
    say(f"{config.task} · {config.dataset} {config.split} · {config.resolved} over {', '.join(config.fields)}")
    say(f"{scores.queries} questions, {config.tables} tables")
    if scores.outcomes:
        ended = ", ".join(f"{name} {count}" for name, count in scores.outcomes.items())
        say(f"replies: {ended}")
    width = max(map(len, record["metrics"]))
    for name, value in record["metrics"].items():
        bounds = scores.intervals.get(name)
        beside = f"  [{bounds[0]:.4f}, {bounds[1]:.4f}]" if bounds else ""
        shown = f"{value:,}" if isinstance(value, int) else f"{value:.4f}"
        say(f"  {name:{width}}  {shown}{beside}")
