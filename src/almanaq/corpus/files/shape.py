"""Where tables lie among the rows of a sheet or a delimited file: titles, headers, units, totals, notes below."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

from almanaq.values import parse_number

Row: TypeAlias = Sequence[Any]
Numbered: TypeAlias = tuple[int, Row]  # the number of a row, as people see it, and its cells

MOST_BELOW = 12  # totals and notes are looked for in so many rows at the end
_LONGEST_PREAMBLE = 10
_HALF = 0.5
_CENT = 0.005  # sums of rounded amounts differ from the rounded sum by less than this for each row
_UNIT = re.compile(
    r"[(\[][^)\]]{1,20}[)\]]|%|‰|[€$£¥]|°[CF]|[kmcµn]?(?:g|m|s|l|L|W|Wh|V|A|Hz|Pa|J)|[A-Z]{3}|[km]?m[²³23]|t"
)
_NOTE = re.compile(
    r"\s*(?:[*#†‡(¹²³]|source|note|quelle|fuente|hinweis|remark|generated|exported|last updated|as of)", re.I
)
_WORDS = frozenset(
    """
    total totals sum overall gesamt gesamtsumme summe insgesamt totale somma suma totaal som summa yhteensä итого всего
    合计 合計 总计 總計 小計 subtotal subtotals sub-total zwischensumme sous-total
    """.split()
)
_OF_NAMES = frozenset({"totals", "sum", "som", "overall", "suma"})  # beside other words as likely part of a name
_PHRASES = frozenset({"grand total", "total general", "total général", "total geral", "totale generale"})


def is_filled(cell: Any) -> bool:
    return cell is not None and (not isinstance(cell, str) or bool(cell.strip()))


def _filled(row: Row) -> list[int]:
    return [at for at, cell in enumerate(row) if is_filled(cell)]


def as_number(value: Any) -> float | None:
    """Return the number that a cell holds or writes, None for another."""
    if isinstance(value, str):
        read = parse_number(value)
        return None if read is None else float(read)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _is_label(cell: Any) -> bool:
    return isinstance(cell, str) and is_filled(cell) and as_number(cell) is None


def count_preamble(rows: Sequence[Row], has_header: Callable[[Sequence[Row]], bool]) -> int:
    """Return how many rows stand above a table, as titles and remarks do: each is narrower than most rows.

    A row just above may lack one cell and be the header all the same (of row names): it is none of them only where the
    first row of full width reads like a header.
    """
    extents = [at[-1] + 1 if (at := _filled(row)) else 0 for row in rows]
    counted = Counter(extent for extent in extents if extent > 1)
    if not counted:
        return 0
    width = max(counted, key=lambda extent: (counted[extent], extent))
    lead = next(i for i, extent in enumerate(extents) if extent >= width)
    if not 0 < lead <= _LONGEST_PREAMBLE or len(rows) - lead < 2:
        return 0
    below = [extent for extent in extents[lead:] if extent]
    if sum(extent == width for extent in below) < _HALF * len(below):
        return 0
    single = [len(_filled(row)) <= 1 for row in rows[:lead]]
    if not all(single) and not has_header(rows[lead:]):
        return next((i for i, alone in enumerate(single) if not alone), 0)
    return lead


@dataclass(frozen=True, slots=True)
class Header:
    """Names of columns that are present and distinct, and what had to be changed to make them so."""

    names: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def clean_header(written: list[str], where: str) -> Header:
    """Return the header with empty names filled (`column_N`) and repeated ones, case folded, numbered (`name_2`)."""
    names: list[str] = []
    warnings: list[str] = []
    taken = {name.strip().casefold() for name in written}
    seen: set[str] = set()
    for position, raw in enumerate(written, start=1):
        name = raw.strip()
        if not name or name.casefold() in seen:
            base, others, number = name or f"column_{position}", seen | (taken if raw else set()), 2
            name = f"{base}_{number}" if name else base
            while name.casefold() in others:
                name, number = f"{base}_{number}", number + 1
            fault = f"column {position} has no name" if not raw.strip() else f"column name {raw.strip()!r} is repeated"
            warnings.append(f"{where}: {fault}; it is called {name!r}")
        seen.add(name.casefold())
        names.append(name)
    return Header(tuple(names), tuple(warnings))


def join_headers(rows: Sequence[Row]) -> tuple[str, ...] | None:
    """Return the names that two rows give together, None where the first alone holds them."""
    if len(rows) < 3:
        return None
    top, second, body = rows[0], rows[1], rows[2:]
    filled = _filled(top)
    gaps = set(range(len(second))).difference(filled)
    again = len({str(top[at]) for at in filled}) < len(filled)
    if not (gaps or again) or not filled or not all(map(_is_label, second)):
        return None
    if not any(at + 1 in gaps or top[at] in top[:at] for at in filled):
        return None
    if not any(sum(as_number(row[at]) is not None for row in body) > len(body) * _HALF for at in range(len(second))):
        return None
    names, group = [], ""
    for above, name in zip(top, second, strict=True):
        group = str(above).strip() if is_filled(above) else group
        own = str(name).strip()
        names.append(own if not group or group == own else f"{group} {own}")
    return tuple(names)


def read_units(body: Sequence[Row]) -> tuple[str, ...] | None:
    """Return the units that a row below the header gives its columns, "" for those without; None where it is none."""
    if len(body) < 2:
        return None
    units = ["" if not is_filled(cell) else str(cell).strip() for cell in body[0]]
    said = [at for at, unit in enumerate(units) if unit]
    if not said or not all(_UNIT.fullmatch(units[at]) for at in said):
        return None
    for at in said:
        below = [row[at] for row in body[1:] if is_filled(row[at])]
        if not below or sum(as_number(cell) is not None for cell in below) < 0.9 * len(below):
            return None
    return tuple(unit.strip("()[]") for unit in units)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A row at the end of a table, or within it, that is none of its rows; `kept`: it is one, but says it is none."""

    at: int
    why: str
    kept: bool = False


