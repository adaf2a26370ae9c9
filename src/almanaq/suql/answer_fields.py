"""Several typed fields from one text: `answer(text, question, {'price': 'INTEGER', 'mood': ['calm', 'loud']})`."""

from __future__ import annotations

import json
from collections.abc import Mapping

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from almanaq.errors import QueryTypeError
from almanaq.suql.syntax.literals import literal

_USAGE = (
    "answer(text, question, {'price': 'INTEGER', 'mood': ['calm', 'loud']}): a type, or the allowed values, for each"
)
_BUILDERS = {"duckdb": ("json_object", "json_object"), "postgres": ("json_build_object", "jsonb_build_object")}


def expand_fields(text: str, dialect: str) -> str:
    """Return a query in which each answer of several fields is a STRUCT, or JSON, of one answer for each field.

    The fields are written in the engine's own terms: a STRUCT literal of names and types, or JSON with the same, as
    `'{"price": "integer"}'::jsonb`. A text without such an answer is returned as it is.

    >>> expand_fields("SELECT answer(body, 'what is offered?', {'price': 'INTEGER'}) FROM t", "duckdb")
    "SELECT {'price': CAST(ANSWER(body, 'what is offered?: price') AS INT)} FROM t"
    """
    if "{" not in text or "answer" not in text.lower():
        return text
    try:
        trees = sqlglot.parse(text, dialect=dialect)
    except (SqlglotError, RecursionError):
        return text  # whoever reads it says what is wrong
    if len(trees) != 1 or trees[0] is None:
        return text
    calls = [call for call in trees[0].find_all(exp.Anonymous) if call.name.lower() == "answer"]
    found = [(call, fields) for call in calls if (fields := _fields_of(call)) is not None]
    for call, fields in found:
        call.replace(_expand_call(call, fields, dialect))
    return trees[0].sql(dialect=dialect) if found else text


def _fields_of(call: exp.Anonymous) -> Mapping[str, exp.Expr] | None:
    named = call.expressions[2].unnest() if len(call.expressions) == 3 else None
    if isinstance(named, exp.Struct):
        pairs = [(item.this.name, item.expression) for item in named.expressions if isinstance(item, exp.PropertyEQ)]
    elif isinstance(named, exp.Cast) and named.to.is_type("json", "jsonb") and named.this.is_string:
        try:
            given = json.loads(named.this.name)
        except ValueError as error:
            raise QueryTypeError(f"the fields of answer() are no JSON ({error}); write {_USAGE}") from error
        if not isinstance(given, dict):
            raise QueryTypeError(f"the fields of answer() are a JSON object; write {_USAGE}")
        pairs = [(name, _as_sql(value)) for name, value in given.items()]
    else:
        return None
    if not pairs or any(isinstance(part, exp.Placeholder) and not part.name for part in call.find_all(exp.Placeholder)):
        raise QueryTypeError(f"answer() names one field or more, and has no ? beside them; write {_USAGE}")
    return dict(pairs)


def _as_sql(value: object) -> exp.Expr:
    return exp.Array(expressions=list(map(_as_sql, value))) if isinstance(value, list) else literal(value)


def _expand_call(call: exp.Anonymous, fields: Mapping[str, exp.Expr], dialect: str) -> exp.Expr:
    answers = {name: _field(call, name, kind, dialect) for name, kind in fields.items()}
    named = call.expressions[2].unnest()
    if isinstance(named, exp.Struct):
        pairs = [exp.PropertyEQ(this=exp.to_identifier(n, quoted=True), expression=a) for n, a in answers.items()]
        return exp.Struct(expressions=pairs)
    builder = _BUILDERS.get(dialect, ("json_object", "json_object"))[named.to.is_type("jsonb")]
    return exp.Anonymous(this=builder, expressions=[part for n, a in answers.items() for part in (literal(n), a)])


def _field(call: exp.Anonymous, name: str, kind: exp.Expr, dialect: str) -> exp.Expr:
    document, question = (argument.copy() for argument in call.expressions[:2])
    suffix = f": {name.replace('_', ' ')}"
    asked = (
        literal(question.name + suffix) if question.is_string else exp.DPipe(this=question, expression=literal(suffix))
    )
    options = [kind.copy()] if isinstance(kind, exp.Array) else []
    answer = exp.Anonymous(this=call.this, expressions=[document, asked, *options])
    if options:
        return answer
    try:
        type_ = exp.DataType.build(kind.name if kind.is_string else "", dialect=dialect)
    except (SqlglotError, ValueError) as error:
        raise QueryTypeError(f"the field {name!r} of answer() has no type; write {_USAGE}") from error
    return answer if type_.is_type("text", "varchar") else exp.Cast(this=answer, to=type_)
