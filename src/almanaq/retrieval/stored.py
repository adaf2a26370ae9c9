"""An index of tables on disk: built once, opened in milliseconds, updated by what changed.

A folder holds segments and `manifest.json`, which names the valid segments and their dead tables. A change writes a new
segment and then, in one step, a new manifest: a crash at any point leaves the old index intact. Lengths are measured
against the means of the first build; an update that touches much rebuilds.
"""

from __future__ import annotations

import shutil
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from almanaq.corpus.table import Corpus, Field, Table, TableId, check_distinct, parse_fields
from almanaq.errors import SourceError, UsageError
from almanaq.models.embedders.vector_store import VectorStore
from almanaq.retrieval.bm25 import BM25Options, Term, best_tables
from almanaq.retrieval.index_files import (
    SegmentEntry,
    check_folder,
    check_segment_name,
    damaged_error,
    lock_folder,
    read_manifest,
    remove_leftovers,
    write_manifest,
)
from almanaq.retrieval.protocols import Hit, Ranking, check_k
from almanaq.retrieval.segments import Precision, Segment, SegmentWriter, TableEntry, digest, open_segment, term_hash
from almanaq.text.index_terms import Analyzer

_MAX_SEGMENTS = 16
_REBUILD_SHARE = 0.25  # share of changed tables above which a rebuild is cheaper than keeping dead tables

Progress = Callable[[int, int], None]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class IndexChange:
    """What an update did, as numbers of tables."""

    added: int = 0
    changed: int = 0
    deleted: int = 0
    kept: int = 0
    rebuilt: bool = False


@dataclass(frozen=True, slots=True)
class IndexRecipe:
    """How an index is built; fixed until it is rebuilt."""

    fields: tuple[Field, ...]
    language: str | None = "english"  # of the stemmer; None: no stemming
    embedder: str = ""  # its name; "" for an index without vectors
    vectors: Precision = Precision.FLOAT16

    @property
    def options(self) -> BM25Options:
        return BM25Options(language=self.language)

    def to_record(self) -> dict[str, Any]:
        settings = {"fields": list(map(str, self.fields)), "language": self.language, "embedder": self.embedder}
        return settings | ({"vectors": str(self.vectors)} if self.vectors is not Precision.FLOAT16 else {})

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> IndexRecipe:
        """Return the recipe in a manifest. Raises ValueError, KeyError, TypeError or UsageError for an invalid one."""
        if not isinstance(record["embedder"], str):
            raise ValueError("its embedder has no name")
        precision = Precision(record.get("vectors", Precision.FLOAT16))
        return cls(parse_fields(record["fields"]), record["language"], record["embedder"], precision)


@dataclass(frozen=True)
class StoredIndex:
    """An opened index. A table's position counts through the segments, dead tables included."""

    folder: Path
    recipe: IndexRecipe
    several: bool  # the tables belong to several databases
    means: Mapping[str, float]
    segments: Sequence[Segment]
    named: Sequence[SegmentEntry]  # the segments in the manifest
    analyzer: Analyzer

    def __len__(self) -> int:
        return self.size - len(self.dead_places())

    def search(self, questions: Sequence[str], k: int) -> list[Ranking]:
        return [tuple(Hit(named.id, score) for named, score in self.best(question, k)) for question in questions]

    def best(self, question: str, k: int) -> list[tuple[TableEntry, float]]:
        """Return the k best tables with their scores, best first."""
        check_k(k)
        places, scores = best_tables(self.terms(question), self.size, k, self.dead_places())
        return [(self.entry(int(place)), float(score)) for place, score in zip(places, scores, strict=True)]

    @property
    def size(self) -> int:
        return sum(map(len, self.segments))

    def bases(self) -> NDArray[np.int64]:
        return np.cumsum([0, *map(len, self.segments)])[:-1]

    def dead_places(self) -> NDArray[np.int64]:
        return np.concatenate([base + each.dead for base, each in zip(self.bases(), self.named, strict=True)])

    def entry(self, place: int) -> TableEntry:
        return replace(self._read(place, Segment.entry), place=place)

    def table(self, place: int) -> Table:
        return self._read(place, Segment.table)

    def _read(self, place: int, read: Callable[[Segment, int], _T]) -> _T:
        bases = self.bases()
        number = int(np.searchsorted(bases, place, side="right")) - 1
        try:
            return read(self.segments[number], place - int(bases[number]))
        except (ValueError, LookupError, TypeError) as error:
            raise damaged_error(self.folder, error) from error

    def terms(self, question: str) -> list[Term]:
        made = []
        for term, times in Counter(map(term_hash, self.analyzer.terms(question))).items():
            found = (s.part(term, int(base)) for base, s in zip(self.bases(), self.segments, strict=True))
            parts = [part for part in found if part is not None]
            held = sum(len(part.tables) for part in parts)
            if parts:
                made.append(Term(np.float32(times * np.log1p((self.size - held + 0.5) / (held + 0.5))), parts))
        return made


def build_index(
    corpus: Corpus,
    folder: Path,
    fields: Sequence[str],
    progress: Progress | None = None,
    *,
    language: str | None = "english",
    store: VectorStore | None = None,
    vectors: Precision = Precision.FLOAT16,
) -> StoredIndex:
    """Index a corpus into a folder, replacing its index, with vectors where `store` embeds tables.

    Raises SourceError: the corpus is empty or repeats an id, the folder holds something else or cannot be written.
    """
    check_folder(folder)
    recipe = IndexRecipe(parse_fields(fields), language, store.embedder.name if store else "", vectors)
    with lock_folder(folder):
        return _build(corpus, folder, recipe, progress, store)


