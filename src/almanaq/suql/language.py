"""The seam to an engine's SQL: statements that were checked, trees that say the same, names of results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from sqlglot import exp

WORK_SCHEMA = "almanaq_work"
"""Stands before the name of a table that a part of a query becomes, until a session tells where it is."""
ROW_OF_ANSWER = "almanaq_row"
"""The column of such a table that leads to the quotes of its answers."""
Parameters = Sequence[object] | Mapping[str, object]
"""Values for the placeholders of a query, in order or by name."""


def parameters_of(names: Sequence[str], values: Parameters) -> Parameters:
    """Return the values of those parameters that a part of a query has, by name where it has not all in order."""
    if isinstance(values, Mapping):
        return {name: values[name] for name in names}
    if [str(i + 1) for i in range(len(values))] == list(names):
        return values
    return {name: values[int(name) - 1] for name in names}


@dataclass(frozen=True, slots=True)
class Statement:
    """One checked query that reads.

    Attributes:
        text: as it was given.
        sql: written from its tree, with the place of each relation; names that it calls its columns by are as given.
        shown: the same with relations narrowed to the columns that queries may read.
        has_text: whether it calls a text function.
        relations: names of the relations that it reads.
        parameters: names of its parameters, `1`, `2`, … for `?`, in the order in which they are first written.
    """

    text: str
    sql: str
    shown: str
    has_text: bool
    relations: tuple[str, ...]
    parameters: tuple[str, ...]
    lookups: tuple[tuple[str, str], ...] = ()
    """Marks in its SQL, each with the query whose values take its place before it runs."""
    tree: Any = field(default=None, compare=False, repr=False)
    """The engine's own tree, for an engine that has one."""
    labels: tuple[str, ...] = ()
    """What the engine calls the columns of the text's result, where those of its SQL would be called otherwise."""


@dataclass(frozen=True, slots=True)
class Part:
    """A statement that becomes a table before others run.

    Attributes:
        name: the table's name.
        statement: over the tables of earlier parts, `almanaq_work.name`.
        columns: the names and types of the table's columns.
        private: the private columns, `relation.column`, whose values they may hold.
        reads: the relation and the column that its documents are, "" where they are computed, of a part that asks about
            documents that another part lists; None of any other, whose table has no column ROW_OF_ANSWER.
        within: the part of which it has no more rows, as it is about them; "" where that is not known.
    """

    name: str
    statement: Statement
    columns: tuple[tuple[str, str], ...]
    private: tuple[str, ...] = ()
    reads: tuple[str, str] | None = None
    within: str = ""


@dataclass(frozen=True, slots=True)
class Cited:
    """Where the documents of a part stand, for the evidence of rows that rest on them.

    Attributes:
        part: whose answers they are; a hidden column holds its ROW_OF_ANSWER.
        key: how many hidden columns follow that one, which name the relation's row.
        named: what they are: "key", "number", "address" or "nothing".
        private: whether the column is.
    """

    part: str
    relation: str
    column: str
    key: int
    named: str
    private: bool = False


@dataclass(frozen=True, slots=True)
class SplitStatement:
    """A statement taken apart: parts, in order, and what the engine runs over their tables as it is.

    Attributes:
        cited: what the hidden columns say that follow those of the result.
    """

    parts: tuple[Part, ...]
    sql: str
    parameters: tuple[str, ...]
    lookups: tuple[tuple[str, str], ...] = ()
    cited: tuple[Cited, ...] = ()


class Language(Protocol):
    """What an engine makes of a text; runs nothing and reads no rows."""

    dialect: str
    """sqlglot's name of the engine's dialect."""
    binds_texts: bool
    """Whether `names` raises for each unknown name, within text functions too."""

    @property
    def aggregates(self) -> frozenset[str]:
        """Names of the functions that aggregate, in lower case."""

    @property
    def returns(self) -> Mapping[str, str]:
        """The type that a function gives, by its name in lower case; of those that always give the same one."""

    def read(self, text: str, allowed: frozenset[str] = frozenset()) -> Statement:
        """Return the one query that a text holds, checked.

        Args:
            allowed: names of functions that the user vouches for, in lower case.

        Raises:
            QueryError: it is not read, holds anything but one query that reads, or a function that is not allowed.
        """

    def tree(self, statement: Statement, width: int) -> exp.Expr:
        """Return sqlglot's tree of a statement; raises UnsupportedError where it does not say the same.

        Args:
            width: how many columns the statement's result has.
        """

    def split(self, statement: Statement, prefix: str, parameters: Parameters = ()) -> Iterable[SplitStatement]:
        """Yield the ways to take apart a statement that is not planned whole, the cheapest first; none where none is.

        Raises:
            UnsupportedError: names the place that no way is found for.
        """

    def check_types(self, tree: exp.Query) -> None:
        """Raise QueryTypeError where the engine does not take a value for what is done with it; not for other faults.

        Args:
            tree: a bound query, with the places of its relations, in which `CAST(NULL AS TEXT)` stands for answers.
        """

    def names(self, statement: Statement, parameters: Parameters = ()) -> tuple[str, ...]:
        """Return what the engine calls the columns of a statement's result; raises its error where it does not bind."""
