"""Conversations of four strangers over the sample, played with `local`: `python experiments/restaurants/strangers.py`.

Each wrote 24 conversations (`strangers/`), with what is right at every turn, having seen the rows and what their
reviews express, and nothing of the parser. `strangers_first.json` holds what they gave when first asked: the first
three before what they showed was mended, the fourth after most of it was, with what the code before gave on it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from almanaq.models.model_names import open_embedder, open_models
from almanaq_bench.restaurants.dataset import load_bundled_restaurants
from almanaq_bench.restaurants.generator import agent_dialogues
from almanaq_bench.restaurants.play import Analysis, TurnRecord, play, score_turns
from almanaq_bench.restaurants.wanted import read_conversations

HERE = Path(__file__).parent


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--embedder", default="local")
    arguments.add_argument("--show", action="store_true", help="print the turns that went wrong")
    given = arguments.parse_args()
    data = load_bundled_restaurants()
    dialogues = agent_dialogues(data, open_models("local", embedder=open_embedder(given.embedder)))
    find_stage = Analysis(data).find_stage
    found: dict[str, dict[str, float]] = {}
    for file in sorted((HERE / "strangers").glob("*.jsonl")):
        turns: list[TurnRecord] = []
        for conversation in read_conversations(file):
            with dialogues(conversation) as dialogue:
                turns += play(conversation, dialogue, data.restaurants, find_stage)[0]
        found[file.stem] = {name: round(value, 4) for name, value in score_turns(turns).items()}
        for turn in turns if given.show else ():
            if not turn.good:
                print(f"{turn.kind}, {turn.stage} | {turn.say}\n    {turn.query}\n    {turn.given} of {turn.right[:5]}")
    command = f"python experiments/restaurants/strangers.py --embedder {given.embedder}"
    (HERE / "strangers.json").write_text(json.dumps({"command": command, **found}, indent=1) + "\n")
    print({name: (v["turn_accuracy"], v["false_negatives"]) for name, v in found.items()})


if __name__ == "__main__":
    main()