def _sums_up_rows(row: Row, above: Sequence[Row]) -> bool:
    return _sums_up(row, lambda at: numbers_of(other[at] for other in above))


def numbers_of(cells: Iterable[Any]) -> list[float]:
    return [number for number in map(as_number, cells) if number is not None]


def _sums_up(row: Row, column: Callable[[int], list[float]]) -> bool:
    filled = _filled(row)
    label = row[filled[0]] if filled else None
    if filled and not _is_label(label):  # nothing says so: each number has to be a sum, and there is no text
        if filled[0] == 0 or any(as_number(row[at]) is None for at in filled):
            return False
        pairs = ((as_number(row[at]), column(at)) for at in filled)
        return all(len(above) > 1 and _is_sum(value, above, exact=True) for value, above in pairs)
    if not filled or not _says_total(label):
        return False
    rest = [at for at in filled[1:] if row[at] != label]  # a merged cell repeats the word
    sums = [_is_sum(as_number(row[at]), column(at)) for at in rest]
    means = [_is_mean(as_number(row[at]), column(at)) for at in rest]
    # A row that holds the word alone counts, too: its formulas were never computed.
    return (any(sums) or not rest) and all(sum_ or mean for sum_, mean in zip(sums, means, strict=True))


def _says_total(value: Any) -> bool:
    words = value.casefold().strip(" :=").replace(":", "").split() if isinstance(value, str) else []
    among = _WORDS if len(words) == 1 else _WORDS - _OF_NAMES
    return " ".join(words) in _PHRASES or (len(words) < 5 and not among.isdisjoint(words))


def _is_sum(value: float | None, above: list[float], *, exact: bool = False) -> bool:
    if value is None or not above:
        return False
    total = math.fsum(above)
    rounded = 0.0 if exact else _half_unit(value)
    return math.isclose(value, total, rel_tol=1e-9, abs_tol=max(_CENT * len(above), rounded) if total else 0.0)


def _is_mean(value: float | None, above: list[float]) -> bool:
    return value is not None and bool(above) and abs(value - math.fsum(above) / len(above)) <= _half_unit(value)


def _half_unit(value: float) -> float:
    """Return half of the last digit that a number shows: it may have been rounded."""
    return _HALF * 10.0 ** -len(f"{value!r}".partition(".")[2].rstrip("0"))


