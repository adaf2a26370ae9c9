"""Datasets of one's own: a YAML card that says where tables and questions lie, and which columns hold what.

licence: CC0-1.0
corpus: tables                      # a folder or file of rows, a SQLite or DuckDB file; relative to the card
queries:
  test: questions.csv               # or {file: questions.sqlite, table: asked}
columns: {query: question, table_id: table}
separator: ";"                      # between the gold tables of one question
counts: {test: {questions: 12, tables: 3}}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from almanaq.corpus.files.listing import find_path
from almanaq.corpus.files.reader import read_rows
from almanaq.corpus.sqlite import SQLITE, connect_sqlite, sqlite_tables
from almanaq.corpus.table import SourceTables, TableId
from almanaq.engines.table_corpus import read_corpus
from almanaq.errors import MissingExtraError, SourceError, UsageError, suggest
from almanaq.text.sql_literals import quote
from almanaq_bench.corpus_folder import read_records
from almanaq_bench.data_paths import resolve_inside
from almanaq_bench.question_sets import Question, check_unique_ids, parse_question

CARD_SUFFIXES = (".yaml", ".yml")
_KEYS = ("name", "about", "licence", "citation", "corpus", "queries", "columns", "separator", "counts")
_COUNTED = ("questions", "tables")
_COLUMNS = ("query_id", "query", "database_id", "table_id", "answer")


@dataclass(frozen=True, slots=True)
class OwnDataset:
    """The dataset of a card; nothing but the card is read yet.

    Attributes:
        queries: for each split the file of its questions and, in a SQLite file, their table.
        columns: the names that the questions' columns have instead of query_id, query, database_id, table_id, answer.
        counts: how many questions and tables there must be, by split.
    """

    path: Path
    source: Path
    queries: Mapping[str, tuple[Path, str]]
    columns: Mapping[str, str] = field(default_factory=dict)
    separator: str = ""
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that have questions."""
        return tuple(sorted(self.queries))

    def files(self, split: str) -> tuple[Path, ...]:
        """Return every file that the tables and questions of a split are read from, the card included."""
        tables = [self.source]
        if self.source.is_dir():
            tables = sorted(file for file in self.source.rglob("*") if file.is_file())
        return (self.path, *tables, self._file(split)[0])

    def corpus(self, split: str | None = None) -> SourceTables:
        """Return all tables but those of questions: a card's tables are not marked with splits."""
        tables = self._tables()
        self._check(split, "tables", len(tables))
        return tables

    def corpus_split(self, split: str) -> str:  # noqa: ARG002 - every split searches the same tables
        """Return "all"."""
        return "all"

    def questions(self, split: str) -> tuple[Question, ...]:
        """Return the questions of a split in file order.

        Raises:
            UsageError: there is no such split.
            SourceError: a column is missing, a question lacks its id, text or gold table, or there are more or
                fewer questions than the card says.
        """
        file, table = self._file(split)
        ids = self._tables(rows=0).ids
        database = ids[0].database if len({each.database for each in ids}) == 1 else None
        asked = []
        for number, row in enumerate(_rows(file, table), 1):
            named = self._rename_columns(row, file)
            named.setdefault("query_id", str(number))
            named.setdefault("database_id", database)
            if named["database_id"] is None:
                raise SourceError(f"{file}: the tables lie in several databases: add the column 'database_id'")
            asked.append(parse_question(named, file))
        self._check(split, "questions", len(asked))
        return check_unique_ids(asked, file)

    def _tables(self, rows: int | None = None) -> SourceTables:
        """Return the tables; questions that lie among them are none, as they name their gold tables."""
        found = read_corpus(self.source, rows=rows)
        source, asked = self.source.resolve(), set()
        for file, table in self.queries.values():
            if file.resolve().is_relative_to(source):
                asked |= {TableId(file.stem, table), TableId(file.resolve().parent.name, file.stem)}
        return replace(found, ids=tuple(each for each in found.ids if each not in asked))

    def _file(self, split: str) -> tuple[Path, str]:
        if split not in self.queries:
            raise UsageError(f"no split {split!r} in {self.path}{suggest(split, self.queries)}")
        return self.queries[split]

    def _rename_columns(self, row: Mapping[str, Any], file: Path) -> dict[str, Any]:
        """Return a row under the names of the layout, its gold tables taken apart."""
        names = {self.columns.get(name, name): name for name in _COLUMNS}
        named = {names.get(column, column): value for column, value in row.items()}
        for needed in ("query", "table_id"):
            if needed not in named:
                column = self.columns.get(needed, needed)
                raise SourceError(
                    f"{file} lacks the column {column!r}{suggest(column, row)}; see `columns` of the card"
                )
        gold = named["table_id"]
        if self.separator and isinstance(gold, str):
            named["table_id"] = [part.strip() for part in gold.split(self.separator) if part.strip()]
        return named

    def _check(self, split: str | None, what: str, found: int) -> None:
        expected = self.counts.get(split or "", {}).get(what)
        if expected is not None and expected != found:
            raise SourceError(f"{self.path}: {split!r} has {found} {what}, not the {expected} that the card says")


