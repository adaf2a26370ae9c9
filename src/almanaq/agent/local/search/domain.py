"""Words of one domain, as a pack beside the sample that they belong to: in use where a source has such rows."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from importlib.resources import files

from almanaq.agent.linking.columns import relation_words
from almanaq.agent.linking.words import word_set
from almanaq.suql.catalog.relations import Catalog

PACKS = (("almanaq.sample", "places.toml"),)
"""Where packs are: a package and a file of it."""


@dataclass(frozen=True, slots=True)
class Domain:
    """What a search understands besides English in general; nothing where no pack speaks of the rows.

    Attributes:
        rows: words of the names of relations that it speaks of.
        foods: things that a column of dishes holds; `dish_cues` words before one.
        occasions: what or whom a row is good for.
        counted: nouns that stand with an article in the singular.
        companions: who comes along: told rather than asked, it still is a wish; `pets` have to be let in.
        empty: nouns that say nothing by themselves.
        ordinary: words that are part of an option's name and say nothing without the rest of it.
        idioms: pairs of words that mean one thing, and nothing that either of them names in a schema.
        serving: verbs of what a row does, each with its plain form.
    """

    rows: frozenset[str] = frozenset()
    foods: frozenset[str] = frozenset()
    occasions: frozenset[str] = frozenset()
    counted: frozenset[str] = frozenset()
    companions: frozenset[str] = frozenset()
    pets: frozenset[str] = frozenset()
    empty: frozenset[str] = frozenset()
    ordinary: frozenset[str] = frozenset()
    dish_cues: frozenset[str] = frozenset()
    idioms: frozenset[tuple[str, ...]] = frozenset()
    serving: Mapping[str, str] = field(default_factory=dict)


NONE = Domain()


def domain_of(catalog: Catalog) -> Domain:
    """Return the pack that speaks of the rows of a source."""
    named = {word for relation in catalog.relations for word in relation_words(relation)}
    return next((pack for pack in _packs() if pack.rows & named), NONE)


@cache
def _packs() -> tuple[Domain, ...]:
    found = []
    for package, name in PACKS:
        data = tomllib.loads(files(package).joinpath(name).read_text("utf-8"))
        lists = {
            each.name: word_set(data[each.name]) for each in fields(Domain) if each.name not in ("idioms", "serving")
        }
        idioms = frozenset(tuple(pair.split()) for pair in data["idioms"])
        found.append(Domain(idioms=idioms, serving=data["serving"], **lists))
    return tuple(found)
