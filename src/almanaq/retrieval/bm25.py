"""Okapi BM25 over weighted fields (BM25F): the index in memory, its postings, and top-k search with early stopping.

Robertson, Zaragoza, Taylor: "Simple BM25 extension to multiple weighted fields", CIKM 2004. Term frequencies are
normalized by length within each field, weighted, summed, and only then saturated: a word in a title counts more, and a
long table does not drown it. With one field of weight 1 the scores equal those of bm25s (`method="lucene"`), which the
tests check.

Turtle and Flood: "Query evaluation: strategies and optimizations", 1995 (MaxScore). Terms are added rarest first. Once
the remaining terms cannot lift an unseen table above the k-th best, only the tables seen are left, and the long lists
of common terms are merely looked up for the few candidates. The result equals that of adding everything.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from almanaq.corpus.table import Corpus, Field, Table, TableId, check_distinct, field_text, parse_fields
from almanaq.retrieval.protocols import Ranking, Scores, search_by_scores, top_k
from almanaq.text.index_terms import Analyzer

_BLOCK = 4_000_000  # words per block of postings: some 300 MB
_LOOKUP_COST = 16  # postings that can be added in the time of one look-up, or of sorting one table
_SPARSE_SHARE = 0.03  # of tables up to which the seen ones are sorted; beyond it, scanning all scores is faster
_ROUNDING = 1.000_01  # sums in float32 may differ from the bound in their last digits
_SHOWN_CHARS, _SHOWN_CELLS = 160, 6  # of a field's text, and matching cells, that are shown
WEIGHTS: Mapping[Field, float] = {
    Field.DATABASE: 2.0,
    Field.TITLE: 3.0,
    Field.SECTION: 1.0,
    Field.DESCRIPTION: 1.0,
    Field.HEADER: 2.0,
    Field.KEYS: 0.5,
    Field.CELLS: 1.0,
}


@dataclass(frozen=True, slots=True)
class BM25Options:
    """Parameters of BM25: saturation `k1`, length normalization `b`, and the weight of each field."""

    k1: float = 1.5
    b: float = 0.75
    weights: Mapping[Field, float] = field(default_factory=lambda: WEIGHTS)
    language: str | None = "english"


@dataclass(frozen=True)
class BM25:
    options: BM25Options = BM25Options()
    name: str = "bm25"

    def index(self, corpus: Corpus, fields: Sequence[str]) -> BM25Index:
        chosen = parse_fields(fields)
        building = PostingsWriter(chosen, Analyzer(self.options.language))
        for table in check_distinct(corpus):
            building.add(table)
        return building.finish(self.options)


@dataclass(frozen=True)
class BM25Index:
    """The postings of term t are `tables[starts[t]:starts[t + 1]]`, with what it adds to their scores."""

    ids: Sequence[TableId]
    terms: Mapping[str, int]
    starts: NDArray[np.int64]
    tables: NDArray[np.int32]
    weights: NDArray[np.float32]
    analyzer: Analyzer

    def search(self, questions: Sequence[str], k: int) -> list[Ranking]:
        return search_by_scores(self, questions, k)

    def scores(self, questions: Sequence[str]) -> Scores:
        """Return the scores, shape (questions, tables); -inf where no term is shared."""
        sums = self.sums(questions)
        sums[sums == 0] = -np.inf
        return sums

    def sums(self, questions: Sequence[str]) -> Scores:
        """Return the scores with 0 where no term is shared, for fusion with other scores."""
        sums = np.zeros((len(questions), len(self.ids)), dtype=np.float32)
        for row, question in zip(sums, questions, strict=True):
            for term, times in Counter(self.analyzer.terms(question)).items():
                if (number := self.terms.get(term)) is not None:
                    part = slice(self.starts[number], self.starts[number + 1])
                    row[self.tables[part]] += self.weights[part] * times
        return sums


@dataclass(frozen=True, slots=True)
class Postings:
    """The postings of term t are the next `held[t]` of `tables` and `weights`: saturated, not yet scorer by rarity."""

    tables: NDArray[np.int32]
    weights: NDArray[np.float32]
    held: NDArray[np.int64]

    def starts(self) -> NDArray[np.int64]:
        return np.concatenate([[0], np.cumsum(self.held)]).astype(np.int64)


class PostingsWriter:
    """Collects the words of tables, 4 bytes each, and builds postings, a block of terms at a time."""

    def __init__(self, fields: Sequence[Field], analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self.ids: list[TableId] = []
        self.terms: dict[str, int] = {}
        self.words = {name: array("i") for name in fields}
        self.lengths = {name: array("i") for name in fields}

    def add(self, table: Table) -> None:
        self.ids.append(table.id)
        numbers = self.terms
        for name, words in self.words.items():
            found = self.analyzer.terms(field_text(table, name))
            self.lengths[name].append(len(found))
            words.extend([numbers.setdefault(term, len(numbers)) for term in found])

    def finish(self, options: BM25Options) -> BM25Index:
        made = self.postings(options, self.means())
        size = max(1, len(self.ids))
        rarity = np.log1p((size - made.held + 0.5) / (made.held + 0.5))
        scores = (np.repeat(rarity, made.held) * made.weights).astype(np.float32)
        return BM25Index(self.ids, self.terms, made.starts(), made.tables, scores, self.analyzer)

    def means(self) -> dict[str, float]:
        """Return the mean length of each field over the tables that have it."""
        lengths = {name: np.frombuffer(each, dtype=np.int32) for name, each in self.lengths.items()}
        return {name: float(each[each > 0].mean()) if (each > 0).any() else 1.0 for name, each in lengths.items()}

    def postings(self, options: BM25Options, means: Mapping[str, float]) -> Postings:
        """Return the postings of all terms, in order, normalized by the mean field lengths."""
        count = np.zeros(len(self.terms), dtype=np.int64)
        for words in self.words.values():
            count += np.bincount(np.frombuffer(words, dtype=np.int32), minlength=len(count))
        ends = np.cumsum(count)
        blocks = [self._block(0, 0, options, means)]
        first = 0
        while first < len(count):
            after = int(np.searchsorted(ends, ends[first] - count[first] + _BLOCK, side="right"))
            after = max(after, first + 1)
            blocks.append(self._block(first, after, options, means))
            first = after
        return Postings(*(np.concatenate([getattr(each, part) for each in blocks]) for part in Postings.__slots__))

    def _block(self, first: int, after: int, options: BM25Options, means: Mapping[str, float]) -> Postings:
        size = max(1, len(self.ids))
        keys, parts = [], []
        for name, buffer in self.words.items():
            words = np.frombuffer(buffer, dtype=np.int32)
            lengths = np.frombuffer(self.lengths[name], dtype=np.int32)
            places = np.flatnonzero((words >= first) & (words < after))
            tables = np.searchsorted(np.cumsum(lengths, dtype=np.int64), places, side="right")
            norm = 1 - options.b + options.b * lengths / means[name]
            keys.append(words[places].astype(np.int64) * size + tables)
            parts.append(options.weights[name] / norm[tables])
        pairs, place = np.unique(np.concatenate(keys), return_inverse=True)
        frequency = np.bincount(place, weights=np.concatenate(parts), minlength=len(pairs))
        terms, tables = np.divmod(pairs, size)
        held = np.bincount(terms - first, minlength=after - first).astype(np.int64)
        weights = frequency / (options.k1 + frequency)
        return Postings(tables.astype(np.int32), weights.astype(np.float32), held)


@dataclass(frozen=True, slots=True)
class TermPart:
    """A term's postings in one segment, whose first table has the position `base`."""

    base: int
    tables: NDArray[np.int32]
    weights: NDArray[np.float32]
    total: float = 0.0  # of the weights
    squares: float = 0.0  # the sum of the squares of the weights


