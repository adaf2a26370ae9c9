"""Says in words what a SUQL query searched: read off the query that ran, never off what was meant.

Each rule covers one form whole. What no rule covers is shown as SQL: words that are nearly right mislead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import SqlglotError

from almanaq.agent.history import Shown
from almanaq.agent.queries import query_tree
from almanaq.suql.text_functions import is_model_call, is_text_call

_COMPARISONS: dict[type[exp.Expr], tuple[str, str]] = {
    exp.EQ: ("is", "is not"),
    exp.NEQ: ("is not", "is"),
    exp.GT: ("is above", "is not above"),
    exp.GTE: ("is at least", "is not at least"),
    exp.LT: ("is below", "is not below"),
    exp.LTE: ("is at most", "is not at most"),
}
_AGGREGATES: dict[type[exp.Expr], str] = {
    exp.Avg: "average",
    exp.Max: "highest",
    exp.Median: "median",
    exp.Min: "lowest",
    exp.Sum: "total",
}
_ARITHMETIC: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}
_SETS: dict[type[exp.Expr], str] = {exp.Union: "and", exp.Intersect: "that are also among", exp.Except: "but not"}


class _NoWords(Exception):
    """No rule covers a part of a query."""


def describe(suql: str, shown: Sequence[Shown] = (), *, dialect: str = "duckdb") -> str:
    """Return a phrase like "restaurants whose price is cheap, highest rating first"; SQL for what has no words.

    Args:
        shown: rows of earlier replies; a key that stands for one of them is described by its name.
        dialect: sqlglot's name of the SQL that the query is written in.
    """
    try:
        tree = query_tree(suql, dialect)
        # Keys of another table, or parts of keys, are no keys of these rows.
        read = {table.name.casefold() for table in tree.find_all(exp.Table)}
        own = [s for s in shown if len(s.columns) == 1 and read == {s.relation.rpartition(".")[2].casefold()}]
        names = {(s.columns[0], str(key[0])): name for s in own for key, name in zip(s.keys, s.names, strict=True)}
        changed = tree.transform(lambda node: _by_name(node, names)) if names else tree
        return _Describer(dialect).query(changed)
    except (SqlglotError, _NoWords):
        return suql


def name_tables(suql: str, dialect: str) -> str:
    """Return what a query without words reads: "rows in the tables peaks and expeditions"."""
    tree = query_tree(suql, dialect)
    own = {each.alias for each in tree.find_all(exp.CTE)}
    tables = dict.fromkeys(_name_table(table) for table in tree.find_all(exp.Table) if table.name not in {"", *own})
    return f"rows in the table{'s' * (len(tables) > 1)} {join_words(tables)}" if tables else "no table"


def name_counted(tree: exp.Expr) -> str:
    """Return what the rows are called that a query counts and does nothing else, "dogs"; "" for any other query."""
    if not isinstance(tree, exp.Select) or {name for name, part in tree.args.items() if part} - _OF_COUNTS:
        return ""
    counts = [_counts_rows(item.unalias()) for item in tree.expressions]
    table = tree.args["from_"].this if tree.args.get("from_") else None
    return words(table.name) if counts == [True] and isinstance(table, exp.Table) else ""


def describe_order(tree: exp.Select, dialect: str) -> str:
    """Return in which order a query gives its rows, "highest rating first"; "" for none, and where it has no words."""
    try:
        return _Describer(dialect).order(tree)
    except _NoWords:
        return ""


def describe_condition(condition: str, dialect: str) -> str:
    """Return a condition that was written as SQL in words; as it is where it has none."""
    try:
        return condition_words(query_tree(f"SELECT 1 WHERE {condition}", dialect).args["where"].this, dialect)
    except (SqlglotError, KeyError):
        return condition


def condition_words(condition: exp.Expr, dialect: str) -> str:
    """Return one condition in words: "price is cheap"; SQL for one that has none."""
    try:
        return _Describer(dialect).condition(condition)
    except _NoWords:
        return condition.sql(dialect)


def words(identifier: str) -> str:
    """Return an identifier as people read it: `num_reviews` is "number of reviews", `sales.orders` is "orders"."""
    identifier = identifier.rpartition(".")[2] or identifier
    spoken = re.sub(r"(?<=[a-z])(?=[A-Z])|_+", " ", identifier).strip().lower()
    return re.sub(r"^num (?:of )?(?=\w)", "number of ", spoken)


def join_words(listed: Iterable[str], separator: str = ", ") -> str:
    """Return what is listed as a part of a sentence: "a, b and c"."""
    *first, last = listed
    return " and ".join(filter(None, (separator.join(first), last)))


@dataclass(frozen=True, slots=True)
class _Describer:
    """Says a query in words; raises _NoWords where one of its parts has none."""

    dialect: str

    def query(self, tree: exp.Expr) -> str:
        """Return a query in words: what a set operation joins, and what a WITH calls by names."""
        if isinstance(tree, exp.Subquery):
            return self.query(_no_more(tree, "this").this)
        if isinstance(tree, exp.SetOperation) and not tree.args.get("with_"):
            _no_more(tree, "this", "expression", "distinct", "by_name")
            if any(isinstance(each.unnest(), exp.SetOperation) for each in (tree.this, tree.expression)):
                raise _NoWords  # words have no brackets
            return f"{self.query(tree.this)}, {_SETS[type(tree)]} {self.query(tree.expression)}"
        if not isinstance(tree, exp.Select):
            raise _NoWords
        named = _no_more(tree.args["with_"], "expressions").expressions if tree.args.get("with_") else []
        parts = [f"{words(each.alias)} here are {self.query(each.this)}" for each in named]
        return "; ".join([self.select(tree), *parts])

    def select(self, tree: exp.Select) -> str:
        _check_clauses(tree)
        text = self._outputs(tree) + self._distinct(tree) + _subject(tree)
        where, group, having = (tree.args.get(part) for part in ("where", "group", "having"))
        if where is not None:
            text += " whose " + self._conditions(where.this)
        asked = [f"“{_question(each.unalias())}”" for each in tree.expressions if _asks_text(each.unalias())]
        if asked:
            text += f", and asked {' and '.join(asked)}"
        if group is not None:
            text += ", for each " + " and ".join(self.value(key) for key in group_keys(tree, group))
        if having is not None:
            text += ", where the " + self.condition(having.this)
        return text + self._ordered(tree)

    def order(self, tree: exp.Select) -> str:
        """Return the order of the rows: "highest rating first", "sorted by city, then by highest rating"."""
        order = tree.args.get("order")
        keys = [self._order_words(tree, key).removeprefix("lowest ") for key in order.expressions] if order else []
        if len(set(keys)) < len(keys):
            raise _NoWords  # columns of one name in two tables
        if len(keys) == 1 and order is not None and order.expressions[0].args.get("desc"):
            return f"{keys[0]} first"
        return "sorted by " + ", then by ".join(keys) if keys else ""

    def _ordered(self, tree: exp.Select) -> str:
        """Return the order of the rows, and how many of them a query takes: "" for all, as they come."""
        order, limit = self.order(tree), tree.args.get("limit")
        said = f", {order}" if order else ""
        if limit is None:
            return said
        count = limit.args.get("count") or limit.expression or exp.Literal.number(1)  # FETCH FIRST ROW ONLY
        if not isinstance(count, exp.Literal):
            raise _NoWords
        if isinstance(limit, exp.Fetch) and limit.args["limit_options"].args.get("with_ties"):
            return f"{said}, taking the first {count.name} with ties"
        if not order:
            return f", at most {count.name}"
        if count.name == "1" and len(tree.args["order"].expressions) == 1:
            return f", taking the one with the {self._order_words(tree, tree.args['order'].expressions[0])}"
        return f"{said}, taking the first {count.name if count.name != '1' else ''}".rstrip()

    def _order_words(self, tree: exp.Select, item: exp.Expr) -> str:
        by = resolve_output(tree, item.this)
        ranked = isinstance(by, exp.Case) and _ranks(by)
        return f"{'highest' if item.args.get('desc') else 'lowest'} {self.value(by.args['this'] if ranked else by)}"

    def _outputs(self, tree: exp.Select) -> str:
        """Return "the number of", "the average rating of" for figures of many rows, "" for outputs of each row."""
        figures = [item.unalias() for item in tree.expressions if item.find(exp.AggFunc, exp.Window, exp.Explode)]
        if not figures:
            return ""
        if len(figures) == 1 and isinstance(figures[0], exp.Div):
            return f"the {self.value(figures[0])} among " + "all " * (tree.args.get("where") is None)
        if not all(isinstance(figure, exp.AggFunc) for figure in figures):
            raise _NoWords
        if len(figures) > 1:
            return f"the {join_words(map(self.value, figures))} of "
        subject = _subject(tree)
        plural = subject.startswith(_ROWS_IN) or (subject.endswith("s") and not tree.args.get("joins"))
        plain = plural and _counts_rows(figures[0])
        return f"the {'number' if plain else self.value(figures[0])} of "

    def _share(self, figure: exp.Div) -> str:
        """Return "percentage with “price is cheap”", of rows or of a total; "" for what is no share of a whole."""
        part, whole = figure.this.args.get("expression"), figure.expression
        parted = isinstance(part, exp.Filter) and part.this == whole and isinstance(whole, exp.AggFunc)
        if not isinstance(part, exp.Filter) or not parted or figure.this.this.name not in ("100", "100.0"):
            return ""
        of = "" if _counts_rows(whole) else f" of the {self.value(whole)}"
        return f"percentage{of} with “{self.condition(part.expression.this)}”"

    def _distinct(self, tree: exp.Select) -> str:
        """Return "different city of " where only what differs in the values shown counts, "" elsewhere."""
        if tree.args.get("distinct") is None:
            return ""
        return f"different {' and '.join(self.value(item.unalias()) for item in tree.expressions)} values of "

    def _conditions(self, node: exp.Expr) -> str:
        """Return what all must hold: with commas where there are more than two."""
        parts = list(node.flatten(unnest=False)) if isinstance(node, exp.And) else [node]
        said = [self._within(part) if len(parts) > 1 else self.condition(part) for part in parts]
        return " and ".join(said) if len(said) < 3 else f"{', '.join(said[:-1])}, and {said[-1]}"

    def _within(self, node: exp.Expr, negated: bool = False) -> str:
        """Return a condition as a part of another: one of several parts in brackets."""
        bare = node.unnest()
        inner = bare.this.unnest() if isinstance(bare, exp.Not) else bare
        text = self.condition(bare, negated)
        return f"({text})" if isinstance(inner, exp.And | exp.Or) else text

    def condition(self, node: exp.Expr, negated: bool = False) -> str:
        """Return a condition, or what holds where it does not; by De Morgan's laws, which hold for NULL too."""
        node = node.unnest()
        if isinstance(node, exp.Not):
            return self.condition(node.this, not negated)
        if isinstance(node, exp.And | exp.Or):
            joint = " and " if isinstance(node, exp.And) != negated else " or "
            return joint.join(self._within(part, negated) for part in node.flatten(unnest=False))
        if isinstance(node, exp.Column):
            return f"{words(node.name)} is {'no' if negated else 'yes'}"
        if type(node) in _COMPARISONS:
            return self._comparison(node, negated)
        writer = _WRITERS.get(type(node))
        if writer is None:
            raise _NoWords
        return writer(self, node, negated != bool(node.args.get("negate")))  # of NOT LIKE, IS NOT

    def _comparison(self, node: exp.Expr, negated: bool) -> str:
        left, right, equal = node.args["this"], node.args["expression"], isinstance(node, exp.EQ)
        verb = _COMPARISONS[type(node)][negated]
        if isinstance(right, exp.Any | exp.All):
            return self._any(left, right, verb, equal, negated)
        if _asks_text(left) and isinstance(node, exp.EQ | exp.NEQ) and isinstance(right, exp.Literal):
            source, reply = self._source(left), right.name.casefold()
            verdict = f"{reply if reply in ('yes', 'no') else self.literal(right)} to “{_question(left)}”"
            said, unsaid = ("say", "do not say") if source.endswith("s") else ("says", "does not say")
            return f"{source} {said if equal != negated else unsaid} {verdict}"
        if isinstance(left, exp.Column) and isinstance(right, exp.Column):
            if words(left.name) == words(right.name):
                raise _NoWords
            return f"{self.value(left)} {verb} the {self.value(right)}"
        if isinstance(left, exp.Column) and _is_own_extreme(left, right):
            return f"{self.value(left)} {verb} the {_AGGREGATES[type(right.unnest().expressions[0].unalias())]}"
        if isinstance(left, exp.Case) and isinstance(right, exp.Literal):
            raise _NoWords
        if isinstance(right, exp.Subquery) and isinstance(right.unnest(), exp.Select):
            return f"{self.value(left)} {verb} {self._figure_for(left, right, 'that')}"
        return f"{self.value(left)} {verb} {self.literal(right)}"

    def _any(self, left: exp.Expr, right: exp.Expr, verb: str, equal: bool, negated: bool) -> str:
        inner = right.this.unnest()
        if isinstance(inner, exp.Select):
            some = isinstance(right, exp.Any) != isinstance(right.parent, exp.NEQ)  # <> ALL is NOT = ANY
            which = "every" if not some else "no" if " not" in verb else "any"
            said = verb.replace(" not", "") if some else verb
            return f"{self.value(left)} {said} {which} {self._figure(inner).removeprefix('the ')}"
        if isinstance(inner, exp.Array) and equal and isinstance(right, exp.Any):
            return f"{self.value(left)} {verb} " + (" nor " if negated else " or ").join(
                dict.fromkeys(map(self._item, inner.expressions))
            )
        if isinstance(inner, exp.Column) and equal and isinstance(right, exp.Any):
            return f"{self.value(inner)} {'do not include' if negated else 'include'} {self.literal(left)}"
        raise _NoWords

    def _includes(self, node: exp.Expr, negated: bool) -> str:
        return f"{self.value(node.this)} {'do not include' if negated else 'include'} {self.literal(node.expression)}"

    def _in(self, node: exp.Expr, negated: bool) -> str:
        query = node.args.get("query")
        if query is None:
            _no_more(node, "this", "expressions")
            values = list(dict.fromkeys(map(self._item, node.expressions)))
            among = f"none of {', '.join(values)}" if negated else " or ".join(values)
            return f"{self.value(node.this)} is {among}"
        if isinstance(node.this, exp.Tuple):  # the rows that rank first in each group
            shared = " and ".join(map(self.value, node.this.expressions))
            return f"{shared} are {'not ' * negated}among {self.query(query.unnest())}"
        return f"{self.value(node.this)} is {'not ' * negated}among {self._figure_for(node.this, query, 'those')}"

    def _exists(self, node: exp.Expr, negated: bool) -> str:
        """Return "related loans exist": rows of another table, found by nothing but equal columns and conditions."""
        inner = node.this.unnest()
        if not isinstance(inner, exp.Select):
            raise _NoWords
        _check_clauses(inner)
        _no_more(inner, "expressions", "from_", "joins", "where", "distinct", "kind")
        where = inner.args.get("where")
        parts = _conjuncts(where.this) if where is not None else []
        own = [part for part in parts if not _joins(part)]
        said = " whose " + self._conditions(exp.and_(*own, copy=True)) if own else ""
        related = "related " if len(own) < len(parts) else ""
        return f"{related}{_subject(inner)}{said} {'do not ' if negated else ''}exist"

    def _is(self, node: exp.Expr, negated: bool) -> str:
        value = node.args["expression"]
        if isinstance(value, exp.Null) and not isinstance(node.this.unnest(), exp.TryCast):
            return f"{self.value(node.this)} is {'given' if negated else 'missing'}"
        if not isinstance(value, exp.Boolean) or not isinstance(node.this.unnest(), exp.Column):
            raise _NoWords
        return f"{self.value(node.this)} is {'anything but ' * negated}{'true' if value.this else 'false'}"

    def _alike(self, node: exp.Expr, negated: bool) -> str:
        pattern = node.args["expression"]
        if not isinstance(pattern, exp.Literal) or not isinstance(node, exp.Like | exp.ILike):
            raise _NoWords
        if (listed := _listed(node.this.unnest(), pattern.name)) is not None:
            return f"{self.value(listed[0])} {'do not include' if negated else 'include'} {listed[1]}"
        subject, inner = self.value(node.this), pattern.name.strip("%")
        exact = "" if isinstance(node, exp.ILike) else " exactly"
        if "%" in inner or "_" in inner or "\\" in inner or not inner:
            return f"{subject} {'does not match' if negated else 'matches'}{exact} the pattern {pattern.name}"
        first, last = pattern.name[:1] == "%", pattern.name[-1:] == "%"
        if not first and not last:
            return f"{subject} is {'not ' * negated}{exact[1:] + ' ' if exact else ''}{inner}"
        verb = "contain" if first and last else "begin" if last else "end"
        said = f"does not {verb}" if negated else f"{verb}s"
        return f"{subject} {said}{' with' if verb != 'contain' else ''}{exact} {inner}"

    def _between(self, node: exp.Expr, negated: bool) -> str:
        _no_more(node, "this", "low", "high")
        low, high = self.literal(node.args["low"]), self.literal(node.args["high"])
        return f"{self.value(node.this)} is {'not ' * negated}between {low} and {high}"

    def _pattern(self, node: exp.Expr, negated: bool) -> str:
        whole = " as a whole" if isinstance(node, exp.RegexpFullMatch) else ""
        verb = "does not match" if negated else "matches"
        return f"{self.value(node.this)} {verb} the pattern {self.literal(node.args['expression'])}{whole}"

    def value(self, node: exp.Expr) -> str:
        """Return an expression in words."""
        node = node.unnest() if isinstance(node, exp.Paren) else node
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier):
            return words(node.name)
        if isinstance(node, exp.Count):
            return self._count(node)
        if type(node) in _AGGREGATES and not node.expressions:
            said = self.value(node.this)
            figure = "sum of" if isinstance(node, exp.Sum) and "total" in said else _AGGREGATES[type(node)]
            return f"{figure} {said}"
        if isinstance(node, exp.Cast | exp.Lower | exp.Upper | exp.Trim | exp.Round):
            said = self.value(node.this) if not isinstance(node.this, exp.Literal) else node.this.name
            whole = isinstance(node.this.unnest(), exp.Column) and node.is_type(*exp.DataType.INTEGER_TYPES)
            said += " as a whole number" * (isinstance(node, exp.Cast) and whole)
            return "rounded " * isinstance(node, exp.Round) + said
        if isinstance(node, exp.Div) and (share := self._share(node)):
            return share
        if type(node) in _ARITHMETIC:
            return f"{self._operand(node.this)} {_ARITHMETIC[type(node)]} {self._operand(node.expression)}"
        if isinstance(node, exp.Literal):
            return self.literal(node)
        if isinstance(node, exp.Neg):
            return f"-{self._operand(node.this)}"
        if isinstance(node, exp.Extract | exp.TimestampTrunc | exp.DateTrunc):
            unit = node.this if isinstance(node, exp.Extract) else node.args["unit"]
            day = node.expression if isinstance(node, exp.Extract) else node.this
            return f"{unit.name.lower()} of {self.value(day)}"
        if isinstance(node, exp.Year | exp.Quarter | exp.Month | exp.Day):
            return f"{node.key} of {self.value(node.this)}"
        if isinstance(node, exp.Subquery) and isinstance(node.unnest(), exp.Select):
            return self._figure(node)
        if isinstance(node, exp.Coalesce):
            return " or else ".join(map(self.literal, (node.this, *node.expressions)))
        if isinstance(node, exp.JSONExtract | exp.JSONExtractScalar):
            return f"{_json_path(node.expression)} of {self.value(node.this)}"
        if isinstance(node, exp.Anonymous) and is_text_call(node) and node.name.lower() in ("answer", "summary"):
            return f"answer to “{_question(node)}”" if _asks_text(node) else f"summary of {self._source(node)}"
        raise _NoWords

    def _operand(self, node: exp.Expr) -> str:
        said = self.value(node)
        return f"({said})" if type(node.unnest()) in _ARITHMETIC else said

    def _count(self, node: exp.Count) -> str:
        """Return what is counted: rows, or the different values of columns."""
        if _counts_rows(node):
            return "number of rows"
        if node.expressions:
            raise _NoWords
        if not isinstance(node.this, exp.Distinct):
            raise _NoWords
        return f"number of different {' and '.join(map(self.value, node.this.expressions))} values"

    def _figure(self, query: exp.Expr) -> str:
        """Return the value that a nested query gives: "the average salary of r whose city is Rome"."""
        inner = query.unnest()
        if not isinstance(inner, exp.Select):
            raise _NoWords
        _check_clauses(inner)
        figure = inner.expressions[0].unalias() if len(inner.expressions) == 1 else None
        if figure is None or inner.args.get("group") or inner.args.get("having"):
            raise _NoWords
        if isinstance(figure, exp.AggFunc) and (inner.args.get("order") or inner.args.get("limit")):
            raise _NoWords
        where, order = inner.args.get("where"), inner.args.get("order")
        whose = f" whose {self._conditions(where.this)}" if where is not None else ""
        said = f"the {self.value(figure)} of {_subject(inner)}{whose}"
        if order is None and inner.args.get("limit") is None:
            return said
        limit = inner.args.get("limit")
        if order is None or not isinstance(limit, exp.Limit) or limit.expression.name != "1":
            raise _NoWords
        return f"{said} with the {self._order_words(inner, order.expressions[0])}"

    def _figure_for(self, compared: exp.Expr, query: exp.Expr, pronoun: str) -> str:
        """Return the value of a nested query; where it is the column that is compared with it, by a pronoun."""
        said, same = self._figure(query), f"the {self.value(compared)} of "
        return f"{pronoun} of {said.removeprefix(same)}" if said.startswith(same) else said

    def _item(self, node: exp.Expr) -> str:
        """Return a value of a list; in quotes where commas or "or" in it would pass for those between the values."""
        said = self.literal(node)
        return f"“{said}”" if re.search(r",| (?:and|or|nor) ", said) else said

    def literal(self, node: exp.Expr) -> str:
        """Return a value as the query writes it."""
        if isinstance(node, exp.Literal):
            return node.name if node.name.strip() else f"“{node.name}”"
        if isinstance(node, exp.Boolean):
            return "yes" if node.this else "no"
        if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal):
            return node.this.name
        return self.value(node)

    def _source(self, call: exp.Anonymous) -> str:
        return self.value(call.expressions[0]) if call.expressions else "texts"


