"""Queries that the engine runs as they are written: no text function is left in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from almanaq.errors import UnsupportedError
from almanaq.text.sql_literals import string_literal

WORK_SCHEMA = "almanaq_work"
"""Stands before the name of a table that an earlier stage makes, until the session tells where it is."""


@dataclass(frozen=True, slots=True)
class NativeQuery:
    """A checked query in the engine's own SQL.

    Attributes:
        text: its SQL; tables of earlier stages stand in it as `almanaq_work.name`.
        parameters: values that the driver binds, by position or by name.
        tables: those tables of earlier stages.
        lookups: marks in its SQL, each with the query whose values take its place.
    """

    text: str
    parameters: Sequence[object] | Mapping[str, object] = field(default=(), compare=False)
    tables: tuple[str, ...] = ()
    lookups: tuple[tuple[str, str], ...] = ()

    def placed(self, write: Callable[[str], str]) -> str:
        """Return its SQL with the places of the tables that earlier stages made."""
        return self._place(self.text, write)

    def looked_up(self, write: Callable[[str], str], values_of: Callable[[str], Sequence[str]]) -> str:
        """Return its SQL with the places of tables, and with the values that its lookups give.

        Raises:
            UnsupportedError: there are none.
        """
        text = self.placed(write)
        for mark, query in self.lookups:
            values = values_of(self._place(query, write))
            if not values:
                raise UnsupportedError("PIVOT finds no values to make columns of: name them, ON … IN ('…')")
            text = text.replace(string_literal(mark), ", ".join(map(string_literal, values)))
        return text

    def _place(self, text: str, write: Callable[[str], str]) -> str:
        for name in self.tables:
            text = text.replace(f"{WORK_SCHEMA}.{name}", write(name))
        return text

    def sql(self, dialect: str = "", **_: object) -> str:
        """Return its SQL as it is, for EXPLAIN."""
        del dialect
        return self.text
