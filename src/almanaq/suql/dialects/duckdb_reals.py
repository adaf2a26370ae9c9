"""Numbers of single precision in DuckDB: beside others PostgreSQL makes them double, and DuckDB makes those single."""

from __future__ import annotations

from sqlglot import exp

_OTHERS = (*exp.DataType.INTEGER_TYPES, exp.DType.DECIMAL, exp.DType.DOUBLE)


def write_pair(node: exp.Expr) -> exp.Expr:
    """Write `real = 1.1` and `real * 2` with the real as a double; two reals stay what they are."""
    for key, other in (("this", node.expression), ("expression", node.this)):
        if _is_other(other):
            _widen(node, key)
    return node


def write_range(node: exp.Expr) -> exp.Expr:
    """Write `real IN (2.5)` and `real BETWEEN 1 AND 2` with the real as a double; several in a list are made reals."""
    if len(node.expressions) > 1:
        return node
    others = [node.args.get("low"), node.args.get("high"), *node.expressions]
    if any(other is not None and _is_other(other) for other in others):
        _widen(node, "this")
    return node


def write_sum(node: exp.Expr) -> exp.Expr:
    """Write `sum(real)`, with its FILTER and OVER, as a real."""
    if isinstance(node.parent, exp.Filter | exp.Window) and node.arg_key == "this":
        return node
    inner = node
    while isinstance(inner, exp.Filter | exp.Window):
        inner = inner.this
    if not isinstance(inner, exp.Sum):
        return node
    argument = inner.this.expressions[0] if isinstance(inner.this, exp.Distinct) else inner.this
    return exp.cast(node.copy(), "float") if is_real(argument) else node


def _widen(node: exp.Expr, key: str) -> None:
    side = node.args[key]
    if is_real(side):
        node.set(key, exp.cast(side.copy(), "double"))


def is_real(node: exp.Expr) -> bool:
    """Return whether an expression is of single precision."""
    node = node.unnest()
    if isinstance(node, exp.Cast):
        return bool(node.to.is_type(exp.DType.FLOAT))
    if isinstance(node, exp.Neg | exp.Abs | exp.Min | exp.Max):
        return is_real(node.this)
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div):
        return is_real(node.this) and is_real(node.expression)
    if isinstance(node, exp.Case):
        return _is_common([*(branch.args["true"] for branch in node.args["ifs"]), node.args.get("default")])
    if isinstance(node, exp.Coalesce | exp.Greatest | exp.Least):
        return _is_common([node.this, *node.expressions])
    return isinstance(node, exp.Column) and bool(node.is_type(exp.DType.FLOAT))


def _is_common(parts: list[exp.Expr | None]) -> bool:
    """Return whether the type that branches have in common is real: one is, and none is a double."""
    known = [part for part in parts if part is not None]
    return any(map(is_real, known)) and not any(part.is_type(exp.DType.DOUBLE) and _is_column(part) for part in known)


def _is_column(node: exp.Expr) -> bool:
    return isinstance(node.unnest(), exp.Column | exp.Cast)


def _is_other(node: exp.Expr) -> bool:
    node = node.unnest()
    if isinstance(node, exp.Literal):
        return not node.is_string
    return bool(node.is_type(*_OTHERS)) and not is_real(node)
