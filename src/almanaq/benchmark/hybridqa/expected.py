"""What the answer to a HybridQA question is expected to cost, before a query is written."""

from __future__ import annotations

from almanaq.benchmark.generation.expected import WRITTEN_ANSWER, WRITTEN_QUERY, of_prompt, of_text_call, times
from almanaq.benchmark.hybridqa.best_rows import FoundRow
from almanaq.benchmark.hybridqa.pipeline import Asked
from almanaq.benchmark.hybridqa.prompted_steps import PromptedProposer, shorten_prompt
from almanaq.benchmark.hybridqa.relation import HybridRelation, open_relations
from almanaq.connection import connect
from almanaq.models.protocols import Usage


def expected_usage(question: str, relation: HybridRelation, proposer: PromptedProposer) -> Usage:
    """Give a query, a condition on the passages of one column, in all rows, and a short answer: more than most take."""
    with connect(open_relations([relation]), model="local", embedder="lexical", cache=False) as connection:
        query = proposer.prompt(question, Asked(relation, connection.catalog), ())
    columns = [relation.arrow.column(name).to_pylist() for name in relation.info_columns]
    read = sum((of_text_call(texts, question) for column in columns for texts in column if texts), Usage())
    reading = times(read, 1 / len(columns)) if columns else Usage()
    return (
        of_prompt(query, WRITTEN_QUERY)
        + reading
        + of_prompt(shorten_prompt(question, (FoundRow("", {}),)), WRITTEN_ANSWER)
    )