_WRITERS: dict[type[exp.Expr], Callable[[_Describer, exp.Expr, bool], str]] = {
    exp.Exists: _Describer._exists,
    exp.In: _Describer._in,
    exp.Is: _Describer._is,
    exp.Between: _Describer._between,
    exp.ILike: _Describer._alike,
    exp.Like: _Describer._alike,
    exp.RegexpLike: _Describer._pattern,
    exp.RegexpILike: _Describer._pattern,
    exp.RegexpFullMatch: _Describer._pattern,
    exp.ArrayContains: _Describer._includes,
}
_OF_COUNTS = {"expressions", "from_", "where"}
_CLAUSES = ("expressions", "from_", "joins", "where", "group", "having", "order", "limit", "distinct", "with_", "kind")


def _no_more(node: exp.Expr, *known: str) -> exp.Expr:
    """Return a node that has no parts but these."""
    if any(value for name, value in node.args.items() if name not in known):
        raise _NoWords
    return node


def _check_clauses(tree: exp.Select) -> None:
    """Raise _NoWords for a SELECT with a part that changes its rows and that no phrase covers."""
    _no_more(tree, *_CLAUSES)
    group, limit, distinct = tree.args.get("group"), tree.args.get("limit"), tree.args.get("distinct")
    if limit is not None and limit.args.get("limit_options"):
        _no_more(limit.args["limit_options"], "rows", "with_ties")
    if tree.args.get("from_") is None or (distinct is not None and distinct.args.get("on") is not None):
        raise _NoWords
    if group is not None:
        _no_more(group, "expressions", "all")


