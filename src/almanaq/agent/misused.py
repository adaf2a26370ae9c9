"""What a language model writes that SQL allows and nobody means: a name in single quotes, prose compared as a value."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import SqlglotError

from almanaq.agent.query_tree import query_tree
from almanaq.errors import QueryTypeError
from almanaq.suql.catalog.relations import Catalog, ColumnKind
from almanaq.suql.text_functions import is_model_call


def check_meant(suql: str, catalog: Catalog) -> None:
    """Raise QueryTypeError, with what to write instead, for a query that surely is not what was meant."""
    try:
        tree = query_tree(suql)
    except SqlglotError:
        return  # the engine says what is wrong with it
    for call in tree.find_all(exp.Anonymous):
        if is_model_call(call) and call.expressions and isinstance(call.expressions[0], exp.Literal):
            _refuse_string(call, catalog)
    for node in tree.find_all(exp.Any):
        column = node.this.unnest()
        if isinstance(column, exp.Column) and _is_prose(column, catalog):
            name = column.sql("postgres")
            raise QueryTypeError(
                f"{name} holds prose, which no value is equal to: ask it instead, as answer({name}, 'is it …?') = 'Yes'"
            )


def _refuse_string(call: exp.Anonymous, catalog: Catalog) -> None:
    written = call.expressions[0].name
    names = [column.name for relation in catalog.relations for column in relation.columns]
    name = next((each for each in names if each.casefold() == written.casefold()), None)
    meant = f'write "{name}" in double quotes to read that column' if name else "give it a column of prose"
    raise QueryTypeError(f"{call.name}() is given the words '{written[:60]}' themselves to read: {meant}")


def _is_prose(column: exp.Column, catalog: Catalog) -> bool:
    kinds = {found.kind for relation in catalog.relations if (found := relation.column(column.name)) is not None}
    return kinds == {ColumnKind.FREE_TEXT}
