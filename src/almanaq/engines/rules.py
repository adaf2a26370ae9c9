"""Which functions a query may call where sqlglot reads it: those that an engine lists, less a few with reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from sqlglot import exp

from almanaq.errors import RefusedQueryError, UnknownNameError, suggest

_OVER_ROWS = frozenset(
    """
    cume_dist dense_rank first_value grouping grouping_id lag last_value lead nth_value ntile percent_rank rank
    """.split()
)
"""Names of sqlglot's aggregates that are no aggregates: they take OVER, or name a grouping set."""
KNOWN_AGGREGATES = (
    frozenset(
        name.lower()
        for kind in vars(exp).values()
        if isinstance(kind, type) and issubclass(kind, exp.AggFunc) and kind is not exp.AggFunc
        for name in kind.sql_names()
    )
    - _OVER_ROWS
)
"""Names of the functions that aggregate, as sqlglot knows them."""


@dataclass(frozen=True, slots=True)
class ListedFunctions:
    """The functions of an engine, by name, in lower case.

    Attributes:
        built_in: those that come with the engine.
        aggregates: those of them that aggregate.
        in_from: those that may be called as an item of FROM.
        refused: reasons against some; `*` in a name stands for any characters.
        own: those that somebody has defined in the database.
    """

    built_in: frozenset[str]
    aggregates: frozenset[str]
    in_from: frozenset[str]
    refused: Mapping[str, str]
    own: frozenset[str] = field(default=frozenset())

    def check(self, name: str, *, in_from: bool, allowed: frozenset[str], **place: Any) -> None:
        """Raise UnknownNameError or RefusedQueryError unless a query may call a function.

        Args:
            in_from: whether it is called as an item of FROM.
            allowed: names that the user vouches for.
            place: where the call is written, for the error.
        """
        called = name.lower()
        if called in allowed:
            return
        if (reason := self._reason(called)) is not None:
            raise RefusedQueryError(f"the function {name!r} is not allowed in a query: {reason}", **place)
        if in_from and called in self.in_from:
            return
        if called in self.own:
            raise RefusedQueryError(
                f"the function {name!r} is one of the database's own, and nobody here knows what it does: who "
                f"trusts it connects with allow_functions=[{called!r}], or says --allow-function {called}",
                **place,
            )
        if called not in self.built_in:
            raise UnknownNameError(f"no function named {name!r}{suggest(called, sorted(self.built_in))}", **place)
        if in_from:
            raise RefusedQueryError(
                f"the table function {name!r} is not allowed in a query; FROM takes relations, subqueries and "
                f"{', '.join(sorted(self.in_from))}",
                **place,
            )

    def _reason(self, called: str) -> str | None:
        """Return why a function is refused; None where it is not."""
        if called in self.refused:
            return self.refused[called]
        patterns = ((name, why) for name, why in self.refused.items() if "*" in name)
        return next((why for name, why in patterns if fnmatchcase(called, name)), None)
