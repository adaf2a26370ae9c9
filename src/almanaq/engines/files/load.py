"""Files as a database: each is opened or reported, loaded into DuckDB, and cached so for the next time."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

from almanaq.corpus.files.documents import is_mail, read_documents
from almanaq.corpus.files.listing import (
    Format,
    FoundFile,
    Listing,
    join_files,
    list_folder,
    list_paths,
    not_opened,
    total_bytes,
)
from almanaq.corpus.files.reader import (
    in_utf8,
    join_delimited,
    name_paths_columns,
    open_delimited,
    read_records,
)
from almanaq.corpus.files.records import Records, open_records, share_keys
from almanaq.corpus.files.shape import clean_header
from almanaq.corpus.files.sheets import read_workbook
from almanaq.corpus.files.sniff import ReadOptions
from almanaq.corpus.inference import ColumnHints, ColumnReport, LoadReport, with_units
from almanaq.corpus.read_cancellation import current_read, raise_if_cancelled
from almanaq.corpus.sqlite import ViewTime
from almanaq.corpus.table import TableId
from almanaq.engines.common import Derived
from almanaq.engines.duckdb.engine import DuckDBDatabase, Loaded, load_table
from almanaq.engines.duckdb.session import file_literal, open_instance
from almanaq.engines.files.columns import count_repeated, infer_keys, value_column
from almanaq.engines.files.delimited import load_delimited
from almanaq.engines.files.sqlite import load_sqlite
from almanaq.engines.files.table_cache import DATABASE, TableCache, fingerprint
from almanaq.errors import MissingExtraError, SourceError, first_line
from almanaq.suql.catalog.reading import relation_names
from almanaq.suql.catalog.relations import Catalog, ColumnKind
from almanaq.suql.catalog.schema_file import ColumnSchema, RelationSchema, Schema
from almanaq.text.sql_literals import quote, string_literal

_NOTHING = ReadOptions()
_IS_TABLE = "SELECT 1 FROM duckdb_tables() WHERE database_name = ? AND schema_name = ? AND table_name = ?"


@dataclass(slots=True)
class _Load:
    """What is loaded so far.

    Attributes:
        declared: what is known of a table beside its columns: the units of numbers, the parent of a child.
        typed: tables whose file declares types.
        objects: JSON files that are one object each, by their database: they may be rows of one table.
    """

    connection: duckdb.DuckDBPyConnection
    said: Schema
    problems: list[str] = field(default_factory=list)
    reports: dict[TableId, LoadReport] = field(default_factory=dict)
    declared: dict[tuple[str, str], RelationSchema] = field(default_factory=dict)
    typed: set[TableId] = field(default_factory=set)
    objects: dict[str, list[tuple[FoundFile, Records]]] = field(default_factory=dict)
    derived: list[Derived] = field(default_factory=list)

    def reading(self, table_id: TableId) -> ReadOptions:
        found = {name.casefold(): entry for name, entry in self.said.relations.items()}
        entry = found.get(f"{table_id.database}.{table_id.table}".casefold(), found.get(table_id.table.casefold()))
        return entry.as_read_options() if entry is not None else _NOTHING

    def free(self, table_id: TableId) -> TableId:
        """Return a table's name, with a number where another file has it already."""
        taken = {(each.database, each.table.casefold()) for each in self.reports}
        number, name = 2, table_id.table
        while (table_id.database, name.casefold()) in taken:
            name, number = f"{table_id.table}_{number}", number + 1
        return TableId(table_id.database, name)


