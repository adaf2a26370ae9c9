"""The tables of a database as a corpus, for searching them as one searches files."""

from __future__ import annotations

from functools import partial

from almanaq.corpus.readers import SourceTables, cell_text
from almanaq.corpus.table import Table, TableId
from almanaq.engines.protocols import Database
from almanaq.suql.catalog.reading import written_name
from almanaq.suql.catalog.relations import Relation

ROWS = 1000
"""Rows of each table that are looked at: a server's tables may have any number."""


def database_corpus(database: Database, *, rows: int | None = ROWS, name: str = "") -> SourceTables:
    """Return the relations that may be read, each with its first rows, when the iteration reaches it.

    Of a private column nothing is read: it has its name and its description, and its cells are empty. What is made of
    these tables, by any retriever, can so hold and send nothing of it.

    Args:
        rows: at most so many of each table; None reads all.
        name: of the database that the tables are said to lie in; "": its own.

    Raises:
        SourceError: there are relations, and none may be read.
        DatabaseError: a relation cannot be read that could when the catalog was.
    """
    catalog = database.catalog()
    catalog.check_readable()
    relations = {TableId(name or database.name, relation.name): relation for relation in catalog.relations}
    read = {table_id: partial(_table, database, table_id, each, rows) for table_id, each in relations.items()}
    faults = [warning for report in getattr(database, "reports", ()) for warning in report.warnings]
    return SourceTables(tuple(relations), lambda table_id: read[table_id](), faults)


def _table(database: Database, table_id: TableId, relation: Relation, rows: int | None) -> Table:
    foreign = [
        f"{column} -> {other}.{theirs}"
        for own, other, others in relation.foreign_keys
        for column, theirs in zip(own, others, strict=True)
    ]
    notes = [f"{column.name}: {column.description}" for column in relation.columns if column.description]
    return Table(
        table_id,
        tuple(column.name for column in relation.columns),
        () if relation.unread else _cells(database, relation, rows),
        title=relation.name,
        description="\n".join(part for part in (relation.description, *notes) if part),
        keys=(*relation.key, *foreign),
    )


def _cells(database: Database, relation: Relation, rows: int | None) -> tuple[tuple[str, ...], ...]:
    """Return the cells of a relation, those of private columns empty."""
    read = [column.name for column in relation.columns if not column.private]
    if not read:
        return ()
    columns = ", ".join(written_name([name], database.dialect) for name in read)
    place = written_name(relation.location, database.dialect)
    limit = "" if rows is None else f" LIMIT {rows}"
    with database.session() as session:
        batches = session.stream(f"SELECT {columns} FROM {place}{limit}")
        found = (row for batch in batches for row in zip(*(c.to_pylist() for c in batch.columns), strict=True))
        known = [dict(zip(read, map(cell_text, row), strict=True)) for row in found]
    return tuple(tuple(row.get(column.name, "") for column in relation.columns) for row in known)