def _subject(tree: exp.Select) -> str:
    """Return the rows that a query reads: "orders (with customers, if any)"."""
    joins = [_describe_join(join) for join in tree.args.get("joins") or ()]
    table = _table(tree.args["from_"].this)
    rows = _ROWS_IN if table.startswith("“") else ""
    return rows + table + (f" ({', '.join(joins)})" if joins else "")


_ROWS_IN = "rows in the table "
_CODE = re.compile(r"\d|[A-Za-z]{1,2}\d")


def _name_table(table: exp.Table) -> str:
    """Return a table as people read it; a name that is no word, as "4-plants", in quotes."""
    return f"“{table.name}”" if _CODE.match(table.name) else words(table.name)


def _table(node: exp.Expr) -> str:
    if not isinstance(node, exp.Table) or not node.name or node.args.get("pivots") or node.args.get("sample"):
        raise _NoWords
    return _name_table(node)


def _describe_join(join: exp.Join) -> str:
    """Return a join by equal columns in words: outer ones keep rows that have no partner, and that is said."""
    name, side, kind = _table(join.this), join.side, join.kind
    on, using = join.args.get("on"), join.args.get("using") or join.method == "NATURAL"
    parts = _conjuncts(on) if on is not None else []
    plain = join.method in ("", "NATURAL") and kind in ("", "INNER", "OUTER", "ANTI")
    if not plain or not (using or (parts and all(map(_joins, parts)))):
        raise _NoWords
    if kind == "ANTI":
        return f"without any {name}"
    if side not in ("", "LEFT"):
        raise _NoWords
    return f"with {name}{', if any' if side else ''}"


