"""Writes the bundled sample: `python -m tools.sample.generate`; `--check` compares it with the committed files."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from almanaq import sample
from almanaq_bench.sample.truth import MENTIONS, TRUTH
from tools.sample.dice import Dice
from tools.sample.grammar import PRICES, attributes, cuisines
from tools.sample.restaurants import Restaurant, restaurants
from tools.sample.reviews import Review, Reviewers

SEED = 20_240_611
DATA = sample.path("restaurants").parent


@dataclass(frozen=True, slots=True)
class Place:
    """One restaurant with its reviews and the number of reviews that the site has of it, bundled or not."""

    restaurant: Restaurant
    reviews: tuple[Review, ...]
    num_reviews: int


def places(seed: int = SEED) -> list[Place]:
    """Return all restaurants with their reviews: the same for the same seed, on every Python."""
    reviewers = Reviewers(seed)
    made = []
    for restaurant in restaurants(seed):
        reviews = tuple(reviewers.write(restaurant))
        more = int(2 ** Dice(seed, "more", restaurant.id).uniform(2, 10.5))
        made.append(Place(restaurant, reviews, len(reviews) + more))
    return made


def tables(made: Iterable[Place]) -> dict[str, Any]:
    """Return the Arrow tables by file name: restaurants, truth (a row per restaurant), mentions (a row per mention)."""
    import pyarrow as pa

    made = list(made)
    return {
        "restaurants": pa.Table.from_pylist([_row(p) for p in made], schema=_restaurant_schema()),
        "truth": pa.Table.from_pylist([_truth_row(p.restaurant) for p in made], schema=_truth_schema()),
        "mentions": pa.Table.from_pylist([m for p in made for m in _mention_rows(p)], schema=_mention_schema()),
    }


def schema_text() -> str:
    """Return the schema file of the sample, TOML."""
    lines = [
        "# Written by tools.sample.generate.",
        "[restaurants]",
        'description = "Restaurants in San Francisco, Palo Alto, Cupertino and Sunnyvale, with reviews (invented)"',
        'key = ["id"]',
    ]
    for name, (kind, description) in _COLUMNS.items():
        lines += ["", f"[restaurants.columns.{name}]", f'kind = "{kind}"', f'description = "{description}"']
        if kind == "enum":
            values = PRICES if name == "price" else cuisines()
            lines.append("values = [" + ", ".join(f'"{v}"' for v in values) + "]")
    return "\n".join(lines) + "\n"


def files() -> dict[str, Path]:
    """Return where each table is kept. The truth lies apart, so that no one reads it as a relation of the sample."""
    return {
        "restaurants": DATA / "restaurants.parquet",
        "truth": TRUTH,
        "mentions": MENTIONS,
    }


def differences() -> list[str]:
    """Return the committed files whose content is not what the generator makes; empty when all agree."""
    import pyarrow.parquet as pq

    made = tables(places())
    stale = [str(p) for name, p in files().items() if not p.exists() or not pq.read_table(p).equals(made[name])]
    schema = DATA / "restaurants.almanaq.toml"
    if not schema.exists() or schema.read_text(encoding="utf-8") != schema_text():
        stale.append(str(schema))
    return stale


def write() -> None:
    """Write the sample's files."""
    import pyarrow.parquet as pq

    made = tables(places())
    for name, path in files().items():
        path.parent.mkdir(exist_ok=True)
        pq.write_table(made[name], path, compression="zstd", compression_level=19)
    (DATA / "restaurants.almanaq.toml").write_text(schema_text(), encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Write or check the sample; give the exit code."""
    if arguments not in ([], ["--check"]):
        print("usage: python -m tools.sample.generate [--check]", file=sys.stderr)
        return 2
    if not arguments:
        write()
        return 0
    stale = differences()
    for path in stale:
        print(f"{path}: differs from what the generator makes; run python -m tools.sample.generate", file=sys.stderr)
    return 1 if stale else 0


_COLUMNS = {
    "id": ("structured", "number of the restaurant"),
    "name": ("structured", "name of the restaurant"),
    "cuisines": ("enum", "kinds of food and of place; several per restaurant"),
    "price": ("enum", "price level, from cheap to luxury"),
    "rating": ("structured", "average rating in stars, 1.0 to 5.0"),
    "num_reviews": ("structured", "number of reviews on the site; some of them are in reviews"),
    "address": ("structured", "street address with city and postal code"),
    "popular_dishes": ("free_text", "what people order most, separated by commas"),
    "phone_number": ("structured", "telephone number"),
    "reviews": ("free_text", "what guests wrote, one passage per review"),
    "opening_hours": ("structured", "days and hours of opening"),
    "location": ("structured", "city"),
}


def _row(place: Place) -> dict[str, object]:
    from decimal import Decimal

    r = place.restaurant
    return {
        "id": r.id,
        "name": r.name,
        "cuisines": list(r.cuisines),
        "price": r.price,
        "rating": Decimal(f"{r.rating:.1f}"),
        "num_reviews": place.num_reviews,
        "address": r.address,
        "popular_dishes": ", ".join(r.dishes),
        "phone_number": r.phone,
        "reviews": [review.text for review in place.reviews],
        "opening_hours": r.opening_hours,
        "location": r.city,
    }


def _truth_row(restaurant: Restaurant) -> dict[str, object]:
    values = {name: restaurant.truth.get(name) for name in attributes()}
    return {"id": restaurant.id, "held_out": restaurant.held_out, **values}


def _mention_rows(place: Place) -> list[dict[str, object]]:
    return [
        {
            "restaurant_id": place.restaurant.id,
            "review": number,
            "attribute": m.wording.attribute,
            "polarity": m.wording.polarity,
            "wording": m.wording.id,
            "held_out": m.wording.held_out,
            "start": m.start,
            "end": m.end,
        }
        for number, review in enumerate(place.reviews)
        for m in review.mentions
    ]


def _restaurant_schema() -> Any:
    import pyarrow as pa

    special = {
        "id": pa.int32(),
        "num_reviews": pa.int32(),
        "rating": pa.decimal128(2, 1),
        "cuisines": pa.list_(pa.string()),
        "reviews": pa.list_(pa.string()),
    }
    return pa.schema([(name, special.get(name, pa.string())) for name in _COLUMNS])


def _truth_schema() -> Any:
    import pyarrow as pa

    return pa.schema([("id", pa.int32()), ("held_out", pa.bool_()), *((name, pa.bool_()) for name in attributes())])


def _mention_schema() -> Any:
    import pyarrow as pa

    whole, text, flag = pa.int32(), pa.string(), pa.bool_()
    kinds = {"restaurant_id": whole, "review": whole, "attribute": text, "polarity": flag, "wording": text}
    return pa.schema([*kinds.items(), ("held_out", flag), ("start", whole), ("end", whole)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
