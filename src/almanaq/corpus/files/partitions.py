"""Files that are one table: `year=2020/a.csv`, `sales-2024-01.csv` and those beside it, `*.csv` of one shape.

What their paths say is a column.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from almanaq.corpus.files.listing import Format, FoundFile, Listing, Problem
from almanaq.corpus.table import TableId

_DATE = re.compile(
    r"(?<!\d)((?:19|20)\d\d)(?:[-_.]?(?:Q([1-4])|(0[1-9]|1[0-2])(?:[-_.]?([0-3]\d))?))?(?!\d)", re.IGNORECASE
)
_NUMBER = re.compile(r"\d+(?=\D*$)")
_LEAST_ALIKE = 3  # so many files of one shape that a pattern names are one table; two may well be of two kinds
_FIRST_LINE = 1 << 16


def join_files(listing: Listing, named: Iterable[str] = (), *, any_name: bool = False) -> Listing:
    """Return a listing with the files that are one table joined: their names differ in a date or a number alone.

    Args:
        named: tables that a schema file speaks of: files that would be joined with one stay apart.
        any_name: whether files of one header are one table, named after their folder, whatever they are called, as
            somebody named them together: `*.csv`.
    """
    apart = {name.rpartition(".")[2].casefold() for name in named}
    found, problems = listing.files, list(listing.problems)
    groups: dict[tuple[str, Path, str, str, Hashable], list[tuple[FoundFile, str]]] = defaultdict(list)
    for each in found:
        if (shape := _read_shape(each)) is not None and (said := _parse_name(each.kind.stem)) is not None:
            pattern, column, value = said
            groups[each.id.database, each.path.parent, pattern, column, shape].append((each, value))
    joined: dict[FoundFile, FoundFile | None] = {}
    for (database, folder, pattern, column, _), members in groups.items():
        files = [each for each, _ in members]
        if len(files) > 1 and apart.isdisjoint(_table_names(files)):
            name = re.sub(r"[-_. ]*\0[-_. ]*", "_", pattern).strip("_") or folder.resolve().name
            if any(each.id == TableId(database, name) for each in found if each not in files):
                name = f"{name}_{column}"
            one = _join(files, name, column, [value for _, value in members], problems)
            joined |= {**dict.fromkeys(files), files[0]: one}
    rest = [each for each in found if each not in joined and each.kind.format is not Format.DOCUMENTS]
    if any_name and not joined and len(rest) >= _LEAST_ALIKE and apart.isdisjoint(_table_names(rest)):
        (parent, format_, shape), *others = {(each.path.parent, each.kind.format, _read_shape(each)) for each in rest}
        if not others and format_ is Format.DELIMITED and shape is not None:
            one = _join(rest, parent.resolve().name, "file", [each.kind.stem for each in rest], problems)
            joined = {**dict.fromkeys(rest), rest[0]: one}
    kept = [each for each in (joined.get(each, each) for each in found) if each is not None]
    return replace(listing, files=tuple(kept), problems=tuple(problems))


def _table_names(files: Sequence[FoundFile]) -> set[str]:
    return {each.id.table.casefold() for each in files}


def _join(
    files: Sequence[FoundFile], name: str, column: str, values: Sequence[str], problems: list[Problem]
) -> FoundFile:
    first, shape = files[0], _read_shape(files[0])
    if first.kind.format is Format.PARQUET and isinstance(shape, tuple) and column in shape[1]:
        column = f"{column}_2"  # the others are named when they are read
    shown = f"{len(files):,} files are one table, and the column {column!r} is from their names"
    problems.append(Problem(name, f"{shown} ({first.path.name}, …); --separate (separate=True) keeps them apart"))
    paths = tuple(path for each in files for path in each.paths)
    return replace(
        first, id=TableId(first.id.database, name), paths=paths, columns=(column,), values=tuple((v,) for v in values)
    )


def _parse_name(stem: str) -> tuple[str, str, str] | None:
    """Return what is common to a name and those beside it, and the column and value that the rest is.

    >>> _parse_name("sales-2024-01"), _parse_name("run7")
    (('sales-\\x00', 'month', '2024-01'), ('run\\x00', 'part', '7'))
    """
    if date := _DATE.search(stem):
        year, quarter, month, day = date.groups()
        column = "quarter" if quarter else "date" if day else "month" if month else "year"
        value = f"{year}-Q{quarter}" if quarter else "-".join(part for part in (year, month, day) if part)
        return f"{stem[: date.start()]}\0{stem[date.end() :]}", column, value
    if number := _NUMBER.search(stem):
        return f"{stem[: number.start()]}\0{stem[number.end() :]}", "part", number[0]
    return None


def _read_shape(found: FoundFile) -> Hashable | None:
    """Return what files of one table have in common: ending and header; None for a file that is not to be joined."""
    kind = found.kind
    if found.root is not None or kind.compression:
        return None
    try:
        if kind.format is Format.PARQUET:
            import pyarrow.parquet as pq

            schema = pq.read_schema(found.path, memory_map=True)
            return kind.ending, tuple(schema.names), tuple(map(str, schema.types))
        with found.path.open("rb") as file:
            line = file.readline(_FIRST_LINE).removeprefix(b"\xef\xbb\xbf").strip()
        if kind.format is Format.DELIMITED:
            return (kind.ending, line) if re.search(rb"[,;\t|]", line) else None
        if kind.ending in (".jsonl", ".ndjson") and isinstance(first := json.loads(line), dict):
            return kind.ending, frozenset(first)
    except (OSError, ValueError):  # the reader says what is wrong with it
        pass
    return None
