"""Why a row is not in a result: each condition of WHERE with what it came to for that row, and the quotes behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

from sqlglot import exp

from almanaq import display
from almanaq.display import visible
from almanaq.errors import UnknownNameError, UnsupportedError, suggest
from almanaq.suql.catalog.relations import Catalog, ColumnKind
from almanaq.suql.catalog.sources import from_items, holder_of
from almanaq.suql.explain.explain import describe_condition
from almanaq.suql.plan.predicates import conjuncts
from almanaq.suql.plan.sites import CLAUSES_OF_FROM, FROM_ALIAS, where_of
from almanaq.suql.plan.stages import ROW, LogicalPlan, LogicalStage, Output, TextBlock
from almanaq.suql.result import Evidence, Result
from almanaq.suql.syntax.literals import literal
from almanaq.suql.syntax.nodes import aliased, column, side_of, table
from almanaq.suql.text_functions import has_text, nested_queries, own_text_calls
from almanaq.text.sql_literals import is_plain

Compared = tuple[exp.Expr, dict[exp.Column, int]]
"""A condition, and the places of the columns that it compares among the outputs of `select_conditions`."""
_MOST_ROWS = 100
"""Of so many rows that have a key the nearest to the result is explained."""
_WORDS = {True: "true", False: "false", None: "no information"}
_MEETS = "the row meets every condition: it is in the result, or LIMIT, grouping or a join left it out"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of WHERE and its truth for the row; None is NULL: no information, or `reason` says what failed."""

    text: str
    truth: bool | None
    evidence: tuple[Evidence, ...] = ()
    reason: str = ""

    @property
    def said(self) -> str:
        """The truth in words.

        >>> Condition("answer(note, 'calm?') = 'Yes'", None, reason="no reply in time").said
        'unknown'
        """
        return "unknown" if self.truth is None and self.reason else _WORDS[self.truth]


@dataclass(frozen=True, slots=True)
class WhyNot:
    """The conditions for one row; `rejected` holds those that are not true. None at all: there is no such row."""

    conditions: tuple[Condition, ...]

    @property
    def rejected(self) -> tuple[Condition, ...]:
        return tuple(condition for condition in self.conditions if condition.truth is not True)

    def _repr_html_(self) -> str:
        rows = [
            (" ".join(filter(None, (each.said, each.reason and f"({each.reason})"))), each.text)
            for each in self.conditions
        ]
        table = display.table_html(("", "condition"), rows) if rows else ""
        message = display.paragraph(self._describe_outcome()) if self._describe_outcome() else ""
        return display.block(table, message, display.quotes_html([condition.evidence for condition in self.conditions]))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: ARG002 - IPython passes it
        printer.text(visible(str(self)))

    def _describe_outcome(self) -> str:
        if not self.conditions:
            return "no row of the relations in FROM has that key"
        return "" if self.rejected else _MEETS

    def __str__(self) -> str:
        lines = []
        for condition in self.conditions:
            lines.append(f"{condition.said:>14}  {condition.text}")
            lines += [f"{'':>16}{condition.reason}: ask again"] if condition.reason else []
            lines += [f"{'':>16}“{evidence.quote}”" for evidence in condition.evidence]
        return "\n".join([*lines, *filter(None, [self._describe_outcome()])])


def filters_by_text(stage: LogicalStage) -> TypeGuard[TextBlock]:
    return isinstance(stage, TextBlock) and bool(stage.where_sites)


def filters_rows_of_from(tree: exp.Query) -> bool:
    """Return whether a query's first text filter is of the rows that it shows: its own WHERE, or one within its FROM.

    It is not where answers stand in a nested query of a condition; nor of an outer join, which adds rows.
    """
    if not isinstance(tree, exp.Select):
        return True
    where, joined = tree.args.get("where"), tree.args.get("joins") or []
    if any(map(side_of, joined)):
        return False
    if where is not None and any(map(has_text, nested_queries(where))):
        return False
    if where is not None and own_text_calls(where):
        return True
    return any(map(has_text, [*joined, *filter(None, map(holder_of, from_items(tree)))]))


def why_not_plan(plan: LogicalPlan, key: Mapping[str, object], dialect: str) -> tuple[LogicalPlan, tuple[str, ...]]:
    """Return a plan that evaluates every condition of a query's text block for one row, and the conditions' texts."""
    block = next(stage for stage in plan.stages if filters_by_text(stage))
    columns, named = _named_columns(block, key)
    parts = conjuncts(block.where)
    matches = [
        exp.EQ(this=column(FROM_ALIAS, name), expression=literal(value, dialect)) for name, value in named.items()
    ]
    asked = replace(
        block,
        columns=columns,
        outputs=tuple(exp.cast(part, "boolean") for part in parts),
        where=exp.and_(*matches),
        order=(),
        limit=None,
        offset=None,
    )
    outputs = [aliased(column(block.name, f"c{i}"), f"c{i}") for i in range(len(parts))]
    select = exp.Select(
        expressions=[*outputs, aliased(column(block.name, ROW), "e0")], from_=exp.From(this=table(block.name))
    )
    before = plan.stages[: plan.stages.index(block)]
    texts = tuple(describe_condition(part, block.sites, dialect) for part in parts)
    return LogicalPlan((*before, asked), Output(select, texts, ((block.name, "e0"),)), plan.links), texts


