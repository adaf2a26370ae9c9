"""What queries may contain, from the lists in the code: functions by engine, and the limits of size."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from almanaq.suql.syntax import limits
from almanaq.suql.syntax.allowlist import POSTGRES_ALONE, STRUCTURE
from almanaq.suql.syntax.functions import ENGINES, FUNCTIONS

_WIDTH = 118
_LIMITS = (
    ("LONGEST", "characters"),
    ("MOST_TOKENS", "words, signs and values"),
    ("MOST_WORDS", "words and signs without values and commas"),
    ("DEEPEST", "parentheses, brackets, CASEs and signs within each other"),
    ("MOST_LEVELS", "operators in a chain, or SELECTs in a UNION; AND and OR count once for the whole chain"),
    ("MOST_QUERIES", "SELECTs"),
    ("MOST_NODES", "names, operators and values, those of parameters included"),
    ("WIDEST_ROW", "columns of rows compared by < or >"),
)


def _functions() -> str:
    groups: dict[frozenset[str], list[str]] = {}
    for name, engines in sorted(FUNCTIONS.items()):
        groups.setdefault(engines, []).append(name)
    parts = []
    for engines in sorted(groups, key=len, reverse=True):
        where = "every engine" if len(engines) == len(ENGINES) else " and ".join(e for e in ENGINES if e in engines)
        names = groups[engines]
        parts.append(f"On {where} ({len(names)}):\n\n{_wrapped(f'`{name}`' for name in names)}\n")
    return "\n".join(parts)


def _structure() -> str:
    alone = _wrapped(f"`{name}`" for name in sorted(POSTGRES_ALONE))
    return f"{_wrapped(f'`{name}`' for name in sorted(STRUCTURE))}\n\nOn PostgreSQL alone: {alone}\n"


def _limits() -> str:
    rows = [f"| {getattr(limits, name):,} | {what} |" for name, what in _LIMITS]
    return "\n".join(["| at most | of |", "|---:|---|", *rows]) + "\n"


def _wrapped(words: Iterable[str]) -> str:
    return textwrap.fill(" ".join(words), _WIDTH, break_long_words=False, break_on_hyphens=False)


def tables() -> dict[str, str]:
    """Return every list as Markdown, by name."""
    return {"functions": _functions(), "parts-of-a-query": _structure(), "limits-of-a-query": _limits()}
