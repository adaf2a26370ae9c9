"""The data files of the generator as values: attributes with their wordings, concepts, filler, leanings, plants."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CITIES = ("San Francisco", "Palo Alto", "Cupertino", "Sunnyvale")
PRICES = ("cheap", "moderate", "expensive", "luxury")


@dataclass(frozen=True, slots=True)
class Wording:
    """One clause that expresses an attribute; `id` is stable as long as the data files are only appended to."""

    id: str
    attribute: str
    polarity: bool
    held_out: bool
    text: str


@dataclass(frozen=True, slots=True)
class Attribute:
    """One hidden attribute.

    Attributes:
        question: the plain question that asks for it.
        dissent: whether reviewers may disagree about it (a brick oven is there or not).
        true_is_bad: whether holding is a complaint (a long wait).
    """

    name: str
    question: str
    dissent: bool
    true_is_bad: bool
    wordings: tuple[Wording, ...]


@dataclass(frozen=True, slots=True)
class Concept:
    """One kind of restaurant: its ENUM tags, food and names."""

    name: str
    kind: str
    count: tuple[int, ...]
    tags: tuple[str, ...]
    extra: tuple[str, ...]
    prices: tuple[int, ...]
    food: tuple[str, ...]
    desserts: tuple[str, ...]
    drinks: tuple[str, ...]
    baked: tuple[str, ...]
    names: tuple[str, ...]
    pizza: tuple[str, ...] = ()


@cache
def read_toml(name: str) -> dict[str, Any]:
    """Return a data file of this package as a dictionary."""
    with (HERE / name).open("rb") as file:
        return tomllib.load(file)


@lru_cache(maxsize=1)
def attributes() -> Mapping[str, Attribute]:
    """Return every attribute by name, in the order of the files."""
    found: dict[str, Attribute] = {}
    for path in sorted((HERE / "wordings").glob("*.toml")):
        for name, entry in read_toml(f"wordings/{path.name}").items():
            found[name] = Attribute(
                name,
                entry["question"],
                entry["dissent"],
                entry.get("true_is_bad", False),
                tuple(w for key in _LISTS for w in _wordings(name, key, entry[key])),
            )
    return found


@lru_cache(maxsize=1)
def concepts() -> Mapping[str, Concept]:
    """Return every concept by name."""
    return {
        name: Concept(name, entry["kind"], **{k: tuple(v) for k, v in entry.items() if k != "kind"})
        for name, entry in read_toml("concepts.toml").items()
    }


@lru_cache(maxsize=1)
def cuisines() -> tuple[str, ...]:
    """Return the values of the ENUM of cuisines, sorted."""
    return tuple(sorted({tag for c in concepts().values() for tag in (*c.tags, *c.extra)}))


_LISTS = ("positive", "positive_held_out", "negative", "negative_held_out")


def _wordings(name: str, key: str, texts: Sequence[str]) -> list[Wording]:
    return [
        Wording(f"{name}.{key}.{i}", name, key.startswith("positive"), key.endswith("held_out"), text)
        for i, text in enumerate(texts, 1)
    ]
