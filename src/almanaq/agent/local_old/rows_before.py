"""Figures of the rows that an earlier turn found: "what is their total amount?"."""

from __future__ import annotations

from sqlglot import exp

from almanaq.agent.history import Shown
from almanaq.agent.local_old import sql, trees
from almanaq.agent.local_old.joins import ambiguous, paths
from almanaq.agent.local_old.recognize.vocabulary import Vocabulary
from almanaq.suql.catalog.relations import Catalog, Relation


def main_relation(tree: exp.Select, catalog: Catalog) -> Relation | None:
    """Return the relation whose rows a query gives or counts."""
    return catalog.find(".".join(part.name for part in tree.args["from_"].this.parts))


def rows_of(tree: exp.Select, shown: Shown | None, catalog: Catalog) -> exp.Select | None:
    """Return the query for the rows that a query found or counted; None where it puts them together in groups."""
    main = main_relation(tree, catalog)
    if main is None or any(tree.args.get(part) for part in ("group", "having", "distinct", "offset")):
        return None
    rows = trees.showing(tree, [f"{sql.name(main.name)}.*" if tree.args.get("joins") else "*"])
    cut = trees.limit_of(tree) is not None or any(map(trees.reads_text, trees.conditions(tree)))
    for part in ("order", "limit"):
        rows.set(part, None)
    if not cut:
        return rows
    if shown is None or not shown.keys or shown.relation != main.name:
        return None
    only = exp.select("*").from_(sql.name(main.name))
    return trees.with_conditions(only, [trees.only(shown)])


def restricted(tree: exp.Select, rows: exp.Select, vocabulary: Vocabulary) -> exp.Select | None:
    """Return a query over those rows alone that are among others, or belong to them; None where no one way leads."""
    catalog = vocabulary.index.catalog
    main, other = main_relation(tree, catalog), main_relation(rows, catalog)
    if main is None or other is None:
        return None
    qualifier = trees.qualifier(tree)
    if main == other and not rows.args.get("joins"):
        own = [_qualified(each, qualifier) for each in trees.conditions(rows)]
        return trees.with_conditions(tree, [*trees.conditions(tree), *own])
    condition = _among(main, other, rows, vocabulary, qualifier)
    return None if condition is None else trees.with_conditions(tree, [*trees.conditions(tree), condition])


def _qualified(condition: exp.Expr, qualifier: str | None) -> exp.Expr:
    """Return a condition with the table's name before its columns, where one is needed."""
    changed = condition.copy()
    if qualifier is None:
        return changed
    for column in changed.find_all(exp.Column):
        if not column.table and column.find_ancestor(exp.Select) is None:
            column.set("table", exp.to_identifier(qualifier, quoted=not sql.plain(qualifier)))
    return changed


def _among(
    main: Relation, other: Relation, rows: exp.Select, vocabulary: Vocabulary, qualifier: str | None
) -> exp.Expr | None:
    """Return the condition that a row of `main` belongs to one of some rows of another relation."""
    way = paths(vocabulary.hops, main).get(other.name)
    if way is None or other.name in ambiguous(vocabulary.hops, main):
        return None
    if not way:
        if len(main.key) != 1:
            return None
        return _listed(main.key[0], qualifier, trees.showing(rows, [f"{sql.name(main.name)}.{sql.name(main.key[0])}"]))
    inner, condition = rows, None
    for hop in reversed(way):
        if hop.unlike:
            return None
        joined = f"{sql.name(hop.right)}." if inner.args.get("joins") else ""
        inner = trees.showing(inner, [f"{joined}{sql.name(hop.right_column)}"])
        first = hop is way[0]
        condition = _listed(hop.left_column, qualifier if first else None, inner)
        inner = trees.with_conditions(exp.select("*").from_(sql.name(hop.left)), [condition])
    return condition


def _listed(column: str, table: str | None, rows: exp.Select) -> exp.Expr:
    own = exp.column(exp.to_identifier(column, quoted=not sql.plain(column)), table=table)
    return exp.In(this=own, query=exp.Subquery(this=rows))
