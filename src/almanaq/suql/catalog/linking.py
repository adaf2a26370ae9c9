"""Comparisons with ENUM columns: literals that are no value are linked to those that mean the same.

The paper overloads `=` for enumerated types (section 5.2). Which values a literal means is found when the query runs;
until then the tree holds `_linked(id, column)` for "the column is one of the values that link `id` gives".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from almanaq.models.protocols import AllOf
from almanaq.suql.catalog.relations import Catalog, Column, ColumnKind
from almanaq.suql.catalog.sources import origin, relations_in
from almanaq.suql.syntax.nodes import copy_tree, joined, nodes_of

LINKED = "_linked"


@dataclass(frozen=True, slots=True)
class Link:
    """A literal to be linked to the values of an ENUM column that mean the same (semantics 11)."""

    id: str
    relation: str
    column: str
    literal: str
    values: tuple[str, ...]
    array: bool = False


@dataclass
class _Linker:
    link: bool
    links: dict[tuple[str, str, str], Link] = field(default_factory=dict)
    prefix: str = ""

    def means(self, found: Column, literal: exp.Expr) -> bool:
        is_text = isinstance(literal, exp.Literal) and literal.is_string
        return self.link and is_text and bool(found.values) and literal.name not in found.values

    def matches(self, column: exp.Column, relation: str, found: Column, literal: exp.Expr) -> exp.Expr:
        if not self.means(found, literal):
            return exp.EQ(this=literal.copy(), expression=_any(column.copy()) if found.array else column.copy())
        key = (relation, found.name, literal.name)
        name = f"{self.prefix}link{len(self.links)}"
        link = self.links.setdefault(key, Link(name, *key, found.values, found.array))
        text = exp.cast(column.copy(), "text[]" if found.array else "text")
        return exp.Anonymous(this=LINKED, expressions=[exp.Literal.string(link.id), text])


def link_enums(
    tree: exp.Query, catalog: Catalog, *, link: bool = True, prefix: str = ""
) -> tuple[exp.Query, tuple[Link, ...]]:
    """Write `_linked` for literals that are no value of the ENUM they are compared with; give the links to wait for."""
    linker = _Linker(link, prefix=prefix)
    if not any(column.kind is ColumnKind.ENUM for r in relations_in(tree, catalog) for column in r.columns):
        return tree, ()
    for column in nodes_of(tree, exp.Column):
        found = _enum_column(column, catalog)
        if found is not None and column.parent is not None:
            _rewrite(column, *found, linker)
    return tree, tuple(linker.links.values())


def resolve_links(tree: exp.Expr, linked: Mapping[str, Link], values: Mapping[str, tuple[str, ...]]) -> exp.Expr:
    """Fill in what the links found: one of the values, or all, or the literal itself, which equals none of them."""

    def resolve(node: exp.Expr) -> exp.Expr:
        if not (isinstance(node, exp.Anonymous) and node.name == LINKED):
            return node
        link, text = linked[node.expressions[0].name], node.expressions[1]
        meant = [exp.Literal.string(value) for value in values[link.id] or (link.literal,)]
        if text.to.is_type("array"):
            every = isinstance(values[link.id], AllOf)
            held: list[exp.Expr] = [exp.EQ(this=value, expression=_any(text.copy())) for value in meant]
            return joined(held, exp.And if every else exp.Or)
        return exp.In(this=text, expressions=meant)

    return copy_tree(tree).transform(resolve, copy=False)


def _any(array: exp.Expr) -> exp.Any:
    return exp.Any(this=exp.paren(array, copy=False))


def _enum_column(column: exp.Column, catalog: Catalog) -> tuple[str, Column] | None:
    found = origin(column, catalog) if column.table else None
    return (found[0].name, found[1]) if found is not None and found[1].kind is ColumnKind.ENUM else None


def _rewrite(column: exp.Column, relation: str, found: Column, linker: _Linker) -> None:
    parent = column.parent
    if isinstance(parent, exp.Cast) and parent.is_type("text"):
        return
    while isinstance(parent, exp.Paren) and isinstance(parent.parent, exp.Paren | exp.Any | exp.EQ | exp.NEQ):
        parent.replace(column)
        parent = column.parent
    if isinstance(parent, exp.Any) and isinstance(parent.parent, exp.EQ | exp.NEQ) and parent.arg_key == "expression":
        comparison = parent.parent
        if isinstance(comparison, exp.EQ) and linker.means(found, comparison.this):
            comparison.replace(linker.matches(column, relation, found, comparison.this))
    elif isinstance(parent, exp.EQ | exp.NEQ):
        other = parent.expression if parent.this is column else parent.this
        if not found.array and linker.means(found, other):
            matched = linker.matches(column, relation, found, other)
            parent.replace(exp.not_(matched) if isinstance(parent, exp.NEQ) else matched)
    elif isinstance(parent, exp.In) and parent.this is column and not found.array:
        if any(linker.means(found, item) for item in parent.expressions):
            parent.replace(
                joined([linker.matches(column, relation, found, item) for item in parent.expressions], exp.Or)
            )
    elif isinstance(parent, exp.ArrayContainsAll | exp.ArrayOverlaps) and isinstance(parent.expression, exp.Array):
        items = parent.expression.expressions
        if parent.this is column and any(linker.means(found, item) for item in items):
            parts = [linker.matches(column, relation, found, item) for item in items]
            parent.replace(joined(parts, exp.And if isinstance(parent, exp.ArrayContainsAll) else exp.Or))
