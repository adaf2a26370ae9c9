"""Dataset folders: their tables as a Corpus.

A table is `header` and `rows`, or, as the published TARGET datasets have it, `table`: rows with the header first. What
else is known of it is in `context`, under keys that differ from dataset to dataset.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from almanaq.corpus.schema_places import refuse_private
from almanaq.corpus.table import Table, TableId
from almanaq.errors import SourceError

TITLE_KEYS = ("table_page_title", "page_title", "table_title", "title", "table_caption", "caption", "table_name")
"""The first non-blank one is the title: Wikipedia datasets have page titles, TabFact captions, databases names."""

URL_KEYS = ("page_wikipedia_url", "url")
"""A Wikipedia address ends in the page's title; used where there is no other (TabFact tables without captions)."""

SECTION_KEYS = ("table_section_title", "section_title", "section")

DESCRIPTION_KEYS = ("table_description", "description", "comment", "section_text", "intro")
"""Prose about the table; columns' own names and descriptions follow it."""

_BLANK = frozenset({"", "none", "null", "nan", "n/a"})
_FILE_NAME = re.compile(r"[/\\]|\.(html|htm|csv|tsv|json|jsonl|txt|xml|parquet|xlsx?)\b", re.IGNORECASE)
_HASH = re.compile(r"[0-9a-f]{8,}(-[0-9a-f]{4,})*", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]{2}")
_WIKIPEDIA = re.compile(r"^https?://[^/]*wikipedia\.org/wiki/([^?#]+)")


def find_title(context: Mapping[str, object], table_id: str) -> str:
    """Return the table's title from its context, else from an id that is a name, else ""."""
    return _find_first(context, TITLE_KEYS) or _page_name(context) or _title_from_id(table_id)


def find_section(context: Mapping[str, object]) -> str:
    """Return the title of the section that contains the table; "" where there is none."""
    return _find_first(context, SECTION_KEYS)


def find_description(context: Mapping[str, object], header: Sequence[str]) -> str:
    """Return descriptions of the table and of its columns, a line each; "" where there are none."""
    prose = [_clean_text(context.get(key)) for key in DESCRIPTION_KEYS]
    return "\n".join(text for text in (*prose, _column_names(context, header), *_column_descriptions(context)) if text)


def find_keys(context: Mapping[str, object]) -> tuple[str, ...]:
    """Return primary key columns by name, and foreign keys as `column -> table.column`."""
    return (*_strings(context.get("primary_keys")), *map(_foreign_key, _items(context.get("foreign_keys"))))


def _find_first(context: Mapping[str, object], keys: Iterable[str]) -> str:
    return next((text for key in keys if (text := _clean_text(context.get(key)))), "")


def _clean_text(value: object) -> str:
    """Return a value as text, "" for a blank one: datasets write the word "none" for a missing caption."""
    text = value.strip() if isinstance(value, str) else ""
    return "" if text.lower() in _BLANK else text


def _page_name(context: Mapping[str, object]) -> str:
    found = _WIKIPEDIA.match(_find_first(context, URL_KEYS))
    return unquote(found.group(1)).replace("_", " ") if found else ""


def _title_from_id(table_id: str) -> str:
    """Return an id as a title, unless it is a file name, a number or a hash."""
    nameless = _FILE_NAME.search(table_id) or _HASH.fullmatch(table_id) or not _WORD.search(table_id)
    return "" if nameless else table_id.replace("_", " ").strip()


def _column_names(context: Mapping[str, object], header: Sequence[str]) -> str:
    """Return the columns' names in words, where they are not the header itself."""
    names = _strings(context.get("column_names"))
    return " | ".join(names) if names and [n.lower() for n in names] != [h.lower() for h in header] else ""


def _column_descriptions(context: Mapping[str, object]) -> Iterable[str]:
    described = context.get("column_descriptions")
    if not isinstance(described, Mapping):
        return
    for column, description in described.items():
        parts = description.items() if isinstance(description, Mapping) else [("description", description)]
        texts = [_clean_text(text) for key, text in parts if key != "data_format"]
        # Publishers often repeat a column's name as its description: left out.
        new = dict.fromkeys(text for text in texts if text and text.lower() != str(column).lower())
        if new:
            yield f"{column}: {'; '.join(new)}"


def _foreign_key(key: object) -> str:
    if isinstance(key, Mapping):
        return f"{key.get('column')} -> {key.get('ref_table')}.{key.get('ref_column')}"
    return str(key)


