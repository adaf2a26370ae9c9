"""Rules that choose how one block runs: which rows it fetches, when it stops, what it asks late or not at all."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from almanaq.suql.plan.joins import rows_needed
from almanaq.suql.plan.predicates import PredicateBuilder, asked_under, conjuncts, weakest
from almanaq.suql.plan.sites import text_columns
from almanaq.suql.plan.stages import TextBlock


def lazy_branches(block: TextBlock) -> TextBlock:
    """Leave out the text of CASE branches, COALESCE arguments and sides of AND and OR that a row does not look at.

    Before: `SELECT CASE WHEN city = 'Rome' THEN answer(…) END` asks for every row.
    After: it asks for the rows in Rome; `coalesce(phone, answer(…))` asks where there is no phone; in
    `CASE WHEN answer(…) = 'Yes' THEN answer(…) END` the second is asked where the first came to 'Yes'.

    A value that is asked for elsewhere in the output without such a condition is asked for every row, as before. SQL
    never looks at the value of a branch that is not taken, so what stands there does not matter.
    """
    needed = asked_under([*block.outputs, *block.order])
    return replace(block, sites=tuple(replace(site, needed=needed.get(site.id)) for site in block.sites))


def direct_rows(block: TextBlock) -> TextBlock:
    """Stream candidates from the one relation of FROM, and fetch those that pass by their row ids.

    Before: the candidates are copied to a temporary table with a number per row.
    After: keys and texts are streamed; no other column is moved until a row has passed.

    A row id names one row within a snapshot, so joining on it gives each row that passed exactly once.
    """
    return replace(block, direct=True) if block.row_id is not None else block


def exists_stop(block: TextBlock) -> TextBlock:
    """Stop the text filter of a correlated EXISTS, or of IN, at the first row that passes for what is looked for.

    Before: `FROM t WHERE EXISTS (SELECT 1 FROM r WHERE r.t = t.id AND answer(r.body, …) = 'Yes')` asks of every r.
    After: for each t, it asks until one passes; under a LIMIT of 3 until three have one (the first three, by ORDER BY).

    The block is read by that EXISTS alone, which is true by one row as by many. So is `IN (SELECT y …)`: of each y one
    row will do. So does DISTINCT, and GROUP BY without aggregates. Of `DISTINCT ON (k)`, of `max(x) … GROUP BY k`, and
    of rows that `row_number() OVER (PARTITION BY k …)` calls 1, the first that passes is the one of each k.
    """
    return replace(block, first_only=True) if block.filtered and block.first_rows is not None else block


def late_projection(block: TextBlock) -> TextBlock:
    """Evaluate text functions of the SELECT list that ORDER BY does not use after ORDER BY, OFFSET and LIMIT.

    Before: `SELECT summary(reviews) FROM r ORDER BY rating DESC LIMIT 3` summarises every row.
    After: three rows are summarised.

    The values decide neither which rows are returned nor in what order, so computing them last changes nothing.
    """
    undecided = block.where_sites and not block.filtered
    unlimited = block.limit is None and block.offset is None
    if undecided or unlimited or not {*block.output_sites} - {*block.order_sites}:
        return block
    return replace(block, late=True)


def limit_stop(block: TextBlock) -> TextBlock:
    """Stop the text filter after LIMIT + OFFSET rows (paper, section 5.3, lazy evaluation).

    Before: `WHERE answer(…) = 'Yes' ORDER BY rating DESC LIMIT 3` asks every candidate.
    After: candidates come in the order of `rating DESC`, and asking stops at the third that passes.

    A block holds no grouping, DISTINCT or window (those stay above it), so each row that passes is a row of the result.
    Under an ORDER BY on columns, candidates come in that order and the first that pass are the ones LIMIT keeps; an
    ORDER BY on answers needs them all, so the rule does not apply.
    """
    rows = rows_needed(block.limit, block.offset)
    return block if not block.filtered or rows is None or block.order_sites else replace(block, stop_after=rows)


def text_filter(block: TextBlock) -> TextBlock:
    """Evaluate WHERE as a tree in three-valued logic, cheapest decisive text first, until each row is decided.

    Before: every text function of WHERE is asked for every fetched row, then the database filters.
    After: for `city = 'Paris' OR answer(a, …) = 'Yes'` no row in Paris is asked; for two text conditions under AND the
    second is asked only where the first held; in `CASE WHEN city = 'Rome' THEN answer(…) END = 'x'` rows in Rome are.

    The tree gives TRUE exactly when SQL does: skipped parts could not have changed that. Conjuncts without text are
    left out when the rows were fetched under them already.
    """
    if not block.where_sites:
        return block
    parts = conjuncts(block.where)
    if block.condition is not None:
        parts = [part for part in parts if text_columns(part)]
    return replace(block, residual=PredicateBuilder().build(exp.and_(*parts)), filtered=True)


def weakest_condition(block: TextBlock) -> TextBlock:
    """Fetch only rows that meet the weakest structured condition implied by WHERE (paper, section 5.3).

    Before: `WHERE (city = 'Paris' OR answer(…) = 'Yes') AND price < 20` fetches every row.
    After: it fetches the rows with `price < 20`.

    A row that fails the implied condition fails WHERE for any answers, so the rows stay the same. The paper's
    disjunctive normal form reaches the same rows but may grow exponentially; this is linear in the query.
    """
    return block if block.where is None else replace(block, condition=weakest(block.where))
