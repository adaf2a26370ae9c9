"""How a small language model on this machine adds to `local`: right, wrong, offered and failed, seconds and tokens.

    python -m experiments.small_model.run --strangers DIR --half open|fresh [--most N] [--out FILE] [--lines FILE]
    python -m experiments.small_model.run --spider DIR --half open|fresh [--most N] [--out FILE] [--lines FILE]

The model is that of ALMANAQ_MODEL (`gguf:NAME`). Each question is asked of `local` alone, and of `local` with the model
where it declines. A reply is judged as in `experiments.strangers.run`: right where some of its columns hold the rows of
the SQL that was written with the question. It is offered where readings are shown to choose from, and the rest failed.
`--most` draws that many questions from a fixed seed. `--lines` keeps what a choice of the threshold needs, a line of
JSON for each question: of the open half; of the others it is for counting alone.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from experiments.strangers.run import DECLINED, QUESTIONS, gold_rows, holds_gold, is_right, judge
from experiments.strangers.run import _share as share
from experiments.strangers.sources import SOURCES, build

import almanaq
from almanaq.agent.prompting import complete
from almanaq.agent.response import Reading
from almanaq.agent.small.parser import SmallModelParser

SEED = 7
CUT_DOWN = "wta_1"
KEPT = ("dog_kennels", "network_1", "real_estate_properties", "student_transcripts_tracking", "voter_1")
"""Databases of Spider of which no question was looked at while `local` was written, nor for this."""


@dataclass(frozen=True)
class Asked:
    """A question with the SQL that answers it; None: nothing there does."""

    source: Path
    name: str
    question: str
    sql: str | None


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--strangers", type=Path)
    arguments.add_argument("--half", choices=("open", "fresh"), default="open")
    arguments.add_argument("--spider", type=Path)
    arguments.add_argument("--most", type=int)
    arguments.add_argument("--minutes", type=float, default=1e9)
    arguments.add_argument("--out", type=Path)
    arguments.add_argument("--lines", type=Path)
    given = arguments.parse_args()
    asked = list(read_spider(given.spider, given.half) if given.spider else read_strangers(given.strangers, given.half))
    random.Random(SEED).shuffle(asked)
    asked = asked[: given.most]
    end = time.monotonic() + 60 * given.minutes
    found = []
    with Sources() as sources:
        for each in asked:
            if time.monotonic() > end:
                break
            found.append(measure(each, sources))
            if given.lines:
                with given.lines.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(found[-1]) + "\n")
    split = f"{'spider' if given.spider else 'strangers'} DIR --half {given.half}"
    command = f"python -m experiments.small_model.run --{split}" + (f" --most {given.most}" if given.most else "")
    text = json.dumps({"command": command, "seed": SEED, "of": len(asked), **record(found)}, indent=2)
    print(text)
    if given.out:
        given.out.write_text(text + "\n", encoding="utf-8")


def read_strangers(folder: Path, half: str) -> Iterator[Asked]:
    """Yield the questions of a half; the packages are fetched where they are not there."""
    for source in SOURCES:
        if source.half == half:
            opened = build(source, folder)
            for each in tomllib.loads((QUESTIONS / f"{source.name}.toml").read_text("utf-8"))["asked"]:
                yield Asked(opened, source.name, each["question"], each.get("sql"))


def read_spider(folder: Path, half: str) -> Iterator[Asked]:
    """Yield Spider's questions, those over the databases that are kept for measuring as the fresh half."""
    for row in pq.read_table(folder / "queries_validation.parquet").to_pylist():
        name = row["database_id"]
        if (name in KEPT) is (half == "fresh") and name != CUT_DOWN:
            yield Asked(folder / "database" / name / f"{name}.sqlite", name, row["query"], row["answer"])


class Sources:
    """Connections by source, kept open: with `local` alone, and with the model."""

    def __init__(self) -> None:
        self._open: dict[Path, tuple[almanaq.Connection, almanaq.Connection]] = {}

    def __enter__(self) -> Sources:
        return self

    def __exit__(self, *_: object) -> None:
        for pair in self._open.values():
            for connection in pair:
                connection.close()

    def of(self, source: Path) -> tuple[almanaq.Connection, almanaq.Connection]:
        if source not in self._open:
            model = os.environ["ALMANAQ_MODEL"]
            options = almanaq.Options(deadline=300)
            self._open[source] = (
                almanaq.connect(str(source), model="local", options=options),
                almanaq.connect(str(source), model=model, options=options, cache=False),
            )
        return self._open[source]


