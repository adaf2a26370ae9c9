"""How often queries with each mark are right: `python -m experiments.strangers.marks DIR`, on the open sources alone.

A mark lowers the probability of all readings of a question (`agent/local/reading.py`). Counted are questions whose best
reading had a probability of 0.65 without its marks, and how many of them are answered with the marks.
"""

from __future__ import annotations

import argparse
import json
import math
import tomllib
from collections import Counter
from pathlib import Path

from experiments.strangers.run import QUESTIONS, gold_rows, is_right
from experiments.strangers.sources import SOURCES, build

import almanaq
from almanaq.agent.local import CONFIDENCE, LocalDialogue
from almanaq.agent.local.reading import MARKED, find_marks


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=Path)
    folder = arguments.parse_args().folder
    counts: Counter[str] = Counter()
    for source in (source for source in SOURCES if source.half == "open"):
        opened = build(source, folder)
        with almanaq.connect(str(opened), model="local") as connection:
            parser, catalog = LocalDialogue(connection.engine), connection.catalog
            for asked in tomllib.loads((QUESTIONS / f"{source.name}.toml").read_text("utf-8"))["asked"]:
                counts["questions"] += 1
                best = next(iter(parser.readings(asked["question"], catalog)), None)
                if best is None or "answer(" in best.suql:
                    continue
                marks = find_marks(best)
                probability = best.probability / math.prod(MARKED[mark] for mark in marks)
                if probability < CONFIDENCE:
                    continue
                gold = gold_rows(opened, asked["sql"]) if asked.get("sql") else None
                right = gold is not None and is_right(connection.sql(best.suql).rows, best.suql, gold)
                answered = ["answered", *(["answered with marks"] if best.probability >= CONFIDENCE else [])]
                for name in (*answered, *marks, *([] if marks else ["no mark"])):
                    counts.update((name, *([f"{name}: right"] if right else [])))
    print(json.dumps(dict(counts), indent=2))


if __name__ == "__main__":
    main()
