"""Arrays, what unfolds them and what gathers them in Spark, as PostgreSQL has them."""

from __future__ import annotations

from sqlglot import exp

from almanaq.errors import UnsupportedError
from almanaq.suql.dialects.lists import elements
from almanaq.suql.dialects.spark_text import as_text, lambda_over, typed_array


def write_member(node: exp.Expr) -> exp.Expr:
    """`x = ANY(array)`: IN where the array is written out, else a look at each element, which may be unknown."""
    array = node.expression.this.unnest()
    if isinstance(array, exp.Query):
        if isinstance(node, exp.EQ):
            return exp.In(this=node.this.copy(), query=exp.Subquery(this=array.copy()))
        raise UnsupportedError(f"{node.key} ANY (SELECT …) is not supported on spark")
    if isinstance(array, exp.Array) and isinstance(node, exp.EQ) and array.expressions:
        return exp.In(this=node.this.copy(), expressions=[item.copy() for item in array.expressions])
    if isinstance(array, exp.Literal):
        array = exp.Array(expressions=elements(array.name))
    each = type(node)(this=node.this.copy(), expression=exp.to_identifier("e"))
    return lambda_over("exists", array, "e", each)


def write_pipe(node: exp.Expr) -> exp.Expr:
    """`a || b`: NULL is nothing among arrays, and an element may stand on either side of one."""
    sides = [node.this, node.expression]
    arrays = [side.is_type("array") or isinstance(side.unnest(), exp.Array) for side in sides]
    if not any(arrays):
        return exp.DPipe(this=_side(sides[0]), expression=_side(sides[1]))
    for i in (0, 1):
        if isinstance(sides[i], exp.Literal) and sides[i].name.startswith("{"):
            sides[i], arrays[i] = exp.Array(expressions=elements(sides[i].name)), True
    if not all(arrays):
        alone = 0 if arrays[1] else 1
        if sides[alone].type is None or sides[alone].is_type("unknown") or isinstance(sides[alone], exp.Null):
            raise UnsupportedError(f"{node.sql('postgres')} is not supported on spark: say the type of what is added")
        sides[alone] = exp.Array(expressions=[sides[alone].copy()])
    both = exp.Anonymous(this="concat", expressions=[side.copy() for side in sides])
    return exp.Coalesce(this=both, expressions=[side.copy() for side in sides])


def _side(side: exp.Expr) -> exp.Expr:
    return side.copy() if isinstance(side, exp.DPipe) else as_text(side)


def write_contains(node: exp.Expr) -> exp.Expr:
    """`a @> b` and `a && b`: no array contains NULL."""
    within, whole = node.expression, node.this
    if isinstance(within, exp.Literal):
        within = exp.Array(expressions=elements(within.name))
    inner = exp.Anonymous(
        this="coalesce",
        expressions=[_of_array("array_contains", whole, exp.to_identifier("e")), exp.false()],
    )
    found = lambda_over("exists" if isinstance(node, exp.ArrayOverlaps) else "forall", within, "e", inner)
    known = exp.not_(exp.Is(this=whole.copy(), expression=exp.null()))
    return exp.Case(ifs=[exp.If(this=known, true=found)])


def write_subscript(node: exp.Expr) -> exp.Expr:
    """Places count from 1, and there is nothing at those that an array has not."""
    if len(node.expressions) != 1 or isinstance(node.expressions[0], exp.Slice):
        raise UnsupportedError(f"{node.sql('postgres')} is not supported on spark: one place of an array is")
    place = node.expressions[0]
    number = _place(place, node)
    if isinstance(number, int):
        return _of_array("get", node.this, exp.Literal.number(number)) if number >= 0 else exp.null()
    below = exp.LT(this=number.copy(), expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=exp.not_(exp.paren(below)), true=_of_array("get", node.this, number))])


def _place(place: exp.Expr, node: exp.Expr) -> int | exp.Expr:
    """Return a place as Spark counts it, from 0."""
    shift = node.args.get("offset")
    off = 0 if shift is None else int(shift)
    inner = place.unnest()
    if isinstance(inner, exp.Literal) and inner.is_int:
        return int(inner.name) - off
    if isinstance(inner, exp.Neg) and isinstance(inner.this, exp.Literal):
        return -1
    return exp.Sub(this=exp.paren(place.copy()), expression=exp.Literal.number(off))


def write_array_size(node: exp.Expr) -> exp.Expr:
    dimension = node.args.get("expression")
    if dimension is not None and not (isinstance(dimension, exp.Literal) and dimension.name == "1"):
        raise UnsupportedError("array_length takes the dimension 1 on spark")
    size = _of_array("size", node.this)
    return exp.Nullif(this=size, expression=exp.Literal.number(0)) if dimension is not None else size


def write_remove(node: exp.Expr) -> exp.Expr:
    other = exp.not_(exp.NullSafeEQ(this=exp.to_identifier("e"), expression=node.expression.copy()))
    return lambda_over("filter", node.this, "e", other)


def write_array_text(node: exp.Expr) -> exp.Expr:
    arguments = [node.this, node.expression, *([node.args["null"]] if node.args.get("null") is not None else [])]
    return _of_array("array_join", *arguments)


