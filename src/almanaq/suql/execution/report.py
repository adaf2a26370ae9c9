"""What each stage of a run did, for EXPLAIN ANALYZE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from almanaq.models.budget import SpendingLine
from almanaq.models.protocols import Usage
from almanaq.suql.accuracy.targets import Inference
from almanaq.suql.execution.stage_rows import StageCounts


@dataclass
class RunReport:
    """What each stage did, by the name of the table it made: rows for SQL stages, counts for text stages."""

    rows: dict[str, int] = field(default_factory=dict)
    text: dict[str, StageCounts] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def figures(self, spent: Sequence[SpendingLine] = ()) -> dict[str, dict[str, Any]]:
        """Return what each stage took, as EXPLAIN shows it; `spent` holds the tokens and money of paid calls."""
        found: dict[str, dict[str, Any]] = {name: {"rows": rows} for name, rows in self.rows.items()}
        for name, counts in self.text.items():
            usage = sum((line.usage for line in spent if line.operator == name), Usage())
            tokens = usage.input_tokens + usage.output_tokens
            found[name] = {"rows": counts.passed, "candidates": counts.candidates, "calls": counts.calls}
            found[name] |= {"tokens": tokens, "money": usage.money}
            if counts.inference is not None:
                found[name] |= _inference_figures(counts.inference)
        for name, seconds in self.seconds.items():
            found[name]["seconds"] = round(seconds, 4)
        return found


def _inference_figures(inference: Inference) -> dict[str, Any]:
    known = inference.certificate
    return {
        "expected": inference.expected,
        "asked": known.asked,
        "accepted unasked": known.accepted,
        "rejected unasked": known.rejected,
        "wrongly accepted at most": known.wrongly_accepted,
        "wrongly rejected at most": known.wrongly_rejected,
        "recall at least": round(known.recall, 4),
        "precision at least": round(known.precision, 4),
        "seed": inference.targets.seed,
    }
