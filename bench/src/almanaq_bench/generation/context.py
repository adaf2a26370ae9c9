"""Contexts: the retrieved tables as text, in rank order, packed to a budget; for SQL a whole database's schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from almanaq.corpus.table import Corpus, Table, TableId
from almanaq.retrieval.protocols import Ranking
from almanaq.text.sql_literals import quote

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
        f"  {_quoted(name)}{' ' + types[place].upper() if place < len(types) else ''}"
        for place, name in enumerate(table.header)
    ]
    primary = primary_key(table)
    if primary:
        columns.append(f"  PRIMARY KEY ({', '.join(map(_quoted, primary))})")
    for key in table.keys:
        column, arrow, target = key.partition(" -> ")
        if arrow:
            other, _, theirs = target.rpartition(".")
            columns.append(f"  FOREIGN KEY ({_quoted(column)}) REFERENCES {_quoted(other)} ({_quoted(theirs)})")
    text = f"CREATE TABLE {_quoted(table.id.table)} (\n" + ",\n".join(columns) + "\n)"
    return f"{text}\n{comments(table)}".rstrip()


def comments(table: Table) -> str:
    """Return what the source says of a table's columns, as comments; "" where it says nothing."""
    described = table.context.get("column_descriptions")
    return "\n".join(f"-- {line}" for line in table.description.splitlines()) if described else ""


def _strings(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list | tuple) else ()


def _quoted(name: str) -> str:
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
        tree = sqlglot.parse_one(suql, read="postgres")
        if " NULLS " not in suql.upper():
            for ordered in tree.find_all(exp.Ordered):
                ordered.set("nulls_first", False)
        return tree.sql("sqlite")
    except SqlglotError:
        return suql
