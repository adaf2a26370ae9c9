"""Four restaurants with a truth, questions and a conversation, in the layout of docs/restaurants.md."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

PLACES = [
    {
        "id": 1,
        "name": "Oven",
        "cuisines": ["pizza"],
        "price": "cheap",
        "rating": 4.0,
        "reviews": ["Candles, so sweet."],
    },
    {"id": 2, "name": "Basil", "cuisines": ["pizza"], "price": "moderate", "rating": 4.5, "reviews": ["Loud crowd."]},
    {"id": 3, "name": "Lemon", "cuisines": ["thai"], "price": "cheap", "rating": 4.5, "reviews": ["Candles at night."]},
    {
        "id": 4,
        "name": "Ginger",
        "cuisines": ["thai"],
        "price": "luxury",
        "rating": 3.0,
        "reviews": ["Bright and loud."],
    },
]
SCHEMA = """
[restaurants]
key = ["id"]
[restaurants.columns.cuisines]
kind = "enum"
values = ["pizza", "thai"]
[restaurants.columns.reviews]
kind = "free_text"
"""
PIZZA = "'pizza' = ANY(cuisines)"
THAI = "'thai' = ANY(cuisines)"
SINGLES = [
    {"question": "Which places have pizza?", "where": PIZZA},
    {"question": "Any Thai place with candles?", "where": THAI, "attributes": {"candles": True}},
    {"question": "How many Thai places are there?", "where": THAI, "expect": "count"},
]
TALK = {
    "name": "dinner",
    "turns": [
        {"say": "Hi!", "kind": "talk"},
        {"say": "Thai please", "where": THAI},
        {"say": "something cheaper?", "kind": "compare", "column": "price", "more": False},
        {"say": "a place I like", "right": [2], "text": True},
    ],
}


def lines(*entries: Mapping[str, Any] | str) -> str:
    return "".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in entries)


def write_restaurants(made: Path) -> Path:
    """Write the folder, and give it."""
    made.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(PLACES), made / "restaurants.parquet")
    (made / "restaurants.parquet.almanaq.toml").write_text(SCHEMA)
    truth = [{"id": p["id"], "candles": "Candles" in p["reviews"][0]} for p in PLACES]
    (made / "truth.jsonl").write_text(lines(*truth))
    (made / "single-turn.jsonl").write_text(lines(*SINGLES))
    (made / "conversations.jsonl").write_text(lines(TALK))
    return made
