"""Definitions of terms: applied to a catalog, checked by the engine, written out as SQL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from almanaq.errors import QueryError, SourceError, first_line, suggest
from almanaq.suql.catalog.relations import Catalog, Relation
from almanaq.suql.catalog.terms import Term, Terms
from almanaq.text.sql_literals import is_plain

_DEEPEST = 10
"""How many definitions may stand in one another before they are taken for a circle."""


def apply_terms(catalog: Catalog, terms: Terms) -> Catalog:
    """Return the catalog with terms and joins that are defined over its relations; it says which others are left out.

    A term of a relation that is not there is left out, as a file may describe more than one source holds.
    """
    names = {given: relation.name for given, place in terms.tables.items() if (relation := _find(catalog, place))}
    left_out = [*catalog.left_out, *terms.left_out]
    known = {(term.kind, term.name, term.relation) for term in catalog.terms}
    found = []
    for term in terms.terms:
        held = catalog.find(names.get(term.relation, term.relation))
        if held is None:
            left_out.append(f"{term.place}: the {term.kind} {term.name!r} is left out: no relation {term.relation!r}")
        elif (term.kind, term.name, held.name) not in known:  # what the schema file defines goes before
            found.append(replace(term, relation=held.name))
    joins = [
        (one.name, own, other.name, theirs)
        for given, own, to, theirs in terms.joins
        if (one := catalog.find(names.get(given, given))) and (other := catalog.find(names.get(to, to)))
        if all(map(one.column, own)) and all(map(other.column, theirs))
    ]
    relations = []
    for relation in catalog.relations:
        own_joins = (join[1:] for join in joins if join[0] == relation.name)
        relations.append(replace(relation, foreign_keys=tuple(dict.fromkeys((*relation.foreign_keys, *own_joins)))))
    tables = {**catalog.tables, **names}
    terms_found = (*catalog.terms, *found)
    return replace(catalog, relations=tuple(relations), terms=terms_found, tables=tables, left_out=tuple(left_out))


def _find(catalog: Catalog, place: str) -> Relation | None:
    """Return the relation of a name, with fewer of the schemas before it until one is found."""
    parts = place.replace('"', "").replace("`", "").split(".")
    return next((each for i in range(len(parts)) if (each := catalog.find(".".join(parts[i:])))), None)


def write_definition(term: Term, catalog: Catalog) -> exp.Expr:
    """Return what a term stands for, as a tree in which each column has its relation before it."""
    return _write(term, catalog, ())


def _write(term: Term, catalog: Catalog, within: tuple[str, ...]) -> exp.Expr:
    if term.name in within or len(within) > _DEEPEST:
        raise SourceError(f"{_where(term)} is defined by itself: {' → '.join((*within, term.name))}")
    tree = _resolve(_parse(term.expression, term, catalog), term, catalog, (*within, term.name))
    if term.where:
        condition = _resolve(_parse(term.where, term, catalog), term, catalog, (*within, term.name))
        tree = tree.transform(lambda node: _narrow(node, condition))
    if term.grain:
        cut = f"date_trunc('{term.grain}', x)" if term.grain != "day" else "CAST(x AS DATE)"
        outer = sqlglot.parse_one(cut, read=catalog.dialect)
        for place in list(outer.find_all(exp.Column)):
            place.replace(tree.copy())
        tree = outer
    return tree


def _narrow(node: exp.Expr, condition: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Filter):
        return exp.Filter(this=node.this, expression=exp.Where(this=exp.and_(node.expression.this, condition)))
    if not isinstance(node, exp.AggFunc):
        return node
    return exp.Filter(this=node, expression=exp.Where(this=condition.copy()))


def _parse(sql: str, term: Term, catalog: Catalog) -> exp.Expr:
    try:
        tree = sqlglot.parse_one(f"SELECT {sql}", read=catalog.dialect)
    except SqlglotError as error:
        raise SourceError(f"{_where(term)} cannot be parsed: {first_line(error)}") from error
    given = {name for name, value in tree.args.items() if value}
    if not isinstance(tree, exp.Select) or len(tree.expressions) != 1 or given != {"expressions"}:
        raise SourceError(f"{_where(term)} must be one expression, not {sql!r}")
    expression: exp.Expr = tree.expressions[0].unalias().copy()
    return expression


def _resolve(tree: exp.Expr, term: Term, catalog: Catalog, within: tuple[str, ...]) -> exp.Expr:
    outer = exp.Paren(this=tree)
    for column in [each for each in outer.find_all(exp.Column) if each.find_ancestor(exp.Select) is None]:
        given = ".".join(part.name for part in column.parts[:-1]) or term.relation
        relation = _find(catalog, catalog.tables.get(given, given))
        known = None if relation is None else relation.column(column.name)
        if relation is not None and known is not None:
            table, name = (exp.to_identifier(each, quoted=not is_plain(each)) for each in (relation.name, known.name))
            column.replace(exp.Column(this=name, table=table))
            continue
        held = relation.name if relation is not None else given
        other = next((t for t in catalog.terms if t.relation == held and t.name == column.name and t != term), None)
        if other is None:
            near = [c.name for c in relation.columns] if relation is not None else [r.name for r in catalog.relations]
            missing = column.name if relation is not None else given
            raise SourceError(
                f"{_where(term)}: no {'column' if relation else 'relation'} {missing!r}{suggest(missing, near)}"
            )
        column.replace(exp.paren(_write(other, catalog, within)))
    resolved: exp.Expr = outer.this
    return resolved


def _where(term: Term) -> str:
    return f"{term.place}: the {term.kind} {term.name!r}"


def usable_terms(catalog: Catalog) -> Catalog:
    """Return the catalog with the terms alone whose columns it has: where columns are withheld, so are their terms."""

    def is_usable(term: Term) -> bool:
        try:
            return bool(write_definition(term, catalog))
        except SourceError:
            return False

    return replace(catalog, terms=tuple(filter(is_usable, catalog.terms))) if catalog.terms else catalog


def check_terms(catalog: Catalog, check: Callable[[str], None]) -> None:
    for term in catalog.terms:
        tree = write_definition(term, catalog)
        if term.kind == "metric" and not tree.find(exp.AggFunc, exp.AnonymousAggFunc):
            raise SourceError(f"{_where(term)} aggregates nothing: write sum(…), count(…), … or make it a dimension")
        read = dict.fromkeys((term.relation, *(column.table for column in tree.find_all(exp.Column) if column.table)))
        query = exp.select(exp.Literal.number(1) if term.kind == "filter" else tree)
        query = query.from_(_table(term.relation))
        for name in list(read)[1:]:
            query = query.join(_table(name), join_type="cross")
        query = query.where(tree) if term.kind == "filter" else query
        try:
            check(query.sql(catalog.dialect, normalize_functions=False))
        except QueryError as error:
            raise SourceError(f"{_where(term)} is refused: {first_line(error)}") from error


def _table(name: str) -> exp.Expr:
    table = exp.to_table(".".join(f'"{part}"' for part in name.split(".")))
    return exp.alias_(table, name, quoted=True, table=True) if "." in name else table
