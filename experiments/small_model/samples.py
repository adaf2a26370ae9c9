"""Which says better that a small model's query is right: its mean log probability, or that samples agree with it?

    python -m experiments.small_model.samples --strangers DIR --spider DIR --minutes N [--out FILE] [--lines FILE]

Of the open questions that `local` declines. The model is one of a server without a key (`OPENAI_BASE_URL`, and
`ALMANAQ_MODEL=openai:NAME` with `ALMANAQ_PROFILE=small`). Its query is what `almanaq` gets at temperature 0; four more
replies to the same prompt are drawn at 0.7. A sample agrees where its query finds the same columns.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from experiments.small_model.run import SEED, Asked, Sources, gold_of, read_spider, read_strangers
from experiments.strangers.run import DECLINED, is_right

import almanaq
from almanaq.agent.small.parser import Draft, SmallModelParser
from almanaq.agent.small.translate import NotTranslated, translate
from almanaq.models.protocols import Prompt

SAMPLES, TEMPERATURE = 4, 0.7
LIKELIHOODS = (-0.05, -0.1, -0.13, -0.2)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--strangers", type=Path, required=True)
    arguments.add_argument("--spider", type=Path, required=True)
    arguments.add_argument("--minutes", type=float, required=True)
    arguments.add_argument("--out", type=Path)
    arguments.add_argument("--lines", type=Path)
    given = arguments.parse_args()
    asked = [*read_strangers(given.strangers, "open"), *read_spider(given.spider, "open")]
    random.Random(SEED).shuffle(asked)
    end = time.monotonic() + 60 * given.minutes
    found: list[dict[str, Any]] = []
    looked_at = 0
    with Sources() as sources:
        for each in asked:
            if time.monotonic() > end:
                break
            looked_at += 1
            if line := measure(each, sources):
                found.append(line)
                if given.lines:
                    with given.lines.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(line) + "\n")
    command = f"python -m experiments.small_model.samples --strangers DIR --spider DIR --minutes {given.minutes:g}"
    text = json.dumps({"command": command, "seed": SEED, "questions": looked_at, **record(found)}, indent=2)
    print(text)
    if given.out:
        given.out.write_text(text + "\n", encoding="utf-8")


def measure(asked: Asked, sources: Sources) -> dict[str, Any] | None:
    """Return how sure the model is of its query, and how many samples find the same; None: `local` answers, or none."""
    alone, both = sources.of(asked.source)
    if alone.ask(asked.question).status not in DECLINED:
        return None
    parser = both.agent._parser
    assert isinstance(parser, SmallModelParser)
    world = parser._local.world(both.engine.catalog)
    start = time.perf_counter()
    draft = parser.draft(asked.question, world)
    seconds = time.perf_counter() - start
    if draft is None:
        return {"source": asked.name, "question": asked.question, "draft": None}
    gold = gold_of(asked)
    prompt, views = parser.prompt(asked.question, world)
    start = time.perf_counter()
    same = 0
    for number in range(SAMPLES):
        with suppress(NotTranslated, almanaq.AlmanaqError):
            sampled = translate(sample(prompt, number), views, world)
            same += _columns(both.sql(sampled.suql).rows) == _columns(draft.rows)
    return {
        "source": asked.name,
        "question": asked.question,
        "draft": draft.translated.suql,
        "likelihood": draft.likelihood,
        "same": same,
        "empty": draft.is_empty,
        "right": gold is not None and _is_right(draft, gold),
        "prompt_tokens": draft.usage.input_tokens,
        "seconds": seconds,
        "seconds_of_samples": time.perf_counter() - start,
    }


def sample(prompt: Prompt, number: int) -> str:
    """Return another reply to a prompt."""
    body = {
        "messages": [{"role": message.role, "content": message.content} for message in prompt.messages],
        "max_tokens": prompt.max_output_tokens,
        "stop": list(prompt.stop),
        "temperature": TEMPERATURE,
        "seed": number,
    }
    url = os.environ["OPENAI_BASE_URL"].rstrip("/") + "/chat/completions"
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=300) as reply:
        return str(json.load(reply)["choices"][0]["message"]["content"])


def record(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return right and wrong of what would be run by each rule, and how well each signal ranks right before wrong."""
    drafts = [line for line in found if line["draft"] and not line["empty"]]
    kept = {"all that find something": drafts}
    for most in LIKELIHOODS:
        kept[f"log probability above {most}"] = [line for line in drafts if line["likelihood"] > most]
    for least in range(1, SAMPLES + 1):
        kept[f"{least} of {SAMPLES} samples agree"] = [line for line in drafts if line["same"] >= least]
    kept[f"{SAMPLES} of {SAMPLES} samples agree, log probability above -0.13"] = [
        line for line in drafts if line["same"] == SAMPLES and line["likelihood"] > -0.13
    ]
    return {
        "declined by local": len(found),
        "queries that find something": len(drafts),
        "run by": {name: _counts(lines) for name, lines in kept.items()},
        "area under the curve": {signal: _area(drafts, signal) for signal in ("likelihood", "same")},
        "median seconds": {
            name: _median([line[name] for line in drafts]) for name in ("seconds", "seconds_of_samples")
        },
        "median prompt tokens": _median([line["prompt_tokens"] for line in drafts]),
        "load": [round(each, 1) for each in os.getloadavg()],
    }


def _counts(lines: Sequence[dict[str, Any]]) -> dict[str, int]:
    right = sum(line["right"] for line in lines)
    return {"right": right, "wrong": len(lines) - right}


def _area(lines: Sequence[dict[str, Any]], signal: str) -> float | None:
    """Return how often a right query has more of a signal than a wrong one, ties as halves."""
    pairs = [(a[signal], b[signal]) for a in lines for b in lines if a["right"] and not b["right"]]
    return round(sum(a > b or (a == b) / 2 for a, b in pairs) / len(pairs), 3) if pairs else None


def _median(values: Sequence[float]) -> float | None:
    return round(sorted(values)[len(values) // 2], 2) if values else None


def _is_right(draft: Draft, gold: list[tuple[Any, ...]]) -> bool:
    return is_right(draft.rows, draft.translated.suql, gold)


def _columns(rows: Sequence[Sequence[object]]) -> list[tuple[str, ...]]:
    return sorted(tuple(sorted(map(str, column))) for column in zip(*rows, strict=True))


if __name__ == "__main__":
    main()