@dataclass(frozen=True, slots=True)
class Term:
    """A term of a question; its weight in a table is at most 1, which adds `worth` to the score."""

    worth: np.float32
    parts: Sequence[TermPart]

    def __len__(self) -> int:
        return sum(len(part.tables) for part in self.parts)

    def add_all(self, scores: Scores) -> None:
        for part in self.parts:
            scores[part.base : part.base + int(part.tables[-1]) + 1][part.tables] += part.weights * self.worth

    def add_to(self, scores: Scores, places: NDArray[np.intp]) -> None:
        for part in self.parts:
            first, after = np.searchsorted(places, [part.base, part.base + int(part.tables[-1]) + 1])
            wanted = (places[first:after] - part.base).astype(np.int32)
            found = np.searchsorted(part.tables, wanted)
            held = part.tables[found] == wanted
            scores[first:after][held] += part.weights[found[held]] * self.worth


def best_tables(terms: Sequence[Term], size: int, k: int, dead: NDArray[np.int64]) -> tuple[NDArray[np.intp], Scores]:
    """Return the positions of the k best of `size` tables with a term, but not of `dead` ones, and their scores."""
    rarest_first = sorted(terms, key=lambda term: -term.worth)
    left = np.cumsum([term.worth for term in reversed(rarest_first)])[::-1]
    scores = np.zeros(size, dtype=np.float32)
    scores[dead] = -np.inf
    postings = sum(map(len, terms))
    added, looked_up = 0, []
    for number, term in enumerate(rarest_first):
        if added and postings - added > min(added * _LOOKUP_COST, size):
            seen = _find_seen(scores, rarest_first[:number], added)
            if len(seen) >= k:
                kth = np.partition(scores[seen], len(seen) - k)[len(seen) - k]
                lacking = kth - left[number] * _ROUNDING
                places = seen[scores[seen] >= lacking]
                if lacking > 0 and len(places) * _LOOKUP_COST < postings - added:
                    looked_up = rarest_first[number:]
                    break
        term.add_all(scores)
        added += len(term)
    else:
        places = _find_seen(scores, rarest_first, added)
    found = scores[places]
    for term in looked_up:
        term.add_to(found, places)
    best = top_k(found, k)
    return places[best], found[best]


