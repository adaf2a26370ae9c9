"""An index of tables that lives on disk: built once, opened in milliseconds, changed by what changed.

A folder holds segments and `manifest.json`, which names those that count and which of their tables are dead. A
change writes a new segment and then, in one step, a new manifest: a crash at any point leaves the old index whole.
Lengths are measured against the means of the first build; an update that touches much builds anew.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from almanaq.corpus.serialize import Field, parse_fields
from almanaq.corpus.table import Corpus, Table, TableId, distinct
from almanaq.errors import SourceError, UsageError
from almanaq.models.embedders.vector_store import VectorStore
from almanaq.retrieval.bm25 import BM25Options
from almanaq.retrieval.manifest import (
    NamedSegment,
    check_folder,
    damaged,
    read_manifest,
    segment_name,
    tidy,
    write_manifest,
)
from almanaq.retrieval.precision import Precision
from almanaq.retrieval.protocols import Hit, Ranking
from almanaq.retrieval.pruning import Term, best_tables
from almanaq.retrieval.ranking import check_k
from almanaq.retrieval.segments import Named, Segment, SegmentWriter, count_terms, digest, open_segment
from almanaq.retrieval.writing import alone
from almanaq.text.index_terms import Analyzer

_MOST_SEGMENTS = 16
_MUCH = 0.25  # share of changed tables from which building anew is no dearer than keeping the dead

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Change:
    """What an update did, in tables."""

    added: int = 0
    changed: int = 0
    deleted: int = 0
    kept: int = 0
    rebuilt: bool = False


@dataclass(frozen=True, slots=True)
class Recipe:
    """How an index is made; it stays so until the index is built anew.

    Attributes:
        language: the words are stemmed by its rules; None: kept whole.
        embedder: whose vectors the index holds; "" where it holds none.
        vectors: in what they are kept.
    """

    fields: tuple[Field, ...]
    language: str | None = "english"
    embedder: str = ""
    vectors: Precision = Precision.FLOAT16

    @property
    def options(self) -> BM25Options:
        """The options of its scores."""
        return BM25Options(language=self.language)

    def told(self) -> dict[str, Any]:
        """Return it as a manifest holds it."""
        settings = {"fields": list(map(str, self.fields)), "language": self.language, "embedder": self.embedder}
        return settings | ({"vectors": str(self.vectors)} if self.vectors is not Precision.FLOAT16 else {})

    @classmethod
    def read(cls, told: Mapping[str, Any]) -> Recipe:
        """Return what a manifest holds. Raises ValueError, KeyError, TypeError or UsageError where that is none."""
        if not isinstance(told["embedder"], str):
            raise ValueError("its embedder has no name")
        precision = Precision(told.get("vectors", Precision.FLOAT16))
        return cls(parse_fields(told["fields"]), told["language"], told["embedder"], precision)


@dataclass(frozen=True)
class StoredIndex:
    """An opened index.

    Attributes:
        recipe: what was indexed of each table, and how.
        several: its tables are of several databases.
        dead: per segment, the tables that count no more.
        named_segments: as the manifest names them.
    """

    folder: Path
    recipe: Recipe
    several: bool
    means: Mapping[str, float]
    segments: Sequence[Segment]
    dead: Sequence[NDArray[np.int64]]
    analyzer: Analyzer
    named_segments: Sequence[NamedSegment]

    def __len__(self) -> int:
        return sum(len(s) - len(d) for s, d in zip(self.segments, self.dead, strict=True))

    def search(self, questions: Sequence[str], k: int) -> list[Ranking]:
        """Return for each question the k best of the tables that share a term with it."""
        return [tuple(Hit(named.id, score) for named, score in self.best(question, k)) for question in questions]

    def best(self, question: str, k: int) -> list[tuple[Named, float]]:
        """Return the k best tables with what is shown of them, best first."""
        check_k(k)
        places, scores = best_tables(self.terms(question), self.size, k, self.gone())
        return [(self.named(int(place)), float(score)) for place, score in zip(places, scores, strict=True)]

    @property
    def size(self) -> int:
        """How many tables have a place in it, dead ones included."""
        return sum(map(len, self.segments))

    def bases(self) -> NDArray[np.int64]:
        """Return the place of each segment's first table."""
        return np.cumsum([0, *map(len, self.segments)])[:-1]

    def gone(self) -> NDArray[np.int64]:
        """Return the places of the dead."""
        return np.concatenate([base + dead for base, dead in zip(self.bases(), self.dead, strict=True)])

    def named(self, place: int) -> Named:
        """Return what is shown of the table at a place. Raises SourceError where that is damaged."""
        segment, number = self._lies(place)
        try:
            return replace(segment.named(number), place=place)
        except (ValueError, LookupError, TypeError) as error:
            raise damaged(self.folder, error) from error

    def table(self, place: int) -> Table:
        """Return the table at a place, as far as it was indexed. Raises SourceError where its text is damaged."""
        segment, number = self._lies(place)
        try:
            return segment.table(number)
        except (ValueError, LookupError, TypeError) as error:
            raise damaged(self.folder, error) from error

    def _lies(self, place: int) -> tuple[Segment, int]:
        """Return the segment of a place, and the table's number there."""
        bases = self.bases()
        number = int(np.searchsorted(bases, place, side="right")) - 1
        return self.segments[number], place - int(bases[number])

    def terms(self, question: str) -> list[Term]:
        """Return the terms of a question that tables hold, with their postings."""
        made = []
        for term, times in count_terms(question, self.analyzer).items():
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
    """Index a corpus into a folder, in place of the index that it holds.

    Args:
        language: the words are stemmed by its rules; None keeps them whole.
        store: gives a vector for each table; None: words only.
        vectors: in what they are kept.

    Raises:
        UsageError: an unknown field or language.
        SourceError: the corpus is empty or repeats an id, the folder holds something else or cannot be written.
        ModelError: the embedder fails.
    """
    check_folder(folder)
    recipe = Recipe(parse_fields(fields), language, store.embedder.name if store else "", vectors)
    with alone(folder):
        return _build(corpus, folder, recipe, progress, store)


