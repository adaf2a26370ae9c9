"""What a plan is expected to take: rows and calls per stage, from the catalog's statistics alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from almanaq.suql.catalog.relations import Catalog
from almanaq.suql.catalog.sources import find_cte, from_items
from almanaq.suql.plan.predicates import Computed, Predicate, Structured, Verdict, atoms, conjuncts
from almanaq.suql.plan.stages import Materialize, NativeTable, Plan, SiteInput, TextStage, selects_of

TEXT_SELECTIVITY = 0.25
"""The share of rows that a text condition is expected to keep, before any is asked."""
_EQUALITY, _OTHER, _UNKNOWN_ROWS = 0.1, 0.33, 1000
_TOKENS_PER_CALL = 400
_INSTRUCTION_TOKENS = 300
"""Of the tokens of a call: those that are the same for every text."""
_OUTPUT_TOKENS_PER_CALL = 40


@dataclass(frozen=True, slots=True)
class Estimate:
    """Expected rows out of a stage, and the calls and input tokens it takes.

    Attributes:
        verdicts: whether each call asks for no more than yes or no, so that several may share a request.
    """

    rows: int
    calls: int = 0
    tokens: int = 0
    verdicts: bool = False

    def together(self, texts: int) -> Estimate:
        """Return the same where up to so many calls share a request, which tells the model once what it is to do."""
        if not self.verdicts or texts <= 1:
            return self
        saved = self.calls - math.ceil(self.calls / texts)
        return replace(self, tokens=self.tokens - saved * _INSTRUCTION_TOKENS)

    @property
    def output_tokens(self) -> int:
        """The tokens that the replies are expected to have."""
        return self.calls * _OUTPUT_TOKENS_PER_CALL


def columns_read(plan: Plan) -> tuple[str, ...]:
    """Return the columns whose texts a plan reads, each once: what a model on another machine would see."""
    items = (item for stage in plan.stages if isinstance(stage, TextStage) for item in stage.inputs)
    return tuple(dict.fromkeys(f"{item.relation}.{item.column}" if item.relation else item.column for item in items))


def estimate(plan: Plan, catalog: Catalog, known_rows: Mapping[str, int] | None = None) -> dict[str, Estimate]:
    """Return an estimate for each stage, by the name of the table it makes.

    Args:
        known_rows: rows of tables that were made already.
    """
    rows: dict[str, float] = dict(known_rows or {})
    found: dict[str, Estimate] = {}
    for stage in plan.stages:
        if isinstance(stage, Materialize):
            rows.setdefault(stage.name, _rows_of(stage.select, rows, catalog))
            found[stage.name] = Estimate(math.ceil(rows[stage.name]))
            continue
        if isinstance(stage, NativeTable):
            rows.setdefault(stage.name, _UNKNOWN_ROWS)
            found[stage.name] = Estimate(math.ceil(rows[stage.name]))
            continue
        if not isinstance(stage, TextStage):
            rows[stage.name] = max(_rows_of(select, rows, catalog) for select in selects_of(stage))
            found[stage.name] = Estimate(math.ceil(rows[stage.name]))
            continue
        candidates = _rows_of(stage.source, rows, catalog)
        found[stage.name] = _text_estimate(stage, candidates, catalog)
        rows[stage.name] = found[stage.name].rows
    return found


def _text_estimate(stage: TextStage, candidates: float, catalog: Catalog) -> Estimate:
    texts = [min(candidates, _distinct_texts(item, catalog)) for item in stage.inputs]
    if stage.predicate is None:
        calls = sum(map(math.ceil, texts))
        return Estimate(math.ceil(candidates), calls, calls * _TOKENS_PER_CALL)
    kept = _selectivity(stage.predicate)
    asked = candidates
    enough = stage.values_wanted if stage.stop_after is None else stage.stop_after
    if enough is not None:
        asked = min(candidates, enough / max(kept, 1e-3))
    per_row = min(len(stage.inputs), 1 + 0.5 * (len(atoms(stage.predicate)) - 1))
    calls = math.ceil(min(asked * per_row, sum(texts)))
    passed = candidates * kept if enough is None else min(enough, candidates * kept)
    verdicts = all(item.site.yes_or_no for item in stage.inputs)
    return Estimate(math.ceil(passed), calls, calls * _TOKENS_PER_CALL, verdicts)


def _distinct_texts(item: SiteInput, catalog: Catalog) -> float:
    """Return the most texts that a site can be asked about: those of its column, when every row has
    the same question.
    """
    relation = catalog.find(item.relation) if item.relation and item.question_column is None else None
    return relation.rows if relation is not None and relation.rows is not None else math.inf


def _selectivity(predicate: Predicate) -> float:
    asked = [atom for atom in atoms(predicate) if isinstance(atom, Verdict | Computed)]
    settled = [atom for atom in atoms(predicate) if isinstance(atom, Structured)]
    return min(1.0, TEXT_SELECTIVITY ** max(1, len(asked)) + _EQUALITY * len(settled))


def _rows_of(query: exp.Expr, rows: Mapping[str, float], catalog: Catalog) -> float:
    """Estimate the rows of a SELECT: its relations' rows times what its conditions keep."""
    if not isinstance(query, exp.Select):
        parts = [part for part in (query.args.get("this"), query.args.get("expression")) if part is not None]
        return sum(_rows_of(part, rows, catalog) for part in parts) if parts else _UNKNOWN_ROWS
    items = list(from_items(query))
    sizes = [_item_rows(item, rows, catalog) for item in items]
    kept = [join.args.get("on") for join in query.args.get("joins") or ()]
    total = max(sizes, default=1.0) if any(on is not None for on in kept) else math.prod(sizes or [1.0])
    where = query.args.get("where")
    for condition in conjuncts(where.this) if where is not None else ():
        total *= _EQUALITY if isinstance(condition, exp.EQ | exp.In) else _OTHER
    for name in rows:
        if any(isinstance(item, exp.Table) and item.name == name for item in items[1:]):
            total = min(total, rows[name])
    limit = query.args.get("limit")
    if limit is not None and limit.expression.is_int:
        total = min(total, int(limit.expression.name))
    return max(total, 1.0 if not query.args.get("from_") else 0.0)


def _item_rows(item: exp.Expr, rows: Mapping[str, float], catalog: Catalog) -> float:
    if isinstance(item, exp.Table):
        if item.name in rows:
            return rows[item.name]
        cte = find_cte(item)
        if cte is not None:
            recursive = isinstance(cte.parent, exp.With) and cte.parent.args.get("recursive")
            return _UNKNOWN_ROWS if recursive else _rows_of(cte.this, rows, catalog)
        relation = catalog.find(item.name)
        return float(relation.rows) if relation is not None and relation.rows is not None else _UNKNOWN_ROWS
    if isinstance(item, exp.Subquery | exp.Lateral) and isinstance(item.this, exp.Query):
        return _rows_of(item.this, rows, catalog)
    return 5.0
