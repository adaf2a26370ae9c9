"""Flip bits in a cache of replies, one at a time: each reply stays right, or the file is named as damaged.

python benchmarks/faults/cache.py [FLIPS] [--out benchmarks/faults/results/cache.json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sqlite3
import tempfile
from collections import Counter
from pathlib import Path

from typer.testing import CliRunner

from almanaq.cli.app import app
from almanaq.errors import SourceError
from almanaq.models.cached import CachedModel, ReplyCache, request_key
from almanaq.models.protocols import Message, Prompt
from almanaq.testing import ScriptedModel

REPLIES, PAGE = 60, 4096


def prompt_of(number: int) -> Prompt:
    """Return the request with a number."""
    return Prompt("p", "1", (Message("user", f"question {number}"),))


def right(prompt: Prompt) -> str:
    """Return the reply to a request."""
    return f"reply to {prompt.messages[0].content} " * 8


def fill(file: Path) -> bytes:
    """Keep a reply to each request; give what the file then holds."""
    cache = ReplyCache(file)
    for number in range(REPLIES):
        cache.keep([(request_key("scripted", prompt_of(number)), right(prompt_of(number)))], model="scripted")
    cache.close()
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return file.read_bytes()


def flips(file: Path, count: int, seed: int = 5) -> Counter[str]:
    """Flip bits in a filled cache, ask everything again, and run the commands on it; count how each flip ended."""
    whole, chance = fill(file), random.Random(seed)
    ended: Counter[str] = Counter()
    for _ in range(count):
        for left in file.parent.glob(f"{file.name}*"):
            left.unlink()
        file.write_bytes(flip_bit(whole, chance))
        ended[check_replies(file)] += 1
        ended.update(commands(file))
    return ended


def flip_bit(content: bytes, chance: random.Random) -> bytes:
    """Change a bit, every other time one at the head of a page, where the tree is told."""
    changed = bytearray(content)
    place = chance.randrange(len(changed))
    if chance.random() < 0.5:
        place = place // PAGE * PAGE + place % 16
    changed[place] ^= 1 << chance.randrange(8)
    return bytes(changed)


def check_replies(file: Path) -> str:
    """Ask all again: each reply is the kept one or a new one."""
    inner = ScriptedModel(right)
    model = CachedModel(inner, ReplyCache(file), identity="scripted")

    async def all_of() -> list[str]:
        return [(await model.complete(prompt_of(number))).text for number in range(REPLIES)]

    try:
        if asyncio.run(all_of()) != [right(prompt_of(number)) for number in range(REPLIES)]:
            return "wrong"
        return "right, some asked for again" if inner.calls else "right"
    except SourceError:
        return "refused"
    except Exception as error:
        return f"defect: {type(error).__name__}: {error}"
    finally:
        model.cache.close()


def commands(file: Path) -> list[str]:
    """Show and empty the cache; give the errors that nobody foresaw."""
    runs = [
        CliRunner().invoke(app, ["cache", *words], env={"ALMANAQ_CACHE": str(file)})
        for words in (["stats", "--json"], ["clear"])
    ]
    foreseen = (SourceError, SystemExit, type(None))
    return [f"defect: {run.exception!r}" for run in runs if not isinstance(run.exception, foreseen)]


def main() -> int:
    """Flip, tell, and keep the result; 1 when a flip ended in a wrong reply or a defect."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("flips", type=int, nargs="?", default=100)
    options.add_argument("--out", type=Path)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        ended = flips(Path(name) / "replies.sqlite", chosen.flips)
    told = {
        "command": f"python benchmarks/faults/cache.py {chosen.flips}",
        "replies": REPLIES,
        "flips": chosen.flips,
        "ended": dict(sorted(ended.items())),
        "passed": set(ended) <= {"right", "right, some asked for again", "refused"},
    }
    text = json.dumps(told, indent=1) + "\n"
    if chosen.out:
        chosen.out.write_text(text)
    print(text)
    return int(not told["passed"])


if __name__ == "__main__":
    raise SystemExit(main())
