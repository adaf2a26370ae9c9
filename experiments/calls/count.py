"""Calls and tokens a question, by kind of call, with stand-ins behind a real server that read by truth.

    python experiments/calls/count.py --data-dir DATA --out experiments/calls/after.json [--batch N]

HybridQA: the first so many questions of the development half that the data traces to one or two places, with their
gold tables (`truthful.py`). Restaurants: the single turns and conversations of the development half, by the stand-in
of `experiments/restaurants/served.py`. Tokens are four bytes each, of the whole request, schema apart; `fixed` are
those of its system message.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path += [str(HERE.parent / "hybridqa"), str(HERE.parent / "restaurants")]

from fit_places import is_development  # noqa: E402
from run import write_part  # noqa: E402
from served import Served  # noqa: E402
from truthful import Truthful, know  # noqa: E402

from almanaq.models.budget import estimate_tokens  # noqa: E402
from almanaq.models.embedders.base import LexicalEmbedder  # noqa: E402
from almanaq_bench.config import RunRequest  # noqa: E402
from almanaq_bench.hybridqa.places import answer_nodes  # noqa: E402
from almanaq_bench.hybridqa.relation import make_relation  # noqa: E402
from almanaq_bench.linked import LinkedTables  # noqa: E402
from almanaq_bench.question_sets import Question, open_dataset  # noqa: E402
from almanaq_bench.restaurants.dataset import load_bundled_restaurants  # noqa: E402
from almanaq_bench.runner import run  # noqa: E402
from almanaq_bench.testing import StandInServer  # noqa: E402

QUESTIONS = 100
"""Of HybridQA; as many as take about a minute."""

READING = ("answer", "answer_many", "answer_texts", "check", "combine", "summarise")
"""The prompts that read texts."""


class Counted:
    """Replies of another, counted by the kind of call."""

    def __init__(self, reply: Callable[[Mapping[str, Any]], Mapping[str, object] | str]) -> None:
        self._reply = reply
        self.kinds: dict[str, dict[str, int]] = {}

    def __call__(self, request: Mapping[str, Any]) -> Mapping[str, object] | str:
        name = request.get("response_format", {}).get("json_schema", {}).get("name", "in words")
        said = self._reply(request)
        texts = [str(message["content"]) for message in request["messages"]]
        kind = self.kinds.setdefault(name, dict.fromkeys(("calls", "read", "fixed", "written"), 0))
        kind["calls"] += 1
        kind["read"] += sum(map(estimate_tokens, texts))
        kind["fixed"] += estimate_tokens(texts[0])
        kind["written"] += estimate_tokens(said if isinstance(said, str) else json.dumps(said))
        return said

    def per(self, asked: int) -> dict[str, Any]:
        """Return calls and tokens a question."""
        text = sum(counts["calls"] for name, counts in self.kinds.items() if name in READING)
        every = {name: sum(counts[name] for counts in self.kinds.values()) for name in ("calls", "read", "written")}
        return {
            "asked": asked,
            "text_calls": text,
            "text_calls_each": round(text / asked, 2),
            "calls_each": round(every["calls"] / asked, 2),
            "tokens_each": round((every["read"] + every["written"]) / asked),
            "kinds": dict(sorted(self.kinds.items())),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", choices=("hybridqa", "restaurants"))
    parser.add_argument("--batch", type=int, help="calls that may share a request; by default the task's own")
    arguments = parser.parse_args()
    said = f" --batch {arguments.batch}" if arguments.batch else ""
    command = f"python experiments/calls/count.py --data-dir DATA --out experiments/calls/{arguments.out.name}{said}"
    found: dict[str, Any] = {"command": command}
    if arguments.only != "restaurants":
        found["hybridqa"] = hybridqa(arguments.data_dir, arguments.batch)
    if arguments.only != "hybridqa":
        for split in ("single-turn-dev", "conversations-dev"):
            found[split] = restaurants(split, arguments.batch)
    arguments.out.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


def hybridqa(data: Path, batch: int | None = None) -> dict[str, Any]:
    """Run HybridQA."""
    folder = open_dataset(data / "hybridqa")
    tables = LinkedTables(folder)
    known = {}
    for question in sorted(folder.questions("validation"), key=lambda question: question.id):
        if len(known) < QUESTIONS and _fits(question) and question.text not in known:
            found = know(question, make_relation(tables.get(question.gold[0]), titled=True))
            known |= {question.text: (question.id, found)} if found is not None else {}
    ids = {name for name, _ in known.values()}
    with tempfile.TemporaryDirectory() as made:
        write_part(data, Path(made) / "hybridqa", "part", ids.__contains__)
        reply = Counted(Truthful({text: each for text, (_, each) in known.items()}))
        told, scores = measured(reply, made, "hybrid-qa", "hybridqa", "part", batch)
        replies = [json.loads(line) for line in (Path(made) / "run" / "replies.jsonl").read_text().splitlines()]
    several = sum(len(json.loads(each["reasoning"])["tried"]) > 1 for each in replies if each["reasoning"])
    right = {name: round(scores.metrics[name], 4) for name in ("exact_match", "f1") if name in scores.metrics}
    return right | {"more_than_one_query": several, "foretold": told} | reply.per(len(ids))


def _fits(question: Question) -> bool:
    return is_development(question.id) and 1 <= len(answer_nodes(question)) <= 2


def restaurants(split: str, batch: int | None = None) -> dict[str, Any]:
    """Run the restaurants task."""
    conversations = load_bundled_restaurants().conversations(split)
    with tempfile.TemporaryDirectory() as made:
        reply = Counted(Served(conversations))
        told, scores = measured(reply, made, "restaurants", "restaurants", split, batch)
    names = ("turn_accuracy", "false_negatives")
    return {name: scores.metrics[name] for name in names} | {"foretold": told} | reply.per(int(scores.metrics["turns"]))


def measured(
    reply: Counted, made: str, task: str, dataset: str, split: str, batch: int | None
) -> tuple[list[str], Any]:
    """Run a task against a server, and give what was foretold, and the scores."""
    told: list[str] = []
    with StandInServer(reply, keep_requests=False) as at:
        os.environ |= {"OPENAI_BASE_URL": at.url, "OPENAI_API_KEY": "key", "ALMANAQ_CACHE_DIR": f"{made}/cache"}
        where = (task, dataset, Path(made), split, "oracle", Path(made) / "run", LexicalEmbedder)
        more = {} if batch is None else {"batch": batch}
        scores = run(RunRequest(*where, generator="openai:any", tell=told.append, **more))
    return told, scores


if __name__ == "__main__":
    main()
