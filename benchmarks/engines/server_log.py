"""What a PostgreSQL server's own log says of the statements that it ran: rows sent to the client, work done there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

SETTINGS = {
    "session_preload_libraries": "auto_explain",
    "auto_explain.log_min_duration": "0",
    "auto_explain.log_analyze": "on",
    "auto_explain.log_timing": "off",
    "auto_explain.log_format": "json",
}
"""auto_explain writes the plan of each statement with its actual rows into the log; a superuser may ask for it."""


_BEFORE = re.compile(r"^(?:(?:BEGIN|SAVEPOINT|SET LOCAL|CLOSE) [^;]*; )*")  # in one message with the statement
_PREFIX = re.compile(r"^t[0-9a-f]{12}_")  # of temporary tables


@dataclass(frozen=True)
class Statement:
    """A statement as the server ran it: its text, the rows it sent to the client, and the nodes of its plan."""

    text: str
    rows_sent: int
    nodes: tuple[str, ...]


def log_statements(url: str) -> str:
    """Return the URL of a connection whose statements the server logs."""
    options = quote(" ".join(f"-c {name}={value}" for name, value in SETTINGS.items()))
    return f"{url}{'&' if '?' in url else '?'}options={options}"


def statements(log: Path, start: int = 0) -> Iterator[Statement]:
    """Yield the statements that a log tells of, from a place in it on."""
    with log.open(encoding="utf-8", errors="replace") as file:
        file.seek(start)
        text = file.read()
    for part in text.split(" plan:\n")[1:]:
        found, _ = json.JSONDecoder().raw_decode(part.replace("\t", " ").lstrip())
        plan, query = found["Plan"], _BEFORE.sub("", " ".join(found["Query Text"].split()))
        # What fills a table sends nothing; a cursor's plan tells the rows that were fetched from it.
        sends = query.upper().startswith(("SELECT", "WITH", "DECLARE"))
        yield Statement(query, round(plan["Actual Rows"]) if sends else 0, tuple(_nodes(plan)))


def _nodes(plan: dict[str, Any]) -> Iterator[str]:
    on = _PREFIX.sub("", plan.get("Relation Name", ""))
    name = plan["Node Type"] + (f" on {on}" if on else "")
    yield f"{name}, filtered" if "Filter" in plan else name
    for inner in plan.get("Plans", ()):
        yield from _nodes(inner)
