"""Which expressions of a bound query have the values of an ENUM column, and whether those have an order."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from almanaq.suql.catalog.relations import Catalog, ColumnKind
from almanaq.suql.catalog.sources import columns_of, find_cte, find_source

OF_DOMAIN = "domain"
"""The key of a node's meta under which its domain is kept, where it cannot be seen any more."""
_SAME = (
    *(exp.Paren, exp.Alias, exp.Max, exp.Min, exp.AnyValue, exp.Filter, exp.Window, exp.Lag, exp.Lead, exp.Nullif),
    *(exp.FirstValue, exp.LastValue, exp.NthValue),
)
"""What has the values of its first part."""


@dataclass(frozen=True, slots=True)
class Domain:
    """The values of an ENUM column.

    Attributes:
        column: the column's name with its relation's, for messages.
        values: in their order, where `ordered`.
    """

    column: str
    values: tuple[str, ...]
    ordered: bool


class Domains:
    """Finds the domains of expressions of one query."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._within: list[int] = []

    def of(self, node: exp.Expr | None) -> Domain | None:
        """Return the domain of an expression; None where it is not one ENUM column's values, as for literals alone."""
        if node is None:
            return None
        kept = node.meta.get(OF_DOMAIN)
        if isinstance(kept, Domain):
            return kept
        if isinstance(node, exp.Column):
            return self._column(node)
        if isinstance(node, exp.Query):
            return self.of_output(node, 0)
        if isinstance(node, exp.Any | exp.All):
            array = node.this.unnest()
            return self.of_output(array, 0) if isinstance(array, exp.Query) else None
        if isinstance(node, _SAME):
            return self.of(node.this)
        if isinstance(node, exp.WithinGroup):
            return self.of(node.expression.expressions[0].this)
        if isinstance(node, exp.Coalesce | exp.Greatest | exp.Least):
            return self.joint([node.this, *node.expressions])
        if isinstance(node, exp.Case):
            return self.joint([*(branch.args["true"] for branch in node.args["ifs"]), node.args.get("default")])
        return None

    def joint(self, parts: list[exp.Expr | None]) -> Domain | None:
        """Return the domain that all of some expressions have, literals and NULL having any."""
        known = [part for part in parts if part is not None and not is_open(part)]
        domains = [self.of(part) for part in known]
        found = [domain for domain in domains if domain is not None]
        if not found or len(found) < len(domains):
            return None
        return next((domain for domain in found if domain.ordered), found[0])

    def of_output(self, query: exp.Expr, at: int) -> Domain | None:
        """Return the domain of a query's output."""
        if id(query) in self._within:  # it reads itself
            return None
        self._within.append(id(query))
        try:
            if isinstance(query, exp.SetOperation):
                sides = [self.of_output(query.this, at), self.of_output(query.expression, at)]
                found = [side for side in sides if side is not None]
                return found[0] if len(found) == 2 or (found and self._within[1:]) else None
            if isinstance(query, exp.Subquery):
                return self.of_output(query.this, at)
            outputs = query.selects if isinstance(query, exp.Select) else []
            return self.of(outputs[at].unalias()) if at < len(outputs) else None
        finally:
            self._within.pop()

    def _column(self, column: exp.Column) -> Domain | None:
        item = find_source(column.table, column) if column.table else None
        if item is None:
            return None
        made = find_cte(item) if isinstance(item, exp.Table) else item
        if made is None:
            relation = self._catalog.find(item.name)
            found = relation.column(column.name) if relation is not None else None
            if relation is None or found is None or found.kind is not ColumnKind.ENUM or found.array:
                return None
            return Domain(f"{relation.name}.{found.name}", found.values, found.ordered) if found.values else None
        names = columns_of(item, self._catalog) or []
        query = made.this.this if isinstance(made, exp.Lateral) else made.this
        if column.name not in names or not isinstance(query, exp.Query):
            return None
        return self.of_output(query, names.index(column.name))


def is_open(node: exp.Expr) -> bool:
    """Return whether an expression has the domain of what stands beside it: a literal in quotes, or NULL."""
    bare = node.unnest()
    if isinstance(bare, exp.Cast) and bare.to.this == exp.DType.USERDEFINED:
        bare = bare.this.unnest()
    return isinstance(bare, exp.Null) or (isinstance(bare, exp.Literal) and bare.is_string)
