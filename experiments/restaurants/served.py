"""The restaurants task with a model behind a real HTTP server: what was foretold, and what it took.

    python experiments/restaurants/served.py [--split single-turn-dev …] --out experiments/restaurants/served.json

The server writes right SUQL (`scripted.py`), reads texts by the sample's ground truth, and words replies: what a
language model does by `--generator openai:MODEL`, with every call counted by the server itself.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scripted import Writer, fields_of

from almanaq.models.embedders.base import LexicalEmbedder
from almanaq_bench.config import RunRequest
from almanaq_bench.restaurants.dataset import load_bundled_restaurants
from almanaq_bench.restaurants.wanted import Conversation
from almanaq_bench.runner import run
from almanaq_bench.sample.truth import truth_function
from almanaq_bench.testing import StandInServer, replies_from

_SAID = re.compile(r"^Request: (\".*\")$", re.MULTILINE)
_EARLIER = re.compile(r"^Earlier turn: (\{.*\})$", re.MULTILINE)


class Served:
    """Replies to chat requests as a language model that knows what each turn of these conversations wants."""

    def __init__(self, conversations: Sequence[Conversation]) -> None:
        self._conversations = conversations
        self._read = replies_from(truth_function())

    def __call__(self, request: Mapping[str, Any]) -> Mapping[str, object] | str:
        text = str(request["messages"][-1]["content"])
        name = request.get("response_format", {}).get("json_schema", {}).get("name", "")
        if name == "parse":
            suql = self._query(text)
            return {"reasoning": "", "suql": suql, "needs_data": suql is not None, "clarify": None}
        return (
            self._read(request)
            if name.startswith("answer") or name in ("link", "combine", "summarise")
            else "Here you are."
        )

    def _query(self, prompt: str) -> str | None:
        said = json.loads(_SAID.findall(prompt)[-1])
        before = [json.loads(turn)["request"] for turn in _EARLIER.findall(prompt)]
        for conversation in self._conversations:
            words = [turn.say for turn in conversation.turns]
            for place in (i for i, each in enumerate(words) if each == said):
                if words[:place][-1:] == before[-1:]:
                    return self._of_turn(conversation, place, prompt)
        return None

    def _of_turn(self, conversation: Conversation, place: int, prompt: str) -> str | None:
        turns = [fields_of(turn) for turn in conversation.turns[: place + 1]]
        writer = Writer()
        writer.search = next((t for t in reversed(turns) if "where" in t and t["kind"] != "count"), {})
        return writer.suql(turns[-1], prompt)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", nargs="+", default=["single-turn-dev", "conversations-dev"])
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    command = "python experiments/restaurants/served.py --out experiments/restaurants/served.json"
    found: dict[str, Any] = {"command": command}
    for split in arguments.split:
        found[split] = measure(split)
        print(split, found[split])
    arguments.out.write_text(json.dumps(found, indent=1) + "\n")


def measure(split: str) -> dict[str, object]:
    """Run a split over HTTP, and give what was foretold, what it took, and how well it went."""
    told: list[str] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        StandInServer(Served(load_bundled_restaurants().conversations(split))) as at,
    ):
        os.environ |= {"OPENAI_BASE_URL": at.url, "OPENAI_API_KEY": "key", "ALMANAQ_CACHE_DIR": f"{folder}/cache"}
        request = RunRequest(
            "restaurants",
            "restaurants",
            Path(folder),
            split,
            "oracle",
            Path(folder) / "run",
            LexicalEmbedder,
            generator="openai:any",
            tell=told.append,
        )
        scores = run(request)
        calls = at.ledger.calls
    names = ("turn_accuracy", "false_negatives", "turns", "failed_turns", "failed_conversations")
    counted = {name: scores.timings[name] for name in ("calls", "input_tokens", "output_tokens")}
    measures = {name: scores.metrics[name] for name in names}
    return {"foretold": told, "counted": counted, "calls_of_the_server": calls} | measures


if __name__ == "__main__":
    main()
