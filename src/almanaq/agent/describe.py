"""Says in words what a SUQL query searched: read off the query that ran, never off what was meant."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import SqlglotError

from almanaq.agent.history import Shown
from almanaq.agent.queries import query_tree
from almanaq.suql.text_functions import is_text_call

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


def describe(suql: str, shown: Sequence[Shown] = (), *, dialect: str = "duckdb") -> str:
    """Return a phrase like "restaurants whose price is cheap, highest rating first"; SQL for what has no words.

    Args:
        shown: rows of earlier replies; a key that stands for one of them is described by its name.
        dialect: sqlglot's name of the SQL that the query is written in.
    """
    try:
        tree = query_tree(suql, dialect)
    except SqlglotError:
        return suql
    names = {(s.columns[0], str(key[0])): name for s in shown for key, name in zip(s.keys, s.names, strict=True)}
    changed = tree.transform(lambda node: _by_name(node, names)) if names else tree
    return _Describer(dialect).query(changed) or suql


def describe_condition(condition: str, dialect: str) -> str:
    """Return a condition that was written as SQL in words; as it is where it cannot be parsed."""
    try:
        return condition_words(query_tree(f"SELECT 1 WHERE {condition}", dialect).args["where"].this, dialect)
    except (SqlglotError, KeyError):
        return condition


def condition_words(condition: exp.Expr, dialect: str) -> str:
    """Return one condition in words: "price is cheap"."""
    return _Describer(dialect).condition(condition)


def words(identifier: str) -> str:
    """Return an identifier as people read it: `num_reviews` is "number of reviews", `sales.orders` is "orders"."""
    identifier = identifier.rpartition(".")[2] or identifier
    spoken = re.sub(r"(?<=[a-z])(?=[A-Z])|_+", " ", identifier).strip().lower()
    return re.sub(r"^num (?=\w)", "number of ", spoken)


@dataclass(frozen=True, slots=True)
class _Describer:
    """Says parts of a query in words; what has none is shown in the query's own dialect."""

    dialect: str

    def query(self, tree: exp.Expr) -> str | None:
        """Return a query in words: what a set operation joins, and what a WITH calls by names.

        None for one without FROM.
        """
        if isinstance(tree, exp.Select):
            named = tree.args["with_"].expressions if tree.args.get("with_") else []
            parts = [(words(each.alias), self.query(each.this)) for each in named]
            if tree.args.get("from_") is None or not all(phrase for _, phrase in parts):
                return None
            phrase = self._select(tree)
            return phrase and "; ".join([phrase, *(f"{name} here are {phrase}" for name, phrase in parts)])
        if isinstance(tree, exp.SetOperation) and not tree.args.get("with_"):
            left, right = self.query(tree.this.unnest()), self.query(tree.expression.unnest())
            return f"{left}, {_SETS[type(tree)]} {right}" if left and right else None
        return None

    def _select(self, tree: exp.Select) -> str | None:
        if _lacks_words(tree):
            return None
        first = next(iter(tree.find_all(exp.From)), None)
        subject = words(first.this.name) if first is not None else "rows"
        joins = [_describe_join(join) for join in tree.args.get("joins") or ()]
        subject += f" ({', '.join(joins)})" if joins else ""
        parts = [self._computed_outputs(tree) + self._distinct(tree) + subject]
        where = tree.args.get("where")
        if where is not None:
            parts.append(
                "whose " + _join_conditions([self.condition(c) for c in where.this.flatten(unnest=False)])
                if _and(where.this)
                else "whose " + self.condition(where.this)
            )
        text = " ".join(parts) + self._answers(tree)
        group, order, limit = tree.args.get("group"), tree.args.get("order"), tree.args.get("limit")
        if group is not None:
            text += ", for each " + " and ".join(map(self._expression, _group_keys(tree, group)))
        having = tree.args.get("having")
        if having is not None:
            text += ", where the " + self.condition(having.this)
        if order is not None:
            text += ", " + ", then ".join(self._describe_order(o) for o in order.expressions) + " first"
        if isinstance(limit, exp.Fetch):
            text += f", the first {limit.args['count']} with ties" if limit.args["count"].name != "1" else ", with ties"
        elif limit is not None and isinstance(limit.expression, exp.Literal):
            text += f", at most {limit.expression.this}"
        return text

    def _computed_outputs(self, tree: exp.Select) -> str:
        """Return "the number of", "the average rating of" for computed columns, "" for plain ones."""
        found = []
        for item in tree.expressions:
            item = item.unalias()
            if isinstance(item, exp.Count):
                counted = item.this.expressions if isinstance(item.this, exp.Distinct) else []
                found.append(
                    f"the number of different {' and '.join(map(self._expression, counted))} of" if counted else _NUMBER
                )
            elif type(item) in _AGGREGATES:
                found.append(f"the {_AGGREGATES[type(item)]} {self._expression(item.this)} of")
        return " and ".join(found).replace(" of and", " and") + " " if found else ""

    def _distinct(self, tree: exp.Select) -> str:
        """Return "different city of " where only what differs in the values shown counts, "" elsewhere."""
        if tree.args.get("distinct") is None:
            return ""
        shown = [self._expression(item.unalias()) for item in tree.expressions]
        return f"different {' and '.join(shown)} of "

    def _answers(self, tree: exp.Select) -> str:
        """Return what is read off the texts of the rows that are shown, "" for nothing."""
        calls = [item.unalias() for item in tree.expressions]
        asked = [f"“{_question(call)}”" for call in calls if _asks_text(call)]
        return f", and asked {' and '.join(asked)}" if asked else ""

    def _describe_order(self, item: exp.Expr) -> str:
        down = bool(item.args.get("desc"))
        return f"{'highest' if down else 'lowest'} {self._expression(item.this)}"

    def condition(self, node: exp.Expr) -> str:
        for kind, write in _WRITERS.items():
            if isinstance(node, kind):
                return write(self, node)
        comparison = _COMPARISONS.get(type(node))
        if comparison is None:
            return f"{words(node.name)} is yes" if isinstance(node, exp.Column) else self._sql(node)
        left, right = node.args["this"], node.args["expression"]
        if isinstance(right, exp.Any | exp.All):
            inner = right.this.unnest()
            if isinstance(inner, exp.Select):
                which = "any" if isinstance(right, exp.Any) else "every"
                figure = (self._figure(inner) or self._sql(inner)).removeprefix("the ")
                return f"{self._expression(left)} {comparison} {which} {figure}"
            if isinstance(inner, exp.Array):
                return f"{self._expression(left)} {comparison} " + " or ".join(map(self._literal, inner.expressions))
            return f"{self._expression(inner)} include {self._literal(left)}"
        if _asks_text(left):
            return f"{self._source(left)} {self._verdict(right)} “{_question(left)}”"
        return f"{self._expression(left)} {comparison} {self._literal(right)}"

    def _verdict(self, node: exp.Expr) -> str:
        literal = node.name.casefold() if isinstance(node, exp.Literal) else ""
        return {"yes": "say yes to", "no": "say no to"}.get(literal, f"say {self._literal(node)} to")

    def _source(self, call: exp.Anonymous) -> str:
        return self._expression(call.expressions[0]) if call.expressions else "texts"

    def _expression(self, node: exp.Expr) -> str:
        if isinstance(node, exp.Column):
            return words(node.name)
        if isinstance(node, exp.Count):
            return "number"
        if isinstance(node, exp.Cast | exp.Paren):
            return self._expression(node.this)
        if isinstance(node, exp.Div) and isinstance(node.this, exp.Extract) and node.this.name.lower() == "epoch":
            return f"minutes of {self._expression(node.this.expression)}"
        if isinstance(node, exp.Extract | exp.TimestampTrunc | exp.DateTrunc):
            unit = node.this if isinstance(node, exp.Extract) else node.args["unit"]
            day = node.expression if isinstance(node, exp.Extract) else node.this
            return f"{unit.name.lower()} of {self._expression(day)}"
        if type(node) in _AGGREGATES:
            return f"{_AGGREGATES[type(node)]} {self._expression(node.this)}"
        if isinstance(node, exp.Subquery):
            return self._one_value(node)
        if isinstance(node, exp.Case) and node.args.get("this") is not None:
            return self._expression(node.args["this"])
        if isinstance(node, exp.Lower | exp.Upper | exp.Trim):
            return self._expression(node.this)
        if isinstance(node, exp.Coalesce):
            return " or else ".join(map(self._literal, (node.this, *node.expressions)))
        if isinstance(node, exp.JSONExtract | exp.JSONExtractScalar):
            return f"{_json_path(node.expression)} of {self._expression(node.this)}"
        if isinstance(node, exp.Anonymous) and not is_text_call(node):
            return self._sql(node)
        if isinstance(node, exp.Anonymous) and node.name.lower() == "summary":
            return f"summary of {self._source(node)}"
        if isinstance(node, exp.Anonymous):
            return f"answer to “{_question(node)}”"
        return self._sql(node)

    def _one_value(self, node: exp.Subquery) -> str:
        """Return "the average salary", "that of Ann" for a query of one figure."""
        inner = node.unnest()
        return (self._figure(inner) if isinstance(inner, exp.Select) else None) or self._sql(node)

    def _figure(self, inner: exp.Select) -> str | None:
        """Return the figure that a query has in words; None where it has no words."""
        figure = inner.expressions[0].unalias() if len(inner.expressions) == 1 else None
        where = inner.args.get("where")
        if figure is None or not isinstance(figure, exp.Column | exp.Avg | exp.Max | exp.Min | exp.Sum | exp.Count):
            return None
        if where is None:
            order = inner.args.get("order")
            first = f" of the one with the {self._describe_order(order.expressions[0])}" if order is not None else ""
            return f"the {self._expression(figure)}{first}"
        named = [each.name.strip("%") for each in where.find_all(exp.Literal) if each.is_string]
        if not isinstance(figure, exp.Max | exp.Min | exp.Column):
            return f"the {self._expression(figure)} of those whose {self.condition(where.this)}"
        if len(named) == 1:
            return f"that of {named[0]}"
        among = _join_conditions(named) if named else "those whose " + self.condition(where.this)
        return f"the {self._expression(figure)} {'of' if isinstance(figure, exp.Column) else 'among'} {among}"

    def _literal(self, node: exp.Expr) -> str:
        return node.name if isinstance(node, exp.Literal) else self._expression(node)

    def _in(self, node: exp.Expr) -> str:
        query = node.args.get("query")
        if query is not None:
            inner = query.unnest()
            if (found := _exists(node)) is not None:
                return f"{found} exist"
            phrase = self._select(inner) if isinstance(inner, exp.Select) else None
            return f"related {phrase}" if phrase else self._sql(node)
        return f"{self._expression(node.this)} is " + " or ".join(self._literal(e) for e in node.expressions)

    def _not(self, node: exp.Expr) -> str:
        inner = node.this.unnest()
        if isinstance(inner, exp.Column):
            return f"{words(inner.name)} is no"
        if isinstance(inner, exp.Is):
            return self._is(inner, negated=not inner.args.get("negate"))
        if (found := _exists(inner)) is not None:
            return f"{found} do not exist"
        if isinstance(inner, exp.Exists):
            return self._there_is(inner).removesuffix("exist") + "do not exist"
        if isinstance(inner, exp.EQ) and isinstance(inner.expression, exp.Any) and " include " in self.condition(inner):
            return self.condition(inner).replace(" include ", " do not include ", 1)
        if isinstance(inner, exp.EQ):
            return self.condition(exp.NEQ(this=inner.this, expression=inner.expression))
        if isinstance(inner, exp.In) and inner.expressions:
            return f"{self._expression(inner.this)} is none of " + ", ".join(
                self._literal(e) for e in inner.expressions
            )
        return "not (" + self.condition(inner) + ")"

    def _is(self, node: exp.Expr, *, negated: bool) -> str:
        null = isinstance(node.args["expression"], exp.Null)
        if null and negated:
            return f"{self._expression(node.this)} is given"
        value = "missing" if null else self._literal(node.args["expression"])
        return f"{self._expression(node.this)} is {'not ' * negated}{value}"

    def _alike(self, node: exp.Expr) -> str:
        pattern = node.args["expression"].name
        ends = node.this.unnest()
        if (
            isinstance(ends, exp.DPipe)
            and isinstance(ends.this, exp.DPipe)
            and isinstance(ends.expression, exp.Literal)
        ):
            mark = ends.expression.name  # a text that lists items, with a mark before the first and after the last
            item = pattern.strip("%").removeprefix(mark).removesuffix(mark)
            return f"{self._expression(ends.this.expression)} contains {item}"
        how = (
            "contains" if pattern[:1] == "%" == pattern[-1:] else "begins with" if pattern[-1:] == "%" else "ends with"
        )
        return f"{self._expression(node.this)} {how} {pattern.strip('%')}"

    def _between(self, node: exp.Expr) -> str:
        low, high = self._literal(node.args["low"]), self._literal(node.args["high"])
        return f"{self._expression(node.this)} is between {low} and {high}"

    def _pattern(self, node: exp.Expr) -> str:
        return f"{self._expression(node.this)} matches the pattern {self._literal(node.args['expression'])}"

    def _there_is(self, node: exp.Expr) -> str:
        inner = node.this.unnest()
        tables = [table.name for table in inner.find_all(exp.Table)]
        return f"related {words(tables[0])} exist" if tables else self._sql(node)

    def _sql(self, node: exp.Expr) -> str:
        return node.sql(self.dialect)


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