def _items(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else ()


def _strings(value: object) -> tuple[str, ...]:
    return tuple(str(item) for item in _items(value))


_BATCH = 256  # tables held at once while streaming
_SHARD = re.compile(r"(?P<split>.+)-(?P<number>\d{5})-of-(?P<of>\d{5})(?:-[0-9a-f]{16})?")


@dataclass(frozen=True, slots=True)
class CorpusFolder:
    """A dataset folder in one of the two layouts, known to have a corpus; nothing is read yet.

    Ours: `corpus.parquet`, whose rows may name their split. The hub's: `corpus/` with shards named
    `SPLIT-00000-of-00002.parquet`. The questions beside them are the benchmark's.

    Attributes:
        corpus_folder: the folder of shards; None: `corpus/`.
    """

    path: Path
    corpus_folder: Path | None = None

    def corpus(self, split: str | None = None) -> ParquetCorpus:
        """Return the tables of one split; all of them when `split` is None or the corpus marks no table with it.

        Raises:
            PrivateTablesError: a schema file marks a column as private.
        """
        refuse_private([self.path])
        files = self.corpus_files(split)
        held = _count_splits(files)
        if split is not None and held[split]:
            return ParquetCorpus(files, held[split], split)
        return ParquetCorpus(files, sum(_open(file).metadata.num_rows for file in files))

    def corpus_split(self, split: str) -> str:
        """Return the split whose tables are searched: "all" where the corpus marks no table with it."""
        marked = split in self._corpora() or _count_splits(self.corpus_files(split))[split]
        return split if marked else "all"

    def _corpora(self) -> dict[str, tuple[Path, ...]]:
        return find_shards(self.corpus_folder or self.path / "corpus")

    def corpus_files(self, split: str | None) -> tuple[Path, ...]:
        """Return the shards of a split, those of all splits where it has none, or the single file."""
        one = self.path / "corpus.parquet"
        if one.is_file():
            return (one,)
        shards = self._corpora()
        chosen = shards.get(split) if split is not None else None
        return chosen or tuple(file for files in shards.values() for file in files)


@dataclass(frozen=True, slots=True)
class ParquetCorpus:
    """The tables of Parquet files, streamed; of one split only where `split` is given."""

    files: tuple[Path, ...]
    size: int
    split: str | None = None

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Table]:
        for file in self.files:
            require_columns(file, ("database_id", "table_id"))
            if "table" not in _open(file).schema_arrow.names:
                require_columns(file, ("header", "rows"))
            for row in read_records(file):
                if self.split is None or row.get("split") == self.split:
                    yield parse_table(row, file)


def is_dataset_folder(path: Path) -> bool:
    """Return whether a folder holds a corpus in one of the layouts."""
    return (path / "corpus.parquet").is_file() or bool(find_shards(path / "corpus"))


def open_corpus_folder(path: Path) -> CorpusFolder:
    """Open a folder in one of the layouts.

    Raises:
        SourceError: there is no such folder, or it holds neither `corpus.parquet` nor shards in `corpus/`.
    """
    if not path.is_dir():
        raise SourceError(f"no such folder: {path}")
    if not is_dataset_folder(path):
        raise SourceError(f"{path} is not a dataset folder: it holds no corpus.parquet, and no shards in corpus/")
    return CorpusFolder(path)


def find_shards(folder: Path) -> dict[str, tuple[Path, ...]]:
    """Return the shards of each split, by number; raises SourceError where one is missing."""
    found: dict[str, dict[int, Path]] = {}
    wanted: dict[str, int] = {}
    for file in sorted(folder.glob("*.parquet")):
        if name := _SHARD.fullmatch(file.stem):
            found.setdefault(name["split"], {})[int(name["number"])] = file
            wanted[name["split"]] = int(name["of"])
    for split, shards in found.items():
        missing = set(range(wanted[split])) - set(shards)
        if missing:
            raise SourceError(f"{folder}: shard {min(missing)} of the {wanted[split]} of {split!r} is not there")
    return {split: tuple(shards[number] for number in sorted(shards)) for split, shards in found.items()}


def _count_splits(files: Sequence[Path]) -> Counter[str]:
    return Counter(name for file in files for name in read_present_columns(file, ("split",)).get("split") or ())


def parse_table(row: Mapping[str, Any], file: Path) -> Table:
    """Parse a table from a record. Raises SourceError for an invalid one; `file` is for the message."""
    table_id = TableId(str(row["database_id"]), str(row["table_id"]))
    header, rows = _parse_grid(row)
    ragged = next((number for number, cells in enumerate(rows, 1) if len(cells) != len(header)), None)
    if ragged is not None:
        wide = len(rows[ragged - 1])
        raise SourceError(f"{file}: row {ragged} of table {table_id} has {wide} cells under {len(header)} columns")
    context = _parse_context(row.get("context"), table_id, file)
    return Table(
        table_id,
        header,
        rows,
        title=find_title(context, table_id.table),
        section=find_section(context),
        description=find_description(context, header),
        keys=find_keys(context),
        context=context,
    )


def _parse_grid(row: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return header and rows; a table without a header gets empty names."""
    header, rows = row.get("header"), row.get("rows")
    if header is None and rows is None:
        grid = row.get("table") or [[]]
        header, rows = grid[0], grid[1:]
    rows = tuple(tuple(map(_cell, cells or ())) for cells in rows or ())
    names = tuple(map(_cell, header or ()))
    return names or ("",) * (len(rows[0]) if rows else 0), rows


def _cell(value: object) -> str:
    return "" if value is None else str(value)


def _parse_context(value: object, table_id: TableId, file: Path) -> Mapping[str, object]:
    if isinstance(value, str) and value.strip():
        try:
            value = json.loads(value)
        except ValueError as error:
            raise SourceError(f"{file}: the context of table {table_id} is not JSON: {error}") from error
    return value if isinstance(value, dict) else {}


def _open(file: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(file)
    except (OSError, pa.ArrowException) as error:
        raise SourceError(f"cannot read {file}: {error}") from error


def require_columns(file: Path, columns: Sequence[str]) -> None:
    names = _open(file).schema_arrow.names
    missing = [name for name in columns if name not in names]
    if missing:
        raise SourceError(f"{file} lacks the column {missing[0]!r}; it has: {', '.join(names)}")


def read_present_columns(file: Path, names: Sequence[str]) -> dict[str, list[Any]]:
    parquet = _open(file)
    present = [name for name in names if name in parquet.schema_arrow.names]
    return dict(parquet.read(columns=present).to_pydict()) if present else {}


def read_records(file: Path) -> Iterator[dict[str, Any]]:
    parquet = _open(file)
    unused = {"links"}  # per-cell links are large, and not part of a table's text
    columns = [name for name in parquet.schema_arrow.names if name not in unused]
    for batch in parquet.iter_batches(batch_size=_BATCH, columns=columns):
        yield from batch.to_pylist()