def _conjuncts(condition: exp.Expr) -> list[exp.Expr]:
    return list(condition.flatten()) if isinstance(condition, exp.And) else [condition]


def _joins(part: exp.Expr) -> bool:
    """Return whether a condition says that a column of one table equals one of another."""
    if not isinstance(part, exp.EQ):
        return False
    one, other = part.this, part.expression
    return isinstance(one, exp.Column) and isinstance(other, exp.Column) and one.table != other.table


def resolve_output(tree: exp.Select, node: exp.Expr) -> exp.Expr:
    """Return what a name or a number of an output stands for; any other expression as it is."""
    if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
        return tree.expressions[int(node.name) - 1].unalias() if int(node.name) <= len(tree.expressions) else node
    if isinstance(node, exp.Column) and not node.table:
        named = [item for item in tree.expressions if isinstance(item, exp.Alias) and item.alias == node.name]
        return named[0].unalias() if named else node
    return node


def group_keys(tree: exp.Select, group: exp.Expr) -> list[exp.Expr]:
    """Return what a query groups by; GROUP BY ALL takes each output that is no aggregate."""
    if not group.args.get("all"):
        return [resolve_output(tree, key) for key in group.expressions]
    outputs = [item.unalias() for item in tree.expressions]
    return [item for item in outputs if item.find(exp.AggFunc) is None]


