"""What a query has to be told an engine otherwise: the parts of a description, and what engines have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """How an engine says what PostgreSQL says otherwise; the templates are SQL of its own.

    Attributes:
        dialect: sqlglot's name of it.
        division: of integers towards zero, of {0} by {1}; what sqlglot writes for some rounds, and so does a quotient
            with few decimals: 9999999 / 10000000 is 1.0000 in MySQL.
        match: a {pattern} found anywhere in a {text}; {flags} where they are an argument.
        member: whether {value} is in {array}; None where there are no arrays.
        flags_in_pattern: whether a pattern begins with its flags, `(?s)`.
        groups: whether patterns may have groups like `(?:…)`.
        filters: whether aggregates take FILTER.
        truth: whether `x IS TRUE` is never NULL as sqlglot writes it.
        escapes: whether a backslash is LIKE's escape without a word.
        numbers_want_order: whether row_number() wants an ORDER BY.
        spelled: how the name of a column or a table is spelled.
        rows_of_groups: the aggregate that gathers the rows behind a group, where it is not array_agg.
    """

    dialect: str
    division: str
    match: str
    member: str | None = None
    flags_in_pattern: bool = True
    groups: bool = True
    filters: bool = True
    truth: bool = True
    escapes: bool = True
    numbers_want_order: bool = False
    spelled: Callable[[str], str] = str
    rows_of_groups: str | None = None
