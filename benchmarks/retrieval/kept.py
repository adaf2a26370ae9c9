"""Committed results: one file per script, a run for each size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def tell(run: dict[str, Any], out: Path | None) -> None:
    """Print a run as one line of JSON, and put it in a file of results in the place of the one of its size."""
    print(json.dumps(run))
    if out is None:
        return
    record = json.loads(out.read_text()) if out.exists() else {"runs": []}
    others = [each for each in record["runs"] if each["tables"] != run["tables"]]
    record["runs"] = sorted([*others, run], key=lambda each: each["tables"])
    out.write_text(json.dumps(record, indent=1) + "\n")
