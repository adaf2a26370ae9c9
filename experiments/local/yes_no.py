"""How well the model `local` answers yes/no questions about the sample's restaurants, by ground truth.

    python experiments/local/yes_no.py [--held-out] [--out experiments/local/yes_no.json]

One question per hidden attribute, over all reviews of each restaurant whose truth is known. Balanced accuracy is the
mean of the recalls of yes and no, "no information" being wrong for both; macro over attributes. The lexicon is written
on the development restaurants; the held-out ones use other wordings, and are measured with `--held-out` only.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from almanaq.models.extractive import LocalReader
from almanaq.models.protocols import TextCall
from almanaq.sample import load
from almanaq_bench.sample.truth import load_truth

READER = LocalReader()
QUESTIONS = {
    "romantic": "is it romantic?",
    "quiet": "is it quiet?",
    "unique_atmosphere": "does it have a unique atmosphere?",
    "upbeat_atmosphere": "is the atmosphere upbeat?",
    "warm_lighting": "is the lighting warm?",
    "local_hangout": "is it a local hangout?",
    "special_occasions": "is it good for special occasions?",
    "brick_oven": "do they have a brick oven?",
    "good_desserts": "are the desserts good?",
    "gluten_free_options": "do they have gluten-free options?",
    "fresh_baked_goods": "do they have fresh baked goods?",
    "creative_plant_based": "are the plant-based dishes creative?",
    "outdoor_seating": "does it have outdoor seating?",
    "water_view": "does it have a view of the water?",
    "golden_gate_view": "can you see the Golden Gate bridge?",
    "easy_parking": "is parking easy?",
    "wheelchair_access": "is it wheelchair accessible?",
    "live_music": "do they have live music?",
    "dog_friendly": "is it dog friendly?",
    "kid_friendly": "is it good for kids?",
    "good_for_groups": "is it good for large groups?",
    "work_friendly": "is it a good place to work on a laptop?",
    "good_service": "is the service good?",
    "long_wait": "is there a long wait?",
    "takes_reservations": "do they take reservations?",
    "happy_hour": "do they have a happy hour?",
    "late_night": "is it open late at night?",
    "lunch_special": "is there a lunch special?",
    "birthday_cheesecake": "do they have cheesecake for birthdays?",
}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--held-out", action="store_true")
    arguments.add_argument("--out", type=Path)
    given = arguments.parse_args()
    splits = {"development": False} | ({"held_out": True} if given.held_out else {})
    report = {"model": "local", **{name: measure(held_out) for name, held_out in splits.items()}}
    text = json.dumps(report, indent=2)
    print(text)
    if given.out is not None:
        given.out.write_text(text + "\n", encoding="utf-8")


def measure(held_out: bool) -> dict[str, Any]:
    """Return the figures of one half, macro over attributes, and those of each attribute."""
    truth, documents = load_truth(), _documents()
    ids = [i for i in documents if (i in truth.held_out) is held_out]
    start = time.perf_counter()
    rows = {}
    for attribute in truth.attributes:
        said = [(truth.values[i][attribute], _answer(documents[i], QUESTIONS[attribute])) for i in ids]
        rows[attribute] = _figures(said)
    calls = len(ids) * len(rows)
    macro = {name: _mean(row[name] for row in rows.values()) for name in ("balanced_accuracy", "answered", "invented")}
    return {
        "restaurants": len(ids),
        **macro,
        "majority_balanced_accuracy": 0.5,
        "milliseconds_per_call": round((time.perf_counter() - start) * 1000 / calls, 2),
        "attributes": rows,
    }


def _figures(said: list[tuple[bool | None, bool | None]]) -> dict[str, float | None]:
    recalls = [
        sum(answer is side for truth, answer in said if truth is side) / count
        for side in (True, False)
        if (count := sum(truth is side for truth, _ in said))
    ]
    known = [answer for truth, answer in said if truth is not None]
    silent = [answer for truth, answer in said if truth is None]
    return {
        "balanced_accuracy": round(sum(recalls) / len(recalls), 3),
        "answered": round(sum(answer is not None for answer in known) / len(known), 3),
        "invented": round(sum(answer is not None for answer in silent) / len(silent), 3),
    }


def _mean(values: Iterable[float | None]) -> float:
    found = [value for value in values if value is not None]
    return round(sum(found) / len(found), 3)


def _answer(reviews: tuple[str, ...], question: str) -> bool | None:
    reply = READER.evaluate(TextCall("answer", reviews, question, compared=("Yes",)))
    return reply.verdicts["Yes"]


def _documents() -> dict[int, tuple[str, ...]]:
    rows = load("restaurants").tables["restaurants"].select(["id", "reviews"]).to_pylist()
    return {row["id"]: tuple(row["reviews"]) for row in rows}


if __name__ == "__main__":
    main()
