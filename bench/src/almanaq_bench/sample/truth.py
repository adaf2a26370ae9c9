"""The sample's ground truth, and a model made of it: what a perfect reader would answer.

An attribute is True of a restaurant when most of its bundled reviews that speak of it say so, False when most deny it,
None when none speaks of it. There is no tie: the generator never writes one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from almanaq.errors import UsageError, suggest
from almanaq.sample import path
from almanaq_bench.sample.dishes import serves
from almanaq_bench.sample.rules import VALUES, QuestionMeaning, parse_question

SUMMARY_REVIEWS = 3
TRUTH = Path(__file__).parent / "truth_data" / "restaurants.parquet"
"""The hidden attributes, a row per restaurant, kept apart so that no one reads them as a relation of the sample."""
MENTIONS = TRUTH.with_name("mentions.parquet")
"""Where the reviews speak of them, a row per mention."""


@dataclass(frozen=True, slots=True)
class Mention:
    """One wording in one review: `reviews[review][start:end]` expresses the attribute with this polarity."""

    restaurant_id: int
    review: int
    attribute: str
    polarity: bool
    wording: str
    held_out: bool
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Truth:
    """The hidden attributes: `values[restaurant_id][attribute]`, the mentions, and the held-out restaurants."""

    attributes: tuple[str, ...]
    values: Mapping[int, Mapping[str, bool | None]]
    mentions: tuple[Mention, ...]
    held_out: frozenset[int]


@lru_cache(maxsize=1)
def load_truth() -> Truth:
    """Return the ground truth of the bundled sample."""
    import pyarrow.parquet as pq

    rows = pq.read_table(TRUTH).to_pylist()
    mentions = tuple(Mention(**row) for row in pq.read_table(MENTIONS).to_pylist())
    names = tuple(name for name in rows[0] if name not in ("id", "held_out"))
    values = {row["id"]: {name: row[name] for name in names} for row in rows}
    return Truth(names, values, mentions, frozenset(row["id"] for row in rows if row["held_out"]))


def truth_for(restaurant_id: int, attribute: str) -> bool | None:
    """Return the truth of one attribute: True, False, or None where no review speaks of it.

    Raises:
        UsageError: there is no such restaurant or attribute.
    """
    truth = load_truth()
    if restaurant_id not in truth.values:
        raise UsageError(f"the sample has no restaurant {restaurant_id}: ids go from 1 to {len(truth.values)}")
    if attribute not in truth.attributes:
        raise UsageError(f"the sample has no attribute {attribute!r}{suggest(attribute, truth.attributes)}")
    return truth.values[restaurant_id][attribute]


def truth_function() -> Callable[[str, str], str | None]:
    """Return a function for FunctionModel that answers from the ground truth.

    It takes the passages of a document joined by blank lines, and a question. A document of bundled reviews (all of a
    restaurant's, some, or one) is answered by the majority of their mentions; any other text is read as a list of
    dishes. "summary" gives the first sentences of the first reviews. What it does not know is None.
    """
    mentions = _mentions_by_text()

    def answer(text: str, question: str) -> str | None:
        passages = [p for p in text.split("\n\n") if p.strip()]
        if question.strip().lower() == "summary":
            return " ".join(_first_sentence(p) for p in passages[:SUMMARY_REVIEWS]) or None
        if not all(p in mentions for p in passages):
            return serves(text, question)
        wanted = parse_question(question)
        return _reply(wanted, [m for p in passages for m in mentions[p]]) if wanted else None

    return answer


@lru_cache(maxsize=1)
def _mentions_by_text() -> Mapping[str, tuple[Mention, ...]]:
    import pyarrow.parquet as pq

    rows = pq.read_table(path("restaurants"), columns=["id", "reviews"]).to_pylist()
    by_place: dict[tuple[int, int], list[Mention]] = {}
    for m in load_truth().mentions:
        by_place.setdefault((m.restaurant_id, m.review), []).append(m)
    return {
        text: tuple(by_place.get((row["id"], number), ())) for row in rows for number, text in enumerate(row["reviews"])
    }


def _reply(wanted: QuestionMeaning, mentions: Iterable[Mention]) -> str | None:
    votes = dict.fromkeys(wanted.attributes, 0)
    for m in mentions:
        if m.attribute in votes:
            votes[m.attribute] += 1 if m.polarity else -1
    known = {name: count > 0 for name, count in votes.items() if count}
    if not known:
        return None
    name = next((n for n in wanted.attributes if known.get(n)), next(iter(known)))
    if wanted.form == "value":
        return VALUES.get(name, ("Yes", "No"))[0 if known[name] else 1]
    return "Yes" if known[name] is (wanted.form == "yes") else "No"


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.!?])\s", text.strip(), maxsplit=1)[0]
