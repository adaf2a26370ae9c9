"""How often questions about the metrics of three semantic layers are answered right, with the layer and without.

    python -m experiments.layers.run DIR [--model NAME] [--layer NAME ...] [--out FILE] [--show]

DIR is what `experiments.layers.sources` built. The questions, and the SQL that answers each by the definitions, were
written before any was asked; `also` writes the same months as text or as numbers. A reply is judged as in
`experiments.strangers`. `terms` are the replies that say that a definition was used. Without the layer its joins are
gone too, except in `bikes`, whose schema file says them.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from experiments.layers.sources import NAMES
from experiments.strangers.run import gold_rows, judge

import almanaq

HERE = Path(__file__).parent


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--model", default="local")
    arguments.add_argument("--layer", action="append", choices=NAMES)
    arguments.add_argument("--out", type=Path)
    arguments.add_argument("--show", action="store_true")
    given = arguments.parse_args()
    cases = [(name, terms) for name in given.layer or NAMES for terms in (True, False)]
    workers = 1 if given.model == "local" else len(cases)
    with ThreadPoolExecutor(workers) as pool:
        counts = list(pool.map(lambda case: measure(given.folder, *case, given.model, given.show), cases))
    by_layer: dict[str, Any] = {}
    for (name, terms), each in zip(cases, counts, strict=True):
        by_layer.setdefault(name, {})["with" if terms else "without"] = each
    total = {
        side: {key: sum(each[side][key] for each in by_layer.values()) for key in counts[0]}
        for side in ("with", "without")
    }
    command = f"python -m experiments.layers.run DIR --model {given.model}"
    text = json.dumps({"command": command, "model": given.model, **total, "by layer": by_layer}, indent=2)
    print(text)
    if given.out is not None:
        given.out.write_text(text + "\n", encoding="utf-8")


def measure(folder: Path, name: str, terms: bool, model: str, show: bool) -> dict[str, int]:
    """Return how many replies are right, declined and wrong."""
    clean = folder / f"{name}.clean"
    counts: Counter[str] = Counter(right=0, declined=0, wrong=0, terms=0)
    asked = tomllib.loads((HERE / "questions" / f"{name}.toml").read_text("utf-8"))["asked"]

    opened = options(folder, name, terms)

    def ask(question: str) -> almanaq.Response:
        with almanaq.connect(folder / name, model=model, cache=False, deadline=1000, **opened) as connection:
            return connection.ask(question)

    with ThreadPoolExecutor(1 if model == "local" else len(asked)) as pool:
        replies = list(pool.map(lambda each: ask(each["question"]), asked))
    for each, reply in zip(asked, replies, strict=True):
        tables = clean if clean.exists() else folder / name
        outcomes = {judge(reply, gold_rows(tables, each[key])) for key in ("sql", "also") if key in each}
        outcome = "right" if "right" in outcomes else outcomes.pop()
        counts[outcome] += 1
        counts["terms"] += " defines it" in reply.answer
        if show and outcome != "right":
            print(
                f"{name}, terms={terms}: {outcome} | {each['question']}\n    {reply.suql}\n    {reply.answer[:500]!r}"
            )
    return dict(counts)


def options(folder: Path, name: str, terms: bool) -> dict[str, Any]:
    """Return how a layer's tables are opened, with its terms or without."""
    if name != "bikes":
        return {"terms": next(folder.glob(f"terms.{name}.*"))} if terms else {}
    parts = (HERE / "bikes.almanaq.toml").read_text("utf-8").split("\n[")
    kept = [part for part in parts if terms or not part.split("]")[0].endswith(("metrics", "dimensions", "filters"))]
    file = folder / f"bikes.{'with' if terms else 'without'}.toml"
    file.write_text("\n[".join(kept), "utf-8")
    return {"schema": file}


if __name__ == "__main__":
    main()
