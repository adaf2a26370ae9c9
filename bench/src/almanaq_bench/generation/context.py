"""Contexts: the retrieved tables as text, in rank order, packed to a budget; for SQL a whole database's schema."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from almanaq.corpus.table import Corpus, Table, TableId
from almanaq.retrieval.protocols import Ranking
from almanaq.text.sql_literals import quote

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
        (f"  {_quote_name(column)} {kind}".rstrip(), _samples(connection, name, str(column)))
        for column, kind, _ in columns
    ]
    primary = [column for column, _, place in sorted(columns, key=lambda each: int(each[2])) if place]
    primary = primary or primary_key(table)
    if primary:
        lines.append((f"  PRIMARY KEY ({', '.join(map(_quote_name, primary))})", ""))
    lines += [(line, "") for line in _foreign_keys(connection, name)]
    last = len(lines) - 1
    body = "\n".join(f"{line}{',' * (at < last)}{comment}" for at, (line, comment) in enumerate(lines))
    return f"CREATE TABLE {_quote_name(name)} (\n{body}\n)"


def _foreign_keys(connection: sqlite3.Connection, name: str) -> list[str]:
    keys: dict[int, list[tuple[str, str, str | None]]] = {}
    query = 'SELECT id, "from", "table", "to" FROM pragma_foreign_key_list(?) ORDER BY id, seq'
    for key, own, other, theirs in connection.execute(query, (name,)):
        keys.setdefault(key, []).append((own, other, theirs))
    lines = []
    for parts in keys.values():
        own, other = ", ".join(_quote_name(each[0]) for each in parts), _quote_name(parts[0][1])
        theirs = [each[2] for each in parts if each[2]]
        target = f" ({', '.join(map(_quote_name, theirs))})" if theirs else ""
        lines.append(f"  FOREIGN KEY ({own}) REFERENCES {other}{target}")
    return lines


def _samples(connection: sqlite3.Connection, table: str, column: str) -> str:
    name = quote(column)
    query = f"SELECT DISTINCT {name} FROM {quote(table)} WHERE {name} IS NOT NULL LIMIT {_VALUES}"
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


BUDGET = 24_000
"""Characters of a context: about 6,000 tokens."""

_SHARE = 1.5  # a table takes at most so many times its equal share while others wait
_NOTE = 30  # characters that say how many rows were left out
_LEAST = 200  # characters below which a table's rows are not begun


def read_tables(corpus: Corpus, ids: Iterable[TableId]) -> dict[TableId, Table]:
    """Return the tables of these ids."""
    wanted = set(ids)
    return {table.id: table for table in corpus if table.id in wanted}


def pack(tables: Sequence[Table], budget: int = BUDGET) -> list[str]:
    """Return tables as text, best first, until the budget is full.

    A table that does not fit is cut after a row, never dropped for the sake of a later one; while others wait, each
    gets half more than its equal share of what is left, and at most half, so that a long table does not hide the rest.
    """
    packed: list[str] = []
    left = budget
    for place, table in enumerate(tables):
        waiting = len(tables) - place - 1
        share = min(left // 2, int(_SHARE * left / (waiting + 1))) if waiting else left
        text = table_markdown(table, share - _NOTE)
        if packed and len(text) > left:
            break
        packed.append(text)
        left -= len(text)
        if left < _LEAST:
            break
    return packed


def distinct(tables: Sequence[Table]) -> tuple[Table, ...]:
    """Return tables without those whose header and rows an earlier one has, under whatever id."""
    found: dict[tuple[object, ...], Table] = {}
    for table in tables:
        found.setdefault((table.title, table.section, table.header, table.rows), table)
    return tuple(found.values())


def table_markdown(table: Table, budget: int) -> str:
    """Return a table with its titles in Markdown, as many rows as fit into so many characters; the header always."""
    titles = [text for text in (table.title, table.section) if text]
    lines = [" – ".join(titles)] if titles else []
    lines += [_line(table.header), "|" + " --- |" * len(table.header)]
    size = sum(len(line) + 1 for line in lines)
    for number, row in enumerate(table.rows):
        line = _line(row)
        size += len(line) + 1
        if size > budget:
            lines.append(f"({len(table.rows) - number} more rows)")
            break
        lines.append(line)
    return "\n".join(lines)


def database_of(ranking: Ranking) -> str:
    """Return the database of the best table; "" where nothing was found."""
    return ranking[0].id.database if ranking else ""


def schema_texts(tables: Sequence[Table]) -> list[str]:
    """Return the tables of a database with the types of their columns, their keys and what is said of them."""
    return [_schema(table) for table in tables if not is_internal(table)]


def is_internal(table: Table) -> bool:
    """Return whether a table is one of SQLite's own."""
    return table.id.table.startswith("sqlite_")


def primary_key(table: Table) -> list[str]:
    """Return the columns of the primary key, as the source tells them."""
    return [key for key in table.keys if " -> " not in key and key in table.header]


def _schema(table: Table) -> str:
    types = _strings(table.context.get("column_types"))
    columns = [
        f"  {_quote_name(name)}{' ' + types[place].upper() if place < len(types) else ''}"
        for place, name in enumerate(table.header)
    ]
    primary = primary_key(table)
    if primary:
        columns.append(f"  PRIMARY KEY ({', '.join(map(_quote_name, primary))})")
    for key in table.keys:
        column, arrow, target = key.partition(" -> ")
        if arrow:
            other, _, theirs = target.rpartition(".")
            columns.append(
                f"  FOREIGN KEY ({_quote_name(column)}) REFERENCES {_quote_name(other)} ({_quote_name(theirs)})"
            )
    text = f"CREATE TABLE {_quote_name(table.id.table)} (\n" + ",\n".join(columns) + "\n)"
    return f"{text}\n{comments(table)}".rstrip()


def comments(table: Table) -> str:
    """Return what the source says of a table's columns, as comments; "" where it says nothing."""
    described = table.context.get("column_descriptions")
    return "\n".join(f"-- {line}" for line in table.description.splitlines()) if described else ""


def _strings(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list | tuple) else ()


def _quote_name(name: str) -> str:
    return name if name.isidentifier() else quote(name)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def tables_by_database(corpus: Corpus, databases: Iterable[str]) -> Mapping[str, Sequence[Table]]:
    """Return all tables of these databases, in corpus order."""
    found: dict[str, list[Table]] = {name: [] for name in databases}
    for table in corpus:
        if table.id.database in found:
            found[table.id.database].append(table)
    return found


def sqlite_dialect(suql: str) -> str:
    """Return a query in SQLite's dialect; as it is where it cannot be put into it.

    NULLs come last in either direction unless the query says otherwise, as in SUQL.
    """
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        tree = sqlglot.parse_one(suql, read="duckdb")
        if " NULLS " not in suql.upper():
            for ordered in tree.find_all(exp.Ordered):
                ordered.set("nulls_first", False)
        return tree.sql("sqlite")
    except SqlglotError:
        return suql
