"""Finding tables from Python: `tables(source).find(question)`, and an index of them that is kept in a folder.

>>> import almanaq
>>> rivers, peaks = {"river": ["Rhine", "Aare"], "length": [1233, 288]}, {"peak": ["Eiger"], "height": [3967]}
>>> found = almanaq.tables({"rivers": rivers, "peaks": peaks}, embedder="lexical")
>>> [hit.table_id for hit in found.find("Which rivers are there?", k=1, nearest=True)]
['rivers']
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from almanaq.benchmark import import_bench
from almanaq.errors import UsageError, check_text

if TYPE_CHECKING:
    from almanaq.corpus.table import Corpus, Field, Table
    from almanaq.engines.open_source import Source
    from almanaq.models.protocols import Embedder
    from almanaq.retrieval.protocols import JudgedRanking, TableIndex
    from almanaq.retrieval.segments import TableEntry
    from almanaq.retrieval.stored import StoredIndex

FIELDS = ("title", "section", "header", "cells")
"""The fields of a table that are searched by default."""
INDEX_RETRIEVERS = ("hybrid", "hybrid-untuned", "bm25")
OWN_EMBEDDERS = ("lexical", "static", "local")
"""Embedders that need no permission: almanaq and its benchmark define them, and they send nothing anywhere."""
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class TableHit:
    """A table that was found; a higher score is a better match.

    Attributes:
        table: its header, rows and descriptions as text; of a large one, those rows that were read. `connect` takes it.

    >>> hit = found.find("How high is the Eiger?", k=1, nearest=True)[0]
    >>> hit.table_id, hit.table.header, hit.table.rows
    ('peaks', ('peak', 'height'), (('Eiger', '3967'),))
    """

    database_id: str
    table_id: str
    title: str
    score: float
    table: Table


class _Searchable(ABC):
    """Tables among which those are found that answer a question."""

    @abstractmethod
    def __iter__(self) -> Iterator[Table]:
        """Read the tables, one after another."""

    @abstractmethod
    def _search(self, question: str, k: int, *, nearest: bool) -> list[tuple[Table, float]]:
        """Return the tables that fit with their scores, the best first."""

    def find(self, question: str, k: int = 10, *, nearest: bool = False) -> list[TableHit]:
        """Return at most k tables that answer a question, the best first; none where none seems to.

        Args:
            nearest: return the nearest tables also when none of them seems to answer; where none has anything in common
                with the question, the first.

        Raises:
            UsageError: the question is empty, or k is less than 1.

        >>> found.find("Who won the chess final?")
        []
        >>> [hit.table_id for hit in found.find("How long is the Rhine?", k=1, nearest=True)]
        ['rivers']
        """
        from almanaq.models.retrying import raise_public_errors

        check_text(question, "the question")
        if re.search("[\ud800-\udfff]", question):
            raise UsageError("the question holds half a character (a lone surrogate): it is not UTF-8 text")
        if not question.strip():
            raise UsageError("the question is empty")
        with raise_public_errors():
            hits = self._search(question, k, nearest=nearest)
        if nearest and not hits:
            hits = [(table, 0.0) for table in islice(self, k)]
        return [TableHit(table.id.database, table.id.table, table.title, score, table) for table, score in hits]


class Tables(_Searchable):
    """The tables of a source, searchable: made by `tables`. The index is made when a question is first asked.

    Attributes:
        corpus: the tables; iterating reads them again.

    >>> len(found), [table.header for table in found]
    (2, [('peak', 'height'), ('river', 'length')])
    """

    def __init__(self, corpus: Corpus, fields: Sequence[Field], retriever: str, embedder: str | Embedder | None):
        self.corpus, self._fields, self._retriever, self._embedder = corpus, fields, retriever, embedder

    def __len__(self) -> int:
        return len(self.corpus)

    def __iter__(self) -> Iterator[Table]:
        return iter(self.corpus)

    def _search(self, question: str, k: int, *, nearest: bool) -> list[tuple[Table, float]]:
        return search_tables(self.corpus, self._index, question, k, nearest=nearest)[0]

    @cached_property
    def _index(self) -> TableIndex:
        from almanaq.models.private_files import default_cache_folder
        from almanaq.retrieval.retriever_names import RetrieverParts, open_retriever

        parts = RetrieverParts(lambda: open_embedder(self._embedder), default_cache_folder())
        return open_retriever(self._retriever, parts).retriever.index(self.corpus, self._fields)


class IndexedTables(_Searchable):
    """The tables of an index on disk, searchable: made by `tables(index=…)` and by `index`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     atlas = almanaq.index({"rivers": rivers, "peaks": peaks}, out=folder + "/atlas")
    ...     again = almanaq.tables(index=folder + "/atlas")
    ...     len(again), [hit.table_id for hit in again.find("How long is the Aare?", k=1, nearest=True)]
    (2, ['rivers'])
    """

    def __init__(self, index: StoredIndex, retriever: str, embedder: str | Embedder | None) -> None:
        self._index, self._retriever, self._embedder = index, retriever, embedder

    def __len__(self) -> int:
        return len(self._index)

    def __iter__(self) -> Iterator[Table]:
        return map(self._index.table, range(len(self)))

    def _search(self, question: str, k: int, *, nearest: bool) -> list[tuple[Table, float]]:
        found, _ = search_index(self._index, question, k, self._retriever, self._embedder, nearest=nearest)
        return [(self._index.table(named.place), score) for named, score in found]


def tables(
    source: Source | None = None,
    *,
    index: str | os.PathLike[str] | None = None,
    retriever: str = "hybrid",
    embedder: str | Embedder | None = None,
    fields: Sequence[str] | None = None,
    schema: str | os.PathLike[str] | None = None,
) -> Tables | IndexedTables:
    """Return the tables of a source, or of an index that was made of them, to find those that answer a question.

    Nothing of a private column but its name and description is searched, indexed or in a hit: its cells are empty.

    Args:
        source: whatever `connect` takes, or, with almanaq-bench, a folder in the layout of a dataset.
        index: the folder of an index made by `index`, in place of a source.
        retriever: a name that `almanaq find --retriever` takes; of an index: `hybrid`, `hybrid-untuned` or `bm25`.
        embedder: a name or an Embedder; None takes `local`, or `lexical` where that is not installed.
        fields: what is searched of a table: title, section, header, cells, description, keys, database.
        schema: a schema file; None: `SOURCE.almanaq.toml` where it exists.

    Raises:
        UsageError: neither or both of source and index are given, or there is no such retriever, embedder or field.
        SourceError: there is no such source or index.

    >>> len(tables({"rivers": rivers, "peaks": peaks}, embedder="lexical", fields=["title", "header"]))
    2
    """
    if (source is None) == (index is None):
        raise UsageError("give the tables: either a source or index=FOLDER")
    _check_embedder(embedder)
    if index is not None:
        return IndexedTables(open_tables_index(Path(index), retriever, fields, schema), retriever, embedder)
    assert source is not None
    from almanaq.retrieval.retriever_names import check_retriever

    check_retriever(retriever)
    return Tables(read_tables(source, schema=schema), parse_field_names(fields), retriever, embedder)


def open_tables_index(folder: Path, retriever: str, fields: object, schema: object) -> StoredIndex:
    """Open an index; raises UsageError for choices that were made when it was built, and for another retriever."""
    from almanaq.retrieval.stored import open_index

    if schema is not None:
        raise UsageError("schema cannot be combined with an index: private columns were fixed when it was built")
    if fields is not None:
        raise UsageError("fields cannot be combined with an index: they were fixed when it was built")
    if retriever not in INDEX_RETRIEVERS:
        known = ", ".join(INDEX_RETRIEVERS)
        raise UsageError(f"an index is searched by one of {known}, not by {retriever!r}: name a source for it")
    return open_index(folder)


def open_agreed_embedder(named: str, given: str | Embedder | None) -> Embedder:
    """Return the embedder that an index names, where it is one of this package's or the user names it too.

    An index may come from anybody: it must not say to whom a question, and a key, are sent, or which folder is loaded.
    """
    if given is not None and not isinstance(given, str):
        return given
    if named not in OWN_EMBEDDERS and given != named:
        raise UsageError(
            f"the index was made with the embedder {named!r}, which a folder alone may not choose: confirm it with "
            f"embedder={named!r} (--embedder, ALMANAQ_EMBEDDER), or search words only, with the retriever bm25"
        )
    return open_embedder(named)


def index(
    source: Source,
    *,
    out: str | os.PathLike[str],
    fields: Sequence[str] | None = None,
    embedder: str | Embedder | None = None,
    language: str | None = "english",
    schema: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> IndexedTables:
    """Make an index of a source's tables in a folder and return it to search; `almanaq index --update` keeps it.

    Args:
        out: the folder, which is made; `tables(index=out)` opens it again.
        embedder: whose vectors are kept, too: `static` (quick), `local`, `openai:MODEL`, …; None: words only.
        language: words are stemmed by its rules; None keeps them whole.
        schema: a schema file; None: `SOURCE.almanaq.toml` where it exists. Nothing of a private column is kept but its
            name and description.
        progress: is told how many tables of how many are done.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = almanaq.index({"rivers": rivers}, out=folder + "/atlas")
    ...     [hit.table_id for hit in made.find("How long is the Rhine?", nearest=True)]
    ['rivers']
    """
    from almanaq.models.embedders.vector_store import VectorStore
    from almanaq.models.private_files import default_cache_folder
    from almanaq.retrieval.stored import build_index

    _check_embedder(embedder)
    store = None if embedder is None else VectorStore(default_cache_folder(), open_embedder(embedder))
    tables = read_tables(source, schema=schema)
    made = build_index(tables, Path(out), parse_field_names(fields), progress, language=language, store=store)
    return IndexedTables(made, "hybrid", embedder)


def read_tables(
    source: Source, *, schema: str | os.PathLike[str] | None = None, allow_http: bool = False, separate: bool = False
) -> Corpus:
    """Open a corpus: a folder in the dataset layout, a file or folder of tables, or whatever else `connect` takes.

    This is where text of tables is made for whatever finds them. Where a schema file marks a column as private, the
    tables are read as a database's, without the cells of that column; readers that would give them refuse.

    Raises:
        SourceError: there is no such source, or it is a dataset that marks private columns.
    """
    from almanaq.corpus.files.listing import as_path, is_web
    from almanaq.corpus.schema_places import PrivateTablesError
    from almanaq.engines.open_source import is_url, open_database
    from almanaq.engines.table_corpus import LARGE_BYTES, ROWS, database_corpus, read_corpus

    if isinstance(source, str | os.PathLike) and (is_web(str(source)) or not is_url(str(source))):
        folder = as_path(source)
        if (folder / "corpus.parquet").is_file() or any((folder / "corpus").glob("*-of-*.parquet")):
            if schema is not None:
                raise UsageError("schema cannot be combined with a dataset folder: remove private columns from it")
            opened = import_bench("corpus_folder", f"the dataset folder {folder}").open_corpus_folder(folder)
            corpus: Corpus = opened.corpus()
            return corpus
        if schema is None:
            with suppress(PrivateTablesError):
                return read_corpus(str(source), allow_http=allow_http, separate=separate)
    # Of a file or folder all rows are read, unless it is large, and its tables are named as `read_corpus` names them.
    declared = None if schema is None else Path(schema)
    database = open_database(source, schema=declared, allow_http=allow_http, separate=separate)
    path = Path(source).expanduser() if isinstance(source, str | os.PathLike) else None
    if path is None or not path.exists():
        return database_corpus(database)
    files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    large = sum(each.stat().st_size for each in files) > LARGE_BYTES
    return database_corpus(database, rows=ROWS if large else None, name=path.stem if path.is_file() else "")


def search_tables(
    corpus: Corpus, index: TableIndex, question: str, k: int, *, nearest: bool
) -> tuple[list[tuple[Table, float]], JudgedRanking]:
    """Return the tables that fit a question with their scores, the nearest also where none fits, and the ranking."""
    from almanaq.retrieval.protocols import find_tables

    (found,) = find_tables(index, [question], k)
    ranking = found.ranking if found.fits or nearest else ()
    wanted = {hit.id for hit in ranking}
    by_id = {table.id: table for table in corpus if table.id in wanted} if wanted else {}
    return [(by_id[hit.id], hit.score) for hit in ranking], found


def search_index(
    index: StoredIndex,
    question: str,
    k: int,
    retriever: str,
    embedder: str | Embedder | None,
    *,
    nearest: bool,
) -> tuple[list[tuple[TableEntry, float]], JudgedRanking | None]:
    """Search an index on disk as `search_tables` does; the ranking is None where it cannot tell what fits.

    Args:
        embedder: the user's, for an index whose vectors are of one that is not this package's.
    """
    from almanaq.retrieval.stored_search import StoredHybrid, StoredRerank

    named = index.recipe.embedder
    if retriever == "bm25" or (retriever == "hybrid-untuned" and not named):
        return index.best(question, k), None
    if retriever == "hybrid-untuned":
        return StoredHybrid(index, open_agreed_embedder(named, embedder)).best(question, k), None
    # The lexical embedder counts the same words once more, which is no second opinion.
    meaning = named and not named.startswith("lexical")
    hybrid = StoredHybrid(index, open_agreed_embedder(named, embedder)) if meaning else None
    found, entries = StoredRerank(index, hybrid).best(question, k)
    ranking = found.ranking if found.fits or nearest else ()
    return [(each, hit.score) for each, hit in zip(entries, ranking, strict=False)], found


def parse_field_names(fields: Sequence[str] | None) -> tuple[Field, ...]:
    from almanaq.corpus.table import parse_fields

    if isinstance(fields, str):
        raise UsageError(f"fields must be a list: {fields.split(',')!r}")
    return parse_fields(",".join(FIELDS if fields is None else fields))


def open_embedder(embedder: str | Embedder | None) -> Embedder:
    from almanaq.models.embedders.base import as_embedder
    from almanaq.models.model_names import open_embedder as open_by_name
    from almanaq.retrieval.retriever_names import default_embedder

    if embedder is not None and not isinstance(embedder, str):
        return as_embedder(embedder)
    return open_by_name(embedder or default_embedder())


def _check_embedder(embedder: str | Embedder | None) -> None:
    if isinstance(embedder, str):
        from almanaq.models.model_names import check_embedder

        check_embedder(embedder)
