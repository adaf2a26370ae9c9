"""Why a row is not in a result: each condition of WHERE with what it came to for that row, and the quotes behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from almanaq import display
from almanaq.display import visible
from almanaq.errors import UnknownNameError, UnsupportedError, suggest
from almanaq.suql.explain.explain import describe_condition
from almanaq.suql.plan.predicates import conjuncts
from almanaq.suql.plan.sites import FROM_ALIAS
from almanaq.suql.plan.stages import ROW, LogicalPlan, Output, TextBlock
from almanaq.suql.result import Evidence, Result
from almanaq.suql.syntax.literals import literal
from almanaq.suql.syntax.nodes import aliased, column, table

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


def why_not_plan(plan: LogicalPlan, key: Mapping[str, object], dialect: str) -> tuple[LogicalPlan, tuple[str, ...]]:
    """Return a plan that evaluates every condition of a query's text block for one row, and the conditions' texts."""
    found = [stage for stage in plan.stages if isinstance(stage, TextBlock) and stage.where_sites]
    if not found:
        raise UnsupportedError("no text function filters rows in this query; `why not` explains those that do")
    block = found[0]
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
    evidence = result.evidence[0]
    return WhyNot(
        tuple(
            Condition(
                text,
                truth,
                tuple(e for e in evidence if e.question in text),
                next((unknown.reason for unknown in result.unknown if unknown.question in text), ""),
            )
            for text, truth in zip(result.columns, result.rows[0], strict=True)
        )
    )


def _named_columns(
    block: TextBlock, key: Mapping[str, object]
) -> tuple[tuple[tuple[str, exp.Expr], ...], dict[str, object]]:
    columns = dict(block.columns)
    source = block.source.args["from_"].this
    named = {}
    for name, value in key.items():
        carried = next(
            (c for c in columns if c.split(".")[-1] == name.lower()), f"{source.alias_or_name}.{name.lower()}"
        )
        columns.setdefault(carried, column(source.alias_or_name, name.lower()))
        named[carried] = value
    if not named:
        known = [name.split(".")[-1] for name in columns]
        raise UnknownNameError(f"name the row by values of its columns{suggest('', known)}")
    return tuple(columns.items()), named
