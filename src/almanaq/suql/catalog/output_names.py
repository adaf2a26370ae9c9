"""What an output without a name of its own is called, as PostgreSQL calls it."""

from __future__ import annotations

from sqlglot import exp

from almanaq.suql.syntax.functions import CLASSES, WRITTEN

APART = "\u2063"
"""Stands between a number and the name of a column that shares its name with another: nobody sees it."""


def name_of(item: exp.Expr) -> str:
    """Return the name of an expression in a SELECT list, or of a function in FROM."""
    at = item
    while isinstance(at, exp.Paren):
        at = at.this
    if isinstance(at, exp.Cast):
        return _name_of_cast(at)[0]
    if isinstance(at, exp.Alias):
        return str(at.args["alias"].meta.get("spelled", at.alias))
    if isinstance(at, exp.Column):
        return str(at.table if at.is_star else at.name)
    if isinstance(at, exp.Anonymous | exp.AnonymousAggFunc):
        return at.name.lower()
    if isinstance(at, exp.Window | exp.Filter | exp.WithinGroup | exp.Bracket | exp.Collate):
        return name_of(at.this)
    if isinstance(at, exp.Case):
        return "case"
    if isinstance(at, exp.Subquery):
        return name_of(_first_select(at).expressions[0])
    if isinstance(at, exp.Dot):
        return str(at.expression.name)
    if isinstance(at, exp.Trim):
        return _TRIMS.get(str(at.args.get("position") or "").upper(), str(at.meta.get(WRITTEN, "btrim")))
    name = at.meta.get(WRITTEN) or _NAMES.get(type(at))
    if name is not None:
        return str(name)
    if isinstance(at, exp.Func) and not isinstance(at, exp.Binary | exp.Connector):
        written = CLASSES.get(type(at).__name__, frozenset())
        return next(iter(written)) if len(written) == 1 else at.sql_name().lower()
    return "?column?"


_NAMES: dict[type[exp.Expr], str] = {
    exp.GroupConcat: "string_agg",
    exp.Unnest: "unnest",
    exp.Explode: "unnest",
    exp.GenerateSeries: "generate_series",
    exp.ExplodingGenerateSeries: "generate_series",
    exp.Overlaps: "overlaps",
    exp.AtTimeZone: "timezone",
    exp.Interval: "interval",
    exp.MatchAgainst: "?column?",
    exp.StrPosition: "position",
    **dict.fromkeys((exp.Abs, exp.Cbrt, exp.Sqrt), "?column?"),  # operators
}
_TRIMS = {"LEADING": "ltrim", "TRAILING": "rtrim", "BOTH": "btrim"}


_TYPES = {
    **{
        "int": "int4",
        "bigint": "int8",
        "smallint": "int2",
        "double": "float8",
        "float": "float4",
        "decimal": "numeric",
    },
    **{"boolean": "bool", "char": "bpchar", "varbinary": "bytea", "timestampntz": "timestamp"},
}
"""What PostgreSQL calls types that sqlglot calls otherwise."""


def _type_name(cast: exp.Expr) -> str:
    """Return the name of the type that a cast is to: an output that is nothing but a cast is called so."""
    to = cast.args["to"]
    if to.is_type("array") and to.expressions:
        to = to.expressions[0]
    if to.this == exp.DType.USERDEFINED:
        return str(to.args["kind"].name)
    name = str(to.name if isinstance(to, exp.ObjectIdentifier) else to.this.value).lower()
    return _TYPES.get(name, name)


def _name_of_cast(cast: exp.Cast) -> tuple[str, bool]:
    """Return the name of a cast, and whether it is that of its type; each cast inside is looked at once."""
    inside = cast.this
    while isinstance(inside, exp.Paren):
        inside = inside.this
    if isinstance(inside, exp.Cast):
        name, by_type = _name_of_cast(inside)
    else:
        name, by_type = name_of(inside), isinstance(inside, exp.Interval)
    own = _type_name(cast)
    if by_type or name in ("?column?", "case"):
        name = own
    return name, name == own and not isinstance(cast.this, exp.Column)


def _first_select(query: exp.Query) -> exp.Select:
    at: exp.Expr = query
    while not isinstance(at, exp.Select):
        at = at.this
    return at
