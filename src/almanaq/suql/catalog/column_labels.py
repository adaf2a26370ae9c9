"""How the columns of an item of FROM, and of a SELECT list, are written in the tree: each apart from the others."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from almanaq.suql.catalog.from_clause import spelled
from almanaq.suql.catalog.output_names import APART
from almanaq.suql.catalog.scope import Shown


def of_table(columns: tuple[Shown, ...], table: str) -> tuple[Shown, ...]:
    """Return columns as those of a table of that name in the tree."""
    return tuple(
        replace(shown, node=exp.Column(this=identifier(shown.node.name), table=identifier(table))) for shown in columns
    )


def typed_columns(labels: list[exp.Identifier], listed: list[exp.Identifier]) -> list[exp.Expr]:
    """Return the columns of an alias list; those of a record have their types."""
    kinds = [column.args.get("kind") for column in listed] + [None] * len(labels)
    return [
        exp.ColumnDef(this=label.copy(), kind=kind.copy()) if kind is not None else label.copy()
        for label, kind in zip(labels, kinds, strict=False)
    ]


def columns_called(node: exp.Expr, own: list[str], listed: list[exp.Identifier]) -> list[tuple[str, str]]:
    """Return what the columns of functions or VALUES are called, and how that is spelled.

    Args:
        own: what they are called where the query gives them no name.
    """
    names = [(name.name, spelled(name)) for name in listed]
    offset = node.args.get("offset")
    numbered = bool(offset or node.args.get("ordinality"))
    if isinstance(offset, exp.Identifier):
        names.append((offset.name, spelled(offset)))
        node.set("offset", True)
    own = [*own, "ordinality"] if numbered else own
    return names[: len(own)] + [(name, name) for name in own[len(names) :]]


def apart(names: list[str]) -> list[str]:
    """Return names with a number before each that is there already."""
    return [f"_{i}{APART}{name}" if name in names[:i] else name for i, name in enumerate(names)]


def identifier(name: str) -> exp.Identifier:
    """Return a name as the tree has it: quoted, so that it is taken as it is spelled."""
    return exp.to_identifier(name, quoted=True)
