"""Text of a query → a checked statement, and for those with text functions a tree whose names are resolved."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sqlglot import Dialect, exp

from almanaq.errors import ParameterError, QueryTypeError, UnknownNameError, UnsupportedError
from almanaq.suql.catalog.relations import Catalog, fold
from almanaq.suql.language import Language, Parameters, Statement
from almanaq.suql.names import BoundQuery, bind_names, mark_functions
from almanaq.suql.syntax.limits import check_tree
from almanaq.suql.syntax.literals import bindable, is_untyped, literal
from almanaq.suql.syntax.nodes import nodes, nodes_of, write_memberships
from almanaq.suql.text_functions import declared, is_text_call, own_nodes, place_of

_NO_TEXT = frozenset([*exp.DataType.NUMERIC_TYPES, *exp.DataType.TEMPORAL_TYPES, exp.DType.BOOLEAN])


def bind(statement: Statement, language: Language, catalog: Catalog, parameters: Parameters = ()) -> BoundQuery:
    dialect = language.dialect
    names = language.names(statement, parameters)
    tree = language.tree(statement, len(names))
    if not isinstance(tree, exp.Query):
        raise UnsupportedError(f"{tree.key.upper()} is not planned beside text functions: write a SELECT")
    found = nodes(tree)
    check_tree(found)
    for node in found:
        if isinstance(node, exp.Identifier):  # which stands elsewhere in the text as it was given
            node.meta.pop("start", None)
    _fix_subscripts(tree, dialect)
    _write_branches(tree)
    _write_windows(tree)
    tree = write_memberships(fill_parameters(tree, parameters, dialect))
    for call in filter(is_text_call, nodes_of(tree, exp.Anonymous)):
        if (made := declared(call).expand) is not None:
            call.replace(made(call.expressions))
    assert isinstance(tree, exp.Query)
    if nodes_of(tree, exp.PositionalColumn):  # those left that are no part of ARRAY(SELECT …)
        raise UnsupportedError("columns by their numbers (#1) are not planned beside text functions: name them")
    mark_functions(tree, language)
    try:
        tree = bind_names(tree, catalog, dialect)
    except UnknownNameError as error:
        if not language.binds_texts:
            raise
        raise UnsupportedError(f"a name is not resolved beside text functions: {error.message}") from error
    _check_outputs(tree, names, dialect)
    for node in nodes_of(tree, exp.Anonymous):
        if is_text_call(node):
            _check_documents(node, dialect, statement.text)
            if declared(node).type != "text":
                node.type = exp.DataType.build(declared(node).type)
    return BoundQuery(tree, names)


def read_parameters(parameters: Parameters | None) -> Parameters:
    """Return parameters as they are given, none for None; raise ParameterError for what is no list and no mapping."""
    if parameters is None:
        return ()
    if isinstance(parameters, str | bytes) or not hasattr(parameters, "__iter__"):
        raise ParameterError("parameters are given as a list, one value for each ? in order, or as a mapping of names")
    if isinstance(parameters, Mapping):
        return {str(name): bindable(value) for name, value in parameters.items()}
    return [bindable(value) for value in parameters]


def check_parameters(statement: Statement, parameters: Parameters) -> Parameters:
    """Return the values of a statement's parameters; raise ParameterError where others are given than it has."""
    given = set(parameters) if isinstance(parameters, Mapping) else {str(i + 1) for i in range(len(parameters))}
    if given != set(statement.parameters):
        wanted = len(statement.parameters)
        if isinstance(parameters, Mapping):
            names = ", ".join(f"${name}" for name in statement.parameters) or "no parameters"
            raise ParameterError(
                f"the query has {names}, but values were given for {', '.join(sorted(given)) or 'none'}"
            )
        raise ParameterError(f"the query has {wanted} placeholder(s), but {len(given)} parameter(s) were given")
    return parameters


def fill_parameters(tree: exp.Query, parameters: Parameters, dialect: str) -> exp.Query:
    named = parameters if isinstance(parameters, Mapping) else {str(i + 1): v for i, v in enumerate(parameters)}
    for node in nodes_of(tree, exp.Parameter, exp.Placeholder):
        name = node.this.name if isinstance(node.this, exp.Expr) else str(node.this)
        name = name.removeprefix("_") if name not in named else name  # `:_1` is what a `?` may be written as
        if name in named:
            made = literal(named[name], dialect)
            node.replace(made)
            if dialect == "postgres" and isinstance(made, exp.Array):
                _untype_list(made)
    return tree


