"""Text and patterns in Spark, as PostgreSQL has them: Java's regular expressions."""

from __future__ import annotations

import re

from sqlglot import exp

from almanaq.errors import UnsupportedError
from almanaq.suql.dialects.date_formats import FIELDS_OF_JAVA, template_parts
from almanaq.suql.dialects.duckdb_matches import any_match, first_match, plain
from almanaq.suql.dialects.lists import mapped
from almanaq.suql.dialects.patterns import similar_as_regexp
from almanaq.suql.dialects.replacements import pieces_of


def write_match(node: exp.Expr) -> exp.Expr:
    """Match a pattern anywhere in a text; dots match line ends in PostgreSQL."""
    folded = isinstance(node, exp.RegexpILike)
    if node.args.get("flag") is not None:
        folded = "i" in node.args["flag"].name
    return _call("regexp_like", node.this, _pattern(any_match(_written(node.expression), "i" if folded else "")))


def write_replace(node: exp.Expr) -> exp.Expr:
    """Replace the first match, all with the flag g."""
    if node.args.get("position") is not None or node.args.get("occurrence") is not None:
        raise UnsupportedError("regexp_replace from a place on is not supported on spark")
    modifiers = node.args.get("modifiers")
    flags = modifiers.name if isinstance(modifiers, exp.Literal) else ""
    if (modifiers is not None and not isinstance(modifiers, exp.Literal)) or not set(flags) <= set("gi"):
        raise UnsupportedError("regexp_replace takes the flags 'g' and 'i' here, written out")
    by = node.args["replacement"]
    if "g" not in flags or not isinstance(by, exp.Literal):
        raise UnsupportedError("regexp_replace takes the flag 'g', and a text that is written out, on spark")
    pieces = pieces_of(by.name)
    groups = any(isinstance(piece, int) and piece > 0 for piece in pieces)
    match = first_match(_written(node.expression), flags.replace("g", ""), groups=groups)
    if match.whole:
        raise UnsupportedError("regexp_replace takes no pattern with a word's edge on spark: write [[:alnum:]]+")
    written = "".join(
        re.sub(r"[\\$]|^\d", r"\\\g<0>", piece) if isinstance(piece, str) else f"${piece}"
        for piece in pieces
        if isinstance(piece, str) or piece <= match.groups
    )
    return _call("regexp_replace", node.this, _pattern(match.pattern), _text(written))


def write_similar(node: exp.Expr) -> exp.Expr:
    return _call("regexp_like", node.this, _pattern(any_match(similar_as_regexp(node.expression), "")))


def write_like(node: exp.Expr) -> exp.Expr:
    """LIKE has the same escape in Spark, where it may stand before a sign that means something alone."""
    pattern = node.expression
    if isinstance(pattern, exp.Any | exp.All):
        raise UnsupportedError("LIKE ANY takes ARRAY[…] of patterns on spark")
    if isinstance(pattern, exp.Literal) and re.search(r"\\(?![%_\\])", pattern.name):
        plain = re.sub(r"\\(?![%_\\])", "", pattern.name)
        node.set("expression", _text(plain))
    return node


def write_substring(node: exp.Expr) -> exp.Expr:
    """`substring(x FROM 'pattern')` is what matches; places before the first count on, not from the end."""
    start, length = node.args.get("start"), node.args.get("length")
    if isinstance(start, exp.Literal) and start.is_string and length is None:
        match = first_match(start.name, "", groups=True)
        pattern = _pattern(match.pattern)
        number = 1 if match.groups else 0
        found: exp.Expr = _call("regexp_extract", node.this, pattern, exp.Literal.number(match.whole + number))
        if match.tells_apart(number):
            found = exp.Nullif(this=found, expression=_text(""))
        return exp.Case(ifs=[exp.If(this=_call("regexp_like", node.this, pattern), true=found)])
    if start is None:
        return node
    if isinstance(start, exp.Literal) and start.is_int and int(start.name) > 0:
        arguments = [node.this, start] if length is None else [node.this, start, length]
        return _call("substring", *arguments)
    one, nothing = exp.Literal.number(1), exp.Literal.number(0)
    first = exp.Case(
        ifs=[exp.If(this=exp.LT(this=start.copy(), expression=one), true=one.copy())], default=start.copy()
    )
    if length is None:
        return _call("substring", node.this, first)
    end = exp.Add(this=exp.paren(start.copy()), expression=exp.paren(length.copy()))
    rest = exp.Sub(this=end, expression=first.copy())
    some = exp.Case(ifs=[exp.If(this=exp.LT(this=rest, expression=nothing), true=nothing.copy())], default=rest.copy())
    return _call("substring", node.this, first, some)


def write_position(node: exp.Expr) -> exp.Expr:
    if node.args.get("position") is not None:
        raise UnsupportedError("strpos from a place on is not supported on spark")
    return _call("locate", node.args["substr"], node.this)


