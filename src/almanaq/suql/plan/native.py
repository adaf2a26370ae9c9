"""Queries that the engine runs as they are written: no text function is left in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

WORK_SCHEMA = "almanaq_work"
"""Stands before the name of a table that an earlier stage makes, until the session tells where it is."""


@dataclass(frozen=True, slots=True)
class NativeQuery:
    """A checked query in the engine's own SQL.

    Attributes:
        text: its SQL; tables of earlier stages stand in it as `almanaq_work.name`.
        parameters: values that the driver binds, by position or by name.
        tables: those tables of earlier stages.
    """

    text: str
    parameters: Sequence[object] | Mapping[str, object] = field(default=(), compare=False)
    tables: tuple[str, ...] = ()

    def placed(self, write: Callable[[str], str]) -> str:
        """Return its SQL with the places of the tables that earlier stages made."""
        text = self.text
        for name in self.tables:
            text = text.replace(f"{WORK_SCHEMA}.{name}", write(name))
        return text

    def sql(self, dialect: str = "", **_: object) -> str:
        """Return its SQL as it is, for EXPLAIN."""
        del dialect
        return self.text
