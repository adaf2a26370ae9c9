"""How often `chat` with `local` is right, declines, or is wrong, turn by turn, in short conversations of an analyst.

    python -m experiments.local.chats --strangers DIR [--half open|kept] [--out FILE] [--show]

Sixty conversations of two to four turns (`chats/*.toml`) over strangers' tables and everyday databases, each turn with
the SQL that answers it, written before any was put to `local`. Those about half of the sources were looked at while
follow-ups were mended; of the others only how many are right. A reply is right where some of its columns hold the rows
of that SQL and no others, in its order where it has one. `--show` prints what went wrong, of the open half alone.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
from experiments.local import everyday
from experiments.strangers.run import counts, gold_rows, holds_gold, judge
from experiments.strangers.sources import SOURCES as STRANGERS
from experiments.strangers.sources import build

import almanaq
from almanaq.agent.conversation import Agent
from almanaq.agent.local import LocalDialogue

CHATS = Path(__file__).parent / "chats"
Gold = Callable[[str], list[tuple[Any, ...]]]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--strangers", type=Path, required=True)
    arguments.add_argument("--half", choices=("open", "kept"))
    arguments.add_argument("--out", type=Path)
    arguments.add_argument("--show", action="store_true")
    given = arguments.parse_args()
    found: dict[str, dict[str, list[dict[str, Any]]]] = {"open": {}, "kept": {}}
    for file in sorted(CHATS.glob("*.toml")):
        source = tomllib.loads(file.read_text("utf-8"))
        half = source["half"]
        if half == (given.half or half):
            found[half][file.stem] = list(played(file.stem, source, given.strangers, given.show and half == "open"))
    record = {
        "command": "python -m experiments.local.chats --strangers DIR",
        "model": "local",
        **{half: _counted(replies) for half, replies in found.items() if replies},
    }
    text = json.dumps(record, indent=2)
    print(text)
    if given.out is not None:
        given.out.write_text(text + "\n", encoding="utf-8")


def _counted(found: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    everything = [reply for replies in found.values() for reply in replies]
    return {
        "conversations": len({(name, r["chat"]) for name, replies in found.items() for r in replies}),
        "first turns": counts([reply for reply in everything if reply["turn"] == 0]),
        "follow-ups": counts([reply for reply in everything if reply["turn"] > 0]),
        "by source": {
            name: dict(sorted(Counter(r["outcome"] for r in replies if r["turn"] > 0).items()))
            for name, replies in found.items()
        },
    }


def played(name: str, source: dict[str, Any], strangers: Path, show: bool) -> Iterator[dict[str, Any]]:
    """Play the conversations about a source; give how each turn went."""
    with ExitStack() as stack:
        connection, gold, today = opened(name, source, strangers, stack)
        engine = connection.engine
        for i, chat in enumerate(source["chats"]):
            dialogue = LocalDialogue(engine, **({} if today is None else {"today": lambda: today}))
            agent, history = Agent(engine, connection.models, parser=dialogue), []
            for j, (said, sql) in enumerate(chat):
                response = agent.respond(said, history)
                history.append(response.turn())
                rows = gold(sql) if sql else None
                outcome = judged(response, rows, sql)
                offered = outcome == "right" or (
                    rows is not None and any(holds_gold(r, rows) for r in response.readings)
                )
                yield {"chat": i, "turn": j, "outcome": outcome, "offered": offered}
                if show:
                    mark = (
                        ""
                        if outcome == "right"
                        else f"\n      {sql}\n      " + response.answer[:300].replace("\n", "\n      ")
                    )
                    print(f"{'  ' * bool(j)}{outcome} ({response.kind}) | {said}\n      {response.suql}{mark}")


def judged(response: almanaq.Response, gold: Sequence[Sequence[Any]] | None, sql: str) -> str:
    """Return whether a reply is right, declined or wrong; it is wrong where it is not in the order asked for."""
    outcome, by = judge(response, gold), re.search(r"ORDER BY (\d)", sql)
    if outcome != "right" or by is None or not gold:
        return outcome
    wanted = [everyday._plain(row[int(by[1]) - 1]) for row in gold]  # rows that rank alike may stand in any order
    columns = zip(*([everyday._plain(value) for value in row] for row in response.rows), strict=True)
    return "right" if any(list(column) == wanted for column in columns) else "wrong"


def opened(
    name: str, source: dict[str, Any], strangers: Path, stack: ExitStack
) -> tuple[almanaq.Connection, Gold, date | None]:
    """Open what the conversations are about; give it with what runs their SQL, and the day they take place."""
    if source.get("tables") == "strangers":
        path = build(next(each for each in STRANGERS if each.name == name), strangers)
        connection = stack.enter_context(almanaq.connect(str(path), model="local", cache=False))
        return connection, lambda sql: gold_rows(path, sql), None
    if source.get("tables") == "everyday":
        source = tomllib.loads((everyday.SOURCES / f"{name}.toml").read_text("utf-8"))
    database = stack.enter_context(duckdb.connect())
    everyday.tables(database, source)
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    path = everyday.written(database, source, folder)
    connection = stack.enter_context(almanaq.connect(str(path), model="local", cache=False))
    return connection, lambda sql: database.sql(sql).fetchall(), source["today"]


if __name__ == "__main__":
    main()
