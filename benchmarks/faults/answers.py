"""Damage a store of answers, once at a time: what is read is what was kept, or the store says that it is damaged.

python benchmarks/faults/answers.py [DAMAGES] [--out benchmarks/faults/results/answers.json]
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from almanaq.agent.history import Shown, Turn
from almanaq.errors import SourceError
from almanaq.web.records import format_rows
from almanaq.web.store import Answer, AnswerStore, pack_rows
from almanaq.web.verdicts import Verdicts

ANSWERS, CONVERSATIONS, PAGE = 24, 6, 4096
_WORST_FIRST = ("wrong", "missing", "refused", "right")
"""How a reading ends; before all of them an error that nobody foresaw."""


def place_of(number: int) -> tuple[str, str, str, int]:
    """Return where the text lies that an answer cites."""
    return ("places", str(number), "notes", 0)


def fill(file: Path) -> bytes:
    """Keep answers with rows, turns, texts and verdicts; give what the file then holds."""
    chance = random.Random(11)
    store = AnswerStore(file, "source")
    for number in range(ANSWERS):
        rows = {"id": [chance.randrange(10**9) for _ in range(30)], "word": [str(chance.random()) for _ in range(30)]}
        shown = Shown("places", ("id",), ((number,),), (f"place {number}",))
        turn = Turn(f"question {number}?", f"SELECT {number}", f"answer {number}", shown=shown)
        record = {"answer": f"answer {number}", "rows": [[number]], "evidence": []}
        known = (f"id{number}", f"c{number % CONVERSATIONS}", "ask", turn.question, "model", record)
        answer = Answer(
            *known, pack_rows(pa.table(rows))[0], turn, float(number), frozenset({("places", f"c{number}")})
        )
        store.put(answer, {place_of(number): f"a text that says {chance.random()} " * 20})
        for about in ({"kind": "answer"}, {"kind": "row", "key": {"id": number}}):
            Verdicts(store).put(answer.id, about, "right" if number % 3 else "wrong", {"note": str(number)})
    store.close()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return file.read_bytes()


def readings(store: AnswerStore) -> dict[str, Callable[[], Any]]:
    """Return every way to read what is kept, by name."""
    verdicts = Verdicts(store)
    ways: dict[str, Callable[[], Any]] = {"all verdicts": verdicts.all}
    for number in range(ANSWERS):
        ways[f"answer {number}"] = partial(store.get, f"id{number}")
        ways[f"rows {number}"] = partial(_rows, store, f"id{number}")
        ways[f"text {number}"] = partial(store.cell, place_of(number))
        ways[f"verdicts {number}"] = partial(verdicts.of, f"id{number}")
    for number in range(CONVERSATIONS):
        ways[f"conversation {number}"] = partial(store.conversation, f"c{number}")
        ways[f"turns {number}"] = partial(store.turns, f"c{number}")
    return ways


def _rows(store: AnswerStore, id: str) -> bytes | None:
    found = store.get(id)
    return format_rows(found.rows, "csv") if found is not None and found.rows is not None else None


def damage(content: bytes, chance: random.Random) -> bytes:
    """Change a bit or a byte, also at the head of a page, where the tree is told; zero, move or cut off a range."""
    changed = bytearray(content)
    at = chance.randrange(len(changed))
    kind = chance.choice(("bit", "byte", "head", "zero", "move", "cut"))
    if kind == "cut":
        return bytes(changed[:at])
    if kind == "move":
        length, to = chance.choice((8, 64, PAGE)), chance.randrange(len(changed))
        part = changed[at : at + length]
        changed[to : to + len(part)] = part
    elif kind == "zero":
        length = len(changed[at : at + chance.choice((8, 64, 512, PAGE))])
        changed[at : at + length] = bytes(length)
    else:
        at = at // PAGE * PAGE + at % 100 if kind == "head" else at
        changed[at] = changed[at] ^ 1 << chance.randrange(8) if kind == "bit" else chance.randrange(256)
    return bytes(changed[: len(content)])


def damages(file: Path, count: int, seed: int = 5) -> Counter[str]:
    """Damage a filled store and read all of it; count how each damage ended, by the worst of its readings."""
    whole, chance = fill(file), random.Random(seed)
    with closing(AnswerStore(file, "source")) as store:
        right = {name: read() for name, read in readings(store).items()}
    ended: Counter[str] = Counter()
    for _ in range(count):
        for left in file.parent.glob(f"{file.name}*"):
            left.unlink()
        file.write_bytes(damage(whole, chance))
        ended[_end(file, right)] += 1
    return ended


def _end(file: Path, right: dict[str, Any]) -> str:
    try:
        store = AnswerStore(file, "source")
    except SourceError:
        return "refused"
    except Exception as error:
        return f"defect: {type(error).__name__}: {error}"
    with closing(store):
        ends = {_reading(read, right[name]) for name, read in readings(store).items()}
    return min(ends, key=lambda end: _WORST_FIRST.index(end) if end in _WORST_FIRST else -1)


def _reading(read: Callable[[], Any], right: Any) -> str:
    try:
        found = read()
    except SourceError:
        return "refused"
    except Exception as error:
        return f"defect: {type(error).__name__}: {error}"
    return "right" if found == right else "wrong" if found else "missing"


def main() -> int:
    """Damage, tell, and keep the result; 1 when something wrong was read, or an error was not foreseen."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("damages", type=int, nargs="?", default=500)
    options.add_argument("--out", type=Path)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        ended = damages(Path(name) / "answers.sqlite", chosen.damages)
    record = {
        "command": f"python benchmarks/faults/answers.py {chosen.damages}",
        "answers": ANSWERS,
        "damages": chosen.damages,
        "ended": dict(sorted(ended.items())),
        "passed": set(ended) <= {"right", "missing", "refused"},
    }
    text = json.dumps(record, indent=1) + "\n"
    if chosen.out:
        chosen.out.write_text(text)
    print(text)
    return int(not record["passed"])


if __name__ == "__main__":
    raise SystemExit(main())
