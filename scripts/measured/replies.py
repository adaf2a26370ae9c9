"""Tasks with replies."""

from __future__ import annotations

from measured.results import DATASETS, RETRIEVERS, markdown, records

FRONT = {
    "question-answering": ("exact_match", "f1", "numeric_match", "sacrebleu"),
    "fact-verification": ("precision", "recall", "f1", "recall_answered", "coverage"),
    "text-to-sql": ("execution_accuracy", "execution_accuracy_strict"),
}


def generation() -> str:
    """Tasks with replies: for each dataset, what each generator makes of each retriever's tables."""
    rows = []
    for record in records("generation"):
        result = record["result"]
        metrics, provenance = result["metrics"], result["provenance"]
        front = [name for name in FRONT[result["task"]] if name in metrics]
        figures = ", ".join(
            f"{name.replace('_', ' ')} {metrics[name]:.{2 if name == 'sacrebleu' else 3}f}" for name in front
        )
        rows.append((result["dataset"], provenance["generator"], result["retriever"], figures))
    order = ("first-cell", "majority", "not-enough", "local", "agent")
    rows.sort(
        key=lambda row: (
            DATASETS.index(row[0]),
            order.index(row[1]) if row[1] in order else 9,
            RETRIEVERS.index(row[2]),
        )
    )
    return markdown(("dataset", "generator", "retriever", "measures"), rows)


TABLES = {
    "generation": generation,
}