def _by_name(node: exp.Expr, names: dict[tuple[str, str], str]) -> exp.Expr:
    """Return a comparison of a key with literals as one of the name with what these rows were called."""
    literals = [node.args["expression"]] if isinstance(node, exp.EQ) else node.expressions
    if not isinstance(node, exp.EQ | exp.In) or not isinstance(node.this, exp.Column):
        return node
    known = [names.get((node.this.name, each.name)) for each in literals if isinstance(each, exp.Literal)]
    called = [exp.Literal.string(name) for name in known if name is not None]
    if not called or len(called) != len(literals) or called == literals:
        return node
    column = exp.column("name")
    return exp.EQ(this=column, expression=called[0]) if len(called) == 1 else exp.In(this=column, expressions=called)


def _is_own_extreme(column: exp.Column, value: exp.Expr) -> bool:
    """Return whether a value is the highest or lowest of a column among all rows of the column's one table."""
    inner, outer = value.unnest(), column.find_ancestor(exp.Select)
    if not isinstance(inner, exp.Select) or outer is None or len(inner.expressions) != 1 or outer.args.get("joins"):
        return False
    figure, whole = inner.expressions[0].unalias(), {name for name, part in inner.args.items() if part}
    extreme = isinstance(figure, exp.Max | exp.Min) and isinstance(figure.this, exp.Column)
    same = whole == {"expressions", "from_"} and _table(inner.args["from_"].this) == _table(outer.args["from_"].this)
    return extreme and same and figure.this.name == column.name


