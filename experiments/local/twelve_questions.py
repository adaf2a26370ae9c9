"""How many of the sample's twelve questions `ask` with the model `local` answers rightly, by ground truth.

    python experiments/local/twelve_questions.py [--out experiments/local/twelve_questions.json]

The wordings of the questions are not shown, so that the parser is not tuned to them: right or wrong only, and why a
reply was no answer (its status).
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import almanaq
from almanaq.agent.response import Response
from almanaq.sample import load
from almanaq_bench.sample.questions import Question, is_right, questions


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--out", type=Path)
    out: Path | None = arguments.parse_args().out
    text = json.dumps(measure(), indent=2)
    print(text)
    if out is not None:
        out.write_text(text + "\n", encoding="utf-8")


def measure() -> dict[str, Any]:
    """Return the score, and for each question whether its reply was right, the reply's status, and the seconds."""
    with almanaq.connect("sample:restaurants", model="local", cache=False) as connection:
        replies = []
        for question in questions():
            start = time.perf_counter()
            response = connection.ask(question.question)
            replies.append((judge(question, response), response.status, round(time.perf_counter() - start, 2)))
    rows = [{"right": right, "status": status, "seconds": seconds} for right, status, seconds in replies]
    return {"model": "local", "questions": len(rows), "right": sum(r for r, _, _ in replies), "replies": rows}


def judge(question: Question, response: Response) -> bool:
    """Return whether a reply is right by ground truth."""
    if response.status != "answered":
        return False
    if question.expect == "count":
        numbers = [value for row in response.rows for value in row if isinstance(value, int)]
        return len(response.rows) == 1 and is_right(question, count=numbers[0] if numbers else None)
    return is_right(question, _ids(response))


def _ids(response: Response) -> list[int]:
    """Return the ids of the restaurants in a reply, by their names; -1 for a row that names none."""
    table = load("restaurants").tables["restaurants"].select(["id", "name"]).to_pylist()
    ids = {row["name"]: row["id"] for row in table}
    if "name" not in response.columns:
        return [-1]
    at = response.columns.index("name")
    return [ids.get(row[at], -1) for row in response.rows]


if __name__ == "__main__":
    main()
