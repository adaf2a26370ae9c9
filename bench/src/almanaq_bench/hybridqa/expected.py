"""What the answer to a HybridQA question is expected to cost, before a query is written."""

from __future__ import annotations

from almanaq.models.protocols import Usage
from almanaq.open_connection import connect
from almanaq_bench.generation.expected import WRITTEN_QUERY, of_prompt, of_text_call, times
from almanaq_bench.hybridqa.pipeline import Asked
from almanaq_bench.hybridqa.prompted_steps import PromptedProposer
from almanaq_bench.hybridqa.relation import HybridRelation, open_relations

TEXTS_READ = 3
"""Texts that are read for a question, where so many rows have any: one row is asked for, the most similar come first.

2.9 were in `experiments/calls/after.json`.
"""


def expected_usage(question: str, relation: HybridRelation, proposer: PromptedProposer) -> Usage:
    """Return a query and the texts that are read until a row is found; few answers have to be shortened."""
    with connect(open_relations([relation]), model="local", embedder="lexical", cache=False) as connection:
        query = proposer.prompt(question, Asked(relation, connection.catalog), ())
    columns = [relation.arrow.column(name).to_pylist() for name in relation.info_columns]
    read = [of_text_call(texts, question) for column in columns for texts in column if texts]
    if not read:
        return of_prompt(query, WRITTEN_QUERY)
    rows = len(read) / len(columns)
    reading = times(sum(read, Usage()), min(rows, TEXTS_READ) / len(read))
    return of_prompt(query, WRITTEN_QUERY) + reading
