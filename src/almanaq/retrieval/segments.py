"""Segments of an index on disk: postings of some tables as memory-mapped arrays, never changed once written.

Files: `terms.npy` hashes of terms, sorted; `starts.npy`, `tables.npy`, `weights.npy` the postings of each, `sums.npy`
the sums of their weights and of the squares; `names.jsonl` with `offsets.npy` the tables' ids, titles and columns;
`tokens.npy` with `streams.npy` their streams, in which a term's number is its position in `terms.npy`; `digests.npy`
hashes of their contents; `texts.bin` with `blocks.npy` what was indexed of them; `vectors.npy` and `codes.npy` their
vectors and codes, where the index has any (`index_encoding.py`).
"""

from __future__ import annotations

import hashlib
import json
import os
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from almanaq.corpus.table import Field, Table, TableId, field_text
from almanaq.models.embedders.vector_store import VectorStore
from almanaq.models.private_files import open_private
from almanaq.retrieval.bm25 import BM25Options, PostingsWriter, TermPart
from almanaq.retrieval.dense import main_text
from almanaq.retrieval.features import LOWEST_MARK, StreamWriter
from almanaq.retrieval.index_encoding import Precision, TextPacker, unpack_table
from almanaq.retrieval.index_files import CheckedArray, read_sums, write_sums
from almanaq.text.index_terms import Analyzer

DIGEST_BYTES = 16
_RANGES = 10_000
_BLOCK = 4_000_000  # tokens renumbered at once
_ARRAYS: Mapping[str, tuple[type[np.generic], int | None]] = {
    "terms": (np.uint64, None),
    "starts": (np.int64, None),
    "tables": (np.int32, None),
    "weights": (np.float32, None),
    "sums": (np.float32, 2),
    "offsets": (np.int64, None),
    "digests": (np.uint8, DIGEST_BYTES),
    "tokens": (np.int32, None),
    "streams": (np.int64, None),
    "blocks": (np.int64, 2),
}
"""Type of each array, and how many numbers make an item."""
_EMBED_BATCH = 512  # texts embedded at once


@dataclass(frozen=True, slots=True)
class TableEntry:
    """What a ranking shows of a table.

    Attributes:
        place: the table's position in the index on disk that found it; -1 for a corpus in memory.
    """

    id: TableId
    title: str
    section: str
    header: tuple[str, ...]
    place: int = -1


