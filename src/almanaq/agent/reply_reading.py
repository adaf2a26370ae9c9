"""Reads what models reply."""

from __future__ import annotations

import json
import re
from typing import Any


def json_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object of a reply, prose and code fences around it forgiven; None when there is none to read."""
    match = re.search(r"\{.*\}", text, re.DOTALL)
    try:
        value = json.loads(match.group()) if match else None
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
