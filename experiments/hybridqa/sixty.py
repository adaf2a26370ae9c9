"""Sixty hand-written SUQL queries over HybridQA with an oracle of extractors behind `answer`: are the answers reached?

    python experiments/hybridqa/sixty.py --data-dir DATA --out experiments/hybridqa/sixty.json

For each query: its rows' first value against the gold answer, the calls made, the calls that reading every passage of
the text columns it names would take, and the plan. The oracle (`oracle/`) was written before the queries, and both
before any gold answer was looked at.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import almanaq
from almanaq.benchmark.hybridqa.relation import HybridRelation, make_relation, open_relations
from almanaq.benchmark.hybridqa.short_answer import short_answer
from almanaq.corpus.dataset import Question, open_dataset
from almanaq.corpus.linked import LinkedTables
from almanaq.errors import AlmanaqError
from almanaq.evaluation.short_answers import exact_match, f1, mutual_substring
from almanaq.suql.databases.duckdb_session import quote
from almanaq.testing import FunctionModel

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from oracle import read  # noqa: E402

_BLOCK = re.compile(r"^-- (I|II|III|IV|V|VI) ([0-9a-f]{16})\n(.+?);$", re.MULTILINE | re.DOTALL)


def queries() -> Iterator[tuple[str, str, str]]:
    """Give (type, question id, SUQL) of each query."""
    for match in _BLOCK.finditer((HERE / "sixty.sql").read_text(encoding="utf-8")):
        yield match[1], match[2], match[3]


def run_one(kind: str, suql: str, question: Question, relation: HybridRelation) -> dict[str, Any]:
    """Run one query and give its record."""
    model = FunctionModel(read)
    query = re.sub(r"\bFROM relation\b", f"FROM {quote(relation.name)}", suql)
    record: dict[str, Any] = {"type": kind, "question": question.id, "suql": suql}
    with almanaq.connect(open_relations([relation]), model=model, cache=False, order="table", speculation=1) as con:
        try:
            result = con.sql(query)
            plan = str(con.explain(query))
        except AlmanaqError as error:
            return {**record, "error": f"{type(error).__name__}: {error}", "reached": False, "calls": model.calls}
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
        "plan": plan.splitlines(),
    }


def summary(records: list[dict[str, Any]]) -> Mapping[str, Any]:
    """Give counts for each type and all."""
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


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    folder = open_dataset(arguments.data_dir / "hybridqa")
    tables = LinkedTables(folder)
    questions = {question.id: question for question in folder.questions("validation")}
    records = []
    for kind, name, suql in queries():
        question = questions[name]
        records.append(run_one(kind, suql, question, make_relation(tables.get(question.gold[0]))))
    found = {
        "command": "python experiments/hybridqa/sixty.py --data-dir DATA --out experiments/hybridqa/sixty.json",
        "by_type": summary(records),
        "queries": records,
    }
    arguments.out.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for kind, row in found["by_type"].items():
        print(kind, row)
    for record in records:
        if not record["reached"]:
            print(record["type"], record["question"], record.get("error") or (record["answer"], record["gold"]))


if __name__ == "__main__":
    main()