def open_files(
    source: Path | Sequence[Path],
    *,
    schema: Schema | None = None,
    cache: TableCache | None = None,
    name: str = "",
    held: object = None,
    seconds: float | None = None,
    separate: bool = False,
) -> DuckDBDatabase:
    """Open a folder of files of rows, one such file or several, as a database.

    The tables of a folder lie in a schema named after it, those of its sub-folders in schemas named after them. A file
    that cannot be opened is reported, and the others are. The tables of a SQLite file lie in a schema named after it.

    Args:
        cache: where tables are cached for the next time; None: nowhere.
        name: of the source; "": that of the folder or file.
        held: what must live as long as the database, as a folder of files that were fetched.
        seconds: how long the views of SQLite files may take together; None takes VIEW_SECONDS.
        separate: each file is a table of its own, even if several look like parts of one.
    """
    paths, opened = [source] if isinstance(source, Path) else list(source), time.time()
    folder = len(paths) == 1 and paths[0].is_dir()
    listing = list_folder(paths[0], separate=separate) if folder else list_paths(paths, separate=separate)
    name = name or paths[0].name or str(paths[0])
    declared = schema or Schema()
    listing = listing if separate else join_files(listing, declared.relations, any_name=not folder)
    key = fingerprint(listing, declared) if cache is not None and _is_worth_caching(listing) else ""
    found = cache.open(key) if cache is not None and key else None
    connection, loaded = found or (open_instance(), Loaded())
    save = None
    try:
        if found is None:
            connection.execute(f"ATTACH ':memory:' AS {DATABASE}")
            with current_read().interrupting(connection.interrupt):
                loaded = _load(connection, listing, declared, name, ViewTime(seconds))
            save = cache.prepare(connection, key, loaded) if cache is not None and key and loaded.lasting else None
        lock_paths(connection, listing)
    except BaseException:
        connection.close()
        raise
    places = [Path(f"{path}{end}") for path in paths for end in ("", "-wal")]  # to which SQLite may write beside a file
    given: dict[str, Any] = {"infer_enums": True, "on_close": partial(_close, save, held)}
    given["is_stale"] = lambda: any(path.exists() and path.stat().st_mtime > opened for path in places)
    return DuckDBDatabase(connection, name=name, database=DATABASE, schema=schema, loaded=loaded, **given)


def _close(save: Callable[[Catalog | None], None] | None, held: object, found: Sequence[Catalog]) -> None:  # noqa: ARG001
    if save is not None:  # what is `held` lives until then
        save(next(iter(found), None))


def read_table(path: Path) -> tuple[Any, LoadReport]:
    """Return one file of rows as an Arrow table with its cells typed, and how they were read; of several the first."""
    with closing(open_files(path)) as database:
        first = next(report for report in database.reports if report.table)
        relation = next(r for r in database.catalog().relations if r.location[-1] == first.table)
        with database.session() as session:
            return session.fetch(f"SELECT * FROM {quote(*relation.location)}"), first


def _is_worth_caching(listing: Listing) -> bool:
    """Tell whether reading the files takes long enough for their tables to be cached: Parquet is read in place."""
    read = [path for found in listing.files if found.kind.format is not Format.PARQUET for path in found.paths]
    read += listing.databases
    return len(read) >= TableCache.LEAST_FILES or (bool(read) and total_bytes(read) >= TableCache.LEAST_BYTES)


def _load(connection: duckdb.DuckDBPyConnection, listing: Listing, said: Schema, name: str, views: ViewTime) -> Loaded:
    load = _Load(connection, said, [*listing.problems])
    for found in listing.files:
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {DATABASE}.{quote(found.id.database)}")
        _load_or_report(load, found.path.name, partial(_LOADERS[found.kind.format], load, found))
    _load_objects(load)
    load.declared.update(infer_keys(connection, DATABASE, load.declared))
    for place, entry in load.declared.items():
        raise_if_cancelled()
        table_id = TableId(*place)
        report = load.reports[table_id]
        notes = tuple(
            f"{table_id.table}.{near.column}: {near.share:.1%} of its values are in {near.relation}.{near.key}; joins "
            f"keep the other {near.strays:,} rows; if it refers to it, say so by `foreign_keys` in the schema file"
            for near in entry.near_references
        )
        checked = table_id in load.typed or entry.key  # either rules out rows that come twice
        repeated = 0 if checked else count_repeated(connection, (DATABASE, *place), report.rows, len(report.columns))
        load.reports[table_id] = replace(report, warnings=(*report.warnings, *notes), repeated=repeated)
    for path in listing.databases:
        _load_or_report(load, path.name, partial(_load_sqlite, load, path, views))
    if not load.reports:
        raise SourceError("\n".join(load.problems))
    names = relation_names(list(load.reports))
    declared = {names[each]: _rename_references(entry, each, names) for each, entry in load.declared.items()}
    several = len({table_id.database for table_id in load.reports}) > 1
    in_place = any(found.kind.format is Format.PARQUET for found in listing.files)
    return Loaded(
        (*(LoadReport("", 0, (), (problem,)) for problem in load.problems), *load.reports.values()),
        Schema(declared, name),
        separate=several,
        origins={quote(*each): report.origin for each, report in load.reports.items()},
        typed=frozenset((each.database, each.table) for each in load.typed),
        lasting=not views.over,
        derived=tuple(load.derived),
        made=None if in_place else {(each.database, each.table): report.rows for each, report in load.reports.items()},
    )


def _load_or_report(load: _Load, file: str, work: Callable[[], None]) -> None:
    raise_if_cancelled()
    try:
        work()
    except (SourceError, MissingExtraError, OSError, UnicodeError) as error:
        load.problems.append(not_opened(file, str(error)))
    except duckdb.Error as error:
        raise_if_cancelled()  # it may have been interrupted
        load.problems.append(not_opened(file, first_line(error)))