def _counts_rows(node: exp.Expr) -> bool:
    return isinstance(node, exp.Count) and (node.this is None or isinstance(node.this, exp.Star | exp.Literal))


def _ranks(node: exp.Case) -> bool:
    """Return whether a CASE gives the values of a column numbers, by which they rank."""
    return isinstance(node.args.get("this"), exp.Column) and all(
        isinstance(branch.args["true"], exp.Literal) and not branch.args["true"].is_string
        for branch in node.args["ifs"]
    )


def _asks_text(node: exp.Expr) -> bool:
    """Return whether a node asks a question of a text."""
    return len(node.expressions) > 1 and is_model_call(node)


def _question(call: exp.Expr) -> str:
    return call.expressions[1].name if len(call.expressions) > 1 else call.name


def _listed(node: exp.Expr, pattern: str) -> tuple[exp.Expr, str] | None:
    """Return the text that is a list, and the item looked for: of `(', ' || t || ', ') LIKE '%, a, %'`; else None."""
    if not isinstance(node, exp.DPipe) or not isinstance(node.this, exp.DPipe) or not node.expression.is_string:
        return None
    mark = node.expression.name
    found = re.fullmatch(rf"%{re.escape(mark)}([^%_\\]+){re.escape(mark)}%", pattern)
    return (node.this.expression, found[1]) if mark and found and node.this.this == node.expression else None


def _json_path(node: exp.Expr) -> str:
    """Return the path of a JSON field: "opening Mon"."""
    return (
        " ".join(p.name or str(p.this) for p in node.expressions[1:]) if isinstance(node, exp.JSONPath) else node.name
    )
