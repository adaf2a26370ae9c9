"""PostgreSQL's templates of dates and times, as DuckDB writes and reads them; an error names what it lacks."""

from __future__ import annotations

import re

from sqlglot import exp

from almanaq.errors import UnsupportedError

_FIELDS = {
    **{"YYYY": "%Y", "YY": "%y", "MM": "%m", "DDD": "%j", "DD": "%d", "HH24": "%H", "HH12": "%I", "HH": "%I"},
    **{"MI": "%M", "SS": "%S", "MS": "%g", "US": "%f", "AM": "%p", "PM": "%p", "Mon": "%b", "Dy": "%a"},
    **{"IYYY": "%G", "IW": "%V", "ID": "%u"},
    **{"FMMM": "%-m", "FMDD": "%-d", "FMDDD": "%-j", "FMHH24": "%-H", "FMHH12": "%-I", "FMHH": "%-I", "FMMI": "%-M"},
    **{"FMSS": "%-S", "FMMonth": "%B", "FMDay": "%A", "TMMonth": "%B", "TMMon": "%b", "TMDay": "%A", "TMDy": "%a"},
}
"""Fields that DuckDB has as they are; the others are made of them by `_MADE`."""
_ANY_CASE = ("yyyy", "yy", "mm", "dd", "ddd", "hh24", "hh12", "hh", "mi", "ss", "ms", "us", "iyyy", "iw", "id")
_FIELDS |= {name: _FIELDS[name.upper()] for name in _ANY_CASE}
_MADE = {
    **{"MON": ("%b", "upper"), "mon": ("%b", "lower"), "DY": ("%a", "upper"), "dy": ("%a", "lower")},
    **{"Month": ("%B", "pad"), "Day": ("%A", "pad"), "am": ("%p", "lower"), "pm": ("%p", "lower")},
    **{"FMMONTH": ("%B", "upper"), "FMDAY": ("%A", "upper"), "FMmonth": ("%B", "lower"), "FMday": ("%A", "lower")},
}
_WORDS_WIDTH = 9
"""Months and days of the week are filled up with spaces to this width, unless FM goes before."""
_REFUSED = ("SSSSS", "SSSS", "ssss", "IDDD", "iddd")
"""Fields that begin with others."""
_NAMES = sorted([*_FIELDS, *_MADE, "Q", *_REFUSED], key=len, reverse=True)
_PARTS = re.compile(rf'"(?P<quoted>[^"]*)"|(?P<field>{"|".join(_NAMES)})|(?P<other>[A-Za-z]+)|(?P<sign>.)', re.S)


def write_moment(node: exp.Expr) -> exp.Expr:
    """Return `to_char(x, template)` as a concatenation of what DuckDB writes."""
    if node.this.is_type(*exp.DataType.NUMERIC_TYPES, "interval"):
        raise UnsupportedError("to_char of a number or an interval is not supported here: use round and ::text")
    pieces: list[exp.Expr] = []
    plain = ""
    for part in _parts(node):
        if isinstance(part, str):
            plain += part
            continue
        if plain:
            pieces.append(_written(node, plain))
        plain = ""
        pieces.append(_made(node, *part))
    if plain or not pieces:
        pieces.append(_written(node, plain))
    result = pieces[0]
    for piece in pieces[1:]:
        result = exp.DPipe(this=result, expression=piece)
    return exp.paren(result, copy=False) if len(pieces) > 1 else result


def read_moment(node: exp.Expr) -> exp.Expr:
    """Return `to_date(x, template)` or `to_timestamp(x, template)` with DuckDB's template."""
    if isinstance(node.args.get("format"), exp.Literal):
        parts = [part if isinstance(part, str) else part[0] for part in _parts(node)]
        if "quarter" in parts:
            raise UnsupportedError("a quarter tells no date: leave Q out of the template")
        node.set("format", exp.Literal.string("".join(parts)))
    if isinstance(node, exp.StrToTime):  # a moment with the session's zone, which is UTC
        return exp.paren(exp.AtTimeZone(this=node.copy(), zone=exp.Literal.string("UTC")), copy=False)
    return node


def _parts(node: exp.Expr) -> list[str | tuple[str, str]]:
    """Return what a template is made of: DuckDB's template, or one with what has to be done with what it gives."""
    template = node.args.get("format")
    if not isinstance(template, exp.Literal):
        raise UnsupportedError("the template of a date has to be written out here: to_char(day, 'YYYY-MM-DD')")
    text = template.name
    found: list[str | tuple[str, str]] = []
    for match in _PARTS.finditer(text):
        field = match["field"]
        if match["other"] or field in _REFUSED:
            raise UnsupportedError(f"the template {text!r} has {match[0]!r}, which is not supported here")
        if field is None:
            found.append((match["quoted"] if match["quoted"] is not None else match["sign"]).replace("%", "%%"))
        elif field == "Q":
            found.append(("quarter", "quarter"))
        else:
            found.append(_MADE[field] if field in _MADE else _FIELDS[field])
    return found


FIELDS_OF_JAVA = {
    **{"YYYY": "yyyy", "YY": "yy", "MM": "MM", "DDD": "DDD", "DD": "dd", "HH24": "HH", "HH12": "hh", "HH": "hh"},
    **{"MI": "mm", "SS": "ss", "MS": "SSS", "US": "SSSSSS", "AM": "a", "PM": "a", "Mon": "MMM", "Dy": "E"},
    **{"FMMM": "M", "FMDD": "d", "FMDDD": "D", "FMHH24": "H", "FMHH12": "h", "FMHH": "h", "FMMI": "m", "FMSS": "s"},
    **{"FMMonth": "MMMM", "FMDay": "EEEE", "TMMonth": "MMMM", "TMMon": "MMM", "TMDay": "EEEE", "TMDy": "E", "Q": "q"},
}
"""Fields that Java's templates, which Spark has, write the same."""
FIELDS_OF_JAVA |= {name: FIELDS_OF_JAVA[name.upper()] for name in _ANY_CASE if name.upper() in FIELDS_OF_JAVA}


def template_parts(node: exp.Expr) -> list[tuple[str | None, str]]:
    """Return the fields of a template that is written out, and the text between them, which has no field."""
    template = node.args.get("format")
    if not isinstance(template, exp.Literal):
        raise UnsupportedError("the template of a date has to be written out here: to_char(day, 'YYYY-MM-DD')")
    found: list[tuple[str | None, str]] = []
    for match in _PARTS.finditer(template.name):
        if match["other"]:
            raise UnsupportedError(f"the template {template.name!r} has {match[0]!r}, which is not supported here")
        quoted = match["quoted"]
        found.append((match["field"], quoted if quoted is not None else match[0]))
    return found


def _written(node: exp.Expr, template: str) -> exp.Expr:
    return exp.Anonymous(this="strftime", expressions=[node.this.copy(), exp.Literal.string(template)])


def _made(node: exp.Expr, template: str, how: str) -> exp.Expr:
    if how == "quarter":
        return exp.cast(exp.Anonymous(this="quarter", expressions=[node.this.copy()]), "text")
    written = _written(node, template)
    if how == "pad":
        return exp.Anonymous(
            this="rpad", expressions=[written, exp.Literal.number(_WORDS_WIDTH), exp.Literal.string(" ")]
        )
    return exp.Anonymous(this=how, expressions=[written])
