"""Parquet files as tables: small ones are loaded, large ones and those in parts are read in place, by a view."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb

from almanaq.corpus.files.kinds import Format, kind_of, total_bytes
from almanaq.corpus.files.listing import FoundFile, Listing
from almanaq.corpus.tabular import clean_header
from almanaq.errors import SourceError, first_line
from almanaq.suql.databases.duckdb_session import file_literal
from almanaq.text.sql_literals import quote, string_literal

VIEW_BYTES = 64 << 20
"""Files that are larger together are read in place: opening them costs nothing, and no memory holds them."""
TABLE_BYTES = 8 * VIEW_BYTES
"""What a small file may unpack to and be loaded: a few bytes may stand for any number of rows, and of long ones."""


def load_parquet(
    connection: duckdb.DuckDBPyConnection, place: tuple[str, ...], found: FoundFile
) -> tuple[int, tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Make the table or view at `place`; give its number of rows, its columns with their types, and warnings.

    Raises:
        SourceError: a file is no Parquet, or the parts do not fit together.
    """
    file = found.path.name
    source = _source(found)
    try:
        described = connection.execute(f"SELECT * FROM {source} LIMIT 0").description or []
        header = clean_header([entry[0] for entry in described], file)
        ((rows,),) = connection.execute(f"SELECT count(*) FROM {source}").fetchall()
        columns = ", ".join(
            f"{quote(entry[0])} AS {quote(name)}" for entry, name in zip(described, header.names, strict=True)
        )
        small = total_bytes(found.paths) <= VIEW_BYTES and _unpacked(connection, source, described, rows) <= TABLE_BYTES
        made = "TABLE" if small else "VIEW"
        connection.execute(f"CREATE {made} {quote(*place)} AS SELECT {columns} FROM {source}")
    except duckdb.Error as error:
        why = first_line(error)
        raise SourceError(f"{file} is not a Parquet file, or not of one table with those beside it: {why}") from error
    types = [(name, str(entry[1])) for name, entry in zip(header.names, described, strict=True)]
    return int(rows), tuple(types), header.warnings


def lock_paths(connection: duckdb.DuckDBPyConnection, listing: Listing) -> None:
    """Let the engine read the Parquet files of a source, and no other, once files are closed to it."""
    read = [found for found in listing.files if _is_parquet(found.path)]
    folders = [found.root.resolve() for found in read if found.root is not None]
    paths = [found.path.resolve() for found in read if found.root is None]
    for setting, places in (("allowed_directories", folders), ("allowed_paths", paths)):
        # What is read is checked as it is written in the view, too.
        both = dict.fromkeys((*map(string_literal, places), *map(file_literal, places)))
        connection.execute(f"SET GLOBAL {setting} = {_list(both)}")


def _unpacked(connection: duckdb.DuckDBPyConnection, source: str, described: Any, rows: int) -> int:
    """Return about how many bytes the columns of a file take as a table; text that is kept once is looked at once."""
    sized = {"VARCHAR": "strlen({})", "BLOB": "octet_length({})"}
    texts = [sized[str(entry[1])].format(quote(entry[0])) for entry in described if str(entry[1]) in sized]
    fixed = 8 * rows * len(described)
    if not texts or fixed > TABLE_BYTES:
        return fixed
    sums = " + ".join(f"coalesce(sum({text}), 0)" for text in texts)
    ((held,),) = connection.execute(f"SELECT {sums} FROM {source}").fetchall()
    return fixed + int(held)


def _is_parquet(path: Path) -> bool:
    kind = kind_of(path)
    return kind is not None and kind.format is Format.PARQUET


def _source(found: FoundFile) -> str:
    files = _list(file_literal(path.resolve()) for path in found.paths)
    parted = ", hive_partitioning = true" if found.root is not None else ""
    return f"read_parquet({files}, union_by_name = {str(len(found.paths) > 1).lower()}{parted})"


def _list(literals: Iterable[str]) -> str:
    return "[" + ", ".join(literals) + "]"
