"""PostgreSQL's trees in one form for each of the forms that say the same, to compare what sqlglot writes."""

from __future__ import annotations

from typing import Any

from almanaq.engines.postgres.statements import Tree, names_of

_PLACES = frozenset(["location", "list_start", "list_end", "rexpr_list_start", "rexpr_list_end"])
_DEFAULTS = {"SORTBY_ASC": "SORTBY_DEFAULT"}
_NEGATED = {
    ("AEXPR_IN", "<>"): ("AEXPR_IN", "="),
    ("AEXPR_LIKE", "!~~"): ("AEXPR_LIKE", "~~"),
    ("AEXPR_ILIKE", "!~~*"): ("AEXPR_ILIKE", "~~*"),
    ("AEXPR_SIMILAR", "!~"): ("AEXPR_SIMILAR", "~"),
    ("AEXPR_NOT_BETWEEN", "NOT BETWEEN"): ("AEXPR_BETWEEN", "BETWEEN"),
    ("AEXPR_NOT_BETWEEN_SYM", "NOT BETWEEN SYMMETRIC"): ("AEXPR_BETWEEN_SYM", "BETWEEN SYMMETRIC"),
}
"""Operators that negate others: `a NOT IN (…)` is `NOT a IN (…)`."""
_TYPES = {
    **{"int": "int4", "integer": "int4", "bigint": "int8", "smallint": "int2", "decimal": "numeric", "real": "float4"},
    **{"boolean": "bool", "character varying": "varchar", "float": "float8", "double precision": "float8"},
}


def normalize(node: Tree) -> Any:
    """Return the form of a tree: tuples of names and parts, without where they are written."""
    kind = node.DESCRIPTOR.name
    if kind == "Node":
        which = node.WhichOneof("node")
        return normalize(getattr(node, which)) if which is not None else None
    own = _FORMS.get(kind)
    made = own(node) if own is not None else None
    return made if made is not None else _plain(node)


def _plain(node: Tree, without: frozenset[str] = frozenset()) -> Any:
    parts: list[Any] = [node.DESCRIPTOR.name]
    for descriptor, value in node.ListFields():
        if descriptor.name in _PLACES or descriptor.name in without:
            continue
        if descriptor.message_type is not None:
            form = tuple(map(normalize, value)) if descriptor.is_repeated else normalize(value)
        elif descriptor.enum_type is not None:
            name = descriptor.enum_type.values_by_number[value].name
            form = _DEFAULTS.get(name, name)
        else:
            form = value
        parts.append((descriptor.name, form))
    return tuple(parts)


def _function(node: Tree) -> Any:
    """A function of the grammar's, `extract(…)`, is one of pg_catalog's; so is one that is written as such."""
    path = names_of(node.funcname)
    name = path[-1].lower() if len(path) == 1 or path[0] == "pg_catalog" else ".".join(path)
    return ("FuncCall", name, *_plain(node, frozenset(["funcname", "funcformat"]))[1:])


def _type(node: Tree) -> Any:
    path = names_of(node.names)
    name = path[-1].lower() if len(path) == 1 or path[0] == "pg_catalog" else ".".join(path)
    return ("TypeName", _TYPES.get(name, name), *_plain(node, frozenset(["names"]))[1:])


def _expression(node: Tree) -> Any:
    path = names_of(node.name)
    if path[:1] == ("pg_catalog",):
        path = path[1:]
    path = ("<>",) if path == ("!=",) else path
    kind = node.DESCRIPTOR.fields_by_name["kind"].enum_type.values_by_number[node.kind].name
    plain = _NEGATED.get((kind, *path))
    if plain is not None:
        kind, path = plain[0], plain[1:]
    made = ("A_Expr", path, kind, *_plain(node, frozenset(["name", "kind"]))[1:])
    return made if plain is None else ("BoolExpr", "NOT_EXPR", (made,))


def _test(node: Tree) -> Any:
    """`x IS NOT TRUE` is `NOT x IS TRUE`."""
    kind = node.DESCRIPTOR.fields_by_name["booltesttype"].enum_type.values_by_number[node.booltesttype].name
    made = ("BooleanTest", kind.replace("IS_NOT_", "IS_"), normalize(node.arg))
    return ("BoolExpr", "NOT_EXPR", (made,)) if kind.startswith("IS_NOT_") else made


def _sort(node: Tree) -> Any:
    """NULLs come last ascending and first descending, unless it is said otherwise."""
    names = node.DESCRIPTOR.fields_by_name["sortby_nulls"].enum_type.values_by_number
    direction = node.DESCRIPTOR.fields_by_name["sortby_dir"].enum_type.values_by_number[node.sortby_dir].name
    nulls = names[node.sortby_nulls].name
    descending = direction == "SORTBY_DESC"
    if nulls == "SORTBY_NULLS_DEFAULT" and not node.use_op:
        nulls = "SORTBY_NULLS_FIRST" if descending else "SORTBY_NULLS_LAST"
    return ("SortBy", descending, nulls, *_plain(node, frozenset(["sortby_dir", "sortby_nulls"]))[1:])


def _bool(node: Tree) -> Any:
    """AND and OR take any number of arguments, however they are nested."""
    operator = node.DESCRIPTOR.fields_by_name["boolop"].enum_type.values_by_number[node.boolop].name
    arguments: list[Any] = []
    for argument in node.args:
        form = normalize(argument)
        same = operator != "NOT_EXPR" and isinstance(form, tuple) and form[:2] == ("BoolExpr", operator)
        arguments += form[2] if same else [form]
    return ("BoolExpr", operator, tuple(arguments))


_FORMS = {
    "FuncCall": _function,
    "TypeName": _type,
    "A_Expr": _expression,
    "SortBy": _sort,
    "BoolExpr": _bool,
    "BooleanTest": _test,
}