def _rename_references(
    entry: RelationSchema, table_id: tuple[str, str], names: Mapping[tuple[str, str], str]
) -> RelationSchema:
    place = table_id[0]
    keys = tuple((own, names.get((place, other), other), theirs) for own, other, theirs in entry.foreign_keys)
    near = tuple(
        replace(each, relation=names.get((place, each.relation), each.relation)) for each in entry.near_references
    )
    return replace(entry, foreign_keys=keys, near_references=near)


# --- one file of each format -----------------------------------------------------------------------------------------


def _load_delimited(load: _Load, found: FoundFile) -> None:
    reading = load.reading(found.id)
    if found.columns:
        with join_delimited(found, reading.hints) as (joined, notes):
            whole = replace(found, paths=(joined,), columns=(), values=())
            _load_delimited(load, whole)
            report = load.reports[found.id]
            origin = f"{found.path.name} and {len(found.paths) - 1:,} more files: delimited text"
            load.reports[found.id] = replace(report, warnings=(*notes, *report.warnings), origin=origin)
        return
    with open_delimited(found.path, reading.hints) as file:
        dialect, header = file.dialect, file.header
        with in_utf8(file.path, dialect.encoding, dialect.errors) as text:
            place = (DATABASE, *found.id)
            rows, columns, mended = load_delimited(load.connection, place, text, dialect.as_utf8(), header, reading)
    columns = with_units(columns, dialect.units)
    _add(load, found.id, LoadReport(found.id.table, rows, columns, file.notes(mended), file.origin))


def _load_json(load: _Load, found: FoundFile) -> None:
    encoding = load.reading(found.id).hints.encoding
    if found.columns:
        read = [read_records(path, encoding) for path in found.paths]
        rows = [
            row | dict(zip(name_paths_columns(found.columns, list(row)), map(_path_value, values), strict=True))
            for records, values in zip(read, found.values, strict=True)
            for row in map(dict, records.rows)
        ]
        _load_records(load, found, Records(list(rows), tuple(note for records in read for note in records.notes)))
        return
    records = read_records(found.path, encoding)
    if records.whole is not None:
        load.objects.setdefault(found.id.database, []).append((found, records))
    else:
        _load_records(load, found, records)


def _path_value(text: str) -> int | str:
    return int(text) if text.isdecimal() and str(int(text)) == text else text


def _load_objects(load: _Load) -> None:
    """Load JSON files that are one object each: those of a folder as the rows of one table, where they are alike."""
    for place, files in load.objects.items():
        objects = [records.whole or {} for _, records in files]
        if len(files) > 1 and share_keys(objects):
            folder = files[0][0].path.parent.resolve().name
            named: list[Any] = [{"file": f.path.stem, **each} for (f, _), each in zip(files, objects, strict=True)]
            rows = objects if any("file" in each for each in objects) else named
            note = f"{folder}: its {len(rows):,} JSON files of one object each are the rows of one table"
            notes = (note, *(fault for _, records in files for fault in records.faults))
            merged = replace(files[0][0], id=load.free(TableId(place, folder)))
            _load_or_report(load, folder, partial(_load_records, load, merged, Records(list(rows), notes)))
            continue
        for found, records in files:
            _load_or_report(load, found.path.name, partial(_load_records, load, found, records))


def _load_records(load: _Load, found: FoundFile, records: Records) -> None:
    file = found.path.name
    for name, rows in records.tables.items():
        taken = load.free(TableId(found.id.database, name)).table != name
        part = replace(found, id=TableId(found.id.database, f"{found.id.table}_{name}" if taken else name))
        _load_records(load, part, Records(rows, records.notes if name == next(iter(records.tables)) else ()))
    if records.tables:
        return
    if not records.rows:
        raise SourceError("it holds one object, not a list of rows: write an array of objects, or one object per line")
    tables = open_records(records.rows, found.id.table)
    records.rows.clear()  # room for the columns
    ids = {table.name: load.free(TableId(found.id.database, table.name)) for table in tables}
    for table in tables:
        header = clean_header(list(table.columns), file)
        notes = (*(records.notes if table is tables[0] else ()), *header.warnings)
        _load_values(load, ids[table.name], header.names, list(table.columns.values()), (notes, f"{file}: JSON"))
        table.columns.clear()
    for table in tables:
        own, parent, theirs = table.parent or ("", "", "")
        foreign = (((own,), ids[parent].table, (theirs,)),) if table.parent else ()
        entry = load.declared[ids[table.name]]
        key = (table.key,) if table.key else ()
        load.declared[ids[table.name]] = replace(entry, key=key, foreign_keys=foreign)


