"""The row that sums up a sheet: people write it below the rows, and a query that sums them would count all twice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from almanaq.values.numbers import parse_number

_WORDS = frozenset(
    """
    total totals sum overall gesamt gesamtsumme summe insgesamt totale somma suma totaal som summa yhteensä итого всего
    合计 合計 总计 總計 小計
    """.split()
)
_PHRASES = frozenset({"grand total", "total general", "total général", "total geral", "totale generale"})
_CENT = 0.005
"""Sums of rounded amounts differ from the rounded sum by less than this for each row."""


def is_total_row(row: Sequence[Any], above: Sequence[Sequence[Any]]) -> bool:
    """Tell whether a row sums up those above it: it says so, and each of its numbers is the sum of its column.

    A row that holds the word alone counts too: its formulas were never computed.

    >>> is_total_row(("Total", None, 7), [("Rome", "a", 3), ("Oslo", "b", 4)])
    True
    >>> is_total_row(("Total", None, 9), [("Rome", "a", 3), ("Oslo", "b", 4)])
    False
    """
    filled = [(at, value) for at, value in enumerate(row) if value is not None and value != ""]
    if len(above) < 2 or not filled or not _says_total(filled[0][1]):
        return False
    rest = [(at, value) for at, value in filled[1:] if value != filled[0][1]]  # a merged cell repeats the word
    return all(_is_sum(value, [other[at] for other in above]) for at, value in rest)


def _says_total(value: Any) -> bool:
    word = " ".join(value.casefold().strip(" :=").split()) if isinstance(value, str) else ""
    return word in _WORDS or word in _PHRASES


def _is_sum(value: Any, column: Sequence[Any]) -> bool:
    total, numbers = _number(value), [number for number in map(_number, column) if number is not None]
    if total is None or not numbers:
        return False
    return math.isclose(total, math.fsum(numbers), rel_tol=1e-9, abs_tol=_CENT * len(numbers))


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        read = parse_number(value)
        return None if read is None else float(read)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
