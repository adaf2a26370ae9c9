"""Questions about the source itself: which tables and columns there are, what can be asked."""

from __future__ import annotations

import re

from almanaq.agent.describe import words
from almanaq.agent.linking.words import fold, stem, stems
from almanaq.suql.catalog.relations import Catalog, ColumnKind, Relation

_THINGS = r"(?:columns?|fields?|attributes?|variables?|tables?|sheets?|data ?sets?)"
_WORDS = (
    "names? are do does is can in of there you it have has this the exist available i use ask about table data we here"
)
_FILLING = rf"(?: (?:{'|'.join(_WORDS.split())}))*"
_ABOUT = re.compile(
    rf"(?:so |and |ok |please )*(?:(?:what|which)(?: are)?(?: the| your)? {_THINGS}\b{_FILLING}"
    rf"|(?:list|show|name|tell|give|describe)(?: me)?(?: all)?(?: the| your| its)? {_THINGS}\b{_FILLING})"
    r"(?: (?:(?:in|of|for|does|do) )?(?:the |table )?\w+)?(?: have| table)?[?.! ]*",
)
_TABLES = re.compile(r"\b(?:tables?|sheets?|data ?sets?)\b")
_ASK = re.compile(
    r"(?:what|which questions?|what (?:kind|sort) of (?:things|questions)) (?:can|could|may) i (?:ask|query|know)\b.*"
    r"|what (?:is|'s) (?:in|inside) (?:here|this|the (?:data|file|database|table|source))\b.*"
    r"|what (?:data|information) (?:do you have|is there|is here|is available)\b.*"
    r"|what do you know\b.*|describe (?:the )?(?:data|source|database|schema)\b.*"
    r"|(?:show me |what is )?(?:the )?schema[?.! ]*"
)
_MOST_COLUMNS, _MOST_TABLES = 40, 30


def answer_about_source(question: str, catalog: Catalog) -> str | None:
    """Return the reply to a question about tables and columns; None for any other question."""
    said = " ".join(fold(question).replace("what's", "what is").split())
    if _ASK.fullmatch(said):
        return f"{_all_of(catalog)} {_examples(catalog)}".strip()
    if _ABOUT.fullmatch(said) is None:
        return None
    named = [r for r in catalog.relations if set(stems(r.name)) & {stem(word) for word in said.split()} - {"table"}]
    if _TABLES.search(said) and not named and "column" not in said:
        return _tables(catalog)
    return " ".join(_columns(relation) for relation in named) if named else _all_of(catalog)


def _tables(catalog: Catalog) -> str:
    names = [words(r.name) + (f" ({r.rows:,} rows)" if r.rows is not None else "") for r in catalog.relations]
    more = f" and {len(names) - _MOST_TABLES} more" if len(names) > _MOST_TABLES else ""
    return f"The {'table is' if len(names) == 1 else 'tables are'} {', '.join(names[:_MOST_TABLES])}{more}."


def _all_of(catalog: Catalog) -> str:
    if not catalog.relations:
        return "It holds no tables."
    if len(catalog.relations) > 6:
        return f"{_tables(catalog)} Ask for the columns of one of them."
    return " ".join(_columns(relation) for relation in catalog.relations)


def _columns(relation: Relation) -> str:
    names = [words(column.name) for column in relation.columns]
    more = f" and {len(names) - _MOST_COLUMNS} more" if len(names) > _MOST_COLUMNS else ""
    return f"The columns of {words(relation.name)} are {', '.join(names[:_MOST_COLUMNS])}{more}."


def _examples(catalog: Catalog) -> str:
    """Return two questions that the first table can answer."""
    relation = next(iter(catalog.relations), None)
    if relation is None:
        return ""
    kinds = [c for c in relation.columns if c.type == "text" and c.kind is not ColumnKind.FREE_TEXT][1:2]
    asked = [f"“how many {words(relation.name)} are there?”"]
    asked += [f"“how many {words(relation.name)} are there per {words(column.name)}?”" for column in kinds]
    return f"You may ask {' or '.join(asked)}"