_CLAUSES_WITHOUT_WORDS = ("qualify", "sample", "laterals", "offset", "windows", "pivots", "connect", "match")


def _lacks_words(tree: exp.Select) -> bool:
    """Return whether a SELECT has a part that changes its rows and that no phrase here covers."""
    group, limit, distinct = tree.args.get("group"), tree.args.get("limit"), tree.args.get("distinct")
    tables = [tree.args["from_"].this] if tree.args.get("from_") else []
    tables += [join.this for join in tree.args.get("joins") or ()]
    return (
        any(tree.args.get(part) for part in _CLAUSES_WITHOUT_WORDS)
        or any(isinstance(table, exp.Unnest | exp.Lateral) or table.args.get("pivots") for table in tables)
        or any(isinstance(table, exp.Table) and (table.args.get("sample") or not table.name) for table in tables)
        or (group is not None and any(group.args.get(part) for part in ("rollup", "cube", "grouping_sets", "totals")))
        or (distinct is not None and distinct.args.get("on") is not None)
        or (limit is not None and bool(limit.args.get("limit_options")) and not isinstance(limit, exp.Fetch))
    )


def _group_keys(tree: exp.Select, group: exp.Expr) -> list[exp.Expr]:
    """Return what a query groups by; GROUP BY ALL takes each output that is no aggregate."""
    if not group.args.get("all"):
        return list(group.expressions)
    outputs = [item.unalias() for item in tree.expressions]
    return [item for item in outputs if item.find(exp.AggFunc) is None]


