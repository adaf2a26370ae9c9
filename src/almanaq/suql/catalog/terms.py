"""Terms of a source's semantic layer, as values: metrics, dimensions, named filters, joins."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

TermKind = Literal["metric", "dimension", "filter"]
Join = tuple[str, tuple[str, ...], str, tuple[str, ...]]
"""A relation, its columns, the relation that they refer to, and the columns there."""


@dataclass(frozen=True, slots=True)
class Term:
    """A name with its definition in SQL.

    Attributes:
        relation: the relation whose rows a metric aggregates, a dimension groups or a filter selects.
        expression: an aggregate (metric), a value of one row (dimension) or a condition (filter); columns without a
            relation before them are those of `relation`.
        where: the condition on the rows that a metric aggregates; "" takes all.
        grain: the part of a date that a dimension is cut to (`day`, `month`, …); "" leaves it whole.
        place: the file and line of the definition, for messages.
    """

    kind: TermKind
    name: str
    relation: str
    expression: str
    description: str = ""
    synonyms: tuple[str, ...] = ()
    unit: str = ""
    where: str = ""
    grain: str = ""
    place: str = ""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a file defines.

    Attributes:
        tables: the file's own names of relations, with the names of these in the source.
        left_out: sentences on definitions that cannot be carried over.
    """

    terms: tuple[Term, ...] = ()
    joins: tuple[Join, ...] = ()
    tables: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()


def find_line(text: str, pattern: str, name: str) -> str:
    """Return "NAME, line N" of the first match of a pattern in a file's text; the name alone where there is none."""
    found = re.search(pattern, text, re.MULTILINE)
    return f"{name}, line {text.count(chr(10), 0, found.start()) + 1}" if found else name