def _build(
    corpus: Corpus, folder: Path, recipe: Recipe, progress: Progress | None, store: VectorStore | None
) -> StoredIndex:
    writer = SegmentWriter(recipe.fields, recipe.options, store=store, precision=recipe.vectors)
    databases = set[str]()
    for number, table in enumerate(distinct(corpus), 1):
        writer.add(table)
        databases.add(table.id.database)
        if progress is not None:
            progress(number, len(corpus))
    if not len(writer):
        raise SourceError("the corpus holds no table")
    named, means = _write(writer, folder)
    write_manifest(folder, recipe.told(), len(databases) > 1, means, [named], [np.zeros(0, np.int64)])
    return open_index(folder)


def update_index(
    corpus: Corpus, folder: Path, progress: Progress | None = None, *, store: VectorStore | None = None
) -> tuple[StoredIndex, Change]:
    """Bring an index to the state of a corpus; only tables whose content changed are indexed, and embedded.

    Raises:
        SourceError: the folder holds no index, another process is writing it, or as build_index does.
        UsageError: `store` is not of the embedder whose vectors the index holds.
    """
    open_index(folder)  # a folder without an index is not touched
    with alone(folder):
        return _update(corpus, folder, progress, store)


def _update(
    corpus: Corpus, folder: Path, progress: Progress | None, store: VectorStore | None
) -> tuple[StoredIndex, Change]:
    index = open_index(folder)
    recipe = index.recipe
    if recipe.embedder != (store.embedder.name if store else ""):
        raise UsageError(
            f"the index {folder} holds vectors of {recipe.embedder or 'no embedder'!r}: update it with that"
        )
    known = _known(index)
    writer = SegmentWriter(recipe.fields, recipe.options, index.means, store, recipe.vectors)
    added, seen = 0, set[TableId]()
    stale: list[tuple[int, int]] = []
    for number, table in enumerate(distinct(corpus), 1):
        seen.add(table.id)
        before = known.get(table.id)
        if before is None or before[2] != digest(table, recipe.fields):
            writer.add(table)
            added += before is None
            stale.extend([before[:2]] if before else [])
        if progress is not None:
            progress(number, len(corpus))
    if not seen:
        raise SourceError("the corpus holds no table")
    gone = [place[:2] for table, place in known.items() if table not in seen]
    change = Change(added, len(stale), len(gone), len(known) - len(stale) - len(gone))
    named = list(index.named_segments)
    if len(writer) + len(gone) == 0:
        tidy(folder, [each.name for each in named])
        return index, change
    if len(writer) + len(gone) > _MUCH * len(known) or len(index.segments) >= _MOST_SEGMENTS:
        return _build(corpus, folder, recipe, progress, store), replace(change, rebuilt=True)
    dead = [
        np.union1d(old, [place for segment, place in (*stale, *gone) if segment == number]).astype(np.int64)
        for number, old in enumerate(index.dead)
    ]
    if len(writer):
        named.append(_write(writer, folder)[0])
        dead.append(np.zeros(0, np.int64))
    several = len({table.database for table in seen}) > 1
    write_manifest(folder, recipe.told(), several, index.means, named, dead)
    return open_index(folder), change


