"""What a dataset's context says of a table: title, section, description and keys, from the keys its publishers use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import unquote

TITLE_KEYS = ("table_page_title", "page_title", "table_title", "title", "table_caption", "caption", "table_name")
"""The first that says something is the title: Wikipedia sets give page titles, TabFact captions, databases names."""

URL_KEYS = ("page_wikipedia_url", "url")
"""A Wikipedia address ends in its page's title; read where a set gives no other (TabFact's uncaptioned tables)."""

SECTION_KEYS = ("table_section_title", "section_title", "section")

DESCRIPTION_KEYS = ("table_description", "description", "comment", "section_text", "intro")
"""Prose about the table; columns' own names and descriptions follow it."""

_BLANK = frozenset({"", "none", "null", "nan", "n/a"})
_FILE_NAME = re.compile(r"[/\\]|\.(html|htm|csv|tsv|json|jsonl|txt|xml|parquet|xlsx?)\b", re.IGNORECASE)
_HASH = re.compile(r"[0-9a-f]{8,}(-[0-9a-f]{4,})*", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]{2}")
_WIKIPEDIA = re.compile(r"^https?://[^/]*wikipedia\.org/wiki/([^?#]+)")


def title_of(context: Mapping[str, object], table_id: str) -> str:
    """Return the table's title from its context, else from an id that is a name, else ""."""
    return _first(context, TITLE_KEYS) or _page_name(context) or _name_in(table_id)


def section_of(context: Mapping[str, object]) -> str:
    """Return the title of the section that the table stands in; "" where there is none."""
    return _first(context, SECTION_KEYS)


def description_of(context: Mapping[str, object], header: Sequence[str]) -> str:
    """Return the prose about the table and what its columns mean, a line each; "" where there is none."""
    prose = [_said(context.get(key)) for key in DESCRIPTION_KEYS]
    return "\n".join(text for text in (*prose, _column_names(context, header), *_column_descriptions(context)) if text)


def keys_of(context: Mapping[str, object]) -> tuple[str, ...]:
    """Return primary key columns by name, and foreign keys as `column -> table.column`."""
    return (*_strings(context.get("primary_keys")), *map(_foreign_key, _items(context.get("foreign_keys"))))


def _first(context: Mapping[str, object], keys: Iterable[str]) -> str:
    return next((text for key in keys if (text := _said(context.get(key)))), "")


def _said(value: object) -> str:
    """Return a value's text, "" when it says nothing: datasets write the word "none" for a missing caption."""
    text = value.strip() if isinstance(value, str) else ""
    return "" if text.lower() in _BLANK else text


def _page_name(context: Mapping[str, object]) -> str:
    found = _WIKIPEDIA.match(_first(context, URL_KEYS))
    return unquote(found.group(1)).replace("_", " ") if found else ""


def _name_in(table_id: str) -> str:
    """Return an id as a title unless it is the name of a file, a number or a hash, which say nothing of the table."""
    nameless = _FILE_NAME.search(table_id) or _HASH.fullmatch(table_id) or not _WORD.search(table_id)
    return "" if nameless else table_id.replace("_", " ").strip()


def _column_names(context: Mapping[str, object], header: Sequence[str]) -> str:
    """Return the columns' names in words, where they are not the header itself."""
    names = _strings(context.get("column_names"))
    return " | ".join(names) if names and [n.lower() for n in names] != [h.lower() for h in header] else ""


def _column_descriptions(context: Mapping[str, object]) -> Iterable[str]:
    described = context.get("column_descriptions")
    if not isinstance(described, Mapping):
        return
    for column, description in described.items():
        parts = description.items() if isinstance(description, Mapping) else [("description", description)]
        texts = [_said(text) for key, text in parts if key != "data_format"]
        # Publishers repeat a column's name as its description; once is enough.
        new = dict.fromkeys(text for text in texts if text and text.lower() != str(column).lower())
        if new:
            yield f"{column}: {'; '.join(new)}"


def _foreign_key(key: object) -> str:
    if isinstance(key, Mapping):
        return f"{key.get('column')} -> {key.get('ref_table')}.{key.get('ref_column')}"
    return str(key)


def _items(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else ()


def _strings(value: object) -> tuple[str, ...]:
    return tuple(str(item) for item in _items(value))
