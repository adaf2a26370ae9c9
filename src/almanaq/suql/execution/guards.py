"""What is checked before a query spends anything: its budget, and what may leave the machine."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from almanaq.errors import BudgetExceeded, RefusedQueryError
from almanaq.models.protocols import Models
from almanaq.options import DEFAULT_MAX_CALLS, Options
from almanaq.suql.catalog.relations import Catalog
from almanaq.suql.plan.blocks import is_plain
from almanaq.suql.plan.estimate import estimate
from almanaq.suql.plan.sites import literal_options
from almanaq.suql.plan.stages import LogicalPlan, Plan, TextStage
from almanaq.suql.text_functions import is_model_call


def call_budget(options: Options, models: Models) -> int | None:
    """Return the most calls that a query may make; None: any number."""
    if options.max_calls is not None:
        return options.max_calls
    return DEFAULT_MAX_CALLS if models.reader.paid else None


def check_privacy(plan: LogicalPlan, models: Models, *, similarity_is_remote: bool) -> None:
    """Raise RefusedQueryError if a private column would be sent to a remote model or embedder (semantics 16)."""
    receivers = {models.name: plan.private_columns} if models.reader.remote or similarity_is_remote else {}
    for receiver, columns in receivers.items():
        if columns:
            raise RefusedQueryError(
                f"{', '.join(columns)} is private and would be sent to the model {receiver!r}; use --model local and "
                "a local embedder, or change `private` in the schema file"
            )


def check_compared(plan: LogicalPlan, *, vectors_are_remote: bool) -> None:
    """Raise RefusedQueryError if `similarity` would send a private column to a remote embedder (semantics 16)."""
    if vectors_are_remote and plan.private_compared:
        raise RefusedQueryError(
            f"{', '.join(plan.private_compared)} is private and similarity() would send it to a remote embedder: use "
            "--embedder local, or change `private` in the schema file"
        )


def may_infer(stage: TextStage) -> bool:
    """Return whether a stage is a filter that decides all of its rows: one that LIMIT or EXISTS stops is exact."""
    return stage.predicate is not None and stage.stop_after is None and stage.semi_join_key is None


def check_accuracy(plan: Plan) -> None:
    """Raise RefusedQueryError where targets of recall and precision would have no meaning, or no guarantee."""
    texts = [stage for stage in plan.stages if isinstance(stage, TextStage)]
    shown = [item.site.function for stage in texts if stage.predicate is None for item in stage.inputs]
    if shown:
        raise RefusedQueryError(
            f"accuracy: {shown[0]}() outside WHERE is never inferred: leave it out of the output "
            "and of ORDER BY, and ask it of the rows of this query in a second one; or leave accuracy out"
        )
    if any(stage.ordered and stage.stop_after is not None for stage in texts):
        raise RefusedQueryError(
            "accuracy: which rows ORDER BY with LIMIT returns is never inferred: leave the LIMIT, the ORDER BY, or "
            "accuracy out"
        )
    if sum(map(may_infer, texts)) > 1:
        raise RefusedQueryError(
            "accuracy: the query has several text filters, and targets hold for one: ask them one after another"
        )


def check_countable(plan: Plan) -> None:
    """Raise RefusedQueryError unless the rows of a query are those that pass its one text filter."""
    texts = [stage for stage in plan.stages if isinstance(stage, TextStage)]
    select = plan.output.select
    one = len(texts) == 1 and may_infer(texts[0]) and [block for block, _ in plan.output.evidence] == [texts[0].block]
    if not one or not isinstance(select, exp.Select) or not is_plain(select) or select.args.get("joins"):
        raise RefusedQueryError(
            "estimate: write the query whose rows are to be counted, with answer() in its WHERE and nowhere else, and "
            "without GROUP BY, DISTINCT, aggregates or LIMIT"
        )


def check_sampled(plan: Plan) -> None:
    """Raise RefusedQueryError unless one answer, of rows that structured conditions choose, is all that is asked."""
    texts = [stage for stage in plan.stages if isinstance(stage, TextStage)]
    if len(texts) != 1 or texts[0].predicate is not None or len(texts[0].inputs) != 1:
        raise RefusedQueryError("estimate: the query may ask one thing of its rows, and filter them without asking")


def options_counted(tree: exp.Query) -> tuple[str, ...]:
    """Return the options of the answer by which a query counts its rows.

    Raise RefusedQueryError for any other query.
    """
    group = tree.args.get("group") if isinstance(tree, exp.Select) else None
    key = group.expressions[0].unnest() if group is not None and len(group.expressions) == 1 else None
    if isinstance(key, exp.Literal) and key.is_int and 1 <= int(key.this) <= len(tree.selects):
        key = tree.selects[int(key.this) - 1].unalias()
    others = ("having", "distinct", "order", "limit", "offset", "qualify")
    shown = [item.unalias() for item in tree.selects if item.unalias() != key]
    if key is None or not is_model_call(key) or any(tree.args.get(clause) for clause in others):
        counted = False
    else:
        counted = all(map(_counts_rows, shown))
    if not counted:
        raise RefusedQueryError(
            "estimate: write SELECT answer(x, q, ARRAY['a', 'b']), count(*) FROM … GROUP BY that answer, and no more"
        )
    assert key is not None
    if len(key.expressions) < 3:
        raise RefusedQueryError(
            "estimate: groups of an answer need its options, as in answer(x, q, ARRAY['a', 'b']): intervals for "
            "answers that nobody has named would mean nothing"
        )
    return literal_options(key.expressions[2].unnest())


def _counts_rows(node: exp.Expr) -> bool:
    """Return whether a node is count(*), as sqlglot reads it or as DuckDB writes it."""
    if isinstance(node, exp.AnonymousAggFunc | exp.Anonymous):
        return node.name.lower() == "count_star"
    return isinstance(node, exp.Count) and isinstance(node.this, exp.Star)


def check_average(tree: exp.Query) -> None:
    """Raise RefusedQueryError unless a query gives the mean of a numeric answer and nothing else."""
    plain = isinstance(tree, exp.Select) and not any(
        tree.args.get(clause) for clause in ("group", "having", "distinct", "order", "limit", "offset", "qualify")
    )
    shown = tree.selects[0].unalias() if plain and len(tree.selects) == 1 else None
    cast = shown.this.unnest() if isinstance(shown, exp.Avg) else None
    if not isinstance(cast, exp.Cast) or not is_model_call(cast.this.unnest()):
        raise RefusedQueryError("estimate: write SELECT avg(answer(x, q)::numeric) FROM … WHERE …, and no more")


def expected_calls(plan: Plan, catalog: Catalog, rows: Mapping[str, int], candidates: int | None) -> dict[str, int]:
    """Return the calls that each text stage of a plan is expected to make, by its name.

    Args:
        rows: rows of the tables that were made already.
        candidates: the most rows that a filter asks about, by the user's choice.
    """
    figures = estimate(plan, catalog, rows)
    texts = [stage for stage in plan.stages if isinstance(stage, TextStage)]
    return {stage.name: at_most(stage, figures[stage.name].calls, candidates) for stage in texts}


def at_most(stage: TextStage, calls: int, candidates: int | None) -> int:
    """Return the calls of a stage where a filter asks about so many rows at most."""
    return calls if candidates is None or stage.predicate is None else min(calls, candidates * len(stage.inputs))


def refuse_over_budget(total: int, budget: int) -> None:
    """Raise BudgetExceeded if more calls are expected than the budget allows (semantics 13)."""
    if total > budget:
        raise BudgetExceeded(
            f"the query is expected to make about {total:,} model calls, above the budget of {budget:,}: "
            "narrow its structured conditions, add a LIMIT, or raise --max-calls; nothing was asked"
        )
