"""How often the chart that is chosen is the one that a person would choose.

    python -m experiments.charts.run DIR [--show] [--out FILE]

The results are those of sixty questions of strangers over DIR, the open sources that `experiments.strangers.sources`
builds there. `labels.json` says for each what a reader chose who saw its question and rows alone: the kind, another one
that would do as well (`also`), and the columns. The rules were mended on the first half of the questions, by their
names; the other half was counted alone. `--show` prints what differs in the first half.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.strangers.run import QUESTIONS
from experiments.strangers.sources import SOURCES

import almanaq

_LABELS = Path(__file__).with_name("labels.json")
_KINDS = {"share": "stacked bar", "stacked": "stacked bar", "point": "points"}
"""Our kinds that the reader calls otherwise."""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--show", action="store_true")
    arguments.add_argument("--out", type=Path)
    given = arguments.parse_args()
    compared = [compare(label, given.folder) for label in json.loads(_LABELS.read_text(encoding="utf-8"))]
    half = len(compared) // 2
    if given.show:
        print(*(each for each in compared[:half] if not each["kind"] or not each["columns"]), sep="\n")
    record = {
        "command": "python -m experiments.charts.run DIR",
        "mended on": counts(compared[:half]),
        "others": counts(compared[half:]),
    }
    text = json.dumps(record, indent=2) + "\n"
    print(text)
    if given.out is not None:
        given.out.write_text(text, encoding="utf-8")


def compare(label: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return whether the chart of a question has the kind of its label, one that would do, and the same columns."""
    name, _, number = label["id"].rpartition("-")
    source = next(source for source in SOURCES if source.name == name)
    asked = tomllib.loads((QUESTIONS / f"{name}.toml").read_text(encoding="utf-8"))["asked"][int(number)]
    with almanaq.connect(folder / name / source.opens, model="local") as connection:
        chart = connection.sql(asked["sql"]).chart(asked["question"])
    kind = "none" if chart is None else _KINDS.get(chart.kind, chart.kind)
    columns = chart is None or chart.kind == "number" or kind != label["kind"]
    columns = columns or (chart.x == label["x"] and label["y"] in chart.y and chart.colour == (label["color"] or ""))
    return {
        "id": label["id"],
        "chosen": kind,
        "kind": kind == label["kind"],
        "kind or the other": kind in (label["kind"], label["also"]),
        "columns": columns,
    }


def counts(compared: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return how many agree; `columns` counts those of another kind too, whose columns are not compared."""
    return {"questions": len(compared)} | {
        name: sum(each[name] for each in compared) for name in ("kind", "kind or the other", "columns")
    }


if __name__ == "__main__":
    main()
