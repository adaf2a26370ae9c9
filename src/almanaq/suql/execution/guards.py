"""What a query may spend and hold: checked before the first call, and of its result."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from sqlglot import exp

from almanaq.engines.protocols import Session
from almanaq.errors import BudgetExceeded, DeadlineExceeded, OperationalError, PrivateColumnError, RefusedQueryError
from almanaq.models.protocols import Models
from almanaq.options import DEFAULT_MAX_CALLS, Options
from almanaq.suql.language import Parameters
from almanaq.suql.plan.blocks import is_plain, keeps_each_row
from almanaq.suql.plan.joins import number_in
from almanaq.suql.plan.sites import literal_options
from almanaq.suql.plan.stages import LogicalPlan, NativeQuery, Plan, TextStage
from almanaq.suql.text_functions import is_model_call


def fetch_result(session: Session, sql: str, parameters: Parameters, options: Options) -> pa.Table:
    """Return the rows of a query's last SELECT, with more than the most wanted where there are more; blocks."""
    rows, most = options.max_rows, None if options.max_result_mb is None else options.max_result_mb * 1_000_000
    table = session.fetch(sql, most, parameters, None if rows is None else rows + 1)
    table = table if rows is None else table.slice(0, rows + 1)  # whole batches came
    return refuse_large(table, options)


def refuse_large(table: pa.Table, options: Options) -> pa.Table:
    megabytes = options.max_result_mb
    if megabytes is not None and table.nbytes > megabytes * 1_000_000:
        raise BudgetExceeded(
            f"the result takes more than {megabytes} MB, the most that a result may hold in memory: narrow it or give "
            "it a LIMIT, write it as it comes with --out FILE.csv or FILE.parquet, or raise --max-result-mb"
        )
    return table


def limit_rows(select: exp.Query | NativeQuery, rows: int | None) -> exp.Query | NativeQuery:
    """Return a query that gives one row more than `rows` at most: an engine that knows it need not sort them all."""
    if rows is None or not isinstance(select, exp.Select | exp.SetOperation):
        return select
    limit = select.args.get("limit")
    if limit is not None and ((count := number_in(limit)) is None or count <= rows):
        return select
    bounded = select.copy()
    bounded.set("limit", exp.Limit(expression=exp.Literal.number(rows + 1)))
    return bounded


def cut_rows(table: pa.Table, most: int | None) -> tuple[pa.Table, tuple[str, ...]]:
    if most is None or table.num_rows <= most:
        return table, ()
    return table.slice(0, most), (f"there are more rows: only the first {most:,} were read",)


def late_error(options: Options, goes_on: str = "") -> DeadlineExceeded:
    return DeadlineExceeded(f"the query ran longer than its deadline of {options.deadline:g} s{goes_on}")


@contextmanager
def interrupted_at_errors(session: Session) -> Iterator[None]:
    """Stop what a session runs when an error ends the work with it; rows beyond the memory are an OperationalError."""
    try:
        yield
    except MemoryError as error:  # Arrow's is one of these
        session.interrupt()
        message = "the rows do not fit into the memory that is there: ask for fewer, or for shorter ones"
        raise OperationalError(message) from error
    except BaseException:
        session.interrupt()
        raise


def rows_are_sure(plan: Plan, stage: TextStage) -> bool:
    """Return whether each row that passed a stopped filter is in the full result: nothing above looks across rows."""
    output = plan.output
    texts = [other for other in plan.stages if isinstance(other, TextStage)]
    if stage.predicate is None or texts[-1] is not stage or not isinstance(output.select, exp.Select):
        return False
    made = {stage.block, *(other.name for other in plan.stages)}
    alone = [block for block, _ in output.evidence] == [stage.block]
    return alone and keeps_each_row(output.select, made, cut=stage.stop_after is not None)


def call_budget(options: Options, models: Models) -> int | None:
    """Return the most calls that a query may make; None: any number."""
    if options.max_calls is not None:
        return options.max_calls
    return DEFAULT_MAX_CALLS if models.reader.paid else None


def check_privacy(plan: LogicalPlan, models: Models, *, similarity_is_remote: bool) -> None:
    """Raise PrivateColumnError if a private column would be sent to a remote model or embedder (semantics 16)."""
    if plan.private_columns and (models.reader.remote or similarity_is_remote):
        raise PrivateColumnError(
            f"{', '.join(plan.private_columns)} is private and would be sent to the model {models.name!r}; use "
            "--model local and a local embedder, or change `private` in the schema file"
        )


