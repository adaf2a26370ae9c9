"""Measure the choice of relations that `ask` makes where a source has more than fit a prompt.

All schemas of Spider's, or of BIRD's, validation split make one catalog, its relations named DATABASE.TABLE. A question
counts as served when all its gold tables are chosen, as the agent sees them (`relations`: how many it sees); `refused`
is the share for which no relation was said to fit, though one does. The weights are the shipped ones, which saw these
questions (`weights.json` has the figures of held-out tables).

    python benchmarks/retrieval/chooser.py DATA_DIR --out benchmarks/retrieval/results/chooser.json
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from almanaq.agent.table_chooser import TableChooser
from almanaq.corpus.table import Table
from almanaq_bench.question_sets import open_dataset


@dataclass(frozen=True)
class Column:
    """A column, as the chooser reads it."""

    name: str
    samples: tuple[str, ...]
    description: str = ""
    values: tuple[str, ...] = ()
    private: bool = False


@dataclass(frozen=True)
class Relation:
    """A relation, as the chooser reads it."""

    name: str
    location: tuple[str, ...]
    description: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    foreign_keys: tuple[tuple[object, str, object], ...]


@dataclass(frozen=True)
class Catalog:
    """The relations of all databases."""

    relations: tuple[Relation, ...]


def relation(table: Table) -> Relation:
    """Return a table as a relation of the one catalog."""
    database = table.id.database
    cells = tuple(zip(*table.rows, strict=True)) or ((),) * len(table.header)
    columns = tuple(Column(name, samples) for name, samples in zip(table.header, cells, strict=True))
    referred = [key.split("->")[1].strip().rsplit(".", 1)[0] for key in table.keys if "->" in key]
    keys = tuple((None, f"{database}.{other}", None) for other in referred)
    own = tuple(key for key in table.keys if "->" not in key)
    return Relation(f"{database}.{table.id.table}", (database, table.id.table), table.description, columns, own, keys)


def main() -> None:
    """Measure both datasets."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("data", type=Path)
    options.add_argument("--out", type=Path, required=True)
    asked = options.parse_args()
    found = {}
    for name in ("spider", "bird"):
        dataset = open_dataset(asked.data / name)
        catalog = Catalog(tuple(map(relation, dataset.corpus("validation"))))
        chooser = TableChooser()
        questions = list(dataset.questions("validation"))
        chosen = [chooser(question.text, catalog) for question in questions]
        gold = [{f"{table.database}.{table.table}" for table in question.gold} for question in questions]
        found[name] = {
            "relations_in_all": len(catalog.relations),
            "questions": len(questions),
            "all_gold_chosen": round(float(np.mean([g <= set(c) for g, c in zip(gold, chosen, strict=True)])), 4),
            "relations": round(float(np.mean([len(each) for each in chosen])), 2),
            "refused": round(float(np.mean([not each for each in chosen])), 4),
        }
        print(name, json.dumps(found[name]), flush=True)
    asked.out.write_text(json.dumps({"split": "validation", "measured": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