def _find_seen(scores: Scores, terms: Sequence[Term], postings: int) -> NDArray[np.intp]:
    """Return the sorted positions of live tables that contain one of the terms."""
    if postings > _SPARSE_SHARE * len(scores) or not postings:
        return np.flatnonzero(scores > 0)
    listed = np.sort(np.concatenate([part.tables + np.int32(part.base) for term in terms for part in term.parts]))
    new = np.concatenate([[True], listed[1:] != listed[:-1]])
    places: NDArray[np.intp] = listed[new & (scores[listed] > 0)].astype(np.intp)
    return places


def explain_match(question: str, table: Table, fields: Sequence[Field], analyzer: Analyzer | None = None) -> list[str]:
    """Explain a hit in lines: each declared field's text with the matched terms, then the best matching cells."""
    analyzer = analyzer or Analyzer()
    asked = dict.fromkeys(analyzer.terms(question))
    lines = []
    for name in fields:
        text = field_text(table, name)
        if not text:
            continue
        held = set(analyzer.terms(text))
        found = [term for term in asked if term in held]
        shown = " / ".join(text[:_SHOWN_CHARS].splitlines()) + ("…" if len(text) > _SHOWN_CHARS else "")
        lines.append(f"{name}: {shown}")
        lines.append(f"  matched: {', '.join(found) or 'nothing'}")
    if Field.CELLS in fields:
        lines.extend(f"  {cell}" for cell in matching_cells(asked, table, analyzer))
    return lines


def matching_cells(asked: Mapping[str, None], table: Table, analyzer: Analyzer) -> list[str]:
    """Return matching cells as `row 3, column: text`, those of the rows with the most terms first."""
    scored: list[tuple[int, int, int, str, str]] = []
    for number, row in enumerate(table.rows, 1):
        found = [{term for term in analyzer.terms(cell) if term in asked} for cell in row]
        together = len(set().union(*found))
        for column, cell, shared in zip(table.header, row, found, strict=True):
            if shared:
                scored.append((-together, number, -len(shared), column or "unnamed column", cell))
    return [
        f"row {number}, {column}: {_cut_around_match(cell, asked, analyzer)}"
        for _, number, _, column, cell in sorted(scored)[:_SHOWN_CELLS]
    ]


def _cut_around_match(text: str, asked: Mapping[str, None], analyzer: Analyzer) -> str:
    if len(text) <= _SHOWN_CHARS:
        return text
    words = re.finditer(r"\S+", text)
    found = next((word.start() for word in words if not asked.keys().isdisjoint(analyzer.terms(word.group()))), 0)
    start = max(0, min(found - _SHOWN_CHARS // 4, len(text) - _SHOWN_CHARS))
    end = start + _SHOWN_CHARS
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
