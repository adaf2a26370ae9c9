"""What a part of a query may name: the tables of a FROM with their columns, and those of the queries around it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from almanaq.errors import QueryError, UnknownNameError, suggest
from almanaq.suql.catalog.relations import as_written


@dataclass(frozen=True, slots=True)
class Shown:
    """A column that a table, a join or a query shows.

    Attributes:
        name: by which it is named, in lower case.
        spelled: what it is called in a result.
        node: what it stands for, in terms of the FROM that it is read from.
        hidden: whether it is named only, and no `*` stands for it.
    """

    name: str
    spelled: str
    node: exp.Expr
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """An item of FROM, be it a table or a join of several.

    Attributes:
        tables: what each name of a table in it shows, as `t.*` gives it.
        columns: what it shows as a whole, as `*` gives it: columns that a join merged come once, and first.
    """

    tables: Mapping[str, tuple[Shown, ...]]
    columns: tuple[Shown, ...]

    @classmethod
    def table(cls, name: str, columns: tuple[Shown, ...]) -> Item:
        """Return the item that a single table is."""
        return cls({name: columns}, columns)


NOTHING = Item({}, ())


@dataclass(frozen=True, slots=True)
class Scope:
    """An item of FROM, which expressions name columns of, within those of the queries around it.

    Attributes:
        aliases: the tables' names in the tree, those around it included: none is given twice, so that a name means the
            same wherever it is written.
    """

    item: Item
    outer: Scope | None = None
    aliases: frozenset[str] = field(default=frozenset())

    def find(self, column: exp.Column, text: str) -> Shown | None:
        """Return what a column that is named means, None where nothing is called so.

        Raises:
            UnknownNameError: several columns are called so.
        """
        for scope in self.around():
            if column.table:
                table = scope.item.tables.get(table_name(column))
                if table is None:
                    continue
                found = [shown for shown in table if shown.name == column.name]
                return _only(found, column, scope, text)
            found = [shown for shown in scope.item.columns if shown.name == column.name]
            if found:
                return _only(found, column, scope, text)
        return None

    def table(self, name: str) -> tuple[Shown, ...] | None:
        """Return what `name.*` stands for, None where no table is called so."""
        tables = (scope.item.tables.get(name) for scope in self.around())
        return next((table for table in tables if table is not None), None)

    def around(self) -> Iterator[Scope]:
        """Yield this scope and those around it, from the inside."""
        at: Scope | None = self
        while at is not None:
            yield at
            at = at.outer


def within(outer: Scope | None, item: Item = NOTHING, aliases: frozenset[str] = frozenset()) -> Scope:
    """Return the scope of an item inside of another scope."""
    return Scope(item, outer, aliases | (outer.aliases if outer is not None else frozenset()))


def table_name(column: exp.Column) -> str:
    """Return the name of the table before a column, with its schema if that is written."""
    return ".".join(part.name for part in column.parts[:-1])


def name_error(identifier: exp.Expr, message: str, known: list[str], text: str) -> QueryError:
    """Return the error of a name that means nothing, with near ones."""
    return UnknownNameError(message + suggest(identifier.name, known, as_written), query=text, **place(identifier))


def place(node: exp.Expr) -> dict[str, int | None]:
    """Return where a name stands in the text of the query."""
    return {"start": node.meta.get("start"), "end": node.meta.get("end")}


def _only(found: list[Shown], column: exp.Column, scope: Scope, text: str) -> Shown | None:
    if len(found) > 1:
        tables = scope.item.tables.items()
        holding = [name for name, columns in tables if any(shown.name == column.name for shown in columns)]
        choices = " or ".join(f"{name}.{column.name}" for name in holding)
        ambiguous = f"the column {column.name!r} is ambiguous: "
        message = ambiguous + (
            f"write {choices}" if len(holding) > 1 else "give each a name of its own where it is made"
        )
        raise UnknownNameError(message, query=text, **place(column.this))
    return found[0] if found else None
