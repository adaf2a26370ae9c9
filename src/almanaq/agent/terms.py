"""The terms of a catalog that a question needs, for prompts; and those that a query used, for replies."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import SqlglotError

from almanaq.agent.linking.words import name_stems, stems
from almanaq.agent.queries import query_tree
from almanaq.suql.catalog.definitions import write_definition
from almanaq.suql.catalog.relations import Catalog, NearReference
from almanaq.suql.catalog.terms import Term

MOST_TERMS = 12
"""Terms that a prompt shows; of more, those that share most words with the question."""


def write_terms(question: str, catalog: Catalog) -> tuple[str, ...]:
    """Return a line for each term that a prompt about a question shows: its names and its definition in SQL."""
    held = [term for term in catalog.terms if catalog.find(term.relation)]
    if len(held) > MOST_TERMS:
        asked = set(stems(question))
        shared = {id(term): len(asked & _words(term)) for term in held}
        held = sorted((t for t in held if shared[id(t)]), key=lambda t: -shared[id(t)])[:MOST_TERMS]
    return tuple(_line(term, catalog) for term in held)


def _words(term: Term) -> set[str]:
    return {word for name in name_stems(term) for word in name} | set(stems(term.description))


def _line(term: Term, catalog: Catalog) -> str:
    names = ", ".join((term.name, *term.synonyms))
    more = "; ".join(filter(None, (term.unit and f"in {term.unit}", " ".join(term.description.split()))))
    sql = write_definition(term, catalog).sql(catalog.dialect, normalize_functions=False)
    return f"{term.kind} of {term.relation}: {names} = {sql}{f' ({more})' if more else ''}"


def say_terms(question: str, suql: str, catalog: Catalog) -> tuple[str, ...]:
    """Return a sentence for each term that a question names and whose definition its query holds."""
    if not catalog.terms:
        return ()
    try:
        tree = query_tree(suql, catalog.dialect)
    except SqlglotError:
        return ()
    held = {_plain(node, catalog) for node in tree.walk()}
    found = []
    for term in terms_named(question, catalog):
        sql = write_definition(term, catalog)
        parts = list(sql.flatten()) if isinstance(sql, exp.And) else [sql]
        if all(_plain(part, catalog) in held for part in parts):
            unit = f", in {term.unit}" if term.unit else ""
            shown = sql.transform(_unqualified).sql(catalog.dialect, normalize_functions=False)
            found.append(f"“{term.name.replace('_', ' ')}” is {shown}{unit}, as {term.place} defines it.")
    return tuple(dict.fromkeys(found))


def say_cautions(suql: str, catalog: Catalog) -> tuple[str, ...]:
    """Return what to know of the rows that a query reads.

    A sentence for each near reference by which it joins relations and so loses rows, and for each column that it names
    and of whose file something was lost or guessed.
    """
    try:
        tree = query_tree(suql, catalog.dialect)
    except SqlglotError:
        return ()
    tables = set(map(_full_name, tree.find_all(exp.Table)))
    strays = (
        f"{near.strays:,} of {near.values:,} {relation.name} have a {near.column} that {near.relation} lacks."
        for relation in catalog.relations
        for near in relation.near_references
        if {relation.name, near.relation} <= tables and _loses_strays(tree, near)
    )
    read = {name.casefold() for name in tables}
    named = {column.name.casefold() for column in tree.find_all(exp.Column)}
    lost = (
        f"{column.name}: {column.caution}."
        for relation in catalog.relations
        for column in relation.columns
        if column.caution and relation.name.casefold() in read and column.name.casefold() in named
    )
    return (*strays, *lost)


def _loses_strays(tree: exp.Expr, near: NearReference) -> bool:
    """Return whether a query joins by a near reference, keeps no row without a partner, and asks nothing of partners.

    A condition on a partner, which rows without one cannot fulfil, leaves them out by what was asked.
    """
    other = {each.alias_or_name for each in tree.find_all(exp.Table) if _full_name(each) == near.relation}
    asked = {column.table for where in tree.find_all(exp.Where) for column in where.find_all(exp.Column)}
    keys = {near.column.casefold(), near.key.casefold()}
    joins = (join for join in tree.find_all(exp.Join) if not join.side)
    by_it = any(keys <= {name.name.casefold() for name in join.find_all(exp.Identifier)} for join in joins)
    return by_it and not other & asked


def _full_name(table: exp.Table) -> str:
    return ".".join(part.name for part in table.parts)


def terms_named(question: str, catalog: Catalog) -> list[Term]:
    """Return the terms that a question calls by a name or synonym."""
    asked = stems(question.replace("_", " "))
    return [term for term in catalog.terms if any(_holds(asked, name) for name in name_stems(term))]


def _holds(asked: tuple[str, ...], name: tuple[str, ...]) -> bool:
    return bool(name) and any(asked[i : i + len(name)] == name for i in range(len(asked)))


def _unqualified(node: exp.Expr) -> exp.Expr:
    return exp.Column(this=node.this) if isinstance(node, exp.Column) else node


def _plain(node: exp.Expr, catalog: Catalog) -> str:
    """Return an expression in the form in which two that mean the same are equal: without relations and case."""
    plain = node.transform(_unqualified).transform(lambda each: each.unnest() if isinstance(each, exp.Paren) else each)
    return plain.sql(catalog.dialect).replace('"', "").casefold()
