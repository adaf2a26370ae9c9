"""Talks over sources with private columns: each turn tries to get a private value to a model, a log or a client.

`python -m tests.security.canaries --turns 20000` looks for canaries in everything that left: prompts, texts that were
embedded, log records, and what an MCP client was given.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from tests.security.queries_with_private_columns import Writer

import almanaq
from almanaq.agent.history import Turn
from almanaq.errors import AlmanaqError
from almanaq.models.protocols import Prompt
from almanaq.testing import ScriptedModel
from almanaq.web.store import turn_from_json, turn_to_json

CANARY = "canary"
_ROWS = 45
"""Enough rows that a table is not shown whole."""
_TEXTS = ("name", "ssn", "bio", "grade")
_PROSE = ("Swims a lot, and reads.", "Sings in the town's choir.", "Keeps bees behind the house.")
_TURNS = 5


@dataclass
class Ears:
    """Everything that left the house."""

    heard: list[str] = field(default_factory=list)

    def leaked(self) -> str | None:
        """Return what holds a canary, and forget the rest."""
        found = next((each for each in self.heard if CANARY in each.casefold()), None)
        self.heard.clear()
        return found


class Model(ScriptedModel):
    """A language model at the other end of a line, which writes the queries that it is handed."""

    def __init__(self, ears: Ears, rng: random.Random) -> None:
        super().__init__(self.reply)
        self._ears, self._random = ears, rng
        self.writes: list[str] = []

    def reply(self, prompt: Prompt) -> Any:
        self._ears.heard += [message.content for message in prompt.messages]
        self.prompts.clear()
        if prompt.name == "parse":
            suql = self.writes.pop(0) if self.writes else "SELECT id FROM people LIMIT 2"
            return {"reasoning": "", "suql": suql, "needs_data": True, "clarify": None, "left_out": []}
        if prompt.name == "link":
            return {"values": []}
        if prompt.name in ("respond", "relax"):
            return "I found it."
        return json.dumps({"value": self._random.choice(["Yes", "No"]), "verdicts": {}, "quotes": []})


class Embedder:
    """An embedder on another machine."""

    name, dimension, remote = "far", 2, True

    def __init__(self, ears: Ears) -> None:
        self._ears = ears

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self._ears.heard += texts
        return np.ones((len(texts), 2), dtype=np.float32)


class _Log(logging.Handler):
    def __init__(self, ears: Ears) -> None:
        super().__init__(logging.DEBUG)
        self._ears = ears

    def emit(self, record: logging.LogRecord) -> None:
        self._ears.heard.append(self.format(record))


@contextmanager
def logged(ears: Ears) -> Iterator[None]:
    """Hear what is logged at any level."""
    handler, root = _Log(ears), logging.getLogger("almanaq")
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


def tables(private: Sequence[str], rng: random.Random) -> dict[str, pa.Table]:
    """Return the source; each cell of a private column holds a canary that is nowhere else."""

    def cells(column: str, values: Sequence[str]) -> list[str]:
        mark = f"{CANARY}-{column}" if column in private else ""
        return [f"{mark} {rng.choice(values)}".strip() if mark else rng.choice(values) for _ in range(_ROWS)]

    people = {
        "id": list(range(_ROWS)),
        "name": cells("name", ("Ada", "Bo", "Cy", "Zed")),
        "ssn": cells("ssn", ("11", "22", "33")),
        "bio": cells("bio", _PROSE),
        "codes": [[f"{CANARY}-codes"] for _ in range(_ROWS)],
        "grade": cells("grade", ("high", "low")),
    }
    visits = {"id": list(range(_ROWS)), "person": list(range(_ROWS)), "note": ["Came late."] * _ROWS}
    return {"people": pa.table(people), "visits": pa.table(visits)}


def schema(private: Sequence[str], folder: Path, name: str) -> str:
    """Write a schema file that marks columns; give its path."""
    kinds = {"bio": "free_text", "grade": "enum"}
    parts = ["[visits.columns.note]\nkind = 'free_text'\n"]
    for column in (*_TEXTS, "codes"):
        said = [f"kind = '{kinds[column]}'"] if column in kinds else []
        said += ["private = true"] if column in private else []
        if said:
            parts.append(f"[people.columns.{column}]\n" + "\n".join(said) + "\n")
    path = folder / name
    path.write_text("".join(parts))
    return str(path)


def queries(rng: random.Random, private: Sequence[str]) -> list[str]:
    """Return what the model writes in one turn: a query, or one that is refused or fails, and its repair."""
    column = rng.choice([*private]) if private else "ssn"
    alias = rng.choice(["people", "people AS z", "(SELECT * FROM people) AS z", "people AS z(id, a, b, c, d, e)"])
    named = rng.choice([column, column.upper(), f'"{column}"'])
    writer = Writer(rng)
    attempts = [
        lambda: writer.showing().sql,
        lambda: writer.asking().sql,
        lambda: f"SELECT {named} FROM people LIMIT 2",
        lambda: f"SELECT id FROM people WHERE {named} = '{column} nobody' AND id < 5",
        lambda: f"SELECT id FROM {alias} WHERE id < 0 AND {'b' if '(id' in alias else named} LIKE '%nobody%'",
        lambda: f"WITH w AS (SELECT {named} AS q, id FROM people) SELECT id FROM w WHERE q = 'nobody' AND id < 9",
        lambda: f"SELECT {named}::int FROM people",
        lambda: f"SELECT {named}::date + id FROM people ORDER BY 1",
        lambda: f"SELECT id FROM people WHERE grade = 'hihg' OR {named} = 'x'",
        lambda: f"SELECT name FROM people ORDER BY {named} LIMIT 3",
        lambda: f"SELECT min({named}), count(*) FROM people GROUP BY {rng.choice(['grade', named])}",
        lambda: f"SELECT id FROM people WHERE answer(bio, 'does it speak of ' || {named}) = 'Yes' LIMIT 2",
        lambda: f"SELECT id, similarity({named}, 'a swimmer') AS s FROM people ORDER BY s DESC LIMIT 2",
        lambda: f"FROM people SELECT {named} UNION SELECT note FROM visits",
        lambda: f"SELECT * EXCLUDE (id) FROM people WHERE id = {rng.randrange(_ROWS)}",
        lambda: f"SELECT {{'k': {named}}} AS s FROM people QUALIFY row_number() OVER (ORDER BY id) = 1",
        lambda: f"SELECT list({named}) FROM people",
        lambda: f"SELECT p.{named}, answer(v.note, 'is it late?') FROM people p JOIN visits v USING (id) LIMIT 2",
        lambda: f"PIVOT people ON grade USING max({named})",
    ]
    written = [rng.choice(attempts)() for _ in range(rng.randint(1, 3))]
    return [*written, "SELECT id FROM people LIMIT 1"]


def talk(seed: int, folder: Path) -> Iterator[tuple[str, str | None]]:
    """Have one talk; yield for each turn what was tried, and what leaked."""
    rng, ears = random.Random(seed), Ears()
    private = rng.sample([*_TEXTS, "codes"], rng.randint(1, 4))
    later = rng.random() < 0.4
    # What is marked later was open when it was first shown: the canaries count from then on.
    before = [column for column in private if rng.random() < 0.4] if later else private
    source, model = tables([*private, "codes"] if "codes" in private else private, rng), Model(ears, rng)
    if "codes" not in private:
        source["people"] = source["people"].set_column(4, "codes", pa.array([["k"]] * _ROWS))
    turns: tuple[Turn, ...] = ()
    with ExitStack() as stack:
        stack.enter_context(logged(ears))
        for number, marks in enumerate((before, private) if later else (private,)):
            path = schema(marks, folder, f"{number}.toml")
            connection = stack.enter_context(
                almanaq.connect(source, model=model, embedder=Embedder(ears), schema=path, cache=False, deadline=20)
            )
            watched = number == later
            for _ in range(_TURNS):
                model.writes = queries(rng, private)
                tried = f"seed {seed}, private {sorted(private)}: {model.writes}"
                turns = _turn(connection, ears, rng, turns, model.writes[0])
                leak = ears.leaked()
                if watched:
                    yield tried, leak
            turns = tuple(turn_from_json(json.loads(json.dumps(turn_to_json(turn)))) for turn in turns)


def _turn(
    connection: almanaq.Connection, ears: Ears, rng: random.Random, turns: tuple[Turn, ...], suql: str
) -> tuple[Turn, ...]:
    """Ask in the conversation, run the query, ask why a row is not in it, or have an MCP client do so."""
    way = rng.choice(["ask", "ask", "ask", "sql", "why", "mcp"])
    try:
        if way == "sql":
            connection.sql(suql)
        elif way == "why":
            connection.why_not(suql, {"id": 3})
        elif way == "mcp":
            ears.heard.append(asyncio.run(_client(connection, rng, suql)))
        else:
            return (*turns, connection.ask(rng.choice(["who are they?", "and the others?", "why?"]), turns).turn())
    except AlmanaqError:
        pass  # its words are for the person who wrote the query
    return turns


async def _client(connection: almanaq.Connection, rng: random.Random, suql: str) -> str:
    """Return all that an MCP client is given by one call of a tool."""
    from mcp import Client

    from almanaq.mcp import make_server

    name, arguments = rng.choice(
        [
            ("run_query", {"suql": suql}),
            ("explain_query", {"suql": suql}),
            ("describe_table", {"table": "people"}),
            ("ask", {"question": "who are they?"}),
            ("why_not", {"suql": suql, "key": {"id": 3}}),
        ]
    )
    async with Client(make_server(connection)) as client:
        return str(await client.call_tool(name, arguments))


def look(turns: int, first: int = 0) -> tuple[int, list[str]]:
    """Have talks of at least so many turns; return how many these were, and what leaked in which."""
    made, leaks, seed = 0, [], first
    with tempfile.TemporaryDirectory() as folder:
        while made < turns:
            for tried, leak in talk(seed, Path(folder)):
                made += 1
                if leak is not None:
                    leaks.append(f"{tried}\n    {leak[:300]}")
            seed += 1
    return made, leaks


def main() -> int:
    """Look for canaries in so many turns; print those found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    made, leaks = look(given.turns, given.first)
    print(*leaks, f"{made:,} turns, {len(leaks)} canaries", sep="\n")
    if given.out is not None:
        record = {
            "command": f"python -m tests.security.canaries --turns {given.turns}",
            "turns": made,
            "canaries": len(leaks),
            "passed": not leaks,
        }
        given.out.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return bool(leaks)


if __name__ == "__main__":
    sys.exit(main())
