"""Whether a model replies the same to texts asked in company as to each alone: the measure that `--batch` is judged by.

    OPENAI_BASE_URL=… python experiments/calls/agreement.py --model openai:MODEL [--batch 6] [--pairs 300]
    python experiments/calls/agreement.py --replies FILE [--prompts FOLDER] [--batch 6] [--pairs 300]

Pairs are reviews of the bundled restaurants and questions of ours about them, of a `--kind`: yes or no, one of some
options, or a number. Printed: the share of pairs with the same reply; for yes or no also how often each way is right by
the sample's truth. Exit code 1 below 97 %.

Replies may come from a file instead of a model, by the hash of what was asked (the instructions aside, whose words
may change since). Prompts that it does not answer are
written into a folder, those of one document apart from those of several, in an order that tells nothing: somebody who
reads them by hand, one kind after the other, sees neither the truth nor the other replies.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import re
import sys
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "restaurants"))
from scripted import QUESTIONS

from almanaq import sample
from almanaq.models.batching import Batching
from almanaq.models.model_names import ModelSettings, make_models, open_models
from almanaq.models.protocols import Completion, Models, Prompt, TextCall
from almanaq_bench.sample.truth import truth_function

ENOUGH = 0.97

CHOICES = {
    "how loud is it?": ("quiet", "loud"),
    "what is the service like?": ("good", "mixed", "bad"),
    "how easy is it to park?": ("easy", "hard"),
    "who goes there?": ("locals", "tourists", "both"),
    "how long is the wait?": ("none", "short", "long"),
    "what are the portions like?": ("small", "large"),
}
NUMBERS = (
    "how many of the reviews mention parking?",
    "how many minutes did a guest wait?",
    "how many different dishes and drinks are named?",
    "how many of the reviews complain about the service?",
    "how many blocks away did a guest park?",
    "how many times has the most frequent guest been there?",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model")
    parser.add_argument("--replies", type=Path, help="a JSON object of replies, by the hash of what was asked")
    parser.add_argument("--prompts", type=Path, help="where prompts without a reply are written")
    parser.add_argument("--kind", choices=("yes-no", "option", "number"), default="yes-no")
    parser.add_argument("--batch", type=int, default=6)
    parser.add_argument("--pairs", type=int, default=300)
    arguments = parser.parse_args()
    if (arguments.model is None) == (arguments.replies is None):
        parser.error("give either --model or --replies")
    calls = list(islice(draw_pairs(arguments.kind, arguments.pairs, arguments.batch), arguments.pairs))
    batching = Batching.of(arguments.batch)
    if arguments.replies is not None:
        written = ByHand(json.loads(arguments.replies.read_text()) if arguments.replies.exists() else {})
        one, other = make_models(written), make_models(written, batching)
    else:
        settings = ModelSettings(batching=batching)
        one = open_models(arguments.model, embedder="lexical", cache=False)
        other = open_models(arguments.model, embedder="lexical", cache=False, settings=settings)
    alone, shared = (asyncio.run(read(models, calls, arguments.batch)) for models in (one, other))
    if arguments.replies is not None and written.open:
        sys.exit(written.describe_open(arguments.prompts))
    same = share(alone, shared)
    found = {"model": arguments.model or "by hand", "kind": arguments.kind, "batch": arguments.batch}
    found |= {"pairs": len(calls), "same": same}
    if arguments.kind == "yes-no":
        truth = [truth_function()("\n\n".join(call.passages), call.question) for call in calls]
        found |= {"right_alone": share(alone, truth), "right_shared": share(shared, truth)}
    print(json.dumps(found, indent=1))
    sys.exit(int(same < ENOUGH))


class ByHand:
    """A language model whose replies were written beforehand; it collects the prompts that have none."""

    name = "by hand"

    def __init__(self, replies: Mapping[str, object]) -> None:
        self._replies = replies
        self.open: dict[str, Prompt] = {}

    async def complete(self, prompt: Prompt) -> Completion:
        """Return what was written; where nothing was, what answers nothing."""
        asked = prompt.messages[-1].content.replace(prompt.fence or "\0", "CODE")
        key = hashlib.sha256(json.dumps([prompt.name, asked]).encode()).hexdigest()[:12]
        if key not in self._replies:
            self.open[key] = prompt
        nothing = {"value": None, "quotes": []}
        several = dict.fromkeys(re.findall(r"^<untrusted \w+ (item\d+)>", asked, re.MULTILINE), nothing)
        return Completion(json.dumps(self._replies.get(key, nothing if prompt.name == "answer" else several)))

    def describe_open(self, folder: Path | None) -> str:
        """Write the open prompts into a folder, and return a message about them."""
        said = f"{len(self.open)} prompts have no reply"
        if folder is None:
            return said + "; --prompts FOLDER writes them"
        for key, prompt in sorted(self.open.items()):
            file = folder / prompt.name / f"{key}.txt"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("\n".join(message.content for message in prompt.messages))
        return f"{said}: they are in {folder}"


def draw_pairs(kind: str, number: int, together: int) -> Iterator[TextCall]:
    """Yield at least `number` pairs, drawn by a fixed seed; those of one question follow one another, as in a query."""
    rows = [row for row in sample.load("restaurants").tables["restaurants"].to_pylist() if row["reviews"]]
    drawn = Random(1)
    asked: dict[str, Mapping[str, Any]] = {
        "yes-no": {question: {"compared": ("Yes",)} for question in QUESTIONS.values()},
        "option": {question: {"options": options} for question, options in CHOICES.items()},
        "number": {question: {"type": "number"} for question in NUMBERS},
    }[kind]
    for question, how in asked.items():
        for row in drawn.sample(rows, max(together, -(-number // len(asked)))):
            yield TextCall("answer", tuple(row["reviews"]), question, **how)


async def read(models: Models, calls: list[TextCall], together: int) -> list[str | None]:
    """Return the values of replies to calls, so many of which are made together."""
    found: list[str | None] = []
    for start in range(0, len(calls), together):
        some = calls[start : start + together]
        found += [reply.value for reply in await asyncio.gather(*map(models.reader.read, some))]
    return found


def share(one: list[str | None], other: list[str | None]) -> float:
    """Return how many of two lists' replies are the same."""
    return round(sum(a == b for a, b in zip(one, other, strict=True)) / len(one), 4)


if __name__ == "__main__":
    main()