def open_index(folder: Path) -> StoredIndex:
    """Open an index.

    Raises:
        SourceError: there is none, it is damaged, or another version of almanaq wrote it.
    """
    manifest = read_manifest(folder)
    while True:
        try:
            return _opened(folder, manifest)
        except (OSError, ValueError, KeyError, TypeError, OverflowError, AttributeError) as error:
            # An update that ended meanwhile removed what the manifest before it named.
            before, manifest = manifest, read_manifest(folder)
            if manifest == before:
                raise damaged(folder, error) from error


def _opened(folder: Path, told: Mapping[str, Any]) -> StoredIndex:
    recipe, means = Recipe.read(told), dict(told["means"])
    segments = [
        open_segment(folder / segment_name(entry["name"]), str(entry["sums"]), recipe.vectors)
        for entry in told["segments"]
    ]
    dead = [_dead(entry["dead"], len(segment)) for entry, segment in zip(told["segments"], segments, strict=True)]
    several = bool(told["several"])
    if recipe.embedder and any(segment.vectors is None for segment in segments):
        raise ValueError("a segment lacks its vectors")
    named = [NamedSegment(entry["name"], entry["sums"]) for entry in told["segments"]]
    return StoredIndex(folder, recipe, several, means, segments, dead, Analyzer(recipe.language), named)


def _dead(told: list[int], size: int) -> NDArray[np.int64]:
    """Return the numbers of a segment's dead tables. Raises ValueError where they are none."""
    dead = np.array(told, dtype=np.int64 if told == [] else None)
    if dead.dtype != np.int64 or (len(dead) and not 0 <= dead.min() <= dead.max() < size):
        raise ValueError("it names dead tables that it does not hold")
    return dead


def _known(index: StoredIndex) -> dict[TableId, tuple[int, int, bytes]]:
    """Return where each live table lies, and the hash of its content."""
    known = {}
    for number, (segment, dead) in enumerate(zip(index.segments, index.dead, strict=True)):
        gone, digests = set(dead.tolist()), segment.digests.all()
        for place, table in enumerate(segment.ids()):
            if place not in gone:
                known[table] = (number, place, digests[place].tobytes())
    return known


def _write(writer: SegmentWriter, folder: Path) -> tuple[NamedSegment, Mapping[str, float]]:
    name = f"segment-{uuid.uuid4().hex[:12]}"
    try:
        means, sums = writer.write(folder / name)
        return NamedSegment(name, sums), means
    except OSError as error:
        shutil.rmtree(folder / name, ignore_errors=True)
        raise SourceError(f"cannot write the index {folder}: {error}") from error
