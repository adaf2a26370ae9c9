"""Segments of an index on disk: postings of some tables as memory-mapped arrays, never changed once written.

Files: `terms.npy` hashes of terms, sorted; `starts.npy`, `tables.npy`, `weights.npy` the postings of each, `sums.npy`
the sums of their weights and of the squares; `names.jsonl` with `offsets.npy` the tables' ids, titles and columns;
`tokens.npy` with `streams.npy` their streams, in which a term's number is its position in `terms.npy`; `digests.npy`
hashes of their contents. `texts.bin` holds what was indexed of each table, as JSON lines in compressed blocks, so that
an index explains its hits without its corpus; `blocks.npy` the first table and first byte of each block, and at the end
how many there are. `vectors.npy` and `codes.npy` their vectors and codes, where the index has any. The only module that
imports usearch.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from almanaq.corpus.table import Field, Table, TableId, field_text
from almanaq.errors import MissingExtraError, UsageError
from almanaq.models.embedders.vector_store import Vectors, VectorStore
from almanaq.retrieval.bm25 import BM25Options, PostingsWriter, TermPart
from almanaq.retrieval.dense import main_text
from almanaq.retrieval.features import LOWEST_MARK, StreamWriter
from almanaq.retrieval.index_files import CheckedArray, read_sums, write_file, write_sums
from almanaq.text.index_terms import Analyzer

DIGEST_BYTES = 16
MAX_BLOCK_BYTES = 2**28  # decompressed: a forged block could otherwise fill all memory
_BLOCK_CHARS = 16_384  # per block of texts: a small table alone compresses badly, a large block is slow to read
_RANGES = 10_000
_BLOCK = 4_000_000  # tokens renumbered at once
_EMBED_BATCH = 512  # texts embedded at once
_ARRAYS: Mapping[str, tuple[type[np.generic], int | None]] = {  # type, and how many numbers make an item
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


class Precision(StrEnum):
    """How the vectors of tables are stored: in half or single precision, with a code of each or without.

    An int8 code holds each component in one byte, in units of the vector's largest; a binary one holds its sign in one
    bit. The nearest by code are compared again by the vectors.
    """

    FLOAT16 = "float16"
    FLOAT32 = "float32"
    INT8 = "int8"
    BINARY = "binary"

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float32 if self is Precision.FLOAT32 else np.float16)

    @property
    def code_type(self) -> np.dtype[Any] | None:
        """The type of the numbers in a code; None where there are no codes."""
        return {Precision.INT8: np.dtype(np.int8), Precision.BINARY: np.dtype(np.uint8)}.get(self)

    @property
    def spare(self) -> int:
        """How many times more tables are rescored than requested: signs alone are imprecise."""
        return 4 if self is Precision.BINARY else 1

    def codes(self, vectors: Vectors) -> NDArray[Any]:
        if self is Precision.BINARY:
            return np.packbits(vectors > 0, axis=1)
        largest = np.maximum(np.abs(vectors).max(axis=1, keepdims=True), 1e-12)
        codes: NDArray[np.int8] = np.rint(vectors * (127 / largest)).astype(np.int8)
        return codes

    def nearest(self, codes: NDArray[Any], vector: Vectors, count: int) -> NDArray[np.intp]:
        """Return the numbers of the vectors whose codes are nearest to the code of one vector, by exact search."""
        try:
            from usearch.compiled import MetricKind
            from usearch.index import search
        except ImportError as problem:
            raise MissingExtraError("usearch", "hnsw", "an index with codes of vectors") from problem
        kind = MetricKind.Hamming if self is Precision.BINARY else MetricKind.Cos
        found = search(codes, self.codes(vector[None]), count, kind, exact=True, threads=1)
        return np.ravel(found.keys).astype(np.intp)


def parse_precision(name: str) -> Precision:
    try:
        return Precision(name)
    except ValueError:
        raise UsageError(f"no vectors in {name!r}: choose one of {', '.join(Precision)}") from None


@dataclass(frozen=True, slots=True)
class TableEntry:
    """What a ranking shows of a table; `place` is its position in the index on disk that found it, else -1."""

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
        return self.tokens.run(*_read_bounds(self.streams, number))

    def document_frequencies(self, terms: NDArray[np.uint64]) -> NDArray[np.int64]:
        if not len(self.terms):
            return np.zeros(len(terms), dtype=np.int64)
        own = self.terms.all()
        places = np.minimum(np.searchsorted(own, terms), len(own) - 1)
        return np.where(own[places] == terms, self.starts.at(places + 1) - self.starts.at(places), 0)

    def entry(self, number: int) -> TableEntry:
        line = self.names.run(*_read_bounds(self.offsets, number)).tobytes()
        database, table, title, section, header = json.loads(line)
        return TableEntry(TableId(database, table), title, section, tuple(header))

    def table(self, number: int) -> Table:
        """Return the indexed parts of a table. Raises ValueError where its text is damaged."""
        blocks = self.blocks.all()
        block = int(np.searchsorted(blocks[:, 0], number, side="right")) - 1
        packed = self.texts.run(int(blocks[block, 1]), int(blocks[block + 1, 1])).tobytes()
        try:
            description, keys, rows = json.loads(_decompress(packed).split(b"\n")[number - int(blocks[block, 0])])
        except (zlib.error, IndexError) as error:
            raise ValueError(f"the text of table {number} cannot be read: {error}") from error
        named = self.entry(number)
        return Table(
            named.id, named.header, tuple(map(tuple, rows)), named.title, named.section, description, tuple(keys)
        )

    def ids(self) -> list[TableId]:
        """Return the ids of all tables, in order; used by updates, not by searches."""
        self.names.all()
        with (self.folder / "names.jsonl").open("rb") as names:
            return [TableId(*json.loads(line)[:2]) for line in names]


class SegmentWriter:
    """Collects tables and writes them as one segment, normalized by the mean lengths `means`, None by their own."""

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
        self._texts: list[str] = []  # to be embedded
        self._vectors: list[NDArray[Any]] = []
        self._postings = PostingsWriter(fields, Analyzer(options.language))
        self._streams = StreamWriter(fields, self._postings.analyzer, self._postings.terms)
        self._names: list[bytes] = []
        self._digests: list[bytes] = []
        self._packed = bytearray()
        self._blocks = [(0, 0)]  # the first table and byte of each block of texts, and the end of the last
        self._lines: list[bytes] = []  # of the next block

    def __len__(self) -> int:
        return len(self._names)

    def add(self, table: Table) -> None:
        self._postings.add(table)
        self._streams.add(table)
        shown = [table.id.database, table.id.table, table.title, table.section, list(table.header)]
        self._names.append(json.dumps(shown, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n")
        self._digests.append(digest(table, self.fields))
        description = table.description if Field.DESCRIPTION in self.fields else ""
        keys = table.keys if Field.KEYS in self.fields else ()
        rows = table.rows if Field.CELLS in self.fields else ()
        line = json.dumps([description, keys, rows], ensure_ascii=False, separators=(",", ":"))
        self._lines.append(line.encode("utf-8", "surrogatepass"))
        if sum(map(len, self._lines)) >= _BLOCK_CHARS:
            self._pack()
        if self.store is not None:
            self._texts.append(main_text(table, self.fields))
            if len(self._texts) == _EMBED_BATCH:
                self._embed()

    def _pack(self) -> None:
        if self._lines:
            self._packed += zlib.compress(b"\n".join(self._lines), level=1)
            self._blocks.append((self._blocks[-1][0] + len(self._lines), len(self._packed)))
            self._lines = []

    def _embed(self) -> None:
        if self._texts and self.store is not None:
            self._vectors.append(self.store.vectors(self._texts).astype(self.precision.dtype))
            self._texts = []

    def write(self, folder: Path) -> tuple[Mapping[str, float], str]:
        """Write the segment and flush it to disk; return the mean lengths used, and the hash of its checksums."""
        self._embed()
        self._pack()
        folder.mkdir(parents=True)
        means = dict(self.means or self._postings.means())
        made = self._postings.postings(self.options, means)
        hashes = np.array([term_hash(term) for term in self._postings.terms], dtype=np.uint64)
        order = np.argsort(hashes)
        held = made.held[order]
        # Terms and their postings are in order of first occurrence: reorder both by hash.
        starts = made.starts()[:-1][order]
        weights = _take_ranges(made.weights, starts, held)
        begins = np.concatenate([[0], np.cumsum(held)]).astype(np.int64)
        # Every term occurs in a table: reduceat needs ranges that hold something.
        squares = [np.add.reduceat(each, begins[:-1]) for each in (weights, weights * weights) if len(held)]
        arrays: dict[str, NDArray[Any]] = {
            "terms": hashes[order],
            "starts": begins,
            "tables": _take_ranges(made.tables, starts, held),
            "weights": weights,
            "sums": np.stack(squares, axis=1) if squares else np.zeros((0, 2), np.float32),
            "offsets": np.concatenate([[0], np.cumsum([len(name) for name in self._names])]).astype(np.int64),
            "digests": np.frombuffer(b"".join(self._digests), dtype=np.uint8).reshape(-1, DIGEST_BYTES),
            "tokens": _renumber_terms(self._streams.tokens, order),
            "streams": np.frombuffer(self._streams.starts, dtype=np.int64),
            "blocks": np.array(self._blocks, dtype=np.int64),
        }
        if self._vectors:
            arrays["vectors"] = np.concatenate(self._vectors)
            if self.precision.code_type is not None:
                arrays["codes"] = np.concatenate([self.precision.codes(each) for each in self._vectors])
        for name, values in arrays.items():
            write_file(folder / f"{name}.npy", lambda out, values=values: np.save(out, values))  # type: ignore[misc]
        write_file(folder / "names.jsonl", lambda out: out.writelines(self._names))
        write_file(folder / "texts.bin", lambda out: out.write(self._packed))
        return means, write_sums(folder)


def open_segment(folder: Path, sums: str, precision: Precision = Precision.FLOAT16) -> Segment:
    """Memory-map a segment, whose checksums have the hash `sums`. Raises OSError, ValueError or SourceError."""
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
    postings, streams, names = (
        int(each.run(len(each) - 1, len(each))[0]) for each in (segment.starts, segment.streams, segment.offsets)
    )
    ends = segment.blocks.run(len(segment.blocks) - 1, len(segment.blocks))[0]
    lengths = {
        "postings": (len(segment.tables), postings),
        "weights": (len(segment.weights), len(segment.tables)),
        "terms": (len(segment.starts), terms + 1),
        "sums": (len(segment.sums), terms),
        "streams": (len(segment.tokens), streams),
        "names": (len(segment.names), names),
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


def _decompress(block: bytes) -> bytes:
    unpacker = zlib.decompressobj()
    text = unpacker.decompress(block, MAX_BLOCK_BYTES)
    if not unpacker.eof:
        raise ValueError("it does not end, or is larger than any that is written")
    return text


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
    """Make each term's number its place in an order, within `tokens`; marks stay."""
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    made = np.frombuffer(tokens, dtype=np.int32)
    for start in range(0, len(made), _BLOCK):
        some = made[start : start + _BLOCK]
        some[some >= 0] = place[some[some >= 0]]
    return made