def write_agg(node: exp.Expr) -> exp.Expr:
    """array_agg keeps NULL, in the order that is asked for, and is NULL over nothing."""
    if isinstance(node, exp.Filter):
        return _filtered(node)
    if isinstance(node.parent, exp.Filter):
        return node  # with its condition
    return _gathered(node, None)


def _filtered(node: exp.Filter) -> exp.Expr:
    return _gathered(node.this, node.expression) if isinstance(node.this, exp.ArrayAgg) else node


def _gathered(node: exp.Expr, where: exp.Expr | None) -> exp.Expr:
    if isinstance(node.parent, exp.Window) or (node.parent is not None and isinstance(node.parent.parent, exp.Window)):
        raise UnsupportedError("array_agg with OVER is not supported on spark")
    value, keys, distinct = node.this, [], False
    if isinstance(value, exp.Order):
        keys, value = value.expressions, value.this
    if isinstance(value, exp.Distinct):
        distinct, value = True, value.expressions[0]
        keys = keys or [exp.Ordered(this=value.copy(), nulls_first=False)]
    if keys and len({bool(key.args.get("desc")) for key in keys}) > 1:
        raise UnsupportedError("array_agg in an order of both directions is not supported on spark")
    fields = [part for i, key in enumerate(keys) for part in _sort_fields(key, i)]
    row = _call("named_struct", *fields, exp.Literal.string("v"), value)
    inner: exp.Expr = exp.Distinct(expressions=[row]) if distinct else row
    gathered: exp.Expr = exp.Anonymous(this="collect_list", expressions=[inner])
    if where is not None:
        gathered = exp.Filter(this=gathered, expression=where.copy())
    if keys:
        down = bool(keys[0].args.get("desc"))
        gathered = exp.Anonymous(this="sort_array", expressions=[gathered, exp.false() if down else exp.true()])
    each = exp.Dot(this=exp.to_identifier("r"), expression=exp.to_identifier("v"))
    values = lambda_over("transform", gathered, "r", each)
    some = exp.GT(this=_of_array("size", values), expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=some, true=values)])


def _sort_fields(key: exp.Expr, number: int) -> list[exp.Expr]:
    """Return what sorts as an order has it: whether a value is NULL comes before the value."""
    down, first = bool(key.args.get("desc")), bool(key.args.get("nulls_first"))
    null = exp.Is(this=exp.paren(key.this.copy()), expression=exp.null())
    flag = null if first == down else exp.not_(exp.paren(null))
    if (not down and not first) or (down and first):
        flag = null
    elif not down and first:
        flag = exp.not_(exp.paren(null))
    else:
        flag = exp.not_(exp.paren(null))
    names = [exp.Literal.string(f"n{number}"), exp.Literal.string(f"k{number}")]
    return [names[0], exp.paren(flag.copy()), names[1], key.this.copy()]


def write_string_agg(node: exp.Expr) -> exp.Expr:
    """string_agg is Spark's listagg, with its order WITHIN GROUP."""
    value, separator = node.this, node.args.get("separator")
    keys: list[exp.Expr] = []
    if isinstance(value, exp.Order):
        keys, value = value.expressions, value.this
    if isinstance(separator, exp.Order):
        keys, separator = separator.expressions, separator.this
    if isinstance(value, exp.Distinct) and not keys:
        keys = [exp.Ordered(this=value.expressions[0].copy(), nulls_first=False)]
    made = exp.Anonymous(this="listagg", expressions=[value.copy(), (separator or exp.null()).copy()])
    if not keys:
        return made
    return exp.WithinGroup(this=made, expression=exp.Order(expressions=[key.copy() for key in keys]))


def write_unnest(node: exp.Expr) -> exp.Expr:
    """unnest in FROM is a LATERAL explode; elsewhere, Spark has another meaning."""
    if not isinstance(node.parent, exp.From | exp.Join | exp.Lateral):
        raise UnsupportedError("unnest is supported in FROM alone on spark")
    if len(node.expressions) != 1 or node.args.get("offset"):
        raise UnsupportedError("unnest of several arrays, or WITH ORDINALITY, is not supported on spark")
    if isinstance(node.parent, exp.Lateral):
        return _of_array("explode", node.expressions[0])
    return exp.Lateral(this=_of_array("explode", node.expressions[0]), alias=node.args.get("alias"))


def write_source(node: exp.Expr) -> exp.Expr:
    """generate_series of whole numbers in FROM is an explode as well."""
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Func):
        return node
    series = node.this
    if isinstance(series, exp.GenerateSeries) and series.args["start"].is_type(*exp.DataType.INTEGER_TYPES):
        start, end, step = series.args["start"], series.args["end"], series.args.get("step")
        if step is None or (isinstance(step, exp.Literal) and step.is_int):
            some = exp.LTE(this=start.copy(), expression=end.copy())
            numbers = _call("sequence", start, end, *([step] if step is not None else []))
            none = exp.cast(exp.Array(expressions=[]), "array<int>", dialect="spark")
            made = exp.Case(ifs=[exp.If(this=some, true=numbers)], default=none)
            return exp.Lateral(this=_of_array("explode", made), alias=node.args.get("alias"))
    raise UnsupportedError(f"{series.sql('postgres')[:40]} in FROM is not supported on spark")


def _call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])


def _of_array(name: str, array: exp.Expr, *arguments: exp.Expr) -> exp.Anonymous:
    return _call(name, typed_array(array), *arguments)
