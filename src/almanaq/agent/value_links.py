"""Values of columns that the words of a question spell: a prompt shows them, so that a query compares with them.

A schema in a prompt lists short ENUMs and a few samples. "somewhere in palo alto" needs the spelling 'Palo Alto', and
that it is a location: looking words up in the columns tells both, without a model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from almanaq.agent.linking.index import CatalogIndex, ValueMeaning
from almanaq.agent.linking.link import link
from almanaq.agent.queries import QueryEngine
from almanaq.suql.catalog.relations import Catalog, ColumnKind
from almanaq.text.sql_literals import string_literal

LISTED_VALUES = 100
"""The most values of an ENUM that a schema lists in full (10 in the paper, section 5.2); larger ones show samples."""

_MOST_LINKS, _MOST_MEANINGS, _LONGEST_VALUE = 8, 3, 60

ValueLink = Mapping[str, object]
"""`words` of the question, and what they `may_be`: columns with the values that they spell."""

FindLinks = Callable[[str, Catalog], tuple[ValueLink, ...]]


class ValueLinks:
    """Finds values in the columns of a catalog; private columns and prose are never read.

    Only columns of an engine in this process are read: elsewhere, distinct values of every column cost a server's time
    or money, and the values that the catalog knows have to do.
    """

    def __init__(self, engine: QueryEngine) -> None:
        self._engine = engine
        self._index: tuple[Catalog, CatalogIndex] | None = None

    def __call__(self, question: str, catalog: Catalog) -> tuple[ValueLink, ...]:
        """Return the values that words of the question spell, less those that the prompt's schema lists anyway."""
        links = link(question, self.index_of(catalog))
        found: list[ValueLink] = []
        for span in links.covers[0] if links.covers else ():
            meanings = [m for m in span.meanings if isinstance(m, ValueMeaning)][:_MOST_MEANINGS]
            if meanings and not all(map(_is_listed, meanings)):
                found.append({"words": links.text(span), "may_be": [_describe(m) for m in meanings]})
        return tuple(found[:_MOST_LINKS])

    def index_of(self, catalog: Catalog) -> CatalogIndex:
        """Return the names and values of a catalog by their words; the last is kept."""
        if self._index is None or self._index[0] is not catalog:
            known = self._engine.values if catalog.dialect == "duckdb" else _known_values(catalog)
            self._index = catalog, CatalogIndex(catalog, known)
        return self._index[1]


def _known_values(catalog: Catalog) -> Callable[[str, str, int], list[str]]:
    def values(relation: str, column: str, limit: int) -> list[str]:
        found = catalog.relation(relation).column(column)
        return [] if found is None else list(found.values or found.samples)[:limit]

    return values


def _is_listed(meaning: ValueMeaning) -> bool:
    """Return whether a schema in a prompt lists a value, or whether the value is too long to be shown."""
    column = meaning.column.column
    listed = column.kind is ColumnKind.ENUM and len(column.values) <= LISTED_VALUES
    return listed or len(meaning.value) > _LONGEST_VALUE


def _describe(meaning: ValueMeaning) -> str:
    """Return a column with the value that words spell: whole, an item of a list, or a part of a longer text."""
    column = meaning.column
    form = {"item": "has", "part": "holds these words, as in"}.get(meaning.how, "has" if column.column.array else "=")
    return f"{column.relation.name}.{column.name} {form} {string_literal(meaning.value)}"
