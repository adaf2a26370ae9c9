"""A database without its private columns, for clients that may be anywhere: what is not there cannot be read."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from almanaq.corpus.inference import LoadReport
from almanaq.engines.protocols import Database, Session
from almanaq.suql.catalog.relations import ROW_COLUMN, Catalog, Relation
from almanaq.suql.language import Language
from almanaq.text.sql_literals import quote


class RedactedDatabase:
    """A Database whose catalog has no private columns. What a query reads of a table are the columns that are left.

    Args:
        database: the whole; it stays open when this is closed.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.name, self.dialect = database.name, database.dialect
        self.typed = database.typed

    def catalog(self) -> Catalog:
        """Return the relations with the columns that are not private."""
        return self._public

    @cached_property
    def _public(self) -> Catalog:
        catalog = self._database.catalog()
        private = {
            (relation.name, column.name)
            for relation in catalog.relations
            for column in relation.columns
            if column.private
        }
        if not private:
            return catalog
        return replace(catalog, relations=tuple(_without(relation, private) for relation in catalog.relations))

    @cached_property
    def reports(self) -> tuple[LoadReport, ...]:
        """How the files were read, without the columns called as a private one is: reports quote cells."""
        catalog = self._database.catalog()
        private = {column.name.casefold() for r in catalog.relations for column in r.columns if column.private}
        return tuple(
            replace(report, columns=tuple(each for each in report.columns if each.name.casefold() not in private))
            for report in getattr(self._database, "reports", ())
        )

    def language(self, catalog: Catalog) -> Language:
        """Return the whole database's SQL over the relations of a catalog."""
        return self._database.language(catalog)

    def session(self, deadline: float | None = None) -> Session:
        """Open a session of the whole database."""
        return self._database.session(deadline)

    def close(self) -> None:
        """Do nothing: whoever opened the database closes it."""


def _without(relation: Relation, private: set[tuple[str, str]]) -> Relation:
    """Return a relation without its private columns, and without what they are part of: keys, names, references."""
    hidden = {column for table, column in private if table == relation.name}
    references = tuple(
        (own, other, theirs)
        for own, other, theirs in relation.foreign_keys
        if hidden.isdisjoint(own) and private.isdisjoint((other, column) for column in theirs)
    )
    # A row's address says nothing of its cells; the key of one column that names rows elsewhere may be private.
    row_source = None if hidden & {*relation.key} else relation.row_source or relation.row_id
    row_id = quote(ROW_COLUMN) if hidden and row_source else None if hidden else relation.row_id
    return replace(
        relation,
        columns=tuple(
            replace(column, vectors="" if column.vectors in hidden else column.vectors)
            for column in relation.columns
            if column.name not in hidden
        ),
        key=relation.key if hidden.isdisjoint(relation.key) else (),
        foreign_keys=references,
        near_references=tuple(
            near
            for near in relation.near_references
            if near.column not in hidden and (near.relation, near.key) not in private
        ),
        named_by="" if relation.named_by in hidden else relation.named_by,
        row_id=row_id,
        row_source=(row_source or "") if row_id else "",
        withheld=tuple(column.name for column in relation.columns if column.name in hidden),
    )
