"""Why an answer is wrong: the first stage of the pipeline that lost it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlglot
from sqlglot import exp

from almanaq.errors import AlmanaqError
from almanaq.open_connection import connect
from almanaq_bench.evaluation.short_answers import exact_match, mutual_substring, same_number
from almanaq_bench.hybridqa.pipeline import Prediction
from almanaq_bench.hybridqa.relation import HybridRelation
from almanaq_bench.stages import Stage, cell_condition, failed_casts


def find_stage(
    prediction: Prediction,
    answer: str,
    nodes: Sequence[Mapping[str, Any]],
    relation: HybridRelation,
    *,
    retrieved: bool,
) -> Stage:
    """Return the stage that lost the gold answer, "right" where none did.

    Args:
        nodes: the places that the gold answer was traced to: row, column and whether it is a table's or a passage's.
        relation: the one that was asked; retrieved: whether it is the gold table.

    - retrieval: another table was asked.
    - format: the answer holds the gold answer, or is held by it, or is the same number in digits or words.
    - parse: no query was accepted, or none of its columns is one that holds the answer.
    - link: the query's conditions on cells leave out every row that holds the answer.
    - row choice: another row of those that the query found holds the gold answer.
    - cast: a value of the table or an answer could not be read as its type.
    - text call: all else: what was read in the passages is wrong or missing.
    """
    if exact_match(prediction.answer, answer):
        return "right"
    if not retrieved:
        return "retrieval"
    if mutual_substring(prediction.answer, answer) or same_number(prediction.answer, answer):
        return "format"
    if any(exact_match(row[0], answer) or same_number(row[0], answer) for row in prediction.rows if row):
        return "row choice"
    ran = [each.suql for each in prediction.tried if each.outcome in ("rows", "empty")]
    if not ran:
        return "parse"
    columns = {name for node in nodes for name, origin in relation.origins.items() if origin == node["col"]}
    tree = sqlglot.parse_one(prediction.suql or ran[-1], read="postgres")
    if columns and not columns & {column.name for column in tree.find_all(exp.Column)}:
        return "parse"
    rows = {node["row"] for node in nodes}
    if rows and not rows & _rows_left(tree, relation):
        return "link"
    return "cast" if failed_casts(prediction.warnings) and not prediction.answer else "text call"


def _rows_left(tree: exp.Expr, relation: HybridRelation) -> set[int]:
    """Return the rows that meet a query's conditions on cells; all of them where these cannot be told apart."""
    everything = set(range(relation.arrow.num_rows))
    condition = cell_condition(tree)
    if condition is None:
        return everything
    marked = relation.arrow.append_column("row number of analysis", [list(range(relation.arrow.num_rows))])
    query = exp.select(exp.column("row number of analysis", quoted=True)).from_(exp.to_table("asked")).where(condition)
    try:
        with connect({"asked": marked}, model="local", cache=False) as connection:
            return {row[0] for row in connection.sql(query.sql("postgres")).rows}
    except AlmanaqError:
        return everything
