"""`almanaq index --spark`: the tasks of a Spark cluster count and write the shards, this process commits them.

The workers need almanaq in their Python, and the corpus and the index in folders that all processes share. Nothing
here asks a model, and embedders that need a key are refused: no key is on the cluster. Two jobs run over the corpus,
one row of its Parquet files a table.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from almanaq.corpus.dataset import ParquetCorpus, parse_table
from almanaq.corpus.table import TableId, parse_fields
from almanaq.engines.spark.driver import Remote, is_fault, read_spark_url
from almanaq.errors import SourceError, UsageError, first_line
from almanaq.models.embedders.vector_store import VectorStore
from almanaq.models.model_names import open_embedder
from almanaq.retrieval.index_encoding import Precision
from almanaq.retrieval.index_files import lock_folder
from almanaq.retrieval.stored import (
    IndexRecipe,
    Lengths,
    Shard,
    StoredIndex,
    check_shards,
    commit_shards,
    count_lengths,
    shard_of,
    write_shard,
)
from almanaq.table_search import OWN_EMBEDDERS

_SCHEMA = "record string"
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
    """Index a corpus of Parquet files by the tasks of a cluster; where a task fails, the index is what it was."""
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


def _count(remote: Remote, files: list[str], recipe: IndexRecipe) -> Lengths:
    settings = recipe.to_record()

    def count(batches: Batches) -> Batches:
        found = count_lengths(
            (table for batch in batches for table in _tables(batch)), IndexRecipe.from_record(settings)
        )
        yield _row(asdict(found))

    total = Lengths({})
    for line in remote.map_rows(files, count, _SCHEMA):
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

    def number(batches: Batches) -> Batches:
        for batch in batches:
            columns = (batch.column("database_id").to_pylist(), batch.column("table_id").to_pylist())
            found = [shard_of(TableId(str(d), str(t)), shards) for d, t in zip(*columns, strict=True)]
            yield batch.append_column("_shard", pa.array(found, pa.int32()))

    lines = remote.map_rows(files, write, _SCHEMA, parts=shards, number=number)
    return [Shard(**{**each, "databases": tuple(each["databases"])}) for each in map(json.loads, lines)]


def _tables(batch: pa.RecordBatch) -> Iterator[Any]:
    for row in batch.to_pylist():
        row.pop("_shard", None)
        yield parse_table(row, Path("corpus.parquet"))


def _row(value: Mapping[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([json.dumps(value)])], names=["record"])