def write_initcap(node: exp.Expr) -> exp.Expr:
    words = _call("regexp_extract_all", node.this, _text(r"[\p{L}\p{N}]+|[^\p{L}\p{N}]+"), exp.Literal.number(0))
    word = exp.to_identifier("w")
    rest = exp.Lower(this=_call("substring", word, exp.Literal.number(2)))
    capital = exp.Concat(
        expressions=[exp.Upper(this=exp.Left(this=word.copy(), expression=exp.Literal.number(1))), rest]
    )
    return _call("array_join", lambda_over("transform", words, "w", capital), _text(""))


def write_format(node: exp.Expr) -> exp.Expr:
    """`format('%s of %s', a, b)` is a concatenation in which NULL is nothing."""
    template, values = node.this, list(node.expressions)
    parts = re.split(r"(%.?)", template.name) if isinstance(template, exp.Literal) else ["%?"]
    if any(part.startswith("%") and part not in ("%s", "%%") for part in parts) or parts.count("%s") > len(values):
        raise UnsupportedError("format() takes a text that is written out, with %s for values: use concat for others")
    pieces = [
        as_text(values.pop(0)) if part == "%s" else _text("%" if part == "%%" else part) for part in parts if part
    ]
    return joined(pieces)


def write_split(node: exp.Expr) -> exp.Expr:
    """`string_to_array(x, sep)`: nothing in an empty text; Spark's split takes a pattern."""
    separator = node.expression
    if node.args.get("null") is not None or not isinstance(separator, exp.Literal) or not separator.name:
        raise UnsupportedError("string_to_array takes a separator of one or more characters, written out, on spark")
    empty = exp.EQ(this=node.this.copy(), expression=_text(""))
    nothing = exp.cast(exp.Array(expressions=[]), "array<text>", dialect="spark")
    parts = _call("split", node.this, _text(re.escape(separator.name)), exp.Literal.number(-1))
    return exp.Case(ifs=[exp.If(this=empty, true=nothing)], default=parts)


def write_concat(node: exp.Expr) -> exp.Expr:
    """concat passes over NULL, and writes truth as t and f, unlike ||."""
    parts = list(node.expressions)
    if isinstance(node, exp.ConcatWs):
        return _call("concat_ws", parts[0], *(as_text(part, short=True) for part in parts[1:]))
    return joined([as_text(part, short=True) for part in parts])


def write_template(node: exp.Expr) -> exp.Expr:
    """to_char, to_date and to_timestamp with Java's letters."""
    if not isinstance(node, exp.TimeToStr):
        raise UnsupportedError("to_date and to_timestamp with a template are not supported on spark: write ::date")
    if node.this.is_type(*exp.DataType.NUMERIC_TYPES, "interval"):
        raise UnsupportedError("to_char of a number or an interval is not supported here: use round and ::text")
    written = ""
    for field, text in template_parts(node):
        if field is None:
            quoted = text.replace("'", "''")
            written += f"'{quoted}'" if re.search("[A-Za-z]", text) or "'" in text else text
        elif field in FIELDS_OF_JAVA:
            written += FIELDS_OF_JAVA[field]
        else:
            raise UnsupportedError(f"the template has {field!r}, which is not supported on spark")
    return _call("date_format", node.this, _text(written))


def as_text(part: exp.Expr, *, short: bool = False) -> exp.Expr:
    """Return a value as PostgreSQL writes it: a whole number of double precision as such."""
    from almanaq.suql.dialects.numbers import is_numeric_there

    if short and part.is_type("boolean"):
        known = [(part.copy(), "t"), (exp.not_(exp.paren(part.copy())), "f")]
        return exp.Case(ifs=[exp.If(this=test, true=_text(sign)) for test, sign in known])
    if part.is_type(*exp.DataType.TEXT_TYPES) or isinstance(part, exp.Literal):
        return part.copy()
    written = exp.Cast(this=part.copy(), to=exp.DataType.build("text"))
    if part.is_type("double", "float") and not is_numeric_there(part):
        return _call("regexp_replace", written, _text(r"\.0$"), _text(""))
    return written


def joined(parts: list[exp.Expr]) -> exp.Expr:
    """Return texts one after another; NULL is nothing."""
    return _call("concat", *(exp.Coalesce(this=part, expressions=[_text("")]) for part in parts), _text(""))


def lambda_over(function: str, array: exp.Expr, name: str, body: exp.Expr) -> exp.Expr:
    """Return a call of a function with each element of an array."""
    made = mapped(function, typed_array(array), name, body)
    made.expressions[1].set("colon", False)
    return made


def typed_array(array: exp.Expr) -> exp.Expr:
    """Return a copy of an array; NULL, which functions of arrays do not take as it is, as one of texts."""
    return exp.cast(array.copy(), "array<text>") if isinstance(array.unnest(), exp.Null) else array.copy()


def _written(pattern: exp.Expr) -> str:
    pattern = plain(pattern)
    if not isinstance(pattern, exp.Literal):
        raise UnsupportedError("a regular expression is written out on spark")
    return pattern.name


def _pattern(pattern: str) -> exp.Expr:
    """Return a pattern in RE2's syntax to Java, which reads all of it but edges of lines the same."""
    if "(?m:" in pattern:
        raise UnsupportedError("edges of lines in patterns are not supported on spark: split the text at line ends")
    return _text(f"(?s){pattern}")


def _text(value: str) -> exp.Literal:
    return exp.Literal.string(value)


def _call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])
