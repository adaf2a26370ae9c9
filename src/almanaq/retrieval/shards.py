"""An index made in shards by many tasks: lengths are counted first, then each shard is written as one segment.

A table belongs to the shard that the hash of its id names. Every segment is measured against the same mean lengths, and
document frequencies are summed over segments when a question is asked: its scores are those of one index. A task writes
under a temporary name and gives the segment its own when it is whole; what a killed task left is no segment, and what a
repeated one writes is the same. Only the manifest, written last, makes segments count.
"""

from __future__ import annotations

import hashlib
import shutil
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from almanaq.corpus.serialize import field_text
from almanaq.corpus.table import Table, TableId
from almanaq.errors import SourceError
from almanaq.models.embedders.vector_store import VectorStore
from almanaq.retrieval.manifest import NamedSegment, check_folder, write_manifest
from almanaq.retrieval.segments import SegmentWriter
from almanaq.retrieval.stored import Recipe, StoredIndex, open_index
from almanaq.text.index_terms import Analyzer

TEMPORARY = ".writing-"


@dataclass(frozen=True, slots=True)
class Lengths:
    """What one task counted: per field the sum of the lengths, and the tables that have the field."""

    sums: Mapping[str, tuple[int, int]]
    tables: int = 0

    def __add__(self, other: Lengths) -> Lengths:
        names = {**self.sums, **other.sums}
        pairs = {n: (self.sums.get(n, (0, 0)), other.sums.get(n, (0, 0))) for n in names}
        return Lengths({n: (a[0] + b[0], a[1] + b[1]) for n, (a, b) in pairs.items()}, self.tables + other.tables)

    def means(self) -> dict[str, float]:
        """Return the mean length of each field over the tables that have it."""
        return {name: total / having if having else 1.0 for name, (total, having) in self.sums.items()}


@dataclass(frozen=True, slots=True)
class Shard:
    """A segment that a task has written, and what the manifest has to say of it."""

    number: int
    name: str
    sums: str
    tables: int
    databases: tuple[str, ...]


def shard_of(table: TableId, shards: int) -> int:
    """Return the number of the shard that a table belongs to."""
    key = f"{table.database}\0{table.table}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "little") % shards


def count_lengths(tables: Iterable[Table], recipe: Recipe) -> Lengths:
    """Count the words of tables, field by field."""
    analyzer = Analyzer(recipe.language)
    sums = {str(name): [0, 0] for name in recipe.fields}
    number = 0
    for table in tables:
        number += 1
        for name in recipe.fields:
            found = len(analyzer.terms(field_text(table, name)))
            sums[str(name)][0] += found
            sums[str(name)][1] += found > 0
    return Lengths({name: (total, having) for name, (total, having) in sums.items()}, number)


def write_shard(
    tables: Iterable[Table],
    number: int,
    folder: Path,
    build: str,
    recipe: Recipe,
    means: Mapping[str, float],
    store: VectorStore | None = None,
) -> Shard | None:
    """Write the tables of one shard as a segment of a build; None where there are none.

    Args:
        store: gives the vectors of tables, where the recipe names an embedder.

    Raises:
        SourceError: a table's id is repeated.
    """
    writer = SegmentWriter(recipe.fields, recipe.options, means, store, recipe.vectors)
    seen: set[TableId] = set()
    for table in sorted(tables, key=lambda table: (table.id.database, table.id.table)):
        if table.id in seen:
            raise SourceError(f"the corpus has the table {table.id} twice")
        seen.add(table.id)
        writer.add(table)
    if not seen:
        return None
    name = f"segment-{hashlib.blake2b(f'{build}/{number}'.encode(), digest_size=6).hexdigest()}"
    fresh = folder / f"{TEMPORARY}{name}-{uuid.uuid4().hex[:8]}"
    try:
        _, sums = writer.write(fresh)
        try:
            fresh.rename(folder / name)
        except OSError:
            if not (folder / name).is_dir():
                raise
            shutil.rmtree(fresh)  # the task was run twice: the same bytes are there
    except OSError as error:
        shutil.rmtree(fresh, ignore_errors=True)
        raise SourceError(f"cannot write the shard {number} of the index {folder}: {error}") from error
    return Shard(number, name, sums, len(seen), tuple(sorted({table.database for table in seen})))


def commit(folder: Path, shards: Sequence[Shard], recipe: Recipe, means: Mapping[str, float]) -> StoredIndex:
    """Make the segments of a build the index, in place of what the folder held; remove what is none of it."""
    if not shards:
        raise SourceError("the corpus holds no table")
    ordered = sorted(shards, key=lambda shard: shard.number)
    named = [NamedSegment(shard.name, shard.sums) for shard in ordered]
    several = len({database for shard in ordered for database in shard.databases}) > 1
    write_manifest(folder, recipe.told(), several, means, named, [np.zeros(0, np.int64) for _ in named])
    for left in folder.glob(f"{TEMPORARY}*"):
        shutil.rmtree(left, ignore_errors=True)
    return open_index(folder)


def check_shards(folder: Path, shards: int) -> None:
    """Refuse a folder that holds something else, and a number of shards that makes no sense."""
    if not 1 <= shards <= 4096:
        raise SourceError(f"--shards takes 1 to 4096, not {shards}")
    for left in folder.glob(f"{TEMPORARY}*") if folder.is_dir() else ():
        shutil.rmtree(left, ignore_errors=True)
    check_folder(folder)
