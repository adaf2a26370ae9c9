"""The text calls that remain when candidates are tried in an order that knows which rows pass, one text a call.

    python experiments/calls/least.py --out experiments/calls/least.json

The restaurants turns of `count.py`, read by the sample's truth. An order of trial as good as this, with no row under
way that LIMIT may not need, bounds what any order could save: what is left has to be asked, or has to share calls.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from count import restaurants
from numpy.typing import NDArray

from almanaq.suql.execution import candidates
from almanaq.suql.execution.candidates import Candidate, Similarity, passages_of
from almanaq.suql.plan.stages import SiteInput
from almanaq_bench.restaurants import generator
from almanaq_bench.sample.truth import truth_function


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    candidates.totals = conditions_that_hold
    generator.connect = partial(generator.connect, speculation=1)  # type: ignore[misc]
    found: dict[str, Any] = {
        "command": f"python experiments/calls/least.py --out experiments/calls/{arguments.out.name}"
    }
    for split in ("single-turn-dev", "conversations-dev"):
        counted = restaurants(split, batch=1)
        found[split] = {name: counted[name] for name in ("turn_accuracy", "asked", "text_calls")}
    arguments.out.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


def conditions_that_hold(rows: Sequence[Candidate], inputs: Sequence[SiteInput], _: Similarity) -> NDArray[np.float64]:
    """Return the number of a row's text conditions that hold, in the place of its similarity."""
    read = truth_function()

    def holds(row: Candidate, item: SiteInput) -> bool:
        return read("\n\n".join(passages_of(row.values[item.document])), item.site.question.name) in item.site.compared

    return np.array([sum(holds(row, item) for item in inputs) for row in rows], float)


if __name__ == "__main__":
    sys.exit(main())
