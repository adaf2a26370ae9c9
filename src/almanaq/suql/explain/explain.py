"""EXPLAIN and ANALYZE: a plan as people read it, with what each stage is expected to take and what it took."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from almanaq import display
from almanaq.display import visible
from almanaq.suql.catalog.linking import Link, resolve_links
from almanaq.suql.plan.estimate import Estimate
from almanaq.suql.plan.predicates import And, Computed, Not, Or, Predicate, Structured, Verdict
from almanaq.suql.plan.sites import FROM_ALIAS, TEXT_ALIAS, Site, site_of
from almanaq.suql.plan.stages import (
    LogicalPlan,
    Materialize,
    NativeQuery,
    Plan,
    SimilarityCall,
    SimilarityJoin,
    SimilarityStage,
    TextBlock,
    TextStage,
)


@dataclass(frozen=True, slots=True)
class StageLine:
    """One stage: `predicted` and `actual` hold rows, calls, tokens and money as far as they apply."""

    stage: str
    name: str
    what: str
    predicted: dict[str, Any] = field(default_factory=dict)
    actual: dict[str, Any] | None = None
    approximate: bool = False


@dataclass(frozen=True, slots=True)
class Explanation:
    """A plan, laid out; `str()` gives text, `to_json()` the stages as plain values."""

    stages: tuple[StageLine, ...]
    steps: tuple[tuple[str, str], ...] = ()
    sent: tuple[str, ...] = ()
    free: bool = False

    def to_json(self) -> list[dict[str, Any]]:
        keys = ("stage", "name", "what", "predicted", "actual", "approximate")
        return [{key: getattr(line, key) for key in keys} for line in self.stages]

    def _repr_html_(self) -> str:
        return display.block(display.preformat_text(str(self)))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: ARG002 - IPython passes it
        printer.text(visible(str(self)))

    def __str__(self) -> str:
        lines = [part for name, text in self.steps for part in (f"after {name}:", *_indent(text), "")]
        for number, line in enumerate(self.stages, 1):
            marked = " (approximate)" if line.approximate else ""
            lines.append(f"{number}. {line.stage}{marked}  {line.name}")
            lines += _indent(line.what)
            lines.append("    expected: " + _figures(line.predicted, free=self.free))
            if line.actual is not None:
                lines.append("    actual:   " + _figures(line.actual, free=self.free))
        if self.sent:
            lines.append(f"sent to the model: {', '.join(self.sent)}")
        return "\n".join(lines)


def explain_plan(
    plan: Plan,
    estimates: dict[str, Estimate],
    *,
    dialect: str = "duckdb",
    steps: Sequence[tuple[str, LogicalPlan]] = (),
    actual: dict[str, dict[str, Any]] | None = None,
    approximate: bool = False,
    cost: Callable[[Estimate], float | None] | None = None,
    order: Callable[[TextStage], str] = lambda _: "",
) -> Explanation:
    """Lay out a plan.

    Args:
        cost: gives the dollars of a text stage, None where prices are unknown; without it, calls cost nothing.
        order: says in which order a text stage's rows are tried; "" where it is that of its source.
    """
    done = actual or {}
    show = _PlanText(dialect, plan.links)
    lines = [
        StageLine("link", link.id, f"{link.relation}.{link.column} = {link.literal!r}: to be linked", {"calls": 1})
        for link in plan.links
    ]
    for stage in plan.stages:
        expected = estimates[stage.name]
        figures: dict[str, Any] = {"rows": expected.rows}
        match stage:
            case Materialize():
                kind, what = "sql", f"{stage.purpose}:\n{show.sql(stage.select)}"
            case TextStage():
                kind = "text filter" if stage.predicate is not None else "text projection"
                what = "\n".join(filter(None, (_describe(stage, plan, show), order(stage))))
                figures |= {"calls": expected.calls, "requests": expected.requests, "tokens": expected.tokens}
                figures["money"] = cost(expected) if cost is not None else 0.0
            case _:
                kind = "similarity" if isinstance(stage, SimilarityStage) else "similarity join"
                what = show.similarity(stage)
        marked = approximate and isinstance(stage, TextStage)
        lines.append(StageLine(kind, stage.name, what, figures, done.get(stage.name), approximate=marked))
    payload = plan.output.payload and f"the rows that passed, as they came: {', '.join(plan.output.payload)}"
    lines.append(StageLine("output", "result", payload or show.sql(plan.output.select), {}, done.get("result")))
    return Explanation(tuple(lines), tuple((name, describe_logical(step, dialect)) for name, step in steps))


def describe_logical(plan: LogicalPlan, dialect: str = "duckdb") -> str:
    lines = []
    show = _PlanText(dialect, plan.links)
    for stage in plan.stages:
        if isinstance(stage, Materialize):
            lines.append(f"{stage.name}: {stage.purpose}")
            continue
        if not isinstance(stage, TextBlock):
            lines.append(f"{stage.name}: {show.similarity(stage)}")
            continue
        lines.append(f"{stage.name}: text block over {show.sql(stage.source)}")
        lines += [f"  {label}: {text}" for label, text in _choices(stage, show)]
    return "\n".join(lines) or "no text functions: the database runs the whole query"


def _choices(block: TextBlock, show: _PlanText) -> list[tuple[str, str]]:
    show = replace(show, sites={site.id: site for site in block.sites})
    first = block.first_rows if block.first_only else None
    found = [
        ("asks", "; ".join(show.call(site) + show.needed(site) for site in block.sites)),
        ("where", show.expression(block.where) if block.where is not None else None),
        ("rows fetched under", show.expression(block.condition) if block.condition is not None else "all rows"),
        ("text filter", show.predicate(block.residual) if block.residual is not None else None),
        ("stops after", f"{block.stop_after} rows" if block.stop_after is not None else None),
        ("stops for each", show.expression(first.key) if first is not None else None),
        ("reads", "the base table by row id" if block.direct else "a copy of the candidate rows"),
        ("text of the output", "for returned rows only" if block.late else None),
    ]
    return [(label, text) for label, text in found if text]


def _describe(stage: TextStage, plan: Plan, show: _PlanText) -> str:
    texts = [other for other in plan.stages if isinstance(other, TextStage) and other.block == stage.block]
    show = replace(show, sites={item.site.id: item.site for other in texts for item in other.inputs})
    lines = [f"rows: {show.sql(stage.source)}"]
    if stage.predicate is None:
        lines += [f"ask: {show.call(item.site)}{show.needed(item.site)}" for item in stage.inputs]
    else:
        lines.append(f"keep: {show.predicate(stage.predicate)}")
    if stage.semi_join_key is not None:
        lines.append(_describe_semi_join(stage))
    if stage.stop_after is not None:
        lines.append(f"stop after {stage.stop_after} rows" + (" in that order" if stage.ordered else ""))
    return "\n".join(lines)


def _describe_semi_join(stage: TextStage) -> str:
    which = "the first row in that order" if stage.ordered else "one row"
    stop = f"stop after {which} for each value of {stage.semi_join_key}"
    if stage.values_wanted is None:
        return stop
    if not stage.values_ordered:
        return f"{stop}, and after {stage.values_wanted:,} values"
    first = f"once the first {stage.values_wanted:,} values that have a row are known"
    return f"{stop}, and {first} (top-k with early termination: values come in the order of ORDER BY)"


def describe_condition(node: exp.Expr, sites: Sequence[Site], dialect: str) -> str:
    return _PlanText(dialect, sites={site.id: site for site in sites}).expression(node)


_ENUM_CASTS = ("TEXT", "TEXT[]")


@dataclass(frozen=True, slots=True)
class _PlanText:
    """Writes the parts of a plan in the engine's dialect, with columns and text calls as the query has them."""

    dialect: str
    links: tuple[Link, ...] = ()
    sites: Mapping[str, Site] = field(default_factory=dict)

    def sql(self, tree: exp.Expr | NativeQuery) -> str:
        return tree.text if isinstance(tree, NativeQuery) else self._resolve(tree).sql(self.dialect)

    def expression(self, node: exp.Expr) -> str:
        return self._resolve(node).transform(self._write_out).sql(self.dialect)

    def _resolve(self, tree: exp.Expr) -> exp.Expr:
        return resolve_links(tree, {link.id: link for link in self.links}, {link.id: () for link in self.links})

    def _write_out(self, part: exp.Expr) -> exp.Expr:
        if isinstance(part, exp.Cast) and isinstance(part.this, exp.Column) and part.to.sql("postgres") in _ENUM_CASTS:
            part = part.this  # an ENUM compared as text: nothing that a reader of the plan wrote
        if isinstance(part, exp.Column) and part.table == FROM_ALIAS:
            return exp.column(part.name.split(".")[-1])
        if isinstance(part, exp.Column) and part.table == TEXT_ALIAS:
            site = self.sites[site_of(part.name)]
            call: exp.Expr = exp.Var(this=self.call(site))
            if "_" not in part.name:
                return call
            return exp.EQ(this=call, expression=exp.Literal.string(site.compared[int(part.name.split("_")[1])]))
        return part

    def call(self, site: Site) -> str:
        own = _PlanText(self.dialect)
        document = site.document
        read = document.name.split(".")[-1] if isinstance(document, exp.Column) else own.expression(document)
        if site.function == "summary":
            return f"summary({read})"
        options = "" if site.options_from is None else f", ARRAY({site.options_from.sql(self.dialect)})"
        return f"answer({read}, {own.expression(site.question)}{options})"

    def needed(self, site: Site) -> str:
        return f" where {self.expression(site.needed)}" if site.needed is not None else ""

    def predicate(self, predicate: Predicate) -> str:
        match predicate:
            case And(children):
                return " AND ".join(map(self._bracket, children))
            case Or(children):
                return " OR ".join(map(self._bracket, children))
            case Not(child):
                return f"NOT {self._bracket(child)}"
            case Verdict(column):
                site = self.sites[site_of(column)]
                return f"{self.call(site)} = {exp.Literal.string(site.compared[int(column.split('_')[1])]).sql()}"
            case Structured(_, expression) | Computed(_, expression, _):
                return self.expression(expression)
        raise AssertionError(predicate)

    def _bracket(self, predicate: Predicate) -> str:
        text = self.predicate(predicate)
        return f"({text})" if isinstance(predicate, And | Or) else text

    def similarity(self, stage: SimilarityStage | SimilarityJoin) -> str:
        if isinstance(stage, SimilarityJoin):
            sides = f"left: {self.sql(stage.left)}\nright: {self.sql(stage.right)}"
            return f"{sides}\npairs: similarity(left.d, right.d) >= {stage.at_least:g}"
        return "\n".join([f"rows: {self.sql(stage.source)}", *map(_describe_call, stage.calls)])


def _describe_call(call: SimilarityCall) -> str:
    wanted = [f"similarity({call.document}, {call.other or exp.Literal.string(call.words).sql()})"]
    wanted += [f"at least {call.at_least:g}"] if call.at_least is not None else []
    wanted += [f"the {call.most} highest"] if call.most is not None else []
    return f"compute: {', '.join(wanted)}"


def _figures(values: dict[str, Any], *, free: bool = False) -> str:
    shown = {key: value for key, value in values.items() if not (free and key in ("requests", "tokens", "money"))}
    return ", ".join(_figure(key, value) for key, value in shown.items()) or "-"


def _figure(key: str, value: Any) -> str:
    if key == "money":
        return "price unknown" if value is None else f"${value:.4f}"
    if not isinstance(value, int):
        return f"{key} {value}"
    return f"{value:,} {key.removesuffix('s') if value == 1 else key}"


def _indent(text: str) -> list[str]:
    return [f"    {line}" for line in text.splitlines()]
