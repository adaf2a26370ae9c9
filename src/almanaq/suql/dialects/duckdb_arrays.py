"""Arrays and JSON in DuckDB, as PostgreSQL has them."""

from __future__ import annotations

from sqlglot import exp

from almanaq.errors import UnsupportedError
from almanaq.suql.dialects.duckdb_casts import write_joined_text
from almanaq.suql.dialects.lists import elements, mapped


def write_member(node: exp.Expr) -> exp.Expr:
    array = node.expression.this
    if isinstance(array.unnest(), exp.Array | exp.Query):
        return node
    known = exp.Is(this=array.copy(), expression=exp.null())  # DuckDB finds nothing in an unknown array
    return exp.Case(ifs=[exp.If(this=exp.not_(known), true=node.copy())])


def write_pipe(node: exp.Expr) -> exp.Expr:
    """`a || b`: NULL is nothing among arrays, and an element may stand on either side of one."""
    read_literals(node)
    sides = (node.this, node.expression)
    arrays = [side.is_type("array") or isinstance(side.unnest(), exp.Array) for side in sides]
    if all(arrays):
        return exp.Coalesce(this=exp.paren(node.copy()), expressions=[side.copy() for side in sides])
    if any(arrays) and any(isinstance(side, exp.Null) for side in sides):
        array: exp.Expr = sides[0 if arrays[0] else 1].copy()
        return array
    known = [side.type is not None and not side.is_type("unknown") for side in sides]
    if arrays[0] and known[1]:
        return exp.Anonymous(this="list_append", expressions=[side.copy() for side in sides])
    if arrays[1] and known[0]:
        return exp.Anonymous(this="list_prepend", expressions=[side.copy() for side in sides])
    return write_joined_text(node)


def write_contains(node: exp.Expr) -> exp.Expr:
    """No array contains NULL."""
    read_literals(node)
    within, whole = node.expression, node.this
    if isinstance(node, exp.ArrayContainedBy):
        within, whole = whole, within
    if isinstance(within.unnest(), exp.Array) and all(isinstance(item, exp.Literal) for item in within.expressions):
        return node
    count = exp.Anonymous(this="list_count", expressions=[within.copy()])
    some_null = exp.LT(this=count, expression=exp.Length(this=within.copy()))
    known = exp.not_(exp.Is(this=whole.copy(), expression=exp.null()))
    return exp.Case(ifs=[exp.If(this=exp.and_(some_null, known), true=exp.false())], default=node.copy())


def read_literals(node: exp.Expr) -> exp.Expr:
    """Write the text `'{a,b}'` beside an array as the array it is."""
    for side, other in ((node.this, node.expression), (node.expression, node.this)):
        if isinstance(side, exp.Literal) and side.name.startswith("{") and other.is_type("array"):
            side.replace(exp.Cast(this=exp.Array(expressions=elements(side.name)), to=other.type.copy()))
    return node


def write_subscript(node: exp.Expr) -> exp.Expr:
    """DuckDB counts what is below one from the end; in PostgreSQL there is nothing before the first."""
    (place,) = node.expressions if len(node.expressions) == 1 else (None,)
    if isinstance(place, exp.Slice):
        for side, least in (("this", 1), ("expression", 0)):
            bound = place.args.get(side)
            if bound is not None and not _counted(bound):
                place.set(side, _at_least(bound, least))
    elif isinstance(place, exp.Neg) and _counted(place.this):
        return exp.null()
    elif place is not None and not _counted(place) and not place.is_type(*exp.DataType.TEXT_TYPES):
        first = exp.GT(this=exp.paren(place.copy()), expression=exp.Literal.number(0))
        return exp.Case(ifs=[exp.If(this=first, true=node.copy())])
    return node


def _counted(place: exp.Expr) -> bool:
    return isinstance(place, exp.Literal)


def _at_least(bound: exp.Expr, least: int) -> exp.Expr:
    number = exp.Literal.number(least)
    below = exp.LT(this=exp.paren(bound.copy()), expression=number)
    return exp.Case(ifs=[exp.If(this=below, true=number.copy())], default=bound.copy())


def write_array_size(node: exp.Expr) -> exp.Expr:
    if isinstance(node.expression, exp.Literal) and node.expression.name == "1":
        return exp.Nullif(this=exp.ArraySize(this=node.this), expression=exp.Literal.number(0))
    return node


def write_remove(node: exp.Expr) -> exp.Expr:
    other = exp.NullSafeNEQ(this=exp.to_identifier("e"), expression=node.expression.copy())
    return mapped("list_filter", node.this.copy(), "e", other)


def write_array_text(node: exp.Expr) -> exp.Expr:
    shown = node.args.get("null")
    if shown is not None:
        text = exp.cast(exp.to_identifier("e"), "text")
        shown = exp.Coalesce(this=text, expressions=[shown.copy()])
        node.set("this", mapped("list_transform", node.this.copy(), "e", shown))
        node.set("null", None)
        return node
    known = exp.not_(exp.Is(this=node.this.copy(), expression=exp.null()))
    return exp.Coalesce(  # of nothing but NULLs DuckDB makes NULL
        this=node.copy(), expressions=[exp.Case(ifs=[exp.If(this=known, true=exp.Literal.string(""))])]
    )


def write_json_path(node: exp.Expr) -> exp.Expr:
    """`x #>> '{a,0}'` is what a JSON pointer leads to."""
    path = node.expression
    if not isinstance(path, exp.Literal):
        raise UnsupportedError("the path after #> and #>> has to be written out: '{a,b}'")
    steps = [step.name.replace("~", "~0").replace("/", "~1") for step in elements(path.name)]
    function = "json_extract_string" if isinstance(node, exp.JSONBExtractScalar) else "json_extract"
    pointer = exp.Literal.string("".join("/" + step for step in steps))
    return exp.Anonymous(this=function, expressions=[node.this.copy(), pointer])
