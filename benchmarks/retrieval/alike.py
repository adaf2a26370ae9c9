"""List the questions that two databases answer alike: no retriever can know which of them was meant.

A question is listed when its gold SQL also runs on another database of the corpus: all its tables and columns exist
there under the same names ("How many singers do we have?"), or when the same words are asked of two databases.

    python benchmarks/retrieval/alike.py DATA_DIR/spider --out experiments/alike/spider.json
"""

from __future__ import annotations

import argparse
import json
import sqlite3
from collections import defaultdict
from contextlib import closing
from pathlib import Path

from almanaq_bench.question_sets import Question, open_dataset

STEPS = 2_000_000  # of SQLite's machine: a query that takes longer ran, or it would have failed at once


def main() -> None:
    """Write the list."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("dataset", type=Path)
    options.add_argument("--split", default="validation")
    options.add_argument("--out", type=Path, required=True)
    asked = options.parse_args()
    questions = open_dataset(asked.dataset).questions(asked.split)
    files = {file.stem: file for file in sorted(asked.dataset.glob("database/*/*.sqlite"))}
    same: dict[str, set[str]] = defaultdict(set)
    for question in questions:
        same[question.text.strip().lower()].add(question.gold[0].database)
    listed = []
    for question in questions:
        home = question.gold[0].database
        others = {name for name, file in files.items() if name != home and runs(str(question.answer), file)}
        others |= same[question.text.strip().lower()] - {home}
        if others:
            listed.append(_entry(question, home, sorted(others)))
    record = {
        "method": "the gold SQL runs on another database of the corpus, or the same words are asked of two databases",
        "dataset": asked.dataset.name,
        "split": asked.split,
        "questions": len(questions),
        "databases": len(files),
        "alike": listed,
    }
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    print(len(listed), "of", len(questions))


def runs(sql: str, file: Path) -> bool:
    """Return whether a query runs on a database, which is opened for reading only."""
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        connection.set_progress_handler(lambda: 1, STEPS)
        try:
            connection.execute(sql).fetchone()
        except sqlite3.OperationalError as error:
            return str(error) == "interrupted"
        except sqlite3.Error:
            return False
        return True


def _entry(question: Question, home: str, others: list[str]) -> dict[str, object]:
    return {"query_id": question.id, "gold": home, "others": others}


if __name__ == "__main__":
    main()
