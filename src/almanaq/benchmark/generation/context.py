"""Contexts: the retrieved tables as text, in rank order, packed to a budget; for SQL a whole database's schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from almanaq.corpus.table import Corpus, Table, TableId
from almanaq.retrieval.protocols import Ranking
from almanaq.text.sql_literals import quote

BUDGET = 24_000
"""Characters of a context: about 6,000 tokens."""

_SHARE = 2  # no table takes more than one part in so many while others wait
_LEAST = 200  # characters below which a table's rows are not begun


def read_tables(corpus: Corpus, ids: Iterable[TableId]) -> dict[TableId, Table]:
    """Give the tables of these ids."""
    wanted = set(ids)
    return {table.id: table for table in corpus if table.id in wanted}


def pack(tables: Sequence[Table], budget: int = BUDGET) -> list[str]:
    """Give tables as text, best first, until the budget is full.

    A table that does not fit is cut after a row, never dropped for the sake of a later one; while others wait, the
    first gets half of what is left at most, so that one long table does not hide the rest.
    """
    packed: list[str] = []
    left = budget
    for place, table in enumerate(tables):
        more = place + 1 < len(tables)
        text = table_markdown(table, left // _SHARE if more else left)
        if packed and len(text) > left:
            break
        packed.append(text)
        left -= len(text)
        if left < _LEAST:
            break
    return packed


def table_markdown(table: Table, budget: int) -> str:
    """Give a table with its titles in Markdown, as many rows as fit into so many characters; the header always."""
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
    """Give the database of the best table; "" where nothing was found."""
    return ranking[0].id.database if ranking else ""


def schema_texts(tables: Sequence[Table]) -> list[str]:
    """Give the tables of a database with the types of their columns, their keys and what is said of them."""
    return [_schema(table) for table in tables]


def _schema(table: Table) -> str:
    types = _strings(table.context.get("column_types"))
    columns = [
        f"  {_quoted(name)}{' ' + types[place].upper() if place < len(types) else ''}"
        for place, name in enumerate(table.header)
    ]
    primary = [key for key in table.keys if " -> " not in key]
    if primary:
        columns.append(f"  PRIMARY KEY ({', '.join(map(_quoted, primary))})")
    for key in table.keys:
        column, arrow, target = key.partition(" -> ")
        if arrow:
            other, _, theirs = target.rpartition(".")
            columns.append(f"  FOREIGN KEY ({_quoted(column)}) REFERENCES {_quoted(other)} ({_quoted(theirs)})")
    text = f"CREATE TABLE {_quoted(table.id.table)} (\n" + ",\n".join(columns) + "\n)"
    return f"{text}\n{_comments(table)}".rstrip()


def _comments(table: Table) -> str:
    described = table.context.get("column_descriptions")
    return "\n".join(f"-- {line}" for line in table.description.splitlines()) if described else ""


def _strings(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list | tuple) else ()


def _quoted(name: str) -> str:
    return name if name.isidentifier() else quote(name)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def tables_by_database(corpus: Corpus, databases: Iterable[str]) -> Mapping[str, Sequence[Table]]:
    """Give all tables of these databases, in corpus order."""
    found: dict[str, list[Table]] = {name: [] for name in databases}
    for table in corpus:
        if table.id.database in found:
            found[table.id.database].append(table)
    return found


def sqlite_dialect(suql: str) -> str:
    """Give a query in SQLite's dialect; as it is where it cannot be put into it."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        made: list[str] = sqlglot.transpile(suql, read="postgres", write="sqlite")
    except SqlglotError:
        return suql
    return made[0]