def _is_not_null(node: exp.Expr) -> bool:
    """Return whether a condition is `x IS NOT NULL`; parsers write it as a negated IS, or as NOT over an IS."""
    negated = isinstance(node, exp.Not)
    inner = node.this if negated else node
    null = isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null)
    return null and negated != bool(inner.args.get("negate"))


def _asks_text(node: exp.Expr) -> bool:
    """Return whether a node asks a question of a text."""
    return isinstance(node, exp.Anonymous) and len(node.expressions) > 1 and is_text_call(node)


def _describe_join(join: exp.Join) -> str:
    """Return a join in words: outer ones keep rows that have no partner, and that is said."""
    name, side = words(join.this.name), str(join.args.get("side") or "").upper()
    if str(join.args.get("kind") or "").upper() == "ANTI":
        return f"without any {name}"
    kept = {"LEFT": ", or without any", "RIGHT": ", these also alone", "FULL": ", or either alone"}.get(side, "")
    return f"with {name}{kept}"


def _join_conditions(conditions: list[str]) -> str:
    """Return conditions that all hold: with commas where there are more than two."""
    return " and ".join(conditions) if len(conditions) < 3 else f"{', '.join(conditions[:-1])}, and {conditions[-1]}"


def _and(node: exp.Expr) -> bool:
    return isinstance(node, exp.And)