def find_below(rows: Sequence[Row], column: Callable[[int, int], list[float]]) -> list[LeftOut]:
    """Return which of the last rows of a table are none of its rows, the last first.

    `rows` are the last or all, and places count from the first of these; `column` gives the numbers above the row at a
    place, of a column.
    """
    found: list[LeftOut] = []
    widest = max((len(_filled(row)) for row in rows), default=0)
    if widest < 2:
        return found
    at = len(rows)
    while at > 1:
        at -= 1
        row, filled = rows[at], _filled(rows[at])
        if not filled:
            continue
        alone = filled == [0] and _is_label(row[0]) and not _says_total(row[0])
        # A name whose other cells are missing is no note: it is no longer than those above it.
        longer = alone and len(row[0]) > max(len(str(other[0] or "")) for other in rows[:at])
        apart = alone and " " in row[0].strip() and (not _filled(rows[at - 1]) or (longer and widest > 2))
        if apart or (alone and _NOTE.match(row[0])):
            found.append(LeftOut(at, "a note below the table"))
        elif _sums_up(row, partial(column, at)):
            found.append(LeftOut(at, "which sums the others"))
        elif _says_total(said := row[filled[0]]) and (
            len(said.split()) == 1 or said.casefold().strip(" :=") in _PHRASES  # and nothing else
        ):
            return [*found, LeftOut(at, "says it is a total, but its numbers are not the sums: it is kept", kept=True)]
        elif alone and " " in row[0].strip() and widest > 2:
            return [*found, LeftOut(at, "holds a text alone, perhaps a note: it is kept", kept=True)]
        else:
            return found
    return found


def find_subtotals(rows: Sequence[Row]) -> list[LeftOut]:
    """Return the rows within a table that sum up those since the one before, and the last one that sums up all.

    Where the last row that says "Total" sums up all rows but those that say so, too, these are none of the table.
    """
    found: list[LeftOut] = []
    totals = [at for at, row in enumerate(rows) if _says_total(next(filter(is_filled, row), None))]
    said = set(totals)
    rest = [row for at, row in enumerate(rows[: totals[-1]]) if at not in said] if len(totals) > 1 else []
    if rest and len(_filled(rows[totals[-1]])) > 1 and _sums_up_rows(rows[totals[-1]], rest):
        return [LeftOut(at, "which sums up others") for at in totals]
    group: list[Row] = []
    for at, row in enumerate(rows):
        if at in said and len(_filled(row)) > 1:
            if group and _sums_up_rows(row, group):
                found.append(LeftOut(at, "which sums up those above it"))
                group = []
                continue
        group.append(row)
    return found if len(found) > 1 else []


def split_tables(rows: Sequence[Numbered]) -> list[list[Numbered]]:
    """Return the rows of each table of a sheet: blank rows or columns lie between them, each has its own header."""
    blocks: list[list[Numbered]] = []
    for number, row in rows:
        if _filled(row):
            if not blocks or number > blocks[-1][-1][0] + 1:
                blocks.append([])
            blocks[-1].append((number, row))
    tables: list[list[Numbered]] = []
    for block in blocks:
        titles = next((i for i, (_, row) in enumerate(block) if len(_filled(row)) > 1), len(block))
        body = [row for _, row in block[titles:]]
        # A header and two rows are more than a few settings above a table.
        before = tables and sum(len(_filled(row)) > 1 for _, row in tables[-1]) > 2
        if tables and not (before and len(body) > 1 and _begins_table(body, tables[-1])):
            tables[-1] += block
        else:
            tables.append(block)
    return [part for table in tables for part in _split_beside(table)]


def _split_beside(table: list[Numbered]) -> list[list[Numbered]]:
    """Return the tables that stand side by side: behind an empty column, the name of the first column comes again."""
    used = sorted({at for _, row in table for at in _filled(row)})
    for at in (at for before, at in pairwise(used) if at > before + 1):
        cut = [[(n, row[part]) for n, row in table if _filled(row[part])] for part in (slice(at), slice(at, None))]
        heads = [next((row for _, row in part if len(_filled(row)) > 1), ()) for part in cut]
        first, again = (next((row[i] for i in _filled(row)), None) for row in heads)
        if _is_label(first) and first == again:
            return [cut[0], *_split_beside(cut[1])]
    return [table]


def _begins_table(body: Sequence[Row], before: Sequence[Numbered]) -> bool:
    """Tell whether rows begin with a header: labels over all columns, numbers below or other columns than before."""
    first, used = _filled(body[0]), {at for row in body for at in _filled(row)}
    if set(first) != used or not all(_is_label(body[0][at]) for at in first) or _says_total(body[0][first[0]]):
        return False
    typed = any(not _is_label(row[at]) for row in body[1:] for at in _filled(row))
    return typed or used != {at for _, row in before for at in _filled(row)}
