"""Which files hold tables, by their endings, and what they are compressed with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path


class Format(Enum):
    """How the rows of a file are written."""

    DELIMITED = "delimited text"
    JSON = "JSON"
    PARQUET = "Parquet"
    SHEETS = "a workbook"


ENDINGS = {
    ".csv": Format.DELIMITED,
    ".tsv": Format.DELIMITED,
    ".tab": Format.DELIMITED,
    ".json": Format.JSON,
    ".jsonl": Format.JSON,
    ".ndjson": Format.JSON,
    ".parquet": Format.PARQUET,
    ".xlsx": Format.SHEETS,
    ".xlsm": Format.SHEETS,
    ".xls": Format.SHEETS,
    ".ods": Format.SHEETS,
}
UNREAD = {
    ".duckdb": "a DuckDB file is a source of its own: name it",
    ".ddb": "a DuckDB file is a source of its own: name it",
    **dict.fromkeys((".zip", ".7z", ".rar", ".tar", ".tgz", ".xz"), "unpack it first"),
    **dict.fromkeys(
        (".avro", ".arrow", ".feather", ".orc", ".geojson", ".xlsb", ".dbf", ".mdb", ".accdb", ".sav", ".dta", ".rds"),
        "files of this kind cannot be read: write it as CSV, JSON or Parquet",
    ),
}
"""Files of data that are none of these, and what to do with them."""
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
KNOWN = ", ".join((*ENDINGS, *(f".csv{ending}" for ending in COMPRESSIONS)))


@dataclass(frozen=True, slots=True)
class Kind:
    """What a file's name says of it.

    Attributes:
        stem: the name without its endings.
        compression: pyarrow's name of it; "" for none.
    """

    stem: str
    ending: str
    format: Format
    compression: str = ""


def kind_of(path: Path) -> Kind | None:
    """Return the kind of a file by its name; None where it names no format of tables."""
    name, compression = path.name, COMPRESSIONS.get(path.suffix.lower(), "")
    if compression:
        name = name[: -len(path.suffix)]
    inner = Path(name)
    format_ = ENDINGS.get(inner.suffix.lower())
    if format_ is None or (compression and format_ not in (Format.DELIMITED, Format.JSON)):
        return None
    return Kind(inner.stem, inner.suffix.lower(), format_, compression)


def unread_advice(path: Path) -> str:
    """Say what to do with a file of data that cannot be read, by its name; "" where it is none."""
    return UNREAD.get(path.suffix.lower(), "")


def total_bytes(paths: Sequence[Path]) -> int:
    """Return the size of some files together."""
    return sum(path.stat().st_size for path in paths)