def open_card(path: Path, within: Path | None = None) -> OwnDataset:
    """Read a card.

    Args:
        within: the folder that what it names must lie in; by default its own.

    Raises:
        SourceError: it is no YAML, lacks a part, or names a file that is not there, or elsewhere.
        MissingExtraError: PyYAML is not installed.
    """
    card = _load(path)
    unknown = next((key for key in card if key not in _KEYS), None)
    if unknown is not None:
        raise SourceError(f"{path}: unknown key {unknown!r}{suggest(str(unknown), _KEYS)}")
    for needed in ("corpus", "queries"):
        if not card.get(needed):
            raise SourceError(f"{path} lacks {needed!r}: name a file or folder")
    for kind in ("queries", "columns", "counts"):
        if not isinstance(card.get(kind, {}), dict):
            raise SourceError(f"{path}: {kind!r} must be a mapping, as `{kind}: {{test: …}}`")
    wrong = next((name for name in card.get("columns", {}) if name not in _COLUMNS), None)
    if wrong is not None:
        raise SourceError(f"{path}: 'columns' has no {wrong!r}{suggest(str(wrong), _COLUMNS)}")
    _check_counts(path, card.get("counts", {}), card["queries"])
    within = within or path.parent
    queries = {str(split): _place(path, named, within) for split, named in card["queries"].items()}
    source = find_path(resolve_inside(card["corpus"], path, within))
    separator = str(card.get("separator", ""))
    return OwnDataset(path, source, queries, card.get("columns", {}), separator, card.get("counts", {}))


def _check_counts(path: Path, counts: Mapping[str, object], splits: Mapping[str, object]) -> None:
    """Raise SourceError for counts of no split, or of what is not counted: they would never be checked."""
    for split, expected in counts.items():
        if split not in splits:
            raise SourceError(f"{path}: 'counts' has a split {split!r} that 'queries' lacks{suggest(split, splits)}")
        if not isinstance(expected, dict) or not all(isinstance(number, int) for number in expected.values()):
            raise SourceError(f"{path}: 'counts' of {split!r} must be numbers: {{questions: 12, tables: 3}}")
        wrong = next((name for name in expected if name not in _COUNTED), None)
        if wrong is not None:
            raise SourceError(f"{path}: 'counts' has no {wrong!r}{suggest(str(wrong), _COUNTED)}")


def _load(path: Path) -> dict[str, Any]:
    try:
        import yaml
    except ImportError as error:
        raise MissingExtraError("PyYAML", "bench", "a dataset card") from error
    try:
        card = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SourceError(f"{path} cannot be read as a card: {' '.join(str(error).split())}") from error
    if not isinstance(card, dict):
        raise SourceError(f"{path} is not a card: it must be a mapping with `corpus` and `queries`")
    return card


def _place(card: Path, named: object, within: Path) -> tuple[Path, str]:
    if isinstance(named, dict) and "file" in named:
        return find_path(resolve_inside(named["file"], card, within)), str(named.get("table", ""))
    return find_path(resolve_inside(named, card, within)), ""


def _rows(file: Path, table: str) -> Iterator[dict[str, Any]]:
    if file.suffix.lower() == ".parquet":
        yield from read_records(file)
        return
    if file.suffix.lower() not in SQLITE:
        header, rows = read_rows(file)
        for values in rows:
            yield dict(zip(header.names, values, strict=True))
        return
    with connect_sqlite(file) as connection:
        names = sqlite_tables(connection)
        if table not in names:
            raise SourceError(f"{file}: no table {table!r}{suggest(table, names)}; write {{file: …, table: …}}")
        cursor = connection.execute(f"SELECT * FROM {quote(table)}")
        columns = [column[0] for column in cursor.description]
        for values in cursor:
            yield dict(zip(columns, values, strict=True))
