"""The schema of a SQLite database as a prompt shows it, read from the database itself: types, keys and some values."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from almanaq.corpus.table import Table
from almanaq_bench.generation.context import comments, is_internal, primary_key, schema_texts

_VALUES, _LENGTH = 3, 40


def database_schema(file: Path, tables: Sequence[Table]) -> list[str]:
    """Return tables as CREATE TABLE with their declared keys, and samples of each column in comments.

    SQLite's own tables are left out; one that the file does not hold is told as the corpus has it.
    """
    try:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
            connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            read = [(table, _table(connection, table)) for table in tables if not is_internal(table)]
    except sqlite3.Error:
        return schema_texts(tables)
    return [
        text
        for table, description in read
        for text in ([f"{description}\n{comments(table)}".rstrip()] if description else schema_texts([table]))
    ]


def _table(connection: sqlite3.Connection, table: Table) -> str:
    name = table.id.table
    columns = connection.execute("SELECT name, type, pk FROM pragma_table_info(?)", (name,)).fetchall()
    if not columns:
        return ""
    lines = [
        (f"  {_quoted(column)} {kind}".rstrip(), _samples(connection, name, str(column))) for column, kind, _ in columns
    ]
    primary = [column for column, _, place in sorted(columns, key=lambda each: int(each[2])) if place]
    primary = primary or primary_key(table)
    if primary:
        lines.append((f"  PRIMARY KEY ({', '.join(map(_quoted, primary))})", ""))
    lines += [(line, "") for line in _foreign_keys(connection, name)]
    last = len(lines) - 1
    body = "\n".join(f"{line}{',' * (at < last)}{comment}" for at, (line, comment) in enumerate(lines))
    return f"CREATE TABLE {_quoted(name)} (\n{body}\n)"


def _foreign_keys(connection: sqlite3.Connection, name: str) -> list[str]:
    keys: dict[int, list[tuple[str, str, str | None]]] = {}
    query = 'SELECT id, "from", "table", "to" FROM pragma_foreign_key_list(?) ORDER BY id, seq'
    for key, own, other, theirs in connection.execute(query, (name,)):
        keys.setdefault(key, []).append((own, other, theirs))
    lines = []
    for parts in keys.values():
        own, other = ", ".join(_quoted(each[0]) for each in parts), _quoted(parts[0][1])
        theirs = [each[2] for each in parts if each[2]]
        target = f" ({', '.join(map(_quoted, theirs))})" if theirs else ""
        lines.append(f"  FOREIGN KEY ({own}) REFERENCES {other}{target}")
    return lines


def _samples(connection: sqlite3.Connection, table: str, column: str) -> str:
    name = _always_quoted(column)
    query = f"SELECT DISTINCT {name} FROM {_always_quoted(table)} WHERE {name} IS NOT NULL LIMIT {_VALUES}"
    try:
        values = [row[0] for row in connection.execute(query)]
    except sqlite3.Error:
        return ""
    shown = ", ".join(_literal(value) for value in values if not isinstance(value, bytes))
    return f"  -- for example {shown}" if shown else ""


def _literal(value: object) -> str:
    if isinstance(value, int | float):
        return str(value)
    text = " ".join(str(value).split())
    cut = text if len(text) <= _LENGTH else text[: _LENGTH - 1] + "…"
    return "'" + cut.replace("'", "''") + "'"


def _quoted(name: str) -> str:
    return name if name.isidentifier() else _always_quoted(name)


def _always_quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
