"""Says in words what a SUQL query searched: read off the query that ran, never off what was meant."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from sqlglot import exp
from sqlglot.errors import SqlglotError

from almanaq.agent.history import Shown
from almanaq.agent.query_tree import query_tree

_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "is",
    exp.NEQ: "is not",
    exp.GT: "is above",
    exp.GTE: "is at least",
    exp.LT: "is below",
    exp.LTE: "is at most",
}
_NUMBER = "the number of"
_AGGREGATES: dict[type[exp.Expr], str] = {
    exp.Avg: "average",
    exp.Max: "highest",
    exp.Min: "lowest",
    exp.Sum: "total",
}


_SETS: dict[type[exp.Expr], str] = {exp.Union: "and", exp.Intersect: "that are also among", exp.Except: "but not"}


def describe(suql: str, shown: Sequence[Shown] = ()) -> str:
    """Return a phrase like "restaurants whose price is cheap, highest rating first"; SQL for what has no words.

    Args:
        shown: rows of earlier replies; a key that stands for one of them is described by its name.
    """
    try:
        tree = query_tree(suql)
    except SqlglotError:
        return suql
    names = {(s.columns[0], str(key[0])): name for s in shown for key, name in zip(s.keys, s.names, strict=True)}
    changed = tree.transform(lambda node: _by_name(node, names)) if names else tree
    return _query(changed) or suql


def _query(tree: exp.Expr) -> str | None:
    """Return a query in words: what a set operation joins, and what a WITH calls by names.

    None for one without FROM.
    """
    if isinstance(tree, exp.Select):
        named = tree.args["with_"].expressions if tree.args.get("with_") else []
        parts = [(words(each.alias), _query(each.this)) for each in named]
        if tree.args.get("from_") is None or not all(phrase for _, phrase in parts):
            return None
        return "; ".join([_select(tree), *(f"{name} here are {phrase}" for name, phrase in parts)])
    if isinstance(tree, exp.SetOperation) and not tree.args.get("with_"):
        left, right = _query(tree.this.unnest()), _query(tree.expression.unnest())
        return f"{left}, {_SETS[type(tree)]} {right}" if left and right else None
    return None


def condition_words(condition: exp.Expr) -> str:
    """Return one condition in words: "price is cheap"."""
    return _condition(condition)


def _by_name(node: exp.Expr, names: dict[tuple[str, str], str]) -> exp.Expr:
    """Return a comparison of a key with literals as one of the name with what these rows were called."""
    literals = [node.args["expression"]] if isinstance(node, exp.EQ) else node.expressions
    if not isinstance(node, exp.EQ | exp.In) or not isinstance(node.this, exp.Column):
        return node
    known = [names.get((node.this.name, each.name)) for each in literals if isinstance(each, exp.Literal)]
    called = [exp.Literal.string(name) for name in known if name is not None]
    if not called or len(called) != len(literals):
        return node
    column = exp.column("name")
    return exp.EQ(this=column, expression=called[0]) if len(called) == 1 else exp.In(this=column, expressions=called)


def _select(tree: exp.Select) -> str:
    first = next(iter(tree.find_all(exp.From)), None)
    subject = words(first.this.name) if first is not None else "rows"
    joins = [_joined(join) for join in tree.args.get("joins") or ()]
    subject += f" ({', '.join(joins)})" if joins else ""
    parts = [_asked(tree) + _distinct(tree) + subject]
    where = tree.args.get("where")
    if where is not None:
        parts.append(
            "whose " + _listed([_condition(c) for c in where.this.flatten(unnest=False)])
            if _and(where.this)
            else "whose " + _condition(where.this)
        )
    text = " ".join(parts) + _answers(tree)
    group, order, limit = tree.args.get("group"), tree.args.get("order"), tree.args.get("limit")
    if group is not None:
        text += ", for each " + " and ".join(_expression(e) for e in group.expressions)
    having = tree.args.get("having")
    if having is not None:
        text += ", where the " + _condition(having.this)
    if order is not None:
        text += ", " + ", then ".join(_ordered(o) for o in order.expressions) + " first"
    if isinstance(limit, exp.Fetch):
        text += f", the first {limit.args['count']} with ties" if limit.args["count"].name != "1" else ", with ties"
    elif limit is not None and isinstance(limit.expression, exp.Literal):
        text += f", at most {limit.expression.this}"
    return text


def _joined(join: exp.Join) -> str:
    """Return a join in words: outer ones keep rows that have no partner, and that is said."""
    name, side = words(join.this.name), str(join.args.get("side") or "").upper()
    kept = {"LEFT": ", or without any", "RIGHT": ", these also alone", "FULL": ", or either alone"}.get(side, "")
    return f"with {name}{kept}"


def _distinct(tree: exp.Select) -> str:
    """Return "different city of " where only what differs in the values shown counts, "" elsewhere."""
    if tree.args.get("distinct") is None:
        return ""
    shown = [_expression(item.unalias()) for item in tree.expressions]
    return f"different {' and '.join(shown)} of "


def _answers(tree: exp.Select) -> str:
    """Return what is read off the texts of the rows that are shown, "" for nothing."""
    calls = [item.unalias() for item in tree.expressions]
    asked = [f"“{_question(call)}”" for call in calls if isinstance(call, exp.Anonymous) and len(call.expressions) > 1]
    return f", and asked {' and '.join(asked)}" if asked else ""


def _listed(conditions: list[str]) -> str:
    """Return conditions that all hold: with commas where there are more than two."""
    return " and ".join(conditions) if len(conditions) < 3 else f"{', '.join(conditions[:-1])}, and {conditions[-1]}"


def _and(node: exp.Expr) -> bool:
    return isinstance(node, exp.And)


def _asked(tree: exp.Select) -> str:
    """Return "the number of", "the average rating of" for computed columns, "" for plain ones."""
    found = []
    for item in tree.expressions:
        item = item.unalias()
        if isinstance(item, exp.Count):
            counted = item.this.expressions if isinstance(item.this, exp.Distinct) else []
            found.append(
                f"the number of different {' and '.join(map(_expression, counted))} of" if counted else _NUMBER
            )
        elif type(item) in _AGGREGATES:
            found.append(f"the {_AGGREGATES[type(item)]} {_expression(item.this)} of")
    return " and ".join(found).replace(" of and", " and") + " " if found else ""


def _ordered(item: exp.Expr) -> str:
    down = bool(item.args.get("desc"))
    return f"{'highest' if down else 'lowest'} {_expression(item.this)}"


def _condition(node: exp.Expr) -> str:
    for kind, write in _WRITERS.items():
        if isinstance(node, kind):
            return write(node)
    comparison = _COMPARISONS.get(type(node))
    if comparison is None:
        return f"{words(node.name)} is yes" if isinstance(node, exp.Column) else _sql(node)
    left, right = node.args["this"], node.args["expression"]
    if isinstance(right, exp.Any | exp.All):
        inner = right.this.unnest()
        if isinstance(inner, exp.Select):
            which = "any" if isinstance(right, exp.Any) else "every"
            return f"{_expression(left)} {comparison} {which} {(_figure(inner) or _sql(inner)).removeprefix('the ')}"
        if isinstance(inner, exp.Array):
            return f"{_expression(left)} {comparison} " + " or ".join(map(_literal, inner.expressions))
        return f"{_expression(inner)} include {_literal(left)}"
    if isinstance(left, exp.Anonymous):
        return f"{_source(left)} {_verdict(right)} “{_question(left)}”"
    return f"{_expression(left)} {comparison} {_literal(right)}"


def _verdict(node: exp.Expr) -> str:
    literal = node.name.casefold() if isinstance(node, exp.Literal) else ""
    return {"yes": "say yes to", "no": "say no to"}.get(literal, f"say {_literal(node)} to")


def _source(call: exp.Anonymous) -> str:
    return _expression(call.expressions[0]) if call.expressions else "texts"


def _question(call: exp.Anonymous) -> str:
    return call.expressions[1].name if len(call.expressions) > 1 else call.name


def _expression(node: exp.Expr) -> str:
    if isinstance(node, exp.Column):
        return words(node.name)
    if isinstance(node, exp.Count):
        return "number"
    if isinstance(node, exp.Cast | exp.Paren):
        return _expression(node.this)
    if isinstance(node, exp.Div) and isinstance(node.this, exp.Extract) and node.this.name.lower() == "epoch":
        return f"minutes of {_expression(node.this.expression)}"
    if isinstance(node, exp.Extract | exp.TimestampTrunc | exp.DateTrunc):
        unit = node.this if isinstance(node, exp.Extract) else node.args["unit"]
        return f"{unit.name.lower()} of {_expression(node.expression if isinstance(node, exp.Extract) else node.this)}"
    if type(node) in _AGGREGATES:
        return f"{_AGGREGATES[type(node)]} {_expression(node.this)}"
    if isinstance(node, exp.Subquery):
        return _one_value(node)
    if isinstance(node, exp.Case) and node.args.get("this") is not None:
        return _expression(node.args["this"])
    if isinstance(node, exp.Lower | exp.Upper | exp.Trim):
        return _expression(node.this)
    if isinstance(node, exp.Coalesce):
        return " or else ".join(map(_literal, (node.this, *node.expressions)))
    if isinstance(node, exp.JSONExtract | exp.JSONExtractScalar):
        return f"{_json_path(node.expression)} of {_expression(node.this)}"
    if isinstance(node, exp.Anonymous) and node.name.lower() == "summary":
        return f"summary of {_source(node)}"
    if isinstance(node, exp.Anonymous):
        return f"answer to “{_question(node)}”"
    return _sql(node)


def _json_path(node: exp.Expr) -> str:
    """Return the path of a JSON field: "opening Mon"."""
    return (
        " ".join(p.name or str(p.this) for p in node.expressions[1:]) if isinstance(node, exp.JSONPath) else node.name
    )


def _one_value(node: exp.Subquery) -> str:
    """Return "the average salary", "that of Ann" for a query of one figure."""
    inner = node.unnest()
    return (_figure(inner) if isinstance(inner, exp.Select) else None) or _sql(node)


def _figure(inner: exp.Select) -> str | None:
    """Return the figure that a query has in words; None where it has no words."""
    figure = inner.expressions[0].unalias() if len(inner.expressions) == 1 else None
    where = inner.args.get("where")
    if figure is None or not isinstance(figure, exp.Column | exp.Avg | exp.Max | exp.Min | exp.Sum | exp.Count):
        return None
    if where is None:
        order = inner.args.get("order")
        first = f" of the one with the {_ordered(order.expressions[0])}" if order is not None else ""
        return f"the {_expression(figure)}{first}"
    named = [each.name.strip("%") for each in where.find_all(exp.Literal) if each.is_string]
    if not isinstance(figure, exp.Max | exp.Min | exp.Column):
        return f"the {_expression(figure)} of those whose {_condition(where.this)}"
    if len(named) == 1:
        return f"that of {named[0]}"
    among = _listed(named) if named else "those whose " + _condition(where.this)
    return f"the {_expression(figure)} {'of' if isinstance(figure, exp.Column) else 'among'} {among}"


def _exists(node: exp.Expr) -> str | None:
    """Return what has partners where a condition asks for no more of them: "related loans".

    None for other conditions.
    """
    query = node.args.get("query") if isinstance(node, exp.In) else None
    inner = query.unnest() if query is not None else None
    where = inner.args.get("where") if isinstance(inner, exp.Select) else None
    only = where is not None and isinstance(where.this, exp.Is) and bool(where.this.args.get("negate"))
    if not only or not isinstance(inner, exp.Select):
        return None
    tables = [table.name for table in inner.find_all(exp.Table)]
    return f"related {words(tables[-1])}"


def _literal(node: exp.Expr) -> str:
    return node.name if isinstance(node, exp.Literal) else _expression(node)


def _in(node: exp.Expr) -> str:
    query = node.args.get("query")
    if query is not None:
        inner = query.unnest()
        if (found := _exists(node)) is not None:
            return f"{found} exist"
        return "related " + _select(inner) if isinstance(inner, exp.Select) else _sql(node)
    return f"{_expression(node.this)} is " + " or ".join(_literal(e) for e in node.expressions)


def _not(node: exp.Expr) -> str:
    inner = node.this.unnest()
    if isinstance(inner, exp.Column):
        return f"{words(inner.name)} is no"
    if (found := _exists(inner)) is not None:
        return f"{found} do not exist"
    if isinstance(inner, exp.Exists):
        return _there_is(inner).removesuffix("exist") + "do not exist"
    if isinstance(inner, exp.EQ) and isinstance(inner.expression, exp.Any) and " include " in _condition(inner):
        return _condition(inner).replace(" include ", " do not include ", 1)
    if isinstance(inner, exp.EQ):
        return _condition(exp.NEQ(this=inner.this, expression=inner.expression))
    if isinstance(inner, exp.In) and inner.expressions:
        return f"{_expression(inner.this)} is none of " + ", ".join(_literal(e) for e in inner.expressions)
    return "not (" + _condition(inner) + ")"


def _null(node: exp.Expr) -> str:
    null, negated = isinstance(node.expression, exp.Null), bool(node.args.get("negate"))
    if null and negated:
        return f"{_expression(node.this)} is given"
    return f"{_expression(node.this)} is {'not ' * negated}{'missing' if null else _literal(node.expression)}"


def _alike(node: exp.Expr) -> str:
    pattern = node.args["expression"].name
    ends = node.this.unnest()
    if isinstance(ends, exp.DPipe) and isinstance(ends.this, exp.DPipe) and isinstance(ends.expression, exp.Literal):
        mark = ends.expression.name  # a text that lists items, with a mark before the first and after the last
        return (
            f"{_expression(ends.this.expression)} contains {pattern.strip('%').removeprefix(mark).removesuffix(mark)}"
        )
    how = "contains" if pattern[:1] == "%" == pattern[-1:] else "begins with" if pattern[-1:] == "%" else "ends with"
    return f"{_expression(node.this)} {how} {pattern.strip('%')}"


def _there_is(node: exp.Expr) -> str:
    inner = node.this.unnest()
    tables = [table.name for table in inner.find_all(exp.Table)]
    return f"related {words(tables[0])} exist" if tables else _sql(node)


_WRITERS: dict[type[exp.Expr], Callable[[exp.Expr], str]] = {
    exp.Exists: _there_is,
    exp.Paren: lambda n: "(" + _condition(n.this) + ")",
    exp.And: lambda n: " and ".join(_condition(c) for c in n.flatten()),
    exp.Or: lambda n: " or ".join(_condition(c) for c in n.flatten()),
    exp.Not: _not,
    exp.In: _in,
    exp.Is: _null,
    exp.Between: lambda n: f"{_expression(n.this)} is between {_literal(n.args['low'])} and {_literal(n.args['high'])}",
    exp.ILike: _alike,
    exp.Like: _alike,
    exp.RegexpLike: lambda n: f"{_expression(n.this)} matches the pattern {_literal(n.expression)}",
    exp.RegexpILike: lambda n: f"{_expression(n.this)} matches the pattern {_literal(n.expression)}",
}


def words(identifier: str) -> str:
    """Return an identifier as people read it: `num_reviews` is "number of reviews", `sales.orders` is "orders"."""
    identifier = identifier.rpartition(".")[2] or identifier
    spoken = re.sub(r"(?<=[a-z])(?=[A-Z])|_+", " ", identifier).strip().lower()
    return re.sub(r"^num (?=\w)", "number of ", spoken)


def _sql(node: exp.Expr) -> str:
    return node.sql("postgres")
