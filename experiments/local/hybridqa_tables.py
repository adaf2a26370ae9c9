"""Whether the parser of `local` writes queries that run over HybridQA's tables as they stand, without their passages.

    python experiments/local/hybridqa_tables.py --data-dir DIR [--out experiments/local/hybridqa_tables.json]

Most of these questions need a passage, so this is no accuracy: it says how often a query is written, how often it runs,
and how often the answer is among the cells that it gives.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import almanaq
from almanaq.agent.local import LocalDialogue
from almanaq.errors import AlmanaqError

EVERY, QUESTIONS = 6, 200


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--data-dir", type=Path, required=True)
    arguments.add_argument("--out", type=Path)
    given = arguments.parse_args()
    report = {"command": "python experiments/local/hybridqa_tables.py --data-dir DIR", **measure(given.data_dir)}
    text = json.dumps(report, indent=2)
    print(text)
    if given.out is not None:
        given.out.write_text(text + "\n", encoding="utf-8")


def measure(data_dir: Path) -> dict[str, int]:
    """Return the counts over every sixth question of the validation split."""
    folder = data_dir / "hybridqa"
    tables = {row["table_id"]: row for row in pq.read_table(folder / "corpus.parquet").to_pylist()}
    questions = pq.read_table(folder / "queries_validation.parquet").to_pylist()[::EVERY][:QUESTIONS]
    counts = Counter(questions=len(questions), written=0, ran=0, answer_among_cells=0)
    for question in questions:
        ids, answers = question["table_id"], question["answer"]
        table = tables[ids if isinstance(ids, str) else ids[0]]
        answer = answers if isinstance(answers, str) else answers[0]
        with almanaq.connect({"entries": arrow(table)}, model="local", embedder="lexical", cache=False) as connection:
            engine = connection.engine
            query = LocalDialogue(engine).parse(question["query"], engine.catalog).suql
            counts["written"] += query is not None
            try:
                rows = connection.sql(query).rows if query else ()
            except AlmanaqError as problem:
                print(question["query"], problem)
                continue
            counts["ran"] += query is not None
            counts["answer_among_cells"] += any(str(value) == answer for row in rows for value in row)
    return dict(counts)


def arrow(table: dict[str, Any]) -> pa.Table:
    """Return a table as it stands: texts, and a number behind a header that comes again."""
    names: list[str] = []
    for header in table["header"]:
        name, times = header or "column", 1
        while name.casefold() in map(str.casefold, names):
            times += 1
            name = f"{header or 'column'} {times}"
        names.append(name)
    return pa.table({name: [row[i] for row in table["rows"]] for i, name in enumerate(names)})


if __name__ == "__main__":
    main()
