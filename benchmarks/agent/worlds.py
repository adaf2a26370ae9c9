"""Sources of any number of tables, made of words: each holds things of one kind, with numbers, places and prose."""

from __future__ import annotations

from itertools import islice, product

import pyarrow as pa

KINDS = (
    "alpine urban coastal historic modern private public northern southern eastern western old new small large famous "
    "hidden royal rural floating wooden stone glass electric solar quiet noisy bright dark golden silver copper winter "
    "summer spring autumn morning evening night island desert forest river harbor valley hill market garden castle "
    "village border mountain"
).split()[:50]
THINGS = (
    "hotels museums bridges ferries libraries theaters bakeries gardens airports stadiums schools hospitals vineyards "
    "breweries bookshops campsites lighthouses monasteries cinemas galleries trails harbors farms mills towers tunnels "
    "plazas arcades pools saunas bars cafes inns temples chapels palaces ruins dams canals orchards"
).split()
CITIES = ("Oslo", "Lisbon", "Prague", "Vienna", "Turin", "Ghent")
LEVELS = ("simple", "solid", "grand")
ROWS = 40


def tables(count: int) -> dict[str, pa.Table]:
    """Return tables by name, `count` of them."""
    named = islice(product(KINDS, THINGS), count)
    return {f"{kind}_{thing}": _table(kind, thing, seed) for seed, (kind, thing) in enumerate(named)}


def _table(kind: str, thing: str, seed: int) -> pa.Table:
    rows = range(ROWS)
    return pa.table(
        {
            "id": [seed * 1000 + i for i in rows],
            "name": [f"{kind.title()} {thing.title()} {_letters(seed + i * 7)}" for i in rows],
            "city": [CITIES[(seed + i) % len(CITIES)] for i in rows],
            "level": [LEVELS[(seed + i * 5) % len(LEVELS)] for i in rows],
            "price": [20 + (seed * 3 + i * 11) % 200 for i in rows],
            "rating": [1 + (seed + i * 3) % 40 / 10 for i in rows],
            "notes": [_prose(kind, thing, seed + i) for i in rows],
        }
    )


def _letters(number: int) -> str:
    return "".join(chr(97 + (number * step) % 26) for step in (1, 3, 7, 11, 17)).title()


def _prose(kind: str, thing: str, number: int) -> str:
    quiet = "It is quiet here, and nobody hurries." if number % 3 else "It is loud here from early on."
    seen = f"We went there on day {number} of our journey, and the {thing} were as {kind} as we had been told."
    return f"{seen} {quiet} There is a terrace with a view of the square, and the staff remember who comes again."


CONVERSATION = (
    "Which coastal museums in Oslo have a rating above 2?",
    "show me another one",
    "anything cheaper?",
    "what about Vienna?",
    "only those that are quiet",
    "which of them is the best rated?",
    "tell me more about the first one",
    "how many are there?",
    "the city doesn't matter",
    "thanks!",
    "Which historic hotels in Lisbon cost less than 100?",
    "what is the price of the second one?",
)
"""Turns of most kinds, over tables that every source of at least 200 holds."""
SMALL = tuple(turn.replace("coastal", "alpine").replace("historic hotels", "alpine gardens") for turn in CONVERSATION)
"""The same over tables that smaller sources hold."""
