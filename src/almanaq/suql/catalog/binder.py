"""Names of a query → relations and columns: every name checked, every column qualified, every star expanded."""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.errors import OptimizeError
from sqlglot.optimizer.qualify_columns import qualify_columns

from almanaq.errors import QueryError, QueryTypeError, UnknownNameError
from almanaq.suql.catalog.answer_types import is_list
from almanaq.suql.catalog.conditions import read_conditions
from almanaq.suql.catalog.declared_pairs import cast_declared_pairs
from almanaq.suql.catalog.grouped_answers import check_grouped_answers
from almanaq.suql.catalog.grouping import write_decided_columns
from almanaq.suql.catalog.integer_division import mark_integer_divisions
from almanaq.suql.catalog.names import find_names
from almanaq.suql.catalog.operator_types import check_operators
from almanaq.suql.catalog.privacy import refuse_withheld
from almanaq.suql.catalog.relations import Catalog
from almanaq.suql.catalog.scope import name_error, place
from almanaq.suql.catalog.sources import columns_of, enclosing_selects, find_source, from_items, relations_in
from almanaq.suql.catalog.types import schema_of, typed
from almanaq.suql.names import BoundQuery
from almanaq.suql.syntax.keywords import RESERVED
from almanaq.suql.syntax.nodes import nodes, nodes_of
from almanaq.suql.text_functions import is_similarity, is_text_call

_NO_TEXT = frozenset([*exp.DataType.NUMERIC_TYPES, *exp.DataType.TEMPORAL_TYPES, exp.DType.BOOLEAN])

_ARGUMENTS = {"answer": (2, 3), "summary": (1, 1), "similarity": (2, 2)}
_USAGE = {
    "answer": "answer(text, question [, options])",
    "summary": "summary(text)",
    "similarity": "similarity(text, text)",
}


def bind(tree: exp.Query, catalog: Catalog, text: str) -> BoundQuery:
    """Resolve every name of a query, whose tree is changed, against a catalog.

    Raises:
        UnknownNameError: no such relation or column, or an ambiguous one; points at the place and suggests.
        QueryTypeError: a text function over something that is not text, or with wrong arguments; an operator over
            values that it does not take.
        RefusedQueryError: a column that no query may read.
    """
    _lower_names(tree)
    refuse_withheld(tree, catalog, text)
    names = find_names(tree, catalog, text)
    schema = schema_of(relations_in(tree, catalog))
    try:
        tree = qualify_columns(tree, schema, dialect="postgres", allow_partial_qualification=True)
    except OptimizeError as error:
        raise UnknownNameError(_reword(str(error)), query=text, **_find_name(tree, str(error))) from error
    _quote_odd_names(tree)
    write_decided_columns(tree, catalog)
    _check_columns(tree, catalog, text)
    tree = typed(tree, schema)
    mark_integer_divisions(tree)
    found = nodes(tree)
    for node in found:
        if isinstance(node, exp.Anonymous) and is_text_call(node):
            _check_text_call(node, text)
            if is_similarity(node):
                node.type = exp.DataType.build("double")
    cast_declared_pairs(found, catalog)
    check_operators(found, text)
    read_conditions(found, catalog, text)
    check_grouped_answers(tree, text)
    return BoundQuery(tree, names)


def _quote_odd_names(tree: exp.Query) -> None:
    """Quote names that cannot stand bare: those that a star was expanded to or an alias was made of are not."""
    for identifier in nodes_of(tree, exp.Identifier):
        bare = exp.SAFE_IDENTIFIER_RE.match(identifier.name) and identifier.name not in RESERVED
        if not identifier.quoted and not bare:
            identifier.set("quoted", True)


def _lower_names(tree: exp.Query) -> None:
    """Fold the case of every identifier, and keep how it is spelled: names match whatever their case."""
    for identifier in nodes_of(tree, exp.Identifier):
        if not isinstance(identifier.parent, exp.Collate):
            identifier.meta["spelled"] = identifier.name
            identifier.set("this", identifier.name.lower())
            identifier.set("quoted", True)


