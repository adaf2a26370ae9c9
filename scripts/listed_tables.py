"""What queries may contain, from the code: functions of DuckDB beyond its catalog's word, and the limits of size."""

from __future__ import annotations

from collections.abc import Mapping

from almanaq.engines.duckdb.functions import ALLOWED, ALLOWED_IN_FROM, REFUSED
from almanaq.suql.syntax import limits

_LIMITS = (
    ("LONGEST", "characters"),
    ("MOST_TOKENS", "words, signs and values"),
    ("MOST_WORDS", "words and signs without values and commas"),
    ("DEEPEST", "parentheses, brackets, CASEs and signs within each other"),
    ("MOST_LEVELS", "operators in a chain, or SELECTs in a UNION; AND and OR count once for the whole chain"),
    ("MOST_QUERIES", "SELECTs"),
    ("MOST_NODES", "names, operators and values, those of parameters included"),
)


def _functions() -> str:
    parts = [
        f"{title}:\n\n| function | because |\n| --- | --- |\n{_rows(listed)}\n"
        for title, listed in (
            ("Allowed though not constant over their arguments", ALLOWED),
            ("Allowed as items of FROM", ALLOWED_IN_FROM),
            ("Refused though the catalog calls them constant, or macros of the system", REFUSED),
        )
    ]
    return "\n".join(parts)


def _rows(listed: Mapping[str, str]) -> str:
    return "\n".join(f"| `{name}` | {reason} |" for name, reason in sorted(listed.items()))


def _limits() -> str:
    rows = [f"| {getattr(limits, name):,} | {what} |" for name, what in _LIMITS]
    return "\n".join(["| at most | of |", "|---:|---|", *rows]) + "\n"


def tables() -> dict[str, str]:
    """Return every list as Markdown, by name."""
    return {"functions": _functions(), "limits-of-a-query": _limits()}
