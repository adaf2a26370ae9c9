"""Flip bits in an index on disk, one at a time: every answer stays the same, or the index says that it is damaged.

python benchmarks/faults/index.py [FLIPS] [--summed] [--out benchmarks/faults/results/index.json]

With `--summed` the checksums are made anew after each flip, as somebody would who means harm: answers may then be any,
but nothing ends in an error that nobody foresaw.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from almanaq.corpus.table import Table, TableId
from almanaq.errors import SourceError
from almanaq.models.embedders.base import LexicalEmbedder
from almanaq.models.embedders.vector_store import VectorStore
from almanaq.retrieval.index_files import MANIFEST, SUMS, _hash_record, write_sums
from almanaq.retrieval.stored import build_index, open_index, update_index
from almanaq.retrieval.stored_search import StoredHybrid, StoredRerank

FIELDS = ("title", "section", "header", "cells", "description")
WORDS = (
    "river lake height length city country river team player score year film director budget price wine region".split()
)
TABLES, QUESTIONS = 2_000, 5


def tables(count: int) -> list[Table]:
    """Make tables of words drawn from a fixed seed, in some databases."""
    chance = random.Random(3)

    def some(least: int, most: int) -> str:
        return " ".join(chance.choice(WORDS) + str(chance.randrange(40)) for _ in range(chance.randint(least, most)))

    made = []
    for number in range(count):
        header = tuple(some(1, 2) for _ in range(4))
        rows = tuple(tuple(some(1, 3) for _ in header) for _ in range(chance.randint(2, 9)))
        made.append(Table(TableId(f"d{number % 7}", f"t{number}"), header, rows, some(2, 4), some(0, 2), some(0, 9)))
    return made


def build(folder: Path, count: int = TABLES) -> None:
    """Build an index with vectors, and update it, so that it has two segments and tables that count no more."""
    corpus, store = tables(count), VectorStore(None, LexicalEmbedder())
    build_index(corpus, folder, FIELDS, store=store)
    update_index(
        [replace(t, title=f"{t.title} anew") if n < 9 else t for n, t in enumerate(corpus)], folder, store=store
    )


def answers(folder: Path) -> list[Any]:
    """Search in every way, and read what tables hold."""
    index = open_index(folder)
    chance = random.Random(4)
    questions = [
        " ".join(chance.choice(WORDS) + str(chance.randrange(40)) for _ in range(chance.randint(2, 5)))
        for _ in range(QUESTIONS)
    ]
    dense = StoredHybrid(index, LexicalEmbedder())
    ways: list[Any] = [index, dense, StoredRerank(index), StoredRerank(index, dense)]
    found = [way.search(questions, 10) for way in ways]
    places = [named.place for question in questions for named, _ in index.best(question, 3)]
    return [found, [index.table(place) for place in places], [index.entry(place) for place in places]]


def flips(folder: Path, count: int, *, summed: bool = False, seed: int = 1) -> Counter[tuple[str, str]]:
    """Flip bits in the files of an index, each back again; count how it ended, by the file's name."""
    right, chance = answers(folder), random.Random(seed)
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    ended: Counter[tuple[str, str]] = Counter()
    sizes = [file.stat().st_size for file in files]
    for number in range(count):
        # One file after the other, so that small ones have their turn, and in between one by its size.
        file = files[number // 2 % len(files)] if number % 2 else chance.choices(files, sizes)[0]
        whole = file.read_bytes()
        changed = bytearray(whole)
        changed[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
        kept = {path: path.read_bytes() for path in (folder / MANIFEST, file.parent / SUMS) if path.exists()}
        file.write_bytes(changed)
        if summed:
            _sum_anew(folder)
        ended[file.name, _end(lambda: answers(folder), right)] += 1
        for path, content in {**kept, file: whole}.items():
            path.write_bytes(content)
    return ended


def _end(work: Callable[[], list[Any]], right: list[Any]) -> str:
    try:
        return "same" if work() == right else "wrong"
    except SourceError as error:
        clear = ("rebuild it", "rebuild the index", "is not an index")
        return "refused" if any(words in str(error) for words in clear) else f"unclear: {error}"
    except Exception as error:
        return f"defect: {type(error).__name__}: {error}"


def _sum_anew(folder: Path) -> None:
    """Make the checksums fit what the files hold now, where the manifest can still be read."""
    try:
        told = json.loads((folder / MANIFEST).read_bytes())
        for entry in told["segments"]:
            entry["sums"] = write_sums(folder / entry["name"])
        told.pop("sum", None)
        (folder / MANIFEST).write_text(json.dumps({**told, "sum": _hash_record(told)}))
    except (ValueError, LookupError, TypeError, AttributeError, OSError):
        return


def main() -> int:
    """Flip, tell, and keep the result; 1 when a flip ended in a wrong answer or a defect."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("flips", type=int, nargs="?", default=1000)
    options.add_argument("--summed", action="store_true")
    options.add_argument("--out", type=Path)
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "index"
        build(folder)
        ended = flips(folder, asked.flips, summed=asked.summed)
    by_end: Counter[str] = Counter()
    for (_, how), times in ended.items():
        by_end[how] += times
    allowed = {"same", "refused"} | ({"wrong"} if asked.summed else set())
    told = {
        "command": f"python benchmarks/faults/index.py {asked.flips}{' --summed' if asked.summed else ''}",
        "tables": TABLES,
        "flips": asked.flips,
        "ended": dict(sorted(by_end.items())),
        "by_file": {f"{file}: {how}": times for (file, how), times in sorted(ended.items())},
        "passed": set(by_end) <= allowed,
    }
    text = json.dumps(told, indent=1) + "\n"
    if asked.out:
        asked.out.write_text(text)
    print(text)
    return int(not told["passed"])


if __name__ == "__main__":
    raise SystemExit(main())