def measure(asked: Asked, sources: Sources) -> dict[str, Any]:
    """Ask a question of both; give what came of it."""
    alone, both = sources.of(asked.source)
    gold = gold_of(asked)
    start = time.perf_counter()
    response = alone.ask(asked.question)
    line: dict[str, Any] = {
        "source": asked.name,
        "question": asked.question,
        "local": outcome(response, gold),
        "local_three": among_three(response, gold),
        "local_seconds": time.perf_counter() - start,
    }
    line["both"], line["three"] = line["local"], line["local_three"]
    if response.status in DECLINED:
        readings = response.readings
        parser = both.agent._parser
        assert isinstance(parser, SmallModelParser)
        start = time.perf_counter()
        response = both.ask(asked.question)
        line["seconds"] = time.perf_counter() - start
        line["prompt_tokens"] = response.trace.input_tokens if response.trace else 0
        line["both"], line["three"] = outcome(response, gold), among_three(response, gold)
        line |= draft_of(parser, both, asked, gold, readings)
    return line


def draft_of(
    parser: SmallModelParser, con: almanaq.Connection, asked: Asked, gold: Any, alone_readings: Sequence[Reading]
) -> dict[str, Any]:
    """Return what the model wrote, and all that may speak for it or against it; the cache answers."""
    world = parser._local.world(con.engine.catalog)
    prompt, views = parser.prompt(asked.question, world)
    try:
        completion = complete(parser._model, prompt)
    except almanaq.ModelCallError:
        return {"likelihood": None, "views": len(views.views)}
    draft = parser.draft(asked.question, world)
    found: dict[str, Any] = {
        "written": completion.text,
        "likelihood": completion.likelihood,
        "views": len(views.views),
    }
    if draft is not None:
        rows = con.sql(draft.translated.suql).rows
        found |= {
            "suql": draft.translated.suql,
            "empty": draft.is_empty,
            "agrees": parser.confirms(draft, alone_readings),
            "left_out": draft.translated.left_out,
            "right": gold is not None and is_right(rows, draft.translated.suql, gold),
        }
    return found


def gold_of(asked: Asked) -> list[tuple[Any, ...]] | None:
    if not asked.sql:
        return None
    return gold_rows(asked.source, asked.sql)


def outcome(response: almanaq.Response, gold: Any) -> str:
    """Return right, wrong, offered (readings to choose from) or failed (nothing)."""
    judged = judge(response, gold)
    if judged != "declined":
        return judged
    return "offered" if response.readings else "failed"


def among_three(response: almanaq.Response, gold: Any) -> bool:
    right = outcome(response, gold) == "right"
    return right or (gold is not None and any(holds_gold(reading, gold) for reading in response.readings))


def record(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the counts of `local` alone and with the model, with 95 % intervals, seconds and tokens."""
    seconds = sorted(line["seconds"] for line in found if "seconds" in line)
    return {
        "questions": len(found),
        "model": os.environ["ALMANAQ_MODEL"],
        "local": counts([line["local"] for line in found], [line["local_three"] for line in found]),
        "with the model": counts([line["both"] for line in found], [line["three"] for line in found]),
        "asked of the model": len(seconds),
        "added": dict(Counter(line["both"] for line in found if "seconds" in line)),
        "seconds": {"median": _at(seconds, 0.5), "p90": _at(seconds, 0.9)},
        "prompt tokens": {"median": _at(sorted(line["prompt_tokens"] for line in found if "seconds" in line), 0.5)},
    }


def counts(outcomes: Sequence[str], three: Sequence[bool]) -> dict[str, Any]:
    counted = Counter(outcomes)
    answered = counted["right"] + counted["wrong"]
    return {
        **{name: counted[name] for name in ("right", "wrong", "offered", "failed")},
        "precision": share(counted["right"], answered),
        "right within three": share(sum(three), len(three)),
    }


def _at(values: Sequence[float], share: float) -> float | None:
    return round(values[min(int(share * len(values)), len(values) - 1)], 2) if values else None


if __name__ == "__main__":
    main()
