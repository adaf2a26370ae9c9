"""Whether a model replies the same to texts asked in company as to each alone: the measure that `--batch` is judged by.

    OPENAI_BASE_URL=… python experiments/calls/agreement.py --model openai:MODEL [--batch 6] [--pairs 300]

Pairs are reviews of the bundled restaurants and questions of ours about them. Printed: the share of pairs with the same
reply, yes, no or no information; and how often each way is right by the sample's truth. Exit code 1 below 97 %.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from itertools import islice
from pathlib import Path
from random import Random

sys.path.append(str(Path(__file__).parents[1] / "restaurants"))
from scripted import QUESTIONS

from almanaq import sample
from almanaq.models.batching import Batching
from almanaq.models.model_names import ModelSettings, open_models
from almanaq.models.protocols import Models, TextCall
from almanaq.sample.truth import truth_function

ENOUGH = 0.97


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--batch", type=int, default=6)
    parser.add_argument("--pairs", type=int, default=300)
    arguments = parser.parse_args()
    calls = pairs(arguments.pairs)
    one = open_models(arguments.model, embedder="lexical", cache=False)
    settings = ModelSettings(batching=Batching.of(arguments.batch))
    other = open_models(arguments.model, embedder="lexical", cache=False, settings=settings)
    alone, shared = asyncio.run(read(one, calls)), asyncio.run(read(other, calls))
    truth = [truth_function()("\n\n".join(call.passages), call.question) for call in calls]
    same = share(alone, shared)
    found = {"model": arguments.model, "batch": arguments.batch, "pairs": len(calls), "same": same}
    print(json.dumps(found | {"right_alone": share(alone, truth), "right_shared": share(shared, truth)}, indent=1))
    sys.exit(int(same < ENOUGH))


def pairs(number: int) -> list[TextCall]:
    """Give so many pairs, drawn by a fixed seed; those of one question follow one another, as in a query."""
    rows = sample.load("restaurants").tables["restaurants"].to_pylist()
    drawn = Random(1)
    each = -(-number // len(QUESTIONS))
    made = (
        TextCall("answer", tuple(row["reviews"]), question, compared=("Yes",))
        for question in QUESTIONS.values()
        for row in drawn.sample([row for row in rows if row["reviews"]], each)
    )
    return list(islice(made, number))


async def read(models: Models, calls: list[TextCall]) -> list[str | None]:
    """Give the values of replies to calls that are made together."""
    return [reply.value for reply in await asyncio.gather(*map(models.reader.read, calls))]


def share(one: list[str | None], other: list[str | None]) -> float:
    """Give how many of two lists' replies are the same."""
    return round(sum(a == b for a, b in zip(one, other, strict=True)) / len(one), 4)


if __name__ == "__main__":
    main()
