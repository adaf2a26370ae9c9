"""`almanaq bench list`: what there is to run, on what, and what each retriever sees."""

from __future__ import annotations

import json
from dataclasses import asdict

import typer

from almanaq.cli.bench.output import Json


def register(bench: typer.Typer) -> None:
    """Add the command to the group."""
    bench.command("list")(list_all)


def list_all(as_json: Json = False) -> None:
    """List tasks, datasets with licence and source, retrievers and what each sees of a table, and measures."""
    from almanaq.benchmark.cards import DATASETS, SEES
    from almanaq.benchmark.tasks import TASKS
    from almanaq.evaluation.measures import MEASURES
    from almanaq.retrieval.registry import RETRIEVERS

    retrievers = [{"name": name, "sees": SEES.get(name, "a text of its own")} for name in RETRIEVERS]
    tasks = [task.name for task in TASKS]
    if as_json:
        datasets = [asdict(card) for card in DATASETS]
        listed = {"tasks": tasks, "datasets": datasets, "retrievers": retrievers, "measures": [*MEASURES]}
        print(json.dumps(listed, ensure_ascii=False))
        return
    print("tasks:", ", ".join(tasks))
    print("\ndatasets (or any folder in the same layout, or card):")
    for card in DATASETS:
        print(f"  {card.name:12} {card.about} ({card.licence})")
        for split, counts in card.splits.items():
            print(f"  {'':12}   {split}: {counts.tables:,} tables, {counts.questions:,} questions")
    print("\nretrievers (or module:object), and what they see of a table:")
    print("\n".join(f"  {entry['name']:24} {entry['sees']}" for entry in retrievers))
    print("\nmeasures:", ", ".join(f"{name}@K" for name in MEASURES))
