"""Sixty hand-written SUQL queries over HybridQA with an oracle of extractors behind `answer`: are the answers reached?

    python experiments/hybridqa/sixty.py --data-dir DATA --run RUN --out experiments/hybridqa/sixty.json

RUN is a run folder as `almanaq bench run` leaves it, for `bench score` and `bench report`. For each query: its rows'
first value against the gold answer, what lost it, the calls made, and the plan. The oracle (`oracle/`) was written
before the queries, and both before any gold answer was looked at.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import almanaq
from almanaq.errors import AlmanaqError
from almanaq.models.embedders.base import LexicalEmbedder
from almanaq.models.protocols import Usage
from almanaq.testing import FunctionModel
from almanaq.text.sql_literals import quote
from almanaq_bench.config import RunRequest
from almanaq_bench.evaluation.answers import exact_match, f1, mutual_substring
from almanaq_bench.generation.protocols import GenerationRequest, Reply
from almanaq_bench.generation.replies import read_replies
from almanaq_bench.hybridqa.pipeline import Attempt, Prediction, find_stage
from almanaq_bench.hybridqa.places import answer_nodes
from almanaq_bench.hybridqa.relation import HybridRelation, make_relation, open_relations, short_answer
from almanaq_bench.linked import LinkedTables
from almanaq_bench.question_sets import DatasetFolder, Question, open_dataset
from almanaq_bench.runner import run

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from oracle import read  # noqa: E402
from run import write_part  # noqa: E402

_BLOCK = re.compile(r"^-- (I|II|III|IV|V|VI) ([0-9a-f]{16})\n(.+?);$", re.MULTILINE | re.DOTALL)


def queries() -> Iterator[tuple[str, str, str]]:
    """Yield (type, question id, SUQL) of each query."""
    for match in _BLOCK.finditer((HERE / "sixty.sql").read_text(encoding="utf-8")):
        yield match[1], match[2], match[3]


def named(suql: str, relation: HybridRelation) -> str:
    """Return a query with the relation's own name."""
    return re.sub(r"\bFROM relation\b", f"FROM {quote(relation.name)}", suql)


def run_one(kind: str, suql: str, question: Question, relation: HybridRelation) -> dict[str, Any]:
    """Run one query and give its record."""
    model = FunctionModel(read)
    query = named(suql, relation)
    record: dict[str, Any] = {"type": kind, "question": question.id, "suql": suql}
    with almanaq.connect(open_relations([relation]), model=model, cache=False, order="table", speculation=1) as con:
        try:
            result = con.sql(query)
        except AlmanaqError as error:
            told = {"error": f"{type(error).__name__}: {error}", "answer": "", "reached": False, "warnings": []}
            return {**record, **told, "calls": model.calls}
    answer = short_answer(result.rows, result.columns, relation)
    return {
        **record,
        "answer": answer,
        "gold": question.answer,
        "reached": exact_match(answer, question.answer),
        "f1": round(f1(answer, question.answer), 3),
        "substring": mutual_substring(answer, question.answer),
        "rows": len(result.rows),
        "calls": model.calls,
        "table_rows": relation.arrow.num_rows,
        "warnings": list(result.trace.warnings),
    }


def summary(records: list[dict[str, Any]]) -> Mapping[str, Any]:
    """Return counts for each type and all."""
    found: dict[str, Any] = {}
    for kind in ("I", "II", "III", "IV", "V", "VI", "all"):
        own = [r for r in records if kind in (r["type"], "all")]
        found[kind] = {
            "queries": len(own),
            "reached": sum(r["reached"] for r in own),
            "substring": sum(bool(r.get("substring")) for r in own),
            "errors": sum("error" in r for r in own),
            "calls": sum(r["calls"] for r in own),
            "calls_per_question": round(sum(r["calls"] for r in own) / max(1, len(own)), 1),
        }
    return found


class Queries:
    """The generator whose replies are what the written queries give, with the oracle behind them."""

    name, model, prompts = "sixty", "oracle", {}

    def __init__(self, data: DatasetFolder) -> None:
        self._tables = LinkedTables(data)
        self._questions = {question.id: question for question in data.questions("sixty")}
        self._queries = {question: (kind, suql) for kind, question, suql in queries()}

    async def reply(self, asked: GenerationRequest) -> Reply:
        """Return what became of a question's query."""
        return await asyncio.to_thread(self._reply, self._questions[asked.id])

    def _reply(self, question: Question) -> Reply:
        relation = make_relation(self._tables.get(question.gold[0]))
        record = run_one(*self._queries[question.id], question, relation)
        fault, suql = record.get("error", ""), named(record["suql"], relation)
        outcome = "failed" if fault else "rows" if record["answer"] else "empty"
        tried = (Attempt(suql, outcome, fault),)
        prediction = Prediction(record["answer"], suql, tried, warnings=tuple(record["warnings"]))
        stage = find_stage(prediction, question.answer, answer_nodes(question), relation, retrieved=True)
        told = json.dumps(record | {"stage": stage}, ensure_ascii=False)
        return Reply(record["answer"], fault, told, Usage(record["calls"]), stage)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    order = {question: place for place, (_, question, _) in enumerate(queries())}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "hybridqa"
        write_part(arguments.data_dir, path, "sixty", order.__contains__)
        made = Queries(open_dataset(path))
        where = ("hybrid-qa", "hybridqa", Path(folder), "sixty", "oracle", arguments.run, LexicalEmbedder)
        run(RunRequest(*where, generator="sixty", replies=made, resume=True))
    replies = sorted(read_replies(arguments.run / "replies.jsonl"), key=lambda reply: order[reply.query_id])
    records = [json.loads(reply.reasoning) for reply in replies]
    command = "python experiments/hybridqa/sixty.py --data-dir DATA --run RUN --out experiments/hybridqa/sixty.json"
    found = {"command": command, "by_type": summary(records), "queries": records}
    arguments.out.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for kind, row in found["by_type"].items():
        print(kind, row)
    for record in records:
        if not record["reached"]:
            print(record["type"], record["question"], record["stage"], (record["answer"], record.get("gold")))


if __name__ == "__main__":
    main()