def _load_sheets(load: _Load, found: FoundFile) -> None:
    for sheet in read_workbook(found.path, found.id.table, load.reading(found.id).hints.header):
        columns = [list(column) for column in zip(*sheet.rows, strict=True)] or [[] for _ in sheet.header.names]
        table_id = load.free(TableId(found.id.database, sheet.name))
        _load_values(load, table_id, sheet.header.names, columns, (sheet.notes, sheet.origin), sheet.units)


def _load_values(
    load: _Load,
    table_id: TableId,
    names: Sequence[str],
    columns: Sequence[list[Any]],
    said: tuple[tuple[str, ...], str],
    units: Sequence[str] = (),
    as_text: Collection[str] = (),
) -> None:
    """Load columns of values; `said`: notes, and where they are from; `as_text`: columns that are not typed."""
    import pyarrow as pa

    reading = load.reading(table_id)
    types = dict.fromkeys(map(str.casefold, as_text), "text") | dict(reading.types)
    typed = [
        value_column(name, values, ColumnHints(said=reading.marks, type=types.get(name.casefold(), "")))
        for name, values in zip(names, columns, strict=True)
    ]
    load_table(load.connection, (DATABASE, *table_id), pa.table([column for column, _ in typed], names=list(names)))
    notes, origin = said
    reports = with_units([report for _, report in typed], units)
    _add(load, table_id, LoadReport(table_id.table, len(columns[0]) if columns else 0, reports, notes, origin))


def _load_parquet(load: _Load, found: FoundFile) -> None:
    rows, columns, warnings = load_parquet(load.connection, (DATABASE, *found.id), found)
    reports = tuple(ColumnReport(name, type_, rows) for name, type_ in columns)
    parts = f" and {len(found.paths) - 1:,} more files" if len(found.paths) > 1 else ""
    load.typed.add(found.id)
    origin = f"{found.path.name}{parts}: Parquet"
    if load.connection.execute(_IS_TABLE, [DATABASE, *found.id]).fetchone() is None:
        origin += ", read in place: its keys are not looked for, as that would read all of it; say `key = [...]`"
    _add(load, found.id, LoadReport(found.id.table, rows, reports, warnings, origin))


def _load_sqlite(load: _Load, path: Path, views: ViewTime) -> None:
    """Load the tables of a SQLite file into a schema named after it, which no other file may have."""
    taken = {each.database.casefold() for each in load.reports}
    place = next(
        name
        for name in (path.stem, path.name.replace(".", "_"), *(f"{path.stem}_{n}" for n in range(2, len(taken) + 3)))
        if name.casefold() not in taken
    )
    if place != path.stem:
        load.problems.append(f"{path.name}: its tables lie in {place!r}, since {path.stem!r} is taken; rename one file")
    reports, declared, left_out, derived = load_sqlite(load.connection, place, path, views)
    if not declared:
        raise SourceError(f"{path.name} holds no table")
    for table, report in reports.items():
        load.reports[TableId(place, table)] = replace(report, origin=f"{path.name}: SQLite")
    load.declared.update({TableId(place, table): entry for table, entry in declared.items()})
    load.problems += left_out
    load.derived += derived


def _add(load: _Load, table_id: TableId, report: LoadReport) -> None:
    load.reports[table_id] = report
    units = {
        c.name: ColumnSchema(description=f"in {c.unit}" if c.unit else None, written=c.written, caution=c.caution)
        for c in report.columns
        if c.unit or c.written or c.caution
    }
    load.declared[table_id] = RelationSchema(columns=units)


def _load_documents(load: _Load, found: FoundFile) -> None:
    """Load the documents of a source; their paths are the key, by which quotes are cited."""
    read = read_documents(found)
    files = "1 document" if len(found.paths) == 1 else f"{len(found.paths):,} documents"
    said = (read.notes, f"{found.path.name if len(found.paths) == 1 else found.root}: {files}")
    as_text = {name for name, values in read.columns.items() if {type(v) for v in values} <= {str, type(None)}}
    _load_values(load, found.id, list(read.columns), list(read.columns.values()), said, as_text=as_text)
    mail = "" if any(not is_mail(path) for path in found.paths) else ", mails, messages"
    load.declared[found.id] = RelationSchema(
        description=f"Documents; also called files{mail}",
        key=("path",),
        columns={"text": ColumnSchema(kind=ColumnKind.FREE_TEXT)},
    )


