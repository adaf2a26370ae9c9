"""Keys of JSON after `->` and in json_extract_path, written so that no key is read as anything but a key."""

from __future__ import annotations

import re

from sqlglot import exp

from almanaq.errors import UnsupportedError

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def write_path(node: exp.Expr, dialect: str) -> exp.Expr:
    """Return a JSONExtract or JSONExtractScalar, which is changed, with its path as an engine reads it.

    sqlglot prints the keys of a path as they are: a quote in one would end the text that it stands in.

    Raises:
        UnsupportedError: the engine has no way to write a key.
    """
    steps = _steps(node.expression)
    if steps is None:
        if node.expressions and dialect != "postgres":
            raise UnsupportedError(f"several keys that are computed are not supported on {dialect}: use -> for each")
        return node
    if dialect == "postgres":
        return _for_postgres(node, steps)
    if dialect == "duckdb":
        node.set("expression", exp.Literal.string(_for_duckdb(steps)))
        return node
    for step in steps:
        if isinstance(step, str) and not _PLAIN.fullmatch(step):
            raise UnsupportedError(f"the key {step!r} cannot be written for {dialect}: keys are letters, digits and _")
    return node


def _steps(path: exp.Expr) -> list[str | int] | None:
    """Return the keys and places of a path that is written out; None of one that is computed."""
    if isinstance(path, exp.JSONPath):
        return [part.this for part in path.expressions if isinstance(part, exp.JSONPathKey | exp.JSONPathSubscript)]
    return [path.name] if isinstance(path, exp.Literal) and path.is_string else None  # a parameter


def _for_postgres(node: exp.Expr, steps: list[str | int]) -> exp.Expr:
    if isinstance(node.expression, exp.Literal):
        return node
    if node.args.get("only_json_types") and len(steps) == 1:
        node.set("expression", _literal(steps[0]))
        return node
    name = "json_extract_path_text" if isinstance(node, exp.JSONExtractScalar) else "json_extract_path"
    arguments = [exp.Literal.string(str(step)) for step in steps]
    return exp.Anonymous(this=name, expressions=[node.this, *arguments])


def _literal(step: str | int) -> exp.Expr:
    return exp.Literal.string(step) if isinstance(step, str) else exp.Literal.number(step)


def _for_duckdb(steps: list[str | int]) -> str:
    """Return `$.a[0]`; or a pointer, `/a b/0`, where a key has signs that mean something in the first form."""
    if all(isinstance(step, int) or _PLAIN.fullmatch(step) or step.isdecimal() for step in steps):
        return "$" + "".join(map(_dollar_step, steps))
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def _dollar_step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f'."{step}"' if step.isdecimal() else f".{step}"
