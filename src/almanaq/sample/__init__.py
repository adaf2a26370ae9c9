"""The bundled sample: an invented restaurants database whose reviews express known attributes (docs/sample.md)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from almanaq.errors import SourceError, UsageError, suggest

__all__ = ["SAMPLES", "Sample", "load", "path", "schema_path"]

SAMPLES = ("restaurants",)
_DATA = Path(__file__).parent / "data"


@dataclass(frozen=True, slots=True)
class Sample:
    """A bundled database in memory.

    Attributes:
        tables: a pyarrow.Table per relation name.
        schema: the content of its schema file, by relation name: description, key, columns with their kinds.

    >>> sample = load("restaurants")
    >>> sorted(sample.schema), list(sample.tables)
    (['restaurants'], ['restaurants'])
    """

    name: str
    tables: Mapping[str, Any]
    schema: Mapping[str, Any]


def path(name: str) -> Path:
    """Return the Parquet file of a sample; its name without the suffix is the relation's.

    >>> path("restaurants").name
    'restaurants.parquet'
    >>> path("restaurant")
    Traceback (most recent call last):
    almanaq.errors.UsageError: no bundled sample 'restaurant'; did you mean 'restaurants'?

    Raises:
        UsageError: there is no such sample.
        SourceError: the file is missing from this installation.
    """
    return _file(name, ".parquet")


def schema_path(name: str) -> Path:
    """Return the schema file (`NAME.almanaq.toml`) of a sample. Raises as `path` does."""
    return _file(name, ".almanaq.toml")


def examples_path(name: str) -> Path:
    """Return the file of questions with their SUQL of a sample. Raises as `path` does."""
    return _file(name, ".examples.toml")


def load(name: str) -> Sample:
    """Return a sample's tables and schema. Raises as `path` does.

    >>> restaurants = load("restaurants").tables["restaurants"]
    >>> restaurants.num_rows, "reviews" in restaurants.column_names
    (339, True)
    """
    import pyarrow.parquet as pq

    table = pq.read_table(path(name))
    schema = tomllib.loads(schema_path(name).read_text(encoding="utf-8"))
    return Sample(name, {name: table}, schema)


@cache
def read_toml(name: str) -> dict[str, Any]:
    """Return a data file of this package, by its name, as a dictionary."""
    return tomllib.loads((Path(__file__).parent / name).read_text(encoding="utf-8"))


def _file(name: str, suffix: str) -> Path:
    if name not in SAMPLES:
        raise UsageError(f"no bundled sample {name!r}{suggest(name, SAMPLES)}")
    file = _DATA / f"{name}{suffix}"
    if not file.is_file():
        raise SourceError(f"{file} is missing from this installation of almanaq: reinstall it")
    return file