@dataclass(frozen=True)
class Segment:
    """An opened segment; its arrays are memory-mapped, so opening reads next to nothing."""

    folder: Path
    terms: CheckedArray[np.uint64]
    starts: CheckedArray[np.int64]
    tables: CheckedArray[np.int32]
    weights: CheckedArray[np.float32]
    sums: CheckedArray[np.float32]
    offsets: CheckedArray[np.int64]
    digests: CheckedArray[np.uint8]
    tokens: CheckedArray[np.int32]
    streams: CheckedArray[np.int64]
    blocks: CheckedArray[np.int64]
    names: CheckedArray[np.uint8]
    texts: CheckedArray[np.uint8]
    vectors: CheckedArray[Any] | None = None
    codes: CheckedArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.digests)

    def part(self, term: int, base: int) -> TermPart | None:
        """Return the postings of a term's hash; `base` is the first table's position. None if no table contains it."""
        # Binary search may touch any block, so all are verified, once.
        terms = self.terms.all()
        place = int(np.searchsorted(terms, np.uint64(term)))
        if place == len(terms) or int(terms[place]) != term:
            return None
        start, stop = _read_bounds(self.starts, place)
        ((total, squares),) = self.sums.run(place, place + 1).tolist()
        return TermPart(base, self.tables.run(start, stop), self.weights.run(start, stop), total, squares)

    def stream(self, number: int) -> NDArray[np.int32]:
        """Return the stream of a table."""
        return self.tokens.run(*_read_bounds(self.streams, number))

    def document_frequencies(self, terms: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return for hashes of terms how many tables contain each."""
        if not len(self.terms):
            return np.zeros(len(terms), dtype=np.int64)
        own = self.terms.all()
        places = np.minimum(np.searchsorted(own, terms), len(own) - 1)
        return np.where(own[places] == terms, self.starts.at(places + 1) - self.starts.at(places), 0)

    def entry(self, number: int) -> TableEntry:
        """Return what a ranking shows of a table."""
        line = self.names.run(*_read_bounds(self.offsets, number)).tobytes()
        database, table, title, section, header = json.loads(line)
        return TableEntry(TableId(database, table), title, section, tuple(header))

    def table(self, number: int) -> Table:
        """Return the indexed parts of a table. Raises ValueError where its text is damaged."""
        named = self.entry(number)
        description, keys, rows = unpack_table(self.texts, self.blocks.all(), number)
        return Table(
            named.id, named.header, tuple(map(tuple, rows)), named.title, named.section, description, tuple(keys)
        )

    def ids(self) -> list[TableId]:
        """Return the ids of all tables, in order; used by updates, not by searches."""
        self.names.all()
        with (self.folder / "names.jsonl").open("rb") as names:
            return [TableId(*json.loads(line)[:2]) for line in names]


class SegmentWriter:
    """Collects tables and writes them as one segment.

    Args:
        means: mean field lengths for normalization; None takes those of these tables.
        store: embeds tables; None: the segment has no vectors.
        precision: how vectors are stored.
    """

    def __init__(
        self,
        fields: Sequence[Field],
        options: BM25Options,
        means: Mapping[str, float] | None = None,
        store: VectorStore | None = None,
        precision: Precision = Precision.FLOAT16,
    ) -> None:
        self.fields = tuple(fields)
        self.options = options
        self.means = means
        self.store = store
        self.precision = precision
        self._texts: list[str] = []
        self._vectors: list[NDArray[Any]] = []
        self._postings = PostingsWriter(fields, Analyzer(options.language))
        self._streams = StreamWriter(fields, self._postings.analyzer, self._postings.terms)
        self._text_packer = TextPacker(fields)
        self._names: list[bytes] = []
        self._digests: list[bytes] = []

    def __len__(self) -> int:
        return len(self._names)

    def add(self, table: Table) -> None:
        """Add a table."""
        self._postings.add(table)
        self._streams.add(table)
        self._text_packer.add(table)
        shown = [table.id.database, table.id.table, table.title, table.section, list(table.header)]
        self._names.append(json.dumps(shown, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n")
        self._digests.append(digest(table, self.fields))
        if self.store is not None:
            self._texts.append(main_text(table, self.fields))
            if len(self._texts) == _EMBED_BATCH:
                self._embed()

    def _embed(self) -> None:
        if self._texts and self.store is not None:
            self._vectors.append(self.store.vectors(self._texts).astype(self.precision.dtype))
            self._texts = []

    def write(self, folder: Path) -> tuple[Mapping[str, float], str]:
        """Write the segment and flush it to disk; return the mean lengths used, and the hash of its checksums."""
        self._embed()
        folder.mkdir(parents=True)
        means = dict(self.means or self._postings.means())
        made = self._postings.postings(self.options, means)
        hashes = np.array([term_hash(term) for term in self._postings.terms], dtype=np.uint64)
        order = np.argsort(hashes)
        held = made.held[order]
        # Terms and their postings are in order of first occurrence: reorder both by hash.
        starts = made.starts()[:-1][order]
        arrays: dict[str, NDArray[Any]] = {
            "terms": hashes[order],
            "starts": np.concatenate([[0], np.cumsum(held)]).astype(np.int64),
            "tables": _take_ranges(made.tables, starts, held),
            "weights": (weights := _take_ranges(made.weights, starts, held)),
            "sums": _sums(weights, held),
            "offsets": np.concatenate([[0], np.cumsum([len(name) for name in self._names])]).astype(np.int64),
            "digests": np.frombuffer(b"".join(self._digests), dtype=np.uint8).reshape(-1, DIGEST_BYTES),
            "tokens": _renumber_terms(self._streams.tokens, order),
            "streams": np.frombuffer(self._streams.starts, dtype=np.int64),
            "blocks": self._text_packer.blocks(),
        }
        if self._vectors:
            arrays["vectors"] = np.concatenate(self._vectors)
            if self.precision.code_type is not None:
                arrays["codes"] = np.concatenate([self.precision.codes(each) for each in self._vectors])
        for name, values in arrays.items():
            with open(folder / f"{name}.npy", "wb", opener=open_private) as file:
                np.save(file, values)
                _flush(file)
        for name, pieces in (("names.jsonl", self._names), ("texts.bin", [self._text_packer.packed])):
            with open(folder / name, "wb", opener=open_private) as file:
                file.writelines(pieces)
                _flush(file)
        return means, write_sums(folder)


def open_segment(folder: Path, sums: str, precision: Precision = Precision.FLOAT16) -> Segment:
    """Memory-map a segment; `sums` is the hash of its checksums, `precision` that of its vectors.

    Raises:
        OSError, ValueError, SourceError: a file is missing or broken.
    """
    checksums = read_sums(folder, sums)
    mapped = {n: checksums.open(folder / f"{n}.npy", kind, width=width) for n, (kind, width) in _ARRAYS.items()}
    mapped |= {
        "names": checksums.open(folder / "names.jsonl", np.uint8),
        "texts": checksums.open(folder / "texts.bin", np.uint8),
    }
    if "vectors.npy" in checksums.sizes:
        mapped["vectors"] = checksums.open(folder / "vectors.npy", precision.dtype, rows=True)
        if precision.code_type is not None:
            mapped["codes"] = checksums.open(folder / "codes.npy", precision.code_type, rows=True)
    segment = Segment(folder, **mapped)
    _check_lengths(segment)
    segment.tables.set_bounds(0, len(segment) - 1)
    segment.tokens.set_bounds(LOWEST_MARK, len(segment.terms) - 1)
    return segment


def _check_lengths(segment: Segment) -> None:
    """Raise ValueError where the lengths of a segment's files do not match."""
    tables, terms = len(segment), len(segment.terms)
    ends = segment.blocks.run(len(segment.blocks) - 1, len(segment.blocks))[0]
    lengths = {
        "postings": (len(segment.tables), _read_last(segment.starts)),
        "weights": (len(segment.weights), len(segment.tables)),
        "terms": (len(segment.starts), terms + 1),
        "sums": (len(segment.sums), terms),
        "streams": (len(segment.tokens), _read_last(segment.streams)),
        "names": (len(segment.names), _read_last(segment.offsets)),
        "texts": (len(segment.texts), int(ends[1])),
        "blocks": (int(ends[0]), tables),
        "places of names": (len(segment.offsets), tables + 1),
        "places of streams": (len(segment.streams), tables + 1),
        "vectors": (tables if segment.vectors is None else len(segment.vectors), tables),
        "codes": (tables if segment.codes is None else len(segment.codes), tables),
    }
    for what, (found, expected) in lengths.items():
        if found != expected:
            raise ValueError(f"{segment.folder.name}: the {what} are cut off")


def _read_last(values: CheckedArray[np.int64]) -> int:
    return int(values.run(len(values) - 1, len(values))[0])


def _read_bounds(values: CheckedArray[np.int64], place: int) -> tuple[int, int]:
    start, stop = values.run(place, place + 2).tolist()
    return start, stop


def term_hash(term: str) -> int:
    """Return the 64-bit hash that represents a term on disk; collisions are negligible."""
    return int.from_bytes(hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def digest(table: Table, fields: Sequence[Field]) -> bytes:
    """Return the hash of everything that is indexed or shown of a table."""
    # Cells are hashed one by one, so that a value moving to another column is a change.
    held = [table.rows if name is Field.CELLS else field_text(table, name) for name in fields]
    shown = [table.title, table.section, table.header, held]
    content = json.dumps(shown, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(content, digest_size=DIGEST_BYTES).digest()


def count_terms(question: str, analyzer: Analyzer) -> Counter[int]:
    """Return the hashes of a question's terms with their counts."""
    return Counter(term_hash(term) for term in analyzer.terms(question))


def _take_ranges(values: NDArray[Any], starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[Any]:
    """Concatenate ranges of an array, some thousands at a time, to limit memory."""
    taken = np.empty_like(values)
    done = 0
    for first in range(0, len(starts), _RANGES):
        some = slice(first, first + _RANGES)
        ends = np.cumsum(lengths[some])
        shifts = np.repeat(starts[some] - (ends - lengths[some]), lengths[some])
        taken[done : done + len(shifts)] = values[np.arange(len(shifts)) + shifts]
        done += len(shifts)
    return taken


def _renumber_terms(tokens: array[int], order: NDArray[np.intp]) -> NDArray[np.int32]:
    """Return streams with each term's number made its place in an order.

    Marks stay. They are changed where they lie.
    """
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    made = np.frombuffer(tokens, dtype=np.int32)
    for start in range(0, len(made), _BLOCK):
        some = made[start : start + _BLOCK]
        some[some >= 0] = place[some[some >= 0]]
    return made


def _sums(weights: NDArray[np.float32], held: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return per term the sums of its weights and of their squares. Every term occurs in a table."""
    starts = np.cumsum(held) - held
    if not len(starts):
        return np.zeros((0, 2), np.float32)
    return np.stack([np.add.reduceat(weights, starts), np.add.reduceat(weights * weights, starts)], axis=1)


def _flush(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())