def _check_columns(tree: exp.Query, catalog: Catalog, text: str) -> None:
    """Point at the first column that belongs to no item of FROM, or to several."""
    for column in nodes_of(tree, exp.Column):
        if isinstance(column.this, exp.Star) or _is_output_alias(column):
            continue
        block = column.find_ancestor(exp.Select)
        if not column.table:
            raise _unresolved(column, block, catalog, text)
        item = find_source(column.table, block) if block is not None else None
        if item is None:
            aliases = [i.alias_or_name for select in enclosing_selects(column) for i in from_items(select)]
            raise name_error(column.args["table"], f"no relation named {column.table!r} in FROM", aliases, text)
        names = columns_of(item, catalog)
        if names is not None and column.name not in names:
            raise name_error(column.this, f"{column.table!r} has no column named {column.name!r}", names, text)


def _is_output_alias(column: exp.Column) -> bool:
    """ORDER BY and DISTINCT ON may name an output column."""
    clause = column.find_ancestor(exp.Order, exp.Distinct, exp.Query)
    query = column.find_ancestor(exp.Query)
    return (
        not column.table
        and not isinstance(clause, exp.Query)
        and query is not None
        and (column.name in query.named_selects)
    )


def _unresolved(column: exp.Column, block: exp.Select | None, catalog: Catalog, text: str) -> QueryError:
    holders: dict[str, list[str]] = {}
    for item in from_items(block) if block is not None else ():
        holders[item.alias_or_name] = columns_of(item, catalog) or []
    holding = [alias for alias, names in holders.items() if column.name in names]
    if len(holding) > 1:
        choices = " or ".join(f"{alias}.{column.name}" for alias in holding)
        return UnknownNameError(
            f"the column {column.name!r} is ambiguous: write {choices}", query=text, **place(column.this)
        )
    known = [name for names in holders.values() for name in names]
    return name_error(column.this, f"no column named {column.name!r}", known, text)


def _reword(message: str) -> str:
    return message.replace("could not be resolved", "is not a column of any relation in FROM")


def _find_name(tree: exp.Query, message: str) -> dict[str, int | None]:
    for identifier in nodes_of(tree, exp.Identifier):
        if f"'{identifier.name}'" in message or message.endswith(f": {identifier.name}"):
            return {"start": identifier.meta.get("start"), "end": identifier.meta.get("end")}
    return {"start": None, "end": None}


def _is_no_text(kind: exp.DataType | None) -> bool:
    if kind is not None and kind.this is exp.DType.ARRAY and kind.expressions:
        kind = kind.expressions[0]
    return kind is not None and kind.this in _NO_TEXT


def _check_list(call: exp.Anonymous, name: str, place: dict[str, Any]) -> None:
    """Refuse casts to lists that no reply is read as."""
    node: exp.Expr = call
    while isinstance(node.parent, exp.Paren):
        node = node.parent
    kind = node.parent.to if isinstance(node.parent, exp.Cast) and node.arg_key == "this" else None
    if kind is None or kind.this is not exp.DType.ARRAY or (name == "answer" and is_list(kind)):
        return
    if name == "answer":
        message = (
            "answer() gives a value or a list of texts: cast it to text[], and what stands in that to another type"
        )
    else:
        message = f"{name}() gives one value: cast it to a type without [], or make an array of it with string_to_array"
    raise QueryTypeError(message, **place)


def _check_text_call(call: exp.Anonymous, text: str) -> None:
    """Check the arguments of a text function; an error points at the document."""
    name, arguments = call.name.lower(), call.expressions
    least, most = _ARGUMENTS[name]
    where = next((i.meta for i in nodes_of(call, exp.Identifier) if "start" in i.meta), None)
    start = where["start"] if where else text.lower().find(name)
    place: dict[str, Any] = {"query": text, "start": start, "end": where["end"] if where else start + len(name) - 1}
    if not least <= len(arguments) <= most:
        raise QueryTypeError(f"{name} takes {_USAGE[name]}; {len(arguments)} argument(s) given", **place)
    if not is_similarity(call):
        _check_list(call, name, place)
    document = arguments[0]
    for argument in arguments[1:2]:
        if _is_no_text(argument.type):
            what = "what it is compared with in" if is_similarity(call) else "the question of"
            raise QueryTypeError(f"{what} {name}() is text; {argument.sql('postgres')} is not", **place)
    kind = document.type
    if _is_no_text(kind):
        assert kind is not None
        raise QueryTypeError(
            f"{name}() reads text, but {document.sql('postgres')} is of type {kind.sql('postgres').lower()}; "
            "cast it to text if that is what you mean",
            **place,
        )
