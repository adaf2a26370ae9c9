"""The tasks with replies against a real server of the OpenAI protocol whose model is a script: what the pipeline costs.

The script says the first cell of the first table, that every statement is true, and that the answer is how many rows
the first table has; one reply in a hundred is off schema, and one in a hundred fails. The measures are those of such
replies, and say that nothing was lost on the way: a majority's accuracy on TabFact, and calls as the server counted.
Arguments: names of datasets; by default all five. The data lies where ALMANAQ_DATA says, else in ../shared/data.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from almanaq_bench.testing import Faults, StandInServer

HERE = Path(__file__).parent
DATA = Path(os.environ.get("ALMANAQ_DATA", HERE.parents[2] / "shared" / "data"))
TASKS = {
    "ottqa": "question-answering",
    "fetaqa": "question-answering",
    "tabfact": "fact-verification",
    "spider": "text-to-sql",
    "bird": "text-to-sql",
}


def reply(request: Mapping[str, Any]) -> str:
    """Say what the script says to one chat request."""
    asked = next(str(message["content"]) for message in request["messages"] if message["role"] == "user")
    name = request["response_format"]["json_schema"]["name"]
    if name == "table_verify":
        return json.dumps({"verdict": "true", "tables": [1]})
    if name == "table_sql":
        table = re.search(r"^CREATE TABLE (.+) \($", asked, re.MULTILINE)
        return json.dumps({"reasoning": "count", "sql": f"SELECT count(*) FROM {table[1]}" if table else "SELECT 1"})
    cell = re.search(r"^\|(?: --- \|)+\n\| (.*?) \|", asked, re.MULTILINE)
    return json.dumps({"answer": cell[1].strip() or None if cell else None, "tables": [1]})


def run(dataset: str) -> dict[str, Any]:
    """Run the task of one dataset, and give its result beside what the server counted."""
    faults = Faults(rates={"off_schema": 0.01, "error": 0.01}, seed=1)
    with StandInServer(reply, faults=faults) as server, tempfile.TemporaryDirectory() as folder:
        command = ["bench", "run", "--task", TASKS[dataset], "--dataset", dataset, "--split", "validation"]
        command += ["--retriever", "bm25", "--k", "1,10", "--generator", "openai:scripted", "--max-calls", "20000"]
        place = ["--data-dir", str(DATA), "--out", f"{folder}/run", "--json"]
        own = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "none", "ALMANAQ_CACHE": f"{folder}/replies.sqlite"}
        done = subprocess.run(
            [sys.executable, "-m", "almanaq", *command, *place],
            stdout=subprocess.PIPE,
            check=True,
            env=os.environ | own,
        )
        ledger = {"calls": server.ledger.calls, "outcomes": dict(server.ledger.outcomes)}
    return {"script": "python experiments/scripted/run.py", "arguments": command, "server": ledger,
            "result": json.loads(done.stdout)}  # fmt: skip


def main() -> None:
    """Run what was asked for and keep the results."""
    for dataset in sys.argv[1:] or TASKS:
        text = json.dumps(run(dataset), indent=1, ensure_ascii=False)
        short = re.sub(r"\[[^\[\]{}]{0,100}?\]", lambda found: " ".join(found[0].split()), text)
        (HERE / f"{dataset}.json").write_text(short + "\n")
        print(dataset, "done", flush=True)


if __name__ == "__main__":
    main()