def _question(call: exp.Anonymous) -> str:
    return call.expressions[1].name if len(call.expressions) > 1 else call.name


def _json_path(node: exp.Expr) -> str:
    """Return the path of a JSON field: "opening Mon"."""
    return (
        " ".join(p.name or str(p.this) for p in node.expressions[1:]) if isinstance(node, exp.JSONPath) else node.name
    )


def _exists(node: exp.Expr) -> str | None:
    """Return what has partners where a condition asks for no more of them: "related loans".

    None for other conditions.
    """
    query = node.args.get("query") if isinstance(node, exp.In) else None
    inner = query.unnest() if query is not None else None
    where = inner.args.get("where") if isinstance(inner, exp.Select) else None
    if where is None or not _is_not_null(where.this) or not isinstance(inner, exp.Select):
        return None
    tables = [table.name for table in inner.find_all(exp.Table)]
    return f"related {words(tables[-1])}"


_WRITERS: dict[type[exp.Expr], Callable[[_Describer, exp.Expr], str]] = {
    exp.Exists: _Describer._there_is,
    exp.Paren: lambda d, n: f"({d.condition(n.this)})",
    exp.And: lambda d, n: " and ".join(map(d.condition, n.flatten())),
    exp.Or: lambda d, n: " or ".join(map(d.condition, n.flatten())),
    exp.Not: _Describer._not,
    exp.In: _Describer._in,
    exp.Is: lambda d, n: d._is(n, negated=bool(n.args.get("negate"))),
    exp.Between: _Describer._between,
    exp.ILike: _Describer._alike,
    exp.Like: _Describer._alike,
    exp.RegexpLike: _Describer._pattern,
    exp.RegexpILike: _Describer._pattern,
    exp.RegexpFullMatch: _Describer._pattern,
}
