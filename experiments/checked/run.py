"""What checked answers change for the questions of strangers: right, declined and wrong, before and after.

    python -m experiments.checked.run DIR [--source NAME ...] [--paraphrases] [--out FILE]

Of each open source (`experiments.strangers`, whose DIR it is), every second question is confirmed with the SQL that a
stranger wrote for it. The others, written by the same stranger and in part about the same things, are asked before and
after. `recalled` are the replies of checked queries, for which a language model would not be called. The confirmed ones
are asked again too, each with a capital and “please” that it did not have. With `--paraphrases` the others are those of
`paraphrases.toml`: confirmed questions in other words, some with other values.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from experiments.strangers.run import QUESTIONS, gold_rows, judge
from experiments.strangers.sources import SOURCES, Source, build

import almanaq


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--source", action="append", choices=[source.name for source in SOURCES])
    arguments.add_argument("--paraphrases", action="store_true")
    arguments.add_argument("--out", type=Path)
    given = arguments.parse_args()
    paraphrases = tomllib.loads((Path(__file__).parent / "paraphrases.toml").read_text("utf-8"))
    names = given.source or (list(paraphrases) if given.paraphrases else [source.name for source in SOURCES])
    chosen = [s for s in SOURCES if s.half == "open" and s.name in names]
    by_source: dict[str, dict[str, Any]] = {}
    for source in chosen:
        by_source[source.name] = measure(source, given.folder, paraphrases[source.name] if given.paraphrases else None)
        text = json.dumps(record(by_source, " --paraphrases" if given.paraphrases else ""), indent=2)
        if given.out is not None:
            given.out.write_text(text + "\n", encoding="utf-8")
    print(text)


def record(by_source: dict[str, dict[str, Any]], flags: str) -> dict[str, Any]:
    """Return the counts of all sources together, and of each."""
    total: dict[str, Any] = {name: sum(each[name] for each in by_source.values()) for name in ("confirmed", "asked")}
    for name in ("before", "after", "confirmed again"):
        counts = [each[name] for each in by_source.values()]
        total[name] = {outcome: sum(each[outcome] for each in counts) for outcome in counts[0]}
    sources = "".join(f" --source {name}" for name in by_source)
    command = f"python -m experiments.checked.run DIR{sources}{flags}"
    return {"command": command, "model": "local", **total, "by source": by_source}


def measure(source: Source, folder: Path, paraphrases: list[dict[str, Any]] | None) -> dict[str, Any]:
    """Return the counts of one source."""
    opened = build(source, folder)
    asked = tomllib.loads((QUESTIONS / f"{source.name}.toml").read_text("utf-8"))["asked"]
    confirmed, others = asked[::2], asked[1::2]
    if paraphrases is not None:
        others = [{"sql": asked[each["of"]]["sql"], **each} for each in paraphrases]
    with almanaq.connect(str(opened), model="local", cache=False) as connection:
        before = ask_all(connection, others, opened)
        kept = [each for each in confirmed if each.get("sql") and confirm(connection, each)]
        after = ask_all(connection, others, opened)
        again = ask_all(connection, [{**e, "question": f"Please, {e['question']}"} for e in kept], opened)
    return {"confirmed": len(kept), "asked": len(others), "before": before, "after": after, "confirmed again": again}


def confirm(connection: almanaq.Connection, asked: dict[str, Any]) -> bool:
    """Keep a question with its SQL; False where the source's engine refuses that."""
    try:
        connection.confirm(asked["question"], asked["sql"], by="the writer")
    except almanaq.AlmanaqError:
        return False
    return True


def ask_all(connection: almanaq.Connection, asked: list[dict[str, Any]], opened: Path) -> dict[str, int]:
    """Return how many replies are right, declined and wrong, and how many are of checked queries."""
    counts: Counter[str] = Counter(right=0, declined=0, wrong=0, recalled=0)
    for each in asked:
        reply = connection.ask(each["question"])
        counts[judge(reply, gold_rows(opened, each["sql"]) if each.get("sql") else None)] += 1
        counts["recalled"] += "checked by the writer" in reply.answer
    return dict(counts)


if __name__ == "__main__":
    main()
