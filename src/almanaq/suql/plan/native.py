"""Queries that the engine runs as they are written: no text function is left in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from almanaq.errors import UnsupportedError
from almanaq.suql.language import WORK_SCHEMA
from almanaq.text.sql_literals import string_literal


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
        for name in sorted(self.tables, key=len, reverse=True):  # part_1 begins part_10
            text = text.replace(f"{WORK_SCHEMA}.{name}", write(name))
        return text
