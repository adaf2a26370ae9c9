"""Lists in DuckDB: what is made of each element, and arrays as PostgreSQL writes them in a text."""

from __future__ import annotations

import re

from sqlglot import exp

from almanaq.errors import UnsupportedError


def mapped(function: str, array: exp.Expr, name: str, body: exp.Expr) -> exp.Expr:
    each = exp.Lambda(this=body, expressions=[exp.to_identifier(name)], colon=True)
    return exp.Anonymous(this=function, expressions=[array, each])


def elements(literal: str) -> list[exp.Expr]:
    """Return the elements of an array as PostgreSQL writes one in text: `{a,"b c",NULL}`."""
    element = r'\s*(?:"((?:[^"\\]|\\.)*)"|([^{},"\\]*?))\s*'
    if not re.fullmatch(rf"\{{(?:{element}(?:,{element})*)?\}}", literal):
        raise UnsupportedError(f"the array {literal!r} cannot be read here: write ARRAY['a', 'b']")
    found = re.finditer(rf"(?<=[{{,]){element}(?=[,}}])", literal) if literal.strip("{} ") else []
    return [
        exp.Literal.string(re.sub(r"\\(.)", r"\1", m[1]))
        if m[1] is not None
        else exp.null()
        if m[2].upper() == "NULL"
        else exp.Literal.string(m[2])
        for m in found
    ]
