"""`almanaq bench fetch`: download a published dataset, when the user asks for it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from almanaq.cli.terminal import say
from almanaq.visible import visible

if TYPE_CHECKING:
    from collections.abc import Callable


def register(bench: typer.Typer) -> None:
    """Add the command to the group."""
    bench.command("fetch")(fetch)


def fetch(
    dataset: Annotated[str, typer.Argument(metavar="NAME", help="As `almanaq bench list` names it.")],
    data_dir: Annotated[Path, typer.Option("--data-dir", metavar="DIR", help="Gets the folder NAME.")],
    revision: Annotated[
        str, typer.Option("--revision", metavar="COMMIT", help="A commit of the repositories, or CORPUS,QUERIES.")
    ] = "",
    split: Annotated[str | None, typer.Option("--split", metavar="SPLIT", help="Only this split.")] = None,
) -> None:
    """Download a dataset from the Hugging Face hub (HF_ENDPOINT names another), at a commit that is written down.

    A download that broke off goes on where it stopped; what is there and whole is not fetched again.
    """
    from almanaq_bench.cards import card_of
    from almanaq_bench.hub import fetch as fetched

    card = card_of(dataset)
    folder = fetched(card, data_dir, revision=revision, split=split, progress=_progress())
    say(f"{folder.path}: splits {', '.join(folder.splits) or 'none'}; licence {card.licence}")


def _progress() -> Callable[[str, int, int], None]:
    def show(name: str, have: int, size: int) -> None:
        if sys.stderr.isatty():
            end = "\n" if have == size else ""
            print(f"\r{visible(name)}: {have / 1e6:,.1f} of {size / 1e6:,.1f} MB", end=end, file=sys.stderr, flush=True)

    return show
