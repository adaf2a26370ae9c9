"""What may stand in a tree outside of its expressions: words, names, numbers, each from a closed set.

sqlglot prints such parts as they are. Whatever is no fixed word here could be SQL of its own, and is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp

from almanaq.errors import QueryTypeError, RefusedQueryError, suggest
from almanaq.suql.syntax.carried import check_carried
from almanaq.suql.syntax.nodes import nodes

_UNIT_NAMES = "microsecond millisecond second minute hour day week month quarter year decade century millennium"
UNITS = frozenset(
    [
        *(name + end for name in _UNIT_NAMES.split() for end in ("", "s")),
        *"centuries millennia mon mons min mins sec secs ms us usec usecs msec msecs h hr hrs m y yr yrs d w s".split(),
        *"microsecon millisecon c cent mil mils dec decs".split(),
    ]
)
"""Units of time, as PostgreSQL spells them."""
FIELDS = UNITS | frozenset(
    "epoch dow isodow doy isoyear julian timezone timezone_hour timezone_minute timezone_h timezone_m".split()
)
"""What extract() takes out of a moment."""
_FORMS = frozenset(("nfc", "nfd", "nfkc", "nfkd"))
_SPAN = frozenset(("years", "months", "weeks", "days", "hours", "mins", "secs"))
_JSON = frozenset(("target", "path", "vars", "silent", "new_value", "create_if_missing", "null_value_treatment"))
_WORDS: Mapping[tuple[str, str], frozenset[str]] = {
    ("Extract", "this"): FIELDS,
    ("TimestampTrunc", "unit"): UNITS,
    ("Interval", "unit"): UNITS,
    ("IntervalSpan", "this"): UNITS,
    ("IntervalSpan", "expression"): UNITS,
    ("WindowSpec", "exclude"): frozenset(("current row", "group", "ties", "no others")),
    ("Normalize", "form"): _FORMS,
    ("Kwarg", "this"): _SPAN | _JSON,
}
"""Which words may stand where sqlglot keeps a bare word."""
_TEXTS: Mapping[tuple[str, str], frozenset[str]] = {
    ("Window", "over"): frozenset(("over",)),
    ("WindowSpec", "kind"): frozenset(("rows", "range", "groups")),
    ("WindowSpec", "start"): frozenset(("current row", "unbounded")),
    ("WindowSpec", "start_side"): frozenset(("preceding", "following")),
    ("WindowSpec", "end"): frozenset(("current row", "unbounded")),
    ("WindowSpec", "end_side"): frozenset(("preceding", "following")),
    ("Join", "side"): frozenset(("left", "right", "full")),
    ("Join", "kind"): frozenset(("inner", "outer", "cross", "semi", "anti")),
    ("Join", "method"): frozenset(("natural",)),
    ("Fetch", "direction"): frozenset(("first", "next")),
    ("Trim", "position"): frozenset(("leading", "trailing", "both")),
    ("RecursiveWithSearch", "kind"): frozenset(("depth", "breadth", "cycle")),
    ("ObjectIdentifier", "this"): frozenset(("regtype", "oid")),
    ("JSONObject", "null_handling"): frozenset(("null on null", "absent on null")),
    ("SetOperation", "side"): frozenset(),
}
"""Which words sqlglot may keep as plain text, and where."""
_ANY_TEXT = frozenset(
    [("Identifier", "this"), ("JSONPathKey", "this"), ("UnixToTime", "scale")]
    + [(kind, "this") for kind in ("Anonymous", "AnonymousAggFunc")]
)
"""Plain text that is quoted where it is printed, or checked elsewhere."""
_NUMBER = re.compile(r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_SPAN_TEXT = re.compile(r"[0-9A-Za-z .:+@-]*")
_OPERATOR = re.compile(r"pg_catalog\.[-+*/<>=~!@#%^&|`?]+")
"""PostgreSQL's own operators only compute; those of a schema of somebody's may do anything."""
_COLLATION = re.compile(r"[A-Za-z][A-Za-z0-9_.@-]*")
_ODD_TEXT = "the query holds the character U+0000, which no database takes in a text; leave it out"


def check_arguments(node: exp.Expr) -> None:
    """Raise QueryError unless each part of a node that is printed as it is comes from a closed set."""
    kind = type(node).__name__
    check_carried(node, kind)
    for key, value in node.args.items():
        for item in value if isinstance(value, list) else (value,):
            if isinstance(item, str):
                _check_text(node, kind, key, item)
            elif not (item is None or isinstance(item, exp.Expr | bool | int | exp.DType)):
                raise RefusedQueryError(f"{kind} with {type(item).__name__} is not allowed in a query")
    check = _CHECKS.get(kind)
    if check is not None:
        check(node)


def _check_text(node: exp.Expr, kind: str, key: str, text: str) -> None:
    if "\0" in text:
        raise RefusedQueryError(_ODD_TEXT)
    if (kind, key) == ("Operator", "operator") and _OPERATOR.fullmatch(text):
        return
    if (kind, key) in _ANY_TEXT or kind in ("Literal", "Var", "BitString", "HexString"):
        return  # the last have checks of their own
    if text.lower() not in _TEXTS.get((kind, key), ()):
        raise RefusedQueryError(f"{node.key.upper()} … {text[:40]!r} is not allowed in a query")


def _literal(node: exp.Expr) -> None:
    if not node.is_string and not _NUMBER.fullmatch(node.name):
        raise RefusedQueryError(f"{node.name[:40]!r} is no number: write digits, a point and an exponent")


def _word(node: exp.Expr) -> None:
    parent = node.parent
    place = (type(parent).__name__, node.arg_key or "")
    if place == ("Collate", "expression"):
        return
    known = _WORDS.get(place, frozenset())
    if node.name.lower() not in known:
        if not known:
            raise RefusedQueryError(f"the word {node.name[:40]!r} is not allowed at its place in a query")
        raise QueryTypeError(
            f"{node.name[:40]!r} is no {'field' if place[0] == 'Extract' else 'unit'}{suggest(node.name, known)}"
        )


def _extract(node: exp.Expr) -> None:
    """A field may be written as a text; it is printed as a word."""
    field = node.this
    if isinstance(field, exp.Literal) and field.is_string:
        node.set("this", exp.Var(this=field.name))
        _word(node.this)
    elif not isinstance(field, exp.Var):
        raise QueryTypeError("extract takes the name of a field that is written out: extract(year FROM day)")


def check_unit(node: exp.Expr) -> None:
    """Raise QueryTypeError unless the unit of date_trunc is written out: only PostgreSQL takes one of a column."""
    unit = node.args.get("unit") or next(iter(node.expressions), None)
    if not isinstance(unit, exp.Var | exp.Literal):
        raise QueryTypeError("date_trunc takes a unit that is written out: date_trunc('month', day)")


def _interval(node: exp.Expr) -> None:
    span, unit = node.this, node.args.get("unit")
    written = isinstance(span, exp.Literal) and (not span.is_string or _SPAN_TEXT.fullmatch(span.name) is not None)
    if span is not None and not written:
        raise QueryTypeError(
            "an interval is written out, as interval '3 days'; multiply for another: n * interval '1 day'"
        )
    if unit is not None and not isinstance(unit, exp.Var | exp.IntervalSpan):
        raise QueryTypeError(f"no unit of time{suggest(unit.name, UNITS)}")


def _collation(node: exp.Expr) -> None:
    named = node.expression
    if not isinstance(named, exp.Identifier | exp.Var) or not _COLLATION.fullmatch(named.name):
        raise RefusedQueryError('COLLATE takes the name of a collation: x COLLATE "C"')


def _type(node: exp.Expr) -> None:
    kind = node.args.get("kind")
    if not isinstance(node.this, exp.DType | exp.Interval):
        raise QueryTypeError("no type of that name")
    named = nodes(kind) if isinstance(kind, exp.Expr) else []
    if kind is not None and not (named and all(isinstance(part, exp.Identifier | exp.Dot) for part in named)):
        raise QueryTypeError("the name of a type is one word, or schema.word")
    for part in node.expressions:
        size = part.this if isinstance(part, exp.DataTypeParam) else part
        if not isinstance(size, exp.DataType) and not (isinstance(size, exp.Literal) and not size.is_string):
            raise QueryTypeError("the sizes of a type are numbers: varchar(20), numeric(10, 2)")
    if node.args.get("values"):
        raise QueryTypeError("a type takes sizes only")


def _bits(node: exp.Expr) -> None:
    if not re.fullmatch(r"[0-9a-fA-F]*", node.name):
        raise RefusedQueryError("a string of bits holds digits only")


_CHECKS = {
    "Literal": _literal,
    "Var": _word,
    "Extract": _extract,
    "TimestampTrunc": check_unit,
    "Interval": _interval,
    "Collate": _collation,
    "DataType": _type,
    "BitString": _bits,
    "HexString": _bits,
}
