"""HybridQA end to end: question → SUQL → rows → short answer, resumable, with the gold table or one found among all.

    python experiments/hybridqa/run.py --data-dir DATA --out RUN [--half report] [--tables open] [--model openai:NAME]

Writes RUN/records.jsonl (one line a question, appended as they are answered) and RUN/scores.json. Running it again goes
on where it stopped. `--half` is the half that weights were fitted on ("development"), the other ("report"), or "all".
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from almanaq.benchmark.hybridqa.generator import open_pipeline
from almanaq.benchmark.hybridqa.pipeline import TRIES
from almanaq.benchmark.hybridqa.task import answer_question, read_hybrid_records, score_records
from almanaq.benchmark.records import Appender, write_whole
from almanaq.corpus.dataset import Question, open_dataset
from almanaq.corpus.linked import DescribedByPassages, LinkedTables
from almanaq.corpus.serialize import DEFAULT_FIELDS
from almanaq.corpus.table import TableId
from almanaq.models.registry import open_embedder, open_models
from almanaq.retrieval.registry import Parts, open_retriever
from almanaq.retrieval.vectors import default_cache_folder

sys.path.insert(0, str(Path(__file__).parent))
from fit_places import is_development

FIELDS = (*DEFAULT_FIELDS, "description")
"""What a retriever sees of a table: beside the usual, its cells' passages as its description."""


def questions_of(folder: Path, half: str, limit: int | None) -> list[Question]:
    asked = open_dataset(folder).questions("validation")
    chosen = [q for q in asked if half == "all" or is_development(q.id) == (half == "development")]
    return chosen[:limit]


def retrieve(questions: list[Question], tables: LinkedTables, retriever: str) -> dict[str, TableId]:
    """Give the best table for each question."""
    opened = open_retriever(retriever, Parts(lambda: open_embedder("local"), default_cache_folder(), 0, {}))
    index = opened.retriever.index(DescribedByPassages(tables), FIELDS)
    rankings = index.search([question.text for question in questions], 1)
    return {question.id: ranking[0].id for question, ranking in zip(questions, rankings, strict=True)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--half", choices=("report", "development", "all"), default="report")
    parser.add_argument("--tables", choices=("gold", "open"), default="gold")
    parser.add_argument("--retriever", default="bm25")
    parser.add_argument("--model", default="local")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--tries", type=int, default=TRIES)
    arguments = parser.parse_args()
    folder = arguments.data_dir / "hybridqa"
    questions = questions_of(folder, arguments.half, arguments.limit)
    arguments.out.mkdir(parents=True, exist_ok=True)
    file = arguments.out / "records.jsonl"
    done = {record.query_id for record in read_hybrid_records(file)}
    todo = [question for question in questions if question.id not in done]
    tables, records = LinkedTables(open_dataset(folder)), Appender(file)
    found = retrieve(todo, tables, arguments.retriever) if arguments.tables == "open" and todo else {}
    pipeline = open_pipeline(open_models(arguments.model), arguments.tries)
    for number, question in enumerate(todo, 1):
        records.add([answer_question(pipeline, question, tables, found.get(question.id)).to_json()])
        if number % 50 == 0:
            print(f"{number} of {len(todo)}", file=sys.stderr)
    said = ("half", "tables", "model", "tries", *(("retriever",) if arguments.tables == "open" else ()))
    scores = {
        "command": "python experiments/hybridqa/run.py --data-dir DATA --out RUN "
        + " ".join(f"--{name} {getattr(arguments, name)}" for name in said),
        **score_records(list(read_hybrid_records(file))),
    }
    write_whole(arguments.out / "scores.json", json.dumps(scores, indent=1) + "\n")
    print(json.dumps(scores, indent=1))


if __name__ == "__main__":
    main()
