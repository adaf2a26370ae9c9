"""Lists of texts, as models and people write them, and as one text in a column."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from almanaq.values.texts import canonical, option_of

SEPARATOR = "\u241f"
"""Stands between the texts of a list that is kept in one column; no text of a list has it."""
_BETWEEN = (re.compile(r"[;\n]"), re.compile(","))
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")


def parse_list(text: str) -> tuple[str, ...]:
    """Return the texts of a list, each once: a JSON array's, else those between semicolons or lines, else commas.

    >>> parse_list('["Fish, fried", "soup"]'), parse_list("soup, bread")
    (('Fish, fried', 'soup'), ('soup', 'bread'))
    """
    return _once(_parse_texts(text))


def write_list(texts: tuple[str, ...]) -> str:
    """Return a list as a JSON array, which `parse_list` reads as it was."""
    return json.dumps(texts, ensure_ascii=False)


def join_texts(texts: tuple[str, ...]) -> str:
    """Return a list as one text of a column, of which `string_to_array` with SEPARATOR makes it again."""
    return SEPARATOR.join(text.replace(SEPARATOR, " ") for text in texts)


def only_options(texts: tuple[str, ...], options: Sequence[str]) -> tuple[str, ...]:
    """Return those texts of a list that are among some options, as these are spelled."""
    chosen = (option_of(text, options) for text in texts)
    return tuple(dict.fromkeys(option for option in chosen if option is not None))


def _parse_texts(text: str) -> list[str]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = None
    if isinstance(content, list):
        return [item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in content]
    between = next((found for found in _BETWEEN if found.search(text)), None)
    return [_BULLET.sub("", item) for item in ([text] if between is None else between.split(text))]


def _once(items: list[str]) -> tuple[str, ...]:
    kept: dict[str, str] = {}
    for item in items:
        if item.strip():
            kept.setdefault(canonical(item), item.strip())
    return tuple(kept.values())