def why_not(result: Result) -> WhyNot:
    if not result.rows:
        return WhyNot(())
    at = _nearest(result, len(result.columns))
    found = zip(result.columns, result.rows[at], strict=True)
    return WhyNot(tuple(_condition(result, at, text, truth) for text, truth in found))


def _nearest(result: Result, conditions: int) -> int:
    """Return which of the rows with that key, as a join makes several of one, meets the most of the conditions."""
    return max(range(len(result.rows)), key=lambda i: sum(truth is True for truth in result.rows[i][:conditions]))


def _condition(result: Result, at: int, text: str, truth: bool | None) -> Condition:
    """Return a condition of a row, with the quotes, and the failure, of those questions that it asks."""
    quotes = tuple(each for each in result.evidence[at] if each.question in text) if result.evidence else ()
    return Condition(text, truth, quotes, next((each.reason for each in result.unknown if each.question in text), ""))


def select_conditions(
    tree: exp.Select, rows: Sequence[exp.Expr], catalog: Catalog, *, first: Sequence[exp.Expr] = ()
) -> tuple[exp.Select, list[Compared]]:
    """Return the query that gives, for the `rows` of FROM, what each condition of WHERE comes to and what it compares.

    That is, for each condition, the places of its columns among the outputs `c0`, `c1`, …: those `first`, the
    conditions, the columns. Prose and private columns are left out.
    """
    tables = [item for item in from_items(tree) if isinstance(item, exp.Table)]
    relations = {item.alias_or_name: catalog.find(".".join(part.name for part in item.parts)) for item in tables}

    def is_shown(each: exp.Column) -> bool:
        of = [relations.get(each.table)] if each.table else relations.values()
        own = next((own for relation in of if relation is not None and (own := relation.column(each.name))), None)
        hidden = own is None or own.private or own.kind is ColumnKind.FREE_TEXT
        return not hidden and each.find_ancestor(exp.Select) is tree

    parts = conjuncts(where_of(tree))
    outputs: list[exp.Expr] = [*first, *parts]
    compared: list[Compared] = []
    for part in parts:
        own = [] if has_text(part) else dict.fromkeys(filter(is_shown, part.find_all(exp.Column)))
        compared.append((part, {each: len(outputs) + i for i, each in enumerate(own)}))
        outputs += own
    select = exp.Select(expressions=[aliased(each.copy(), f"c{i}") for i, each in enumerate(outputs)])
    copied = tree.copy()
    for clause in ("with_", *CLAUSES_OF_FROM):
        select.set(clause, copied.args.get(clause))
    return select.where(*rows), compared


def plain_why_not_query(
    tree: exp.Query, key: Mapping[str, object], catalog: Catalog, dialect: str
) -> tuple[exp.Select, list[Compared]]:
    """Return `select_conditions` of a query for the row that a key names: each condition is judged as a whole."""
    if not isinstance(tree, exp.Select) or not tree.args.get("where") or tree.args.get("group"):
        raise UnsupportedError("`why not` explains a query that filters rows with WHERE and does not group them")
    sources = list(from_items(tree))
    relations = [(item.alias_or_name, catalog.find(item.name)) for item in sources]

    def find(name: str) -> exp.Column:
        held = (alias for alias, relation in relations if relation is not None and relation.column(name))
        return column(next(held, sources[0].alias_or_name), name)

    matches = [exp.EQ(this=find(name), expression=literal(value, dialect)) for name, value in key.items()]
    select, compared = select_conditions(tree, matches, catalog)
    return select.limit(_MOST_ROWS), compared


def plain_why_not(result: Result, compared: Sequence[Compared], dialect: str) -> WhyNot:
    """Return the conditions of a query, each with the values that it compares."""
    if not result.rows:
        return WhyNot(())
    at, found = _nearest(result, len(compared)), []
    row = result.rows[at]
    for (part, columns), truth in zip(compared, row, strict=False):
        text = part.unnest().transform(_write_bare).sql(dialect, normalize_functions=False)
        values = [f"{c.name} is {'missing' if row[i] is None else row[i]}" for c, i in columns.items()]
        found.append(_condition(result, at, text + (f" ({', '.join(values)})" if values else ""), truth))
    return WhyNot(tuple(found))


def _write_bare(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Identifier):
        return exp.to_identifier(node.name, quoted=not is_plain(node.name))
    if type(node) is not exp.Column or node.find_ancestor(exp.Select) is not None:
        return node
    return exp.column(exp.to_identifier(node.name, quoted=not is_plain(node.name)))


def _named_columns(
    block: TextBlock, key: Mapping[str, object]
) -> tuple[tuple[tuple[str, exp.Expr], ...], dict[str, object]]:
    columns = dict(block.columns)
    source = block.source.args["from_"].this
    named = {}
    for name, value in key.items():
        ends = {c: c.split(".")[-1] for c in columns}
        found = next((c for wanted in (name, name.lower()) for c, end in ends.items() if end == wanted), None)
        carried = found or f"{source.alias_or_name}.{name}"
        columns.setdefault(carried, column(source.alias_or_name, name))
        named[carried] = value
    if not named:
        known = [name.split(".")[-1] for name in columns]
        raise UnknownNameError(f"name the row by values of its columns{suggest('', known)}")
    return tuple(columns.items()), named
