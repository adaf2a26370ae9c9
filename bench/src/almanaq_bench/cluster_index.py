"""`almanaq index --spark`: the tasks of a Spark cluster count and write the shards, this process commits them.

The workers need almanaq in their Python, and the corpus and the index in folders that all processes share. Nothing
here asks a model, and embedders that need a key are refused: no key is on the cluster. Two jobs run over the corpus,
one row of its Parquet files a table.

Lengths are counted first, then each shard is written as one segment. A table belongs to the shard that the hash of its
id names. All segments use the same mean lengths, and document frequencies are summed over segments when a question is
asked, so scores equal those of one index. A task writes under a temporary name and renames the complete segment; a
killed task leaves no segment, and a repeated one writes the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from almanaq.corpus.table import Table, TableId, field_text, parse_fields
from almanaq.engines.spark.driver import Remote, is_fault, read_spark_url
from almanaq.errors import SourceError, UsageError, first_line
from almanaq.models.embedders.vector_store import VectorStore
from almanaq.models.model_names import open_embedder
from almanaq.retrieval.index_files import SegmentEntry, check_folder, lock_folder, write_manifest
from almanaq.retrieval.segments import Precision, SegmentWriter
from almanaq.retrieval.stored import IndexRecipe, StoredIndex, open_index
from almanaq.table_search import OWN_EMBEDDERS
from almanaq.text.index_terms import Analyzer
from almanaq_bench.corpus_folder import ParquetCorpus, parse_table

_TOLD = "told string"
Batches = Iterator[pa.RecordBatch]


def index_on_cluster(
    corpus: object,
    folder: Path,
    fields: str,
    *,
    url: str,
    shards: int,
    language: str | None = "english",
    embedder: str = "",
    vectors: Precision = Precision.FLOAT16,
    say: Callable[[str], None] = lambda _: None,
) -> StoredIndex:
    """Index a corpus of Parquet files by the tasks of a cluster, in so many shards.

    Args:
        embedder: one of OWN_EMBEDDERS, which the tasks open in their Python; "": words only.
        vectors: in what its vectors are kept.

    Raises:
        UsageError: the corpus is no dataset of Parquet files, or the embedder needs a key.
        SourceError: the cluster, or a task of it, fails; the index is then what it was.
    """
    if not isinstance(corpus, ParquetCorpus) or corpus.split is not None:
        raise UsageError("--spark needs a dataset folder of Parquet files that the workers can read")
    folder = folder.absolute()
    check_shards(folder, shards)
    if embedder not in ("", *OWN_EMBEDDERS):
        known = ", ".join(OWN_EMBEDDERS)
        raise UsageError(
            f"--embedder {embedder} cannot be combined with --spark, whose workers have no keys: choose one of {known}"
        )
    name = open_embedder(embedder).name if embedder else ""
    recipe = IndexRecipe(parse_fields(fields), language, name, vectors)
    remote = Remote(read_spark_url(url))
    files = [str(file.absolute()) for file in corpus.files]
    try:
        with lock_folder(folder):
            lengths = _count(remote, files, recipe)
            say(f"{lengths.tables} tables counted")
            written = _write(remote, files, folder, recipe, lengths.means(), shards, embedder)
            found = sum(shard.tables for shard in written)
            if found != lengths.tables:
                raise SourceError(f"the corpus changed: {lengths.tables} tables were counted, {found} written")
            return commit_shards(folder, written, recipe, lengths.means())
    except Exception as error:
        if not is_fault(error):
            raise
        message = read_spark_url(url).hide(first_line(error))
        raise SourceError(f"the cluster did not write the index: {message[:400]}") from error
    finally:
        remote.close()


def _map_rows(
    remote: Remote,
    files: list[str],
    work: Callable[[Batches], Batches],
    *,
    parts: int = 0,
    number: Callable[[Batches], Batches] | None = None,
) -> list[str]:
    """Let the workers run a function over the rows of Parquet files; give the one column of what it gives.

    Args:
        parts: how many tasks share the rows, each with those of its own numbers; 0: one for each part of a file.
        number: adds the column `_shard`, by which rows are shared out.
    """
    frame = remote.session.read.parquet(*files)
    if number is not None:
        from pyspark.sql.types import IntegerType

        frame = frame.mapInArrow(number, frame.schema.add("_shard", IntegerType()))
        frame = frame.repartition(parts, "_shard")
    return list(frame.mapInArrow(work, _TOLD).toArrow().column(0).to_pylist())


def _count(remote: Remote, files: list[str], recipe: IndexRecipe) -> Lengths:
    settings = recipe.to_record()

    def count(batches: Batches) -> Batches:
        found = count_lengths(
            (table for batch in batches for table in _tables(batch)), IndexRecipe.from_record(settings)
        )
        yield _row(asdict(found))

    total = Lengths({})
    for line in _map_rows(remote, files, count):
        each = json.loads(line)
        total += Lengths({name: tuple(pair) for name, pair in each["sums"].items()}, each["tables"])
    return total


def _write(
    remote: Remote,
    files: list[str],
    folder: Path,
    recipe: IndexRecipe,
    means: Mapping[str, float],
    shards: int,
    embedder: str,
) -> list[Shard]:
    settings, where, build = recipe.to_record(), str(folder), uuid.uuid4().hex

    def write(batches: Batches) -> Batches:
        held: dict[int, list[Any]] = {}
        for batch in batches:
            for table in _tables(batch):
                held.setdefault(shard_of(table.id, shards), []).append(table)
        store = VectorStore(None, open_embedder(embedder)) if embedder else None
        for number, tables in held.items():
            made = write_shard(tables, number, Path(where), build, IndexRecipe.from_record(settings), means, store)
            if made is not None:
                yield _row(asdict(made))

    numbered = _numbers(shards)
    lines = _map_rows(remote, files, write, parts=shards, number=numbered)
    return [Shard(**{**each, "databases": tuple(each["databases"])}) for each in map(json.loads, lines)]


def _numbers(shards: int) -> Callable[[Batches], Batches]:
    """Return what adds the number of its shard to each row."""

    def number(batches: Batches) -> Batches:
        for batch in batches:
            columns = (batch.column("database_id").to_pylist(), batch.column("table_id").to_pylist())
            found = [shard_of(TableId(str(d), str(t)), shards) for d, t in zip(*columns, strict=True)]
            yield batch.append_column("_shard", pa.array(found, pa.int32()))

    return number


def _tables(batch: pa.RecordBatch) -> Iterator[Any]:
    for row in batch.to_pylist():
        row.pop("_shard", None)
        yield parse_table(row, Path("corpus.parquet"))


def _row(value: Mapping[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([json.dumps(value)])], names=["told"])


TEMPORARY = ".writing-"


@dataclass(frozen=True, slots=True)
class Lengths:
    """Counts of one task: per field the total length, and the number of tables with the field."""

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
    """A segment written by a task, and what the manifest records of it."""

    number: int
    name: str
    sums: str
    tables: int
    databases: tuple[str, ...]


def shard_of(table: TableId, shards: int) -> int:
    """Return the number of a table's shard."""
    key = f"{table.database}\0{table.table}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "little") % shards


