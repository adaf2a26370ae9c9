"""The restaurants task by the agent and by the paper's baseline, over both kinds of turns and both halves.

    python experiments/restaurants/run.py SYSTEM… [--half dev|held-out] [--out FOLDER]

SYSTEM is a generator of the task, `truth` (a stand-in for a language model that writes right SUQL, read by the sample's
ground truth) or `local/truth` (`local` writes, the ground truth reads). Each gives `SYSTEM-HALF.json` here.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from scripted import Writer, fields_of

from almanaq.agent.conversation import Agent
from almanaq.connection import connect
from almanaq.models.embedders.base import LexicalEmbedder
from almanaq.models.model_names import open_embedder, open_models
from almanaq.models.private_files import default_cache_folder
from almanaq.models.protocols import Embedder
from almanaq.testing import FunctionModel
from almanaq_bench.config import RunRequest
from almanaq_bench.restaurants.dataset import load_bundled_restaurants
from almanaq_bench.restaurants.generator import RestaurantsGenerator, SuqlDialogue, agent_dialogues
from almanaq_bench.restaurants.play import Dialogue, TurnReply
from almanaq_bench.restaurants.wanted import Conversation
from almanaq_bench.runner import run
from almanaq_bench.sample.truth import truth_function

HERE = Path(__file__).parent
KINDS = ("single-turn", "conversations")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("systems", nargs="+", metavar="SYSTEM")
    parser.add_argument("--half", choices=("dev", "held-out"), default="dev")
    parser.add_argument("--embedder", default="local", help="of the baseline and of `local`")
    arguments = parser.parse_args()
    for system in arguments.systems:
        name = f"{system}-{arguments.embedder}" if system.startswith("linearize") else system
        found = {kind: measure(system, f"{kind}-{arguments.half}", arguments.embedder) for kind in KINDS}
        command = f"python experiments/restaurants/run.py {system} --half {arguments.half}"
        if not system.endswith("truth"):
            command += f" --embedder {arguments.embedder}"
        record = {"command": command, "system": name, "half": arguments.half, **found}
        path = HERE / f"{name.replace('/', '-')}-{arguments.half}.json"
        path.write_text(json.dumps(record, indent=1) + "\n")
        print(name, {kind: (v.get("turn_accuracy"), v.get("false_negatives")) for kind, v in found.items()})


def measure(system: str, split: str, embedder: str) -> dict[str, float]:
    """Run a system over a split, and give its measures, those of retrieval aside."""

    def opened() -> Embedder:
        return LexicalEmbedder() if embedder == "lexical" else open_embedder(embedder)

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        request = RunRequest("restaurants", "restaurants", Path(folder), split, "oracle", out, opened, generator=system)
        request = replace(request, cache=default_cache_folder())
        if system.endswith("truth"):
            request = replace(request, replies=by_truth(system, split))
        scores = run(request)
    return {name: round(value, 4) for name, value in scores.metrics.items() if "@" not in name}


def by_truth(system: str, split: str) -> RestaurantsGenerator:
    """Return the generator whose texts are read by the sample's ground truth."""
    data = load_bundled_restaurants()
    reader = open_models(FunctionModel(truth_function()), embedder="lexical", cache=False)
    if system == "local/truth":
        dialogues = agent_dialogues(data, open_models("local", embedder="lexical"), reader)
        return RestaurantsGenerator(system, data, split, dialogues)

    @contextmanager
    def opened(conversation: Conversation) -> Iterator[Dialogue]:
        writer = Writer()
        with connect(data.source(), model=reader, cache=False) as connection:
            models = replace(reader, language=writer)
            yield _Right(SuqlDialogue(Agent(connection.engine, models), data.restaurants), writer, conversation)

    return RestaurantsGenerator(system, data, split, opened)


class _Right:
    """Tells the stand-in which turn it is to write the query for, before the agent asks it."""

    def __init__(self, dialogue: Dialogue, writer: object, conversation: Conversation) -> None:
        self._dialogue, self._writer, self._turns = dialogue, writer, list(conversation.turns)

    def say(self, words: str) -> TurnReply:
        while self._turns[0].say != words:
            self._turns.pop(0)  # turns about rows that were never shown are not said
        turn = self._turns.pop(0)
        self._writer.turn = fields_of(turn)  # type: ignore[attr-defined]
        return self._dialogue.say(words)


if __name__ == "__main__":
    main()
