"""A table with linked passages as a relation: `Column`, and `Column_Info text[]` with the texts its cells link."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from typing import Any

from almanaq.corpus.files.shape import clean_header
from almanaq.corpus.inference import LoadReport
from almanaq.engines.duckdb.engine import DuckDBDatabase, Loaded, load_table
from almanaq.engines.files.columns import type_column
from almanaq.suql.catalog.relations import ColumnKind
from almanaq.suql.catalog.schema_file import ColumnSchema, RelationSchema, Schema
from almanaq_bench.evaluation.answers import normalize_answer
from almanaq_bench.linked import CellLinks, LinkedTable

INFO, TEXT = "_Info", "_Text"
_EXAMPLES = 3
_SOON = 300
"""Characters of a passage in which its article is named, as a rule."""

_REMARK = re.compile(r"(.*\S)\s*\([^()]*\)\s*")


@dataclass(frozen=True, slots=True)
class HybridRelation:
    """A relation that was made of a linked table.

    Attributes:
        name: as queries write it: that of the table.
        arrow: the rows.
        report: how the cells were read: casts that failed, columns renamed, passages missing.
        origins: for each column of `arrow`, the position of the table's column that it was made of.
        spelled: for each typed column, how the table writes each of its values.
        named: for each column of text, the cells that are the name of what they link with a remark in parentheses, as
            "Ronnie Ray ( USA )", and that name.
        missing: links that have no passage.
        title: of the table's page and section.
    """

    name: str
    arrow: Any
    report: LoadReport
    origins: Mapping[str, int]
    spelled: Mapping[str, Mapping[Any, str]] = field(default_factory=dict)
    named: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    missing: int = 0
    title: str = ""

    @property
    def info_columns(self) -> tuple[str, ...]:
        """The columns of passages."""
        return tuple(f.name for f in self.arrow.schema if f.name not in self.spelled and _is_list(f.type))

    def schema(self) -> RelationSchema:
        """Return the declaration of the columns of passages as free text, and the title."""
        free = ColumnSchema(kind=ColumnKind.FREE_TEXT)
        return RelationSchema(self.title or None, columns=dict.fromkeys(self.info_columns, free))


def make_relation(linked: LinkedTable, *, titled: bool = False) -> HybridRelation:
    """Return the relation of a linked table.

    A column has the type that at least 95 % of its cells can be read as; the others are NULL there and counted in the
    report, and the column `Column_Text` holds what the table writes. Where a column has links, `Column_Info` holds the
    texts of each cell's passages, NULL where a cell has none. `titled` texts begin with what their article is called
    where they do not say it soon: of several in a cell, a reader knows which is which.
    """
    import pyarrow as pa

    table = linked.table
    cells = list(zip(*table.rows, strict=True)) or [() for _ in table.header]
    links = list(zip(*linked.links, strict=True)) or [() for _ in table.header]
    header = clean_header(list(table.header), table.id.table)
    found: list[tuple[str, int, Any]] = []
    reports, spelled, named = [], {}, {}
    for at, name in enumerate(header.names):
        written = pa.chunked_array([pa.array([cell or None for cell in cells[at]], pa.large_string())])
        typed, report = type_column(name, written)
        found.append((name, at, typed))
        reports.append(report)
        if report.failures:
            found.append((name + TEXT, at, written))
        if report.type != "text":
            spelled[name] = _spellings(typed, cells[at])
        else:
            named[name] = _names(cells[at], links[at])
        if any(links[at]):
            texts = [_texts(each, linked.passages, titled=titled) for each in links[at]]
            found.append((name + INFO, at, pa.array(texts, pa.list_(pa.large_string()))))
    names = clean_header([name for name, _, _ in found], table.id.table)
    lost = [link for row in linked.links for each in row for link in each if link not in linked.passages]
    warnings = (*header.warnings, *names.warnings, *_missing(table.id.table, lost))
    arrow = pa.table([column for _, _, column in found], names=list(names.names))
    origins = {name: at for name, (_, at, _) in zip(names.names, found, strict=True)}
    read = LoadReport(table.id.table, len(table.rows), tuple(reports), warnings)
    title = " / ".join(part for part in (table.title, table.section) if part)
    return HybridRelation(table.id.table, arrow, read, origins, spelled, named, len(lost), title)


def open_relations(relations: Sequence[HybridRelation]) -> DuckDBDatabase:
    """Return an in-memory database of relations, for `almanaq.connect`.

    `connection.warnings` says how they were read.
    """
    import duckdb

    connection = duckdb.connect()
    connection.execute("CREATE SCHEMA data")
    made = {}
    for relation in relations:
        made["data", relation.name] = load_table(connection, ("memory", "data", relation.name), relation.arrow)
    declared = Schema({relation.name: relation.schema() for relation in relations})
    loaded = Loaded(tuple(relation.report for relation in relations), declared, made=made)
    return DuckDBDatabase(connection, name="tables", database="memory", loaded=loaded, infer_enums=True)


def table_faults(tables: Iterable[LinkedTable]) -> str:
    """Say how many links have no passage and how many tables have columns without a name of their own; "" for none."""
    lost, unnamed, examples = 0, 0, ("", "")
    for linked in tables:
        missing = [link for row in linked.links for cell in row for link in cell if link not in linked.passages]
        renamed = clean_header(list(linked.table.header), linked.table.id.table).warnings
        examples = (examples[0] or (missing or [""])[0], examples[1] or (renamed or ("",))[0])
        lost, unnamed = lost + len(missing), unnamed + bool(renamed)
    return "; ".join(
        fault
        for fault in (
            f"{lost:,} links have no passage, first {examples[0]!r}" if lost else "",
            f"{unnamed:,} tables have columns without a name of their own, first {examples[1]}" if unnamed else "",
        )
        if fault
    )


def _is_list(type_: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(type_))


def _texts(links: CellLinks, passages: Mapping[str, str], *, titled: bool) -> list[str] | None:
    found = [(link, passages[link]) for link in links if link in passages]
    return [_with_title(link, text) if titled else text for link, text in found] or None


def _with_title(link: str, text: str) -> str:
    """Return a passage with its article's name before it, where its beginning does not say it."""
    name = _title(link)
    return text if f" {normalize_answer(name)} " in f" {normalize_answer(text[:_SOON])} " else f"{name}: {text}"


