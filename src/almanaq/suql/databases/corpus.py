"""The tables of a database as a corpus, for searching them as one searches files."""

from __future__ import annotations

from almanaq.corpus.readers import SourceTables, cell_text
from almanaq.corpus.table import Table, TableId
from almanaq.suql.catalog.reading import written_name
from almanaq.suql.catalog.relations import Relation
from almanaq.suql.databases.protocols import Database

ROWS = 1000
"""Rows of each table that are looked at: a server's tables may have any number."""


def database_corpus(database: Database, *, rows: int = ROWS) -> SourceTables:
    """Return the relations that may be read, each with its first rows, when the iteration reaches it.

    Raises:
        SourceError: there are relations, and none may be read.
        DatabaseError: a relation cannot be read that could when the catalog was.
    """
    catalog = database.catalog()
    catalog.check_readable()
    relations = {TableId(database.name, relation.name): relation for relation in catalog.relations}
    return SourceTables(tuple(relations), lambda table_id: _table(database, table_id, relations[table_id], rows))


def _table(database: Database, table_id: TableId, relation: Relation, rows: int) -> Table:
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


def _cells(database: Database, relation: Relation, rows: int) -> tuple[tuple[str, ...], ...]:
    columns = ", ".join(written_name([column.name], database.dialect) for column in relation.columns)
    place = written_name(relation.location, database.dialect)
    with database.session() as session:
        batches = session.stream(f"SELECT {columns} FROM {place} LIMIT {rows}")
        found = (row for batch in batches for row in zip(*(c.to_pylist() for c in batch.columns), strict=True))
        return tuple(tuple(map(cell_text, row)) for row in found)