def _build(
    corpus: Corpus, folder: Path, recipe: IndexRecipe, progress: Progress | None, store: VectorStore | None
) -> StoredIndex:
    writer = SegmentWriter(recipe.fields, recipe.options, store=store, precision=recipe.vectors)
    databases = set[str]()
    for number, table in enumerate(check_distinct(corpus), 1):
        writer.add(table)
        databases.add(table.id.database)
        if progress is not None:
            progress(number, len(corpus))
    named, means = _write_segment(writer, folder)
    write_manifest(folder, recipe.to_record(), len(databases) > 1, means, [named])
    return open_index(folder)


def update_index(
    corpus: Corpus, folder: Path, progress: Progress | None = None, *, store: VectorStore | None = None
) -> tuple[StoredIndex, IndexChange]:
    """Update an index to the state of a corpus; only changed tables are indexed and embedded, by its own embedder."""
    open_index(folder)  # raises before a folder without an index is touched
    with lock_folder(folder):
        index = open_index(folder)
        recipe = index.recipe
        if recipe.embedder != (store.embedder.name if store else ""):
            raise UsageError(
                f"the index {folder} holds vectors of {recipe.embedder or 'no embedder'!r}: update it with that"
            )
        known = _list_tables(index)
        writer = SegmentWriter(recipe.fields, recipe.options, index.means, store, recipe.vectors)
        added, seen, emptied = 0, set[TableId](), set[str]()  # `emptied`: columns, as those that are private now
        stale: list[tuple[int, int]] = []
        for number, table in enumerate(check_distinct(corpus), 1):
            seen.add(table.id)
            before = known.get(table.id)
            if before is None or before[2] != digest(table, recipe.fields):
                writer.add(table)
                if before is None:
                    added += 1
                else:
                    stale.append(before[:2])
                    had = _list_filled(index.segments[before[0]].table(before[1]))
                    emptied |= had.intersection(table.header) - _list_filled(table)
            if progress is not None:
                progress(number, len(corpus))
        gone = [place[:2] for table, place in known.items() if table not in seen]
        change = IndexChange(added, len(stale), len(gone), len(known) - len(stale) - len(gone))
        if len(writer) + len(gone) == 0:
            remove_leftovers(folder, [each.name for each in index.named])
            return index, change
        # A segment keeps the tables that it was written with: what has become private would lie in it.
        if emptied or len(writer) + len(gone) > _REBUILD_SHARE * len(known) or len(index.segments) >= _MAX_SEGMENTS:
            return _build(corpus, folder, recipe, progress, store), replace(change, rebuilt=True)
        named = []
        for number, old in enumerate(index.named):
            places = [place for segment, place in (*stale, *gone) if segment == number]
            named.append(replace(old, dead=np.union1d(old.dead, places).astype(np.int64)))
        if len(writer):
            named.append(_write_segment(writer, folder)[0])
        several = len({table.database for table in seen}) > 1
        write_manifest(folder, recipe.to_record(), several, index.means, named)
        return open_index(folder), change


def _list_filled(table: Table) -> set[str]:
    return {name for at, name in enumerate(table.header) if any(row[at] for row in table.rows)}


def open_index(folder: Path) -> StoredIndex:
    """Open an index. Raises SourceError: there is none, it is damaged, or another version of almanaq wrote it."""
    manifest = read_manifest(folder)
    while True:
        try:
            return _open_segments(folder, manifest)
        except (OSError, ValueError, KeyError, TypeError, OverflowError, AttributeError) as error:
            # An update that finished meanwhile has removed segments of the previous manifest.
            before, manifest = manifest, read_manifest(folder)
            if manifest == before:
                raise damaged_error(folder, error) from error


def _open_segments(folder: Path, record: Mapping[str, Any]) -> StoredIndex:
    recipe, means = IndexRecipe.from_record(record), dict(record["means"])
    segments, named = [], []
    for entry in record["segments"]:
        segment = open_segment(folder / check_segment_name(entry["name"]), str(entry["sums"]), recipe.vectors)
        if recipe.embedder and segment.vectors is None:
            raise ValueError("a segment lacks its vectors")
        numbers = np.array(entry["dead"], dtype=np.int64 if entry["dead"] == [] else None)
        if numbers.dtype != np.int64 or (len(numbers) and not 0 <= numbers.min() <= numbers.max() < len(segment)):
            raise ValueError("it names dead tables that it does not hold")
        segments.append(segment)
        named.append(SegmentEntry(entry["name"], entry["sums"], numbers))
    return StoredIndex(folder, recipe, bool(record["several"]), means, segments, named, Analyzer(recipe.language))


def _list_tables(index: StoredIndex) -> dict[TableId, tuple[int, int, bytes]]:
    """Return the segment, number and content hash of each live table."""
    known = {}
    for number, (segment, named) in enumerate(zip(index.segments, index.named, strict=True)):
        gone, digests = set(named.dead.tolist()), segment.digests.all()
        for place, table in enumerate(segment.ids()):
            if place not in gone:
                known[table] = (number, place, digests[place].tobytes())
    return known


def _write_segment(writer: SegmentWriter, folder: Path) -> tuple[SegmentEntry, Mapping[str, float]]:
    name = f"segment-{uuid.uuid4().hex[:12]}"
    try:
        means, sums = writer.write(folder / name)
        return SegmentEntry(name, sums), means
    except OSError as error:
        shutil.rmtree(folder / name, ignore_errors=True)
        raise SourceError(f"cannot write the index {folder}: {error}") from error
