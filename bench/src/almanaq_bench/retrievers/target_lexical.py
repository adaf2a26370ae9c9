"""The lexical baselines of TARGET, as published: OTT-QA's BM25 and TF-IDF over hashed words and pairs of words.

Two texts are told apart. What the benchmark's code indexes is `table id | section title | header`, without any cell,
and for most datasets the id is the name of a file; its published figures follow from that. What the paper describes
(section 3.2: "the table header, data rows, and, optionally, table metadata such as the page title") is indexed by
the `described` retrievers.

Chen et al., "Open Question Answering over Tables and Text", ICLR 2021; Chen et al., "Reading Wikipedia to Answer
Open-Domain Questions", ACL 2017 (hashed bigrams).
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from almanaq.corpus.table import Corpus, Field, Table, TableId, check_distinct, field_text
from almanaq.retrieval.protocols import Ranking, Scores, search_by_scores
from almanaq.text.words import INDEX_STOPWORDS

BUCKETS = 1 << 24
K1, B = 1.5, 0.75

Weighting = Literal["bm25", "tfidf"]

_TOKEN = re.compile(r"[^\W_]+")


def code_text(table: Table) -> str:
    """Return the text that the benchmark's code indexes."""
    return " | ".join((table.id.table, _section(table), " ".join(table.header)))


def code_text_without_title(table: Table) -> str:
    """Return the text that the benchmark's code indexes in its runs without titles."""
    return " | ".join((_section(table), " ".join(table.header)))


def described_text(table: Table) -> str:
    """Return the text that the paper describes: page title, section title, header and all rows."""
    return "\n".join(field_text(table, name) for name in (Field.TITLE, Field.SECTION, Field.HEADER, Field.CELLS))


def _section(table: Table) -> str:
    """Return the section title where the code looks for it: most datasets keep theirs under another key."""
    section = table.context.get("section_title")
    return section if isinstance(section, str) else ""


@dataclass(frozen=True)
class HashedNgrams:
    """Makes indexes of hashed words and pairs of words. It sees what `text` gives, whatever fields are declared."""

    name: str
    text: Callable[[Table], str]
    weighting: Weighting

    def index(self, corpus: Corpus, fields: Sequence[str]) -> HashedNgramsIndex:  # noqa: ARG002
        """Index a corpus. Raises SourceError where it holds no table or repeats an id."""
        ids: list[TableId] = []
        counts: list[Counter[int]] = []
        for table in check_distinct(corpus):
            ids.append(table.id)
            counts.append(Counter(buckets(self.text(table))))
        return HashedNgramsIndex(ids, _postings(counts, self.weighting), len(ids), self.weighting)


Postings = Mapping[int, tuple[NDArray[np.int32], NDArray[np.float32]]]


@dataclass(frozen=True)
class HashedNgramsIndex:
    """Per bucket, the tables with a word or pair in it, and what it adds to their scores."""

    ids: Sequence[TableId]
    postings: Postings
    size: int
    weighting: Weighting

    def search(self, questions: Sequence[str], k: int) -> list[Ranking]:
        """Return for each question the k best of the tables that share a bucket with it."""
        return search_by_scores(self, questions, k)

    def scores(self, questions: Sequence[str]) -> Scores:
        """Return the scores, shape (questions, tables); -inf where no bucket is shared."""
        sums = np.zeros((len(questions), self.size), dtype=np.float32)
        for row, question in zip(sums, questions, strict=True):
            for bucket, times in Counter(buckets(question)).items():
                if bucket in self.postings:
                    tables, weights = self.postings[bucket]
                    row[tables] += weights * self._worth(times, len(tables))
        sums[sums == 0] = -np.inf
        return sums

    def _worth(self, times: int, held: int) -> float:
        """Weigh a bucket of the question: by TF-IDF on both sides, or by its count beside BM25."""
        if self.weighting == "bm25":
            return float(times)
        return float(np.log1p(times) * _rarity(self.size, held))


def buckets(text: str) -> Iterator[int]:
    """Yield the buckets of a text's words and pairs of neighbouring words, those with a stop word left out."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c)).lower()
    words = [match.group() for match in _TOKEN.finditer(plain)]
    for place, word in enumerate(words):
        if word in INDEX_STOPWORDS:
            continue
        yield _bucket(word)
        if place + 1 < len(words) and words[place + 1] not in INDEX_STOPWORDS:
            yield _bucket(f"{word} {words[place + 1]}")


def _bucket(gram: str) -> int:
    # A hash that is the same in every process; which one does not matter at 2^24 buckets.
    return zlib.crc32(gram.encode("utf-8", "surrogatepass")) % BUCKETS


def _postings(counts: Sequence[Counter[int]], weighting: Weighting) -> Postings:
    lengths = np.array([found.total() for found in counts], dtype=np.float64)
    mean = max(float(lengths.mean()), 1e-9)
    where: dict[int, tuple[list[int], list[int]]] = {}
    for number, found in enumerate(counts):
        for bucket, times in found.items():
            tables, frequencies = where.setdefault(bucket, ([], []))
            tables.append(number)
            frequencies.append(times)
    made: dict[int, tuple[NDArray[np.int32], NDArray[np.float32]]] = {}
    for bucket, (tables, frequencies) in where.items():
        of = np.array(tables, dtype=np.int32)
        tf = np.array(frequencies, dtype=np.float64)
        norm = K1 * (1 - B + B * lengths[of] / mean)
        tf = tf * (K1 + 1) / (tf + norm) if weighting == "bm25" else np.log1p(tf)
        made[bucket] = (of, (tf * _rarity(len(counts), len(of))).astype(np.float32))
    return made


def _rarity(size: int, held: int) -> float:
    """Return the inverse document frequency, 0 for what more than half of the tables hold."""
    return max(0.0, float(np.log((size - held + 0.5) / (held + 0.5))))


TARGET_LEXICAL: Mapping[str, HashedNgrams] = {
    made.name: made
    for made in (
        HashedNgrams("target-bm25", code_text, "bm25"),
        HashedNgrams("target-bm25-notitle", code_text_without_title, "bm25"),
        HashedNgrams("target-tfidf", code_text, "tfidf"),
        HashedNgrams("target-tfidf-notitle", code_text_without_title, "tfidf"),
        HashedNgrams("target-bm25-described", described_text, "bm25"),
        HashedNgrams("target-tfidf-described", described_text, "tfidf"),
    )
}
