"""What a plan is expected to take: rows and calls per stage, from the catalog's statistics alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from almanaq.models.budget import estimate_tokens
from almanaq.suql.catalog.relations import Catalog
from almanaq.suql.catalog.sources import find_cte, from_items
from almanaq.suql.plan.joins import number_in
from almanaq.suql.plan.predicates import (
    Atom,
    Choice,
    Computed,
    Predicate,
    Structured,
    choose,
    conjuncts,
    sites_needed,
)
from almanaq.suql.plan.stages import Materialize, NativeQuery, Plan, SiteInput, TextStage, selects_of

TEXT_SELECTIVITY = 0.25
"""The share of rows that a text condition is expected to keep, before any is asked."""
_EQUALITY, _OTHER, _UNKNOWN_ROWS = 0.1, 0.33, 1000
_TEXT_TOKENS = 100
"""Of a text, where no text of its column is known."""
_REQUEST_TOKENS, _ITEM_TOKENS = 85, 16
"""Of the instructions and the question of a request, and of the marks around each text that shares one."""
_REPLY_TOKENS, _VERDICT_TOKENS = 40, 20


@dataclass(frozen=True, slots=True)
class Sharing:
    """How many texts with one question, and how many questions on a text, a reader puts into a request."""

    texts: int = 1
    questions: int = 1

    @classmethod
    def of(cls, reader: object) -> Sharing:
        return cls(int(getattr(reader, "company", 1)), int(getattr(reader, "questions", 1)))

    def beside(self, stage: TextStage) -> list[SiteInput]:
        """Return the inputs of an output that share requests with others about a text, where that takes fewer."""
        found: dict[str, list[SiteInput]] = {}
        for item in stage.inputs if stage.predicate is None and self.questions > 1 else ():
            found.setdefault(f"{item.relation}.{item.column}.{item.site.document.sql()}", []).append(item)
        several = [items for items in found.values() if len(items) > 1]
        alone = [items for items in several if all(i.site.chosen for i in items) and len(items) <= self.texts]
        return [item for items in several if items not in alone for item in items]

    def requests(self, stage: TextStage, calls: int) -> int:
        if stage.predicate is not None:  # asked one after the other
            return math.ceil(calls / self.texts) if all(item.site.chosen for item in stage.inputs) else calls
        texts, beside = calls / max(1, len(stage.inputs)), self.beside(stage)
        documents = {item.site.document.sql() for item in beside}
        alone = [item for item in stage.inputs if item not in beside]
        chosen = sum(item.site.chosen for item in alone)
        shared = max(len(documents), math.ceil(len(beside) / self.questions)) + len(alone) - chosen
        return math.ceil(chosen * math.ceil(texts / self.texts) + shared * texts)


@dataclass(frozen=True, slots=True)
class Estimate:
    rows: int
    calls: int = 0
    requests: int = 0
    tokens: int = 0
    output_tokens: int = 0


def text_estimate(stage: TextStage, rows: float, calls: int, text_tokens: float, sharing: Sharing) -> Estimate:
    requests = sharing.requests(stage, calls)
    marks = _ITEM_TOKENS if requests < calls else 0
    tokens = requests * _REQUEST_TOKENS + math.ceil(calls * (marks + text_tokens))
    reply = _VERDICT_TOKENS if all(item.site.chosen for item in stage.inputs) else _REPLY_TOKENS
    return Estimate(math.ceil(rows), calls, requests, tokens, calls * reply)


def columns_read(plan: Plan) -> tuple[str, ...]:
    """Return the columns whose texts a plan reads, each once: what a model on another machine would see."""
    items = (item for stage in plan.stages if isinstance(stage, TextStage) for item in stage.inputs)
    return tuple(dict.fromkeys(f"{item.relation}.{item.column}" if item.relation else item.column for item in items))


def estimate(
    plan: Plan, catalog: Catalog, known_rows: Mapping[str, int] | None = None, sharing: Sharing | None = None
) -> dict[str, Estimate]:
    """Return an estimate for each stage, by the name of the table it makes.

    Args:
        sharing: what shares a request; None: nothing.
    """
    rows: dict[str, float] = dict(known_rows or {})
    found: dict[str, Estimate] = {}
    for stage in plan.stages:
        if isinstance(stage, TextStage):
            candidates = _rows_of(stage.source, rows, catalog)
            found[stage.name] = _text_estimate(stage, candidates, catalog, sharing or Sharing())
            rows[stage.name] = found[stage.name].rows
            continue
        if isinstance(stage, Materialize) and isinstance(stage.select, NativeQuery):
            rows.setdefault(stage.name, rows.get(stage.within, _UNKNOWN_ROWS))
        elif not isinstance(stage, Materialize) or stage.name not in rows:
            rows[stage.name] = max(_rows_of(select, rows, catalog) for select in selects_of(stage))
        found[stage.name] = Estimate(math.ceil(rows[stage.name]))
    return found


def _text_estimate(stage: TextStage, candidates: float, catalog: Catalog, sharing: Sharing) -> Estimate:
    text_tokens = _mean_tokens(stage, catalog)
    texts = [min(candidates, _distinct_texts(item, catalog)) for item in stage.inputs]
    if stage.predicate is None:
        calls = sum(map(math.ceil, texts))
        return text_estimate(stage, candidates, calls, text_tokens, sharing)
    row = choose_first(stage.predicate, lambda atom: chance_of(atom, stage.inputs))
    asked, passed = candidates, candidates * row.chance
    enough = stage.values_wanted if stage.stop_after is None else stage.stop_after
    if enough is not None:
        asked, passed = min(candidates, enough / max(row.chance, 1e-3)), min(enough, passed)
    return text_estimate(stage, passed, math.ceil(min(asked * row.cost, sum(texts))), text_tokens, sharing)


def choose_first(predicate: Predicate, chance: Callable[[Atom], float]) -> Choice:
    """Return what is asked first of a row of which nothing is known; its cost is in calls."""
    return choose(predicate, {}, lambda atom: len(sites_needed(atom)), chance)


def chance_of(atom: Atom, inputs: Sequence[SiteInput]) -> float:
    """Return how likely an atom is TRUE of a row, before any is asked: of options, one is as likely as another."""
    if isinstance(atom, Structured):
        return _EQUALITY
    options = max(len(item.site.options) for item in inputs if item.site.id in sites_needed(atom))
    if isinstance(atom, Computed) and not isinstance(atom.expression, exp.EQ | exp.NEQ):
        return TEXT_SELECTIVITY
    equal = 1 / options if options > 1 else TEXT_SELECTIVITY
    return 1 - equal if isinstance(atom, Computed) and isinstance(atom.expression, exp.NEQ) else equal


CHANCE_ROWS = 4
"""For so many rows counts what is supposed before any reply."""


class Chances:
    """How likely atoms are TRUE of a row: by replies, and before any by `chance_of`."""

    def __init__(self, inputs: Sequence[SiteInput]) -> None:
        self._inputs = inputs
        self._true, self._known = Counter[str](), Counter[str]()

    def of(self, atom: Atom) -> float:
        supposed = CHANCE_ROWS * chance_of(atom, self._inputs)
        return (supposed + self._true[atom.column]) / (CHANCE_ROWS + self._known[atom.column])

    def learn(self, column: str, truth: bool | None) -> None:
        self._true[column] += truth is True
        self._known[column] += 1


def _mean_tokens(stage: TextStage, catalog: Catalog) -> float:
    samples: list[str] = []
    for item in stage.inputs:
        relation = catalog.find(item.relation) if item.relation else None
        column = relation.column(item.column) if relation is not None else None
        samples += column.samples if column is not None else ()
    if not samples or any(sample.endswith("…") for sample in samples):
        return _TEXT_TOKENS
    return sum(map(estimate_tokens, samples)) / len(samples)


def _distinct_texts(item: SiteInput, catalog: Catalog) -> float:
    relation = catalog.find(item.relation) if item.relation and item.question_column is None else None
    return relation.rows if relation is not None and relation.rows is not None else math.inf


def _rows_of(query: exp.Expr, rows: Mapping[str, float], catalog: Catalog) -> float:
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
        if any(isinstance(item, exp.Table) and item.name == name for item in items):
            total = min(total, rows[name])
    if (limit := number_in(query.args.get("limit"))) is not None:
        total = min(total, limit)
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
