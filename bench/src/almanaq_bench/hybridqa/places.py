"""Where the data traces a question's answer to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from almanaq_bench.question_sets import Question

PLACES = ("table", "passage", "mixed", "nowhere")
"""Cells only, passages only, both; nowhere when the answer is computed."""


def answer_place(question: Question) -> str:
    """Return one of PLACES; "" where the dataset traces no answers."""
    if "answer_nodes" not in question.fields:
        return ""
    found = {node["where"] for node in answer_nodes(question)}
    return "mixed" if len(found) > 1 else str(next(iter(found), "nowhere"))


def answer_count(question: Question) -> str:
    """Return how many places the answer was traced to: "0", "1", "2" or "3+".

    "" where the dataset traces no answers.
    """
    if "answer_nodes" not in question.fields:
        return ""
    nodes = len(answer_nodes(question))
    return str(nodes) if nodes < 3 else "3+"


def answer_nodes(question: Question) -> Sequence[Mapping[str, Any]]:
    """Return the places: row, column, and whether it is a table's or a passage's."""
    nodes = question.fields.get("answer_nodes")
    return nodes if isinstance(nodes, list) else ()