def _title(link: str) -> str:
    """Return what an article is called, without the remark that tells it from others of that name."""
    return _REMARK.sub(r"\1", link.rpartition("/")[2].replace("_", " "))


def _spellings(typed: Any, written: Sequence[str]) -> dict[Any, str]:
    """Return how each value is written where it first stands."""
    found: dict[Any, str] = {}
    for value, text in zip(typed.to_pylist(), written, strict=True):
        if value is not None:
            found.setdefault(value, text)
    return found


def _names(cells: Sequence[str], links: Sequence[CellLinks]) -> dict[str, str]:
    """Return the cells that are a name with a remark in parentheses, where a link bears that name."""
    found = {}
    for cell, targets in zip(cells, links, strict=True):
        match = _REMARK.fullmatch(cell)
        if match and any(normalize_answer(_title(target)) == normalize_answer(match[1]) for target in targets):
            found[cell] = match[1]
    return found


def _missing(table: str, lost: Sequence[str]) -> tuple[str, ...]:
    if not lost:
        return ()
    examples = ", ".join(map(repr, list(dict.fromkeys(lost))[:_EXAMPLES]))
    return (f"{table}: {len(lost):,} links have no passage: {examples}",)


def short_answer(rows: Sequence[Sequence[Any]], columns: Sequence[str], relation: HybridRelation | None = None) -> str:
    """Return the short answer that rows hold; "" where there is none.

    HybridQA has one answer to a question, so the first row that is not NULL decides. A value of a typed column of
    `relation` is written as the table writes it, since a gold answer is words of the table or of a passage; a remark
    after a linked name is left out.
    """
    for row in rows:
        for name, value in zip(columns, row, strict=True):
            if text := spell_value(name, value, relation):
                return text
    return ""


def spell_value(name: str, value: Any, relation: HybridRelation | None) -> str:
    """Return a value as the table writes it, "" for none."""
    if value is None:
        return ""
    if relation is not None and not isinstance(value, list):
        written = relation.spelled.get(name, {}).get(value) or relation.named.get(name, {}).get(value)
        if written:
            return written.strip()
    return _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime) and value.time() == time():
        value = value.date()
    if isinstance(value, date) and not isinstance(value, datetime):
        return f"{value:%B} {value.day}, {value.year}"
    if isinstance(value, timedelta):
        return str(value)
    if isinstance(value, list | tuple):
        return _plain(value[0]) if value else ""
    return str(value).strip()


MOST_ROWS = 20
"""Tables of at most so many rows are shown whole."""

_CELL = 60


def whole_table(relation: HybridRelation) -> list[list[str | None]]:
    """Return the header and the rows as a query compares them; [] for a table of more rows than are shown."""
    if relation.arrow.num_rows > MOST_ROWS:
        return []
    names = [name for name in relation.arrow.column_names if name not in relation.info_columns]
    rows = relation.arrow.select(names).to_pylist()
    return [list(names), *([_cut(row[name]) for name in names] for row in rows)]


def _cut(value: object) -> str | None:
    text = str(value)
    return None if value is None else text if len(text) <= _CELL else text[:_CELL] + "…"
