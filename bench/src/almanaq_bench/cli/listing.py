"""`almanaq bench list`: what there is to run, on what, and what each retriever sees."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from almanaq.cli.terminal import say
from almanaq_bench.cli.output import Json


def register(bench: typer.Typer) -> None:
    """Add the command to the group."""
    bench.command("list")(list_all)


def list_all(
    data_dir: Annotated[
        Path | None,
        typer.Option("--data-dir", metavar="DIR", help="Also the datasets of this folder, with their splits."),
    ] = None,
    as_json: Json = False,
) -> None:
    """List tasks, datasets with licence and source, retrievers and what each sees of a table, generators, measures."""
    from almanaq_bench.cards import DATASETS, SEES
    from almanaq_bench.evaluation.measures import MEASURES
    from almanaq_bench.generation.generator_names import GENERATORS
    from almanaq_bench.retrievers.openers import NAMES
    from almanaq_bench.tasks import TASKS

    listed = {
        "tasks": [task.name for task in TASKS],
        "datasets": [asdict(card) for card in DATASETS],
        "retrievers": [{"name": name, "sees": SEES.get(name, "a text of its own")} for name in NAMES],
        "generators": [{"name": name, "about": about} for name, about in GENERATORS.items()],
        "measures": [*MEASURES],
    }
    if data_dir is not None:
        listed["at_hand"] = _at_hand(data_dir)
    if as_json:
        from almanaq.cli.output import write_json

        write_json(listed, allow_nan=True)
    else:
        _print(listed)


def _at_hand(data_dir: Path) -> list[dict[str, Any]]:
    """Return the datasets of a folder with their splits; one that is damaged says so in their place."""
    from almanaq.errors import AlmanaqError
    from almanaq_bench.data import datasets_in, find_dataset

    found: list[dict[str, Any]] = []
    for name in datasets_in(data_dir):
        try:
            found.append({"name": name, "splits": list(find_dataset(data_dir, name).splits)})
        except AlmanaqError as error:
            found.append({"name": name, "splits": [], "fault": str(error)})
    return found


def _print(listed: dict[str, Any]) -> None:
    say("tasks: " + ", ".join(listed["tasks"]))
    say("\ndatasets (or any folder in the same layout, or card):")
    for card in listed["datasets"]:
        say(f"  {card['name']:12} {card['about']} ({card['licence']})")
        for split, counts in card["splits"].items():
            known = [f"{number:,} {what}" for what, number in counts.items() if number is not None]
            say(f"  {'':12}   {split}: {', '.join(known)}")
    for entry in listed.get("at_hand", ()):
        splits = ", ".join(entry["splits"]) or entry.get("fault", "no questions")
        say(f"  at hand: {entry['name']}: {splits}")
    say("\nretrievers (or module:object), and what they see of a table:")
    say("\n".join(f"  {entry['name']:24} {entry['sees']}" for entry in listed["retrievers"]))
    say("\ngenerators (or module:object):")
    say("\n".join(f"  {entry['name']:24} {entry['about']}" for entry in listed["generators"]))
    say("\nmeasures: " + ", ".join(f"{name}@K" for name in listed["measures"]))