def check_compared(plan: LogicalPlan, *, vectors_are_remote: bool) -> None:
    """Raise PrivateColumnError if `similarity` would send a private column to a remote embedder (semantics 16)."""
    if vectors_are_remote and plan.private_compared:
        raise PrivateColumnError(
            f"{', '.join(plan.private_compared)} is private and similarity() would send it to a remote embedder: use "
            "--embedder local, or change `private` in the schema file"
        )


def check_accuracy(plan: Plan) -> None:
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
    if sum(stage.may_infer for stage in texts) > 1:
        raise RefusedQueryError(
            "accuracy: the query has several text filters, and targets hold for one: ask them one after another"
        )


def check_countable(plan: Plan) -> None:
    texts = [stage for stage in plan.stages if isinstance(stage, TextStage)]
    select = plan.output.select
    one = len(texts) == 1 and texts[0].may_infer and [block for block, _ in plan.output.evidence] == [texts[0].block]
    block = select if isinstance(select, exp.Select) and is_plain(select) else None
    joined = [join.this.name for join in block.args.get("joins") or ()] if block is not None else []
    # A join with the rows that the filter kept is the block's own.
    if not one or block is None or (joined and texts[0].name not in joined):
        raise RefusedQueryError(
            "estimate: write the query whose rows are to be counted, with answer() in its WHERE and nowhere else, and "
            "without GROUP BY, DISTINCT, aggregates or LIMIT"
        )


def check_sampled(plan: Plan) -> None:
    texts = [stage for stage in plan.stages if isinstance(stage, TextStage)]
    if len(texts) != 1 or texts[0].predicate is not None or len(texts[0].inputs) != 1:
        raise RefusedQueryError("estimate: the query may ask one thing of its rows, and filter them without asking")


_BESIDE_GROUPS = ("having", "distinct", "order", "limit", "offset", "qualify")


def options_counted(tree: exp.Query) -> tuple[str, ...]:
    """Return the options of the answer by which a query counts its rows.

    Raise RefusedQueryError for any other query.
    """
    group = tree.args.get("group") if isinstance(tree, exp.Select) else None
    key = group.expressions[0].unnest() if group is not None and len(group.expressions) == 1 else None
    if isinstance(key, exp.Literal) and key.is_int and 1 <= int(key.this) <= len(tree.selects):
        key = tree.selects[int(key.this) - 1].unalias()
    others = (item.unalias() for item in tree.selects if item.unalias() != key)
    beside = any(tree.args.get(clause) for clause in _BESIDE_GROUPS)
    if key is None or not is_model_call(key) or beside or not all(map(_counts_rows, others)):
        raise RefusedQueryError(
            "estimate: write SELECT answer(x, q, ARRAY['a', 'b']), count(*) FROM … GROUP BY that answer, and no more"
        )
    if len(key.expressions) < 3:
        raise RefusedQueryError(
            "estimate: groups of an answer need its options, as in answer(x, q, ARRAY['a', 'b']): intervals for "
            "answers that nobody has named would mean nothing"
        )
    return literal_options(key.expressions[2].unnest())


def _counts_rows(node: exp.Expr) -> bool:
    if isinstance(node, exp.AnonymousAggFunc | exp.Anonymous):
        return node.name.lower() == "count_star"
    return isinstance(node, exp.Count) and isinstance(node.this, exp.Star)


def check_average(tree: exp.Query) -> None:
    plain = isinstance(tree, exp.Select) and not any(tree.args.get(clause) for clause in ("group", *_BESIDE_GROUPS))
    shown = tree.selects[0].unalias() if plain and len(tree.selects) == 1 else None
    cast = shown.this.unnest() if isinstance(shown, exp.Avg) else None
    if not isinstance(cast, exp.Cast) or not is_model_call(cast.this.unnest()):
        raise RefusedQueryError("estimate: write SELECT avg(answer(x, q)::numeric) FROM … WHERE …, and no more")


def refuse_over_budget(total: int, budget: int) -> None:
    if total > budget:
        raise BudgetExceeded(
            f"the query is expected to make about {total:,} model calls, above the budget of {budget:,}: "
            "narrow its structured conditions, add a LIMIT, or raise --max-calls; nothing was asked"
        )