_LOADERS = {
    Format.DELIMITED: _load_delimited,
    Format.JSON: _load_json,
    Format.SHEETS: _load_sheets,
    Format.PARQUET: _load_parquet,
    Format.DOCUMENTS: _load_documents,
}


# --- Parquet: small files are loaded, large ones and those in parts are read in place, by a view ----------------------

VIEW_BYTES = 64 << 20
"""Files that are larger together are read in place: opening them costs nothing, and no memory holds them."""
TABLE_BYTES = 8 * VIEW_BYTES
"""What a small file may unpack to and be loaded: a few bytes may stand for any number of rows, and of long ones."""


def load_parquet(
    connection: duckdb.DuckDBPyConnection, place: tuple[str, ...], found: FoundFile
) -> tuple[int, tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Make the table or view at `place`; give its number of rows, its columns with their types, and warnings."""
    file = found.path.name
    source = parquet_source(found)
    try:
        described = connection.execute(f"SELECT * FROM {source} LIMIT 0").description or []
        header = clean_header([entry[0] for entry in described], file)
        # Of all files at once, as their footers tell: of a union of them DuckDB would read a column.
        ((rows,),) = connection.execute(
            f"SELECT count(*) FROM read_parquet({_list_files(found)}, union_by_name = true)"
        ).fetchall()
        # NaN, by which programs without NULL mark what is missing, is NULL.
        columns = ", ".join(
            f"CASE WHEN NOT isnan({quote(old)}) THEN {quote(old)} END AS {quote(name)}"
            if str(type_) in ("FLOAT", "DOUBLE")
            else f"{quote(old)} AS {quote(name)}"
            for (old, type_, *_), name in zip(described, header.names, strict=True)
        )
        small = total_bytes(found.paths) <= VIEW_BYTES and _unpacked(connection, source, described, rows) <= TABLE_BYTES
        made = "TABLE" if small else "VIEW"
        connection.execute(f"CREATE {made} {quote(*place)} AS SELECT {columns} FROM {source}")
    except duckdb.Error as error:
        why = first_line(error)
        raise SourceError(f"{file} is not a Parquet file, or not of one table with those beside it: {why}") from error
    types = [(name, str(entry[1])) for name, entry in zip(header.names, described, strict=True)]
    return int(rows), tuple(types), header.warnings


def lock_paths(connection: duckdb.DuckDBPyConnection, listing: Listing) -> None:
    read = [found for found in listing.files if found.kind.format is Format.PARQUET]
    folders = [found.root.resolve() for found in read if found.root is not None]
    paths = [path.resolve() for found in read if found.root is None for path in found.paths]
    for setting, places in (("allowed_directories", folders), ("allowed_paths", paths)):
        # What is read is checked as it is written in the view, too.
        both = dict.fromkeys((*map(string_literal, places), *map(file_literal, places)))
        connection.execute(f"SET GLOBAL {setting} = {_list(both)}")


def _unpacked(connection: duckdb.DuckDBPyConnection, source: str, described: Any, rows: int) -> int:
    """Return about how many bytes the columns of a file take as a table; text that is kept once is looked at once."""
    sized = {"VARCHAR": "strlen({})", "BLOB": "octet_length({})"}
    texts = [sized[str(entry[1])].format(quote(entry[0])) for entry in described if str(entry[1]) in sized]
    fixed = 8 * rows * len(described)
    if not texts or fixed > TABLE_BYTES:
        return fixed
    sums = " + ".join(f"coalesce(sum({text}), 0)" for text in texts)
    ((held,),) = connection.execute(f"SELECT {sums} FROM {source}").fetchall()
    return fixed + int(held)


def parquet_source(found: FoundFile) -> str:
    """Return what a query reads the Parquet files of a table from."""
    if found.root is None and found.columns:
        selects = []
        for path, (value,) in zip(found.paths, found.values, strict=True):
            literal = value if isinstance(_path_value(value), int) else string_literal(value)
            file = file_literal(path.resolve())
            selects.append(f"SELECT *, {literal} AS {quote(found.columns[0])} FROM read_parquet({file})")
        return f"({' UNION ALL '.join(selects)})"
    files = _list_files(found)
    parted = ", hive_partitioning = true" if found.root is not None else ""
    return f"read_parquet({files}, union_by_name = {str(len(found.paths) > 1).lower()}{parted})"


def _list_files(found: FoundFile) -> str:
    return _list(file_literal(path.resolve()) for path in found.paths)


def _list(literals: Iterable[str]) -> str:
    return "[" + ", ".join(literals) + "]"
