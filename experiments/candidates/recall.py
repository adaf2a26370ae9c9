"""What the paper's cut-off costs: rows found when only the k most similar candidates are verified.

    python experiments/candidates/recall.py [--embedder lexical|local] [--out experiments/candidates/recall.json]

For each hidden attribute of the bundled sample, `WHERE answer(reviews, …) = 'Yes'` with the sample's truth behind the
model: the share of the exact rows that `candidates=k` finds, averaged over attributes. The exact query finds all.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from statistics import mean
from typing import Any

import almanaq
from almanaq.options import Options
from almanaq.testing import FunctionModel
from almanaq_bench.sample.truth import truth_function

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "local"))
from yes_no import QUESTIONS

CUTOFFS = (10, 30, 100, 200)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--embedder", default="lexical")
    arguments.add_argument("--out", type=Path)
    chosen = arguments.parse_args()
    result = measure(chosen.embedder)
    text = json.dumps(result, indent=1) + "\n"
    if chosen.out is not None:
        known = json.loads(chosen.out.read_text()) if chosen.out.exists() else {}
        chosen.out.write_text(json.dumps({**known, chosen.embedder: result}, indent=1) + "\n")
    print(text)


def measure(embedder: str) -> dict[str, Any]:
    """Return the mean recall for each cut-off, and the number of attributes with rows."""
    model = FunctionModel(truth_function())
    con = almanaq.connect("sample:restaurants", model=model, embedder=embedder)
    recalls: dict[int, list[float]] = {k: [] for k in CUTOFFS}
    for question in QUESTIONS.values():
        suql = f"SELECT id FROM restaurants WHERE answer(reviews, '{question}') = 'Yes'"
        exact = {row[0] for row in con.sql(suql, options=Options(order="table")).rows}
        if not exact:
            continue
        for k in CUTOFFS:
            found = {row[0] for row in con.sql(suql, options=Options(candidates=k)).rows}
            assert found <= exact
            recalls[k].append(len(found) / min(len(exact), k))
    return {
        "questions": len(recalls[CUTOFFS[0]]),
        "rows": con.catalog.relation("restaurants").rows,
        "recall_of_what_fits": {str(k): round(mean(values), 3) for k, values in recalls.items()},
    }


if __name__ == "__main__":
    main()