def count_lengths(tables: Iterable[Table], recipe: IndexRecipe) -> Lengths:
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
    recipe: IndexRecipe,
    means: Mapping[str, float],
    store: VectorStore | None = None,
) -> Shard | None:
    """Write the tables of one shard as a segment; None for an empty shard.

    Args:
        store: embeds tables, where the recipe names an embedder.

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
            shutil.rmtree(fresh)  # the task ran twice: the same bytes are already there
    except OSError as error:
        shutil.rmtree(fresh, ignore_errors=True)
        raise SourceError(f"cannot write the shard {number} of the index {folder}: {error}") from error
    return Shard(number, name, sums, len(seen), tuple(sorted({table.database for table in seen})))


def commit_shards(
    folder: Path, shards: Sequence[Shard], recipe: IndexRecipe, means: Mapping[str, float]
) -> StoredIndex:
    """Make the shards of a build the index of the folder, and remove leftovers."""
    if not shards:
        raise SourceError("the corpus holds no table")
    ordered = sorted(shards, key=lambda shard: shard.number)
    named = [SegmentEntry(shard.name, shard.sums) for shard in ordered]
    several = len({database for shard in ordered for database in shard.databases}) > 1
    write_manifest(folder, recipe.to_record(), several, means, named)
    for left in folder.glob(f"{TEMPORARY}*"):
        shutil.rmtree(left, ignore_errors=True)
    return open_index(folder)


def check_shards(folder: Path, shards: int) -> None:
    """Refuse a folder that holds anything but an index, and an invalid number of shards."""
    if not 1 <= shards <= 4096:
        raise SourceError(f"--shards takes 1 to 4096, not {shards}")
    for left in folder.glob(f"{TEMPORARY}*") if folder.is_dir() else ():
        shutil.rmtree(left, ignore_errors=True)
    check_folder(folder)
