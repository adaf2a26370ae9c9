"""Generated worlds: a schema, its rows, and a model that answers about its texts, all from one seed.

A column's name tells its type in every relation (`TYPES`), so that the oracle needs no binder of its own.
"""

from __future__ import annotations

import datetime
import decimal
import hashlib
import random
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

TYPES = {
    "id": "int",
    "ref": "int",
    "stars": "int",
    "price": "num",
    "opened": "date",
    "busy": "bool",
    "city": "text",
    "grade": "enum",
    "tags": "texts",
    "body": "text",
    "notes": "texts",
}
FREE = ("body", "notes")
CITIES = ("Paris", "Oslo", "Kyiv", "São Paulo", "O'Hara")
GRADES = ("low", "mid", "high")
MEANINGS = {"top": ("high",), "not low": ("mid", "high"), "MID": ("mid",), "unheard of": ()}
"""Literals that are no grade, and the grades that they mean."""
TAGS = ("Yes", "Paris", "quiet", "bar", "No")
NAMES = ("Paris", "Oslo", "Ann", "Yes", "Zoë")
RELATIONS = ("places", "visits", "people", "dishes")
WORDS = (
    "soup",
    "patio",
    "candle",
    "noise",
    "queue",
    "naïve café",
    "川菜",
    "good, cheap",
    "it's 'fine'",
    "🍜 ramen",
    '"q"',
    "50%",
)
BLANKS = ("", " ", "\n\t ")

ARROW: dict[str, pa.DataType] = {
    "int": pa.int32(),
    "num": pa.decimal128(10, 2),
    "date": pa.date32(),
    "bool": pa.bool_(),
    "text": pa.string(),
    "enum": pa.dictionary(pa.int32(), pa.string()),
    "texts": pa.list_(pa.string()),
}


@dataclass(frozen=True)
class Relation:
    """A generated relation: `id` is unique and not null where it is among the columns."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    @property
    def keyed(self) -> bool:
        """Whether `id` identifies a row."""
        return "id" in self.columns

    def arrow(self) -> pa.Table:
        """Return the rows as Arrow, `grade` as a dictionary (an ENUM)."""
        columns = {c: _array(TYPES[c], [row[i] for row in self.rows]) for i, c in enumerate(self.columns)}
        return pa.table(columns)


def _array(kind: str, values: list[Any]) -> pa.Array:
    if kind != "enum":
        return pa.array(values, ARROW[kind])
    # Declared in their order, which is not that of the alphabet.
    indices = pa.array([None if v is None else GRADES.index(v) for v in values], pa.int32())
    return pa.DictionaryArray.from_arrays(indices, pa.array(GRADES))


@dataclass(frozen=True)
class World:
    """Relations and the seed of their model; `varied` makes replies differ in case and white space (semantics 4)."""

    relations: tuple[Relation, ...]
    model: Model

    def tables(self) -> dict[str, pa.Table]:
        """Return what `almanaq.connect` takes."""
        return {r.name: r.arrow() for r in self.relations}


@dataclass(frozen=True)
class Model:
    """A deterministic model: what a question asks for is told by its first word.

    `fail` is the share of (text, question) pairs at which `reply` raises instead.
    """

    seed: int
    varied: bool = False
    fail: float = 0.0
    error: type[Exception] = RuntimeError
    _kinds: tuple[str, ...] = field(default=("is", "who", "how", "what", "when", "summary"), repr=False)

    def canonical(self, text: str, question: str) -> str | None:
        """Return the value a question has for a text in the spelling that a cast understands."""
        # Where spellings vary, an answer about an answer must not depend on which spelling it was given.
        roll = _digest(
            self.seed, *(("".join(p.split()).casefold() for p in (text, question)) if self.varied else (text, question))
        )
        kind = question.split(" ", 1)[0]
        if kind == "summary":
            return None if roll % 13 == 0 else f"s{roll % 997}"
        if roll % 6 == 0:
            return None
        pick = roll // 6
        if kind == "is":
            return "Yes" if pick % 5 < 3 else "No"
        if kind == "how":
            return str(pick % 7)
        if kind == "what":
            return f"{pick % 40}.{pick % 4 * 25:02d}"
        if kind == "when":
            return str(datetime.date(2020, 1, 1) + datetime.timedelta(days=pick % 30 * 40))
        return NAMES[pick % len(NAMES)]

    def failing(self, text: str, question: str) -> bool:
        """Tell whether `reply` raises for this pair."""
        return self.fail > 0 and _digest(self.seed, "fail", text, question) % 1000 < self.fail * 1000

    def reply(self, text: str, question: str) -> str | None:
        """Return what the model under test says: the canonical value, or another spelling of it."""
        if self.failing(text, question):
            raise self.error("this call was made to fail")
        value = self.canonical(text, question)
        if value is None or not self.varied:
            return value
        spellings = (value, value.upper(), value.lower(), f" {value} ", f"{value}\n", value.swapcase())
        return spellings[_digest(self.seed, "spelling", text, question) % len(spellings)]


def _digest(*parts: object) -> int:
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=6).digest(), "big")


def make_world(rng: random.Random, *, varied: bool = False) -> World:
    """Draw 2 to 4 relations with 0 to 30 rows."""
    names = rng.sample(RELATIONS, rng.choice((2, 2, 3, 4)))
    texts = _texts(rng)
    relations = tuple(_relation(rng, name, texts) for name in names)
    return World(relations, Model(rng.getrandbits(32), varied=varied))


def _texts(rng: random.Random) -> list[str]:
    texts = [" ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 4))) for _ in range(rng.randint(3, 16))]
    return texts + rng.sample(BLANKS, rng.randint(0, 2))


def _relation(rng: random.Random, name: str, texts: list[str]) -> Relation:
    optional = [c for c in ("price", "opened", "busy", "city", "grade", "tags") if rng.random() < 0.55]
    columns = (["id"] if rng.random() < 0.75 else []) + ["ref", "stars", *optional]
    columns += rng.choice((["body"], ["body"], ["body", "notes"], ["body", "notes"], ["notes"]))
    size = 0 if rng.random() < 0.03 else rng.choice((1, 3, 6, 10, 14, 20, 30))
    rows = [tuple(_cell(rng, c, i, texts) for c in columns) for i in range(size)]
    if "id" not in columns:
        rows += [rng.choice(rows) for _ in range(rng.randint(0, 4)) if rows and len(rows) < 30]
    rng.shuffle(rows)
    return Relation(name, tuple(columns), tuple(rows))


def _cell(rng: random.Random, column: str, index: int, texts: list[str]) -> Any:
    if column == "id":
        return index + 1
    if rng.random() < 0.12:
        return None
    kind = TYPES[column]
    if column == "ref":
        return rng.randint(1, 12)
    if kind == "int":
        return rng.randint(0, 5)
    if kind == "num":
        return decimal.Decimal(rng.randint(0, 40) * 25) / 100
    if kind == "date":
        return datetime.date(2020, 1, 1) + datetime.timedelta(days=rng.randint(0, 12) * 100)
    if kind == "bool":
        return rng.random() < 0.5
    if column == "notes":
        return [None if rng.random() < 0.1 else rng.choice(texts) for _ in range(rng.choice((0, 1, 1, 2, 3)))]
    if column == "tags":
        return [None if rng.random() < 0.05 else rng.choice(TAGS) for _ in range(rng.randint(0, 3))]
    return rng.choice({"city": CITIES, "grade": GRADES}.get(column, tuple(texts)))