def _untype_list(array: exp.Array) -> None:
    """Let a list of texts take its type from what stands beside it, as psycopg does: an ENUM's, a date's, a citext's.

    `x = ANY (ARRAY['a'])` becomes `x IN ('a')`, `x && ARRAY['a']` becomes `x && '{"a"}'`.
    """
    items, above = array.expressions, array.parent
    list_: exp.Expr = array
    while isinstance(above, exp.Paren | exp.Any) or (isinstance(above, exp.Anonymous) and above.name.upper() == "ALL"):
        list_, above = above, above.parent
    if not isinstance(above, exp.Binary) or not all(map(is_untyped, items)):
        return
    some = isinstance(above, exp.EQ) and isinstance(list_, exp.Any)
    if items and (some or (isinstance(above, exp.NEQ) and isinstance(list_, exp.Anonymous))):
        member = exp.In(this=above.this, expressions=items)
        above.replace(member if some else exp.not_(member, copy=False))
    elif not items or not any(map(is_text_call, nodes_of(above, exp.Anonymous))):
        quoted = ('"' + re.sub(r'(["\\])', r"\\\1", item.name) + '"' for item in items)
        written = ("NULL" if isinstance(item, exp.Null) else text for item, text in zip(items, quoted, strict=True))
        array.replace(exp.Literal.string("{" + ",".join(written) + "}"))


def _write_branches(tree: exp.Query) -> None:
    """Write `if(c, a, b)` as the CASE that it is, which asks only for the branch that a row takes."""
    for node in nodes_of(tree, exp.If):
        if not isinstance(node.parent, exp.Case):
            taken = exp.If(this=node.this, true=node.args["true"])
            node.replace(exp.Case(ifs=[taken], default=node.args.get("false")))


def _write_windows(tree: exp.Query) -> None:
    """Write what WINDOW calls by a name where the name stands: parts of a block move to others, which have none."""
    for block in nodes_of(tree, exp.Select):
        definitions = block.args.get("windows") or []
        named: dict[str, exp.Expr] = {}
        for window in [*definitions, *(node for node in own_nodes(block) if isinstance(node, exp.Window))]:
            base = named.get(window.alias.lower())
            for key in ("partition_by", "order", "spec") if base is not None else ():
                if base is not None and not window.args.get(key):
                    window.set(key, base.copy().args.get(key))
            if base is not None:
                window.set("alias", None)
            if any(window is definition for definition in definitions):
                named[window.this.name.lower()] = window
        block.set("windows", None)


def _fix_subscripts(tree: exp.Query, dialect: str) -> None:
    """Count subscripts as the engine does: sqlglot counts from 0, and would add 1 to each that proves an integer."""
    first = Dialect.get_or_raise(dialect).INDEX_OFFSET
    for bracket in nodes_of(tree, exp.Bracket) if first else ():
        if not bracket.args.get("offset"):
            bracket.set(
                "expressions", exp.apply_index_offset(bracket.this, bracket.expressions, first, dialect=dialect)
            )
            bracket.set("offset", first)
        bracket.set("returns_list_for_maps", True)  # or a map's value gets [1], as older versions of DuckDB had it


def _check_outputs(tree: exp.Query, names: Sequence[str], dialect: str) -> None:
    """Refuse a tree whose outputs are not those that the engine sees: what a star stands for was read otherwise."""
    selects = tree.selects
    shown = [item.alias_or_name for item in selects]
    called = [fold(name, dialect, quoted=True) for name in names]
    same = len(shown) == len(called) and all(
        one == other or not isinstance(item.unalias(), exp.Column) or item.meta.get("renamed")
        for item, one, other in zip(selects, shown, called, strict=False)
    )
    if not same:
        raise UnsupportedError("what * stands for is read otherwise by the engine: name the columns")


def _check_documents(call: exp.Anonymous, dialect: str, text: str) -> None:
    name = call.name.lower()
    place = place_of(call, text)
    document, *others = call.expressions
    for argument in others[:1]:
        if _is_no_text(argument.type):
            what = declared(call).question_of
            raise QueryTypeError(f"{what} {name}() is text; {argument.sql(dialect)} is not", **place)
    kind = document.type
    if kind is not None and _is_no_text(kind):
        raise QueryTypeError(
            f"{name}() reads text, but {document.sql(dialect)} is of type {kind.sql(dialect).lower()}; "
            "cast it to text if that is what you mean",
            **place,
        )


def _is_no_text(kind: exp.DataType | None) -> bool:
    if kind is not None and kind.this in (exp.DType.ARRAY, exp.DType.LIST) and kind.expressions:
        kind = kind.expressions[0]
    return kind is not None and kind.this in _NO_TEXT
