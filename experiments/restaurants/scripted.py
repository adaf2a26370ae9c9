"""A language model that writes right SUQL for our conversations: from what a turn wants, and the keys in its prompt.

It is no oracle of the agent's state: which rows were shown it reads off the prompt, as a language model would.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from almanaq.models.protocols import Completion, Prompt, Usage
from almanaq_bench.restaurants.wanted import ExpectedTurn

QUESTIONS = {
    "romantic": "is it romantic?",
    "quiet": "is it quiet?",
    "unique_atmosphere": "does it have a unique atmosphere?",
    "upbeat_atmosphere": "is the atmosphere upbeat?",
    "warm_lighting": "is the lighting warm?",
    "local_hangout": "do locals hang out there?",
    "special_occasions": "is it good for special occasions?",
    "brick_oven": "is there a brick oven?",
    "good_desserts": "are the desserts good?",
    "gluten_free_options": "are there gluten-free options?",
    "fresh_baked_goods": "is there freshly baked bread?",
    "creative_plant_based": "are there creative plant-based dishes?",
    "outdoor_seating": "is there outdoor seating?",
    "water_view": "is there a view of the water?",
    "golden_gate_view": "can one see the Golden Gate bridge?",
    "easy_parking": "is it easy to park?",
    "wheelchair_access": "is it wheelchair accessible?",
    "live_music": "is there live music?",
    "dog_friendly": "are dogs welcome?",
    "kid_friendly": "is it good for kids?",
    "good_for_groups": "is it good for groups?",
    "work_friendly": "is it good for working on a laptop?",
    "good_service": "is the service good?",
    "long_wait": "is there a long wait?",
    "takes_reservations": "does it take reservations?",
    "happy_hour": "is there a happy hour?",
    "late_night": "is it open late at night?",
    "lunch_special": "is there a lunch special?",
    "birthday_cheesecake": "do they serve birthday cheesecake?",
}
"""One question of our own for each attribute of the sample's truth."""

RANK = "CASE price WHEN 'cheap' THEN 1 WHEN 'moderate' THEN 2 WHEN 'expensive' THEN 3 ELSE 4 END"
SHOWN = re.compile(r'"name = (?:[^"\\]|\\.)*?; id = (\d+)\b')


def fields_of(turn: ExpectedTurn) -> dict[str, Any]:
    """Return what a turn says of itself."""
    return {name: value for name, value in asdict(turn).items() if value is not None and (value or name == "where")}


class Writer:
    """A LanguageModel; `turn` is the turn that it is to write a query for next, `search` the last one that searched."""

    name = "writer"
    persistent = False

    def __init__(self) -> None:
        self.turn: Mapping[str, Any] = {}
        self.search: Mapping[str, Any] = {}

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the query as the prompt `parse` wants it; any other prompt gets plain words."""
        if prompt.name != "parse":
            return Completion("Here you are.", Usage(calls=1))
        suql = self.suql(self.turn, prompt.messages[-1].content)
        if "where" in self.turn and self.turn["kind"] != "count":
            self.search = self.turn
        needs = suql is not None
        return Completion(
            json.dumps({"reasoning": "", "suql": suql, "needs_data": needs, "clarify": None}), Usage(calls=1)
        )

    def suql(self, turn: Mapping[str, Any], prompt: str) -> str | None:
        """Return the right query for a turn, None for one that needs no data."""
        earlier = [
            [int(i) for i in SHOWN.findall(line)] for line in prompt.splitlines() if line.startswith("Earlier turn")
        ]
        lists = [ids for ids in earlier if ids]
        kind = turn["kind"]
        if kind in ("talk", "world"):
            return None
        if kind == "detail":
            ids = _pointed(turn, lists)
            asked = (
                f", answer(reviews, '{QUESTIONS[turn['attribute']]}')" if "attribute" in turn else ", address, price"
            )
            return f"SELECT name{asked} FROM restaurants WHERE {_among(ids)}"
        if kind == "best":
            column, direction = turn["order"].split()
            order = f"ORDER BY {_ranked(column)} {direction} LIMIT 1"
            return f"SELECT name, {column} FROM restaurants WHERE {_among(lists[-1])} {order}"
        if kind == "another":
            seen = sorted({i for ids in lists for i in ids})
            return search(self.search, f"NOT ({_among(seen)})")
        if kind == "compare":
            sign, extreme = (">", "MAX") if turn.get("more") else ("<", "MIN")
            bound = f"(SELECT {extreme}({_ranked(turn['column'])}) FROM restaurants WHERE {_among(lists[-1])})"
            return search(turn if "where" in turn else self.search, f"{_ranked(turn['column'])} {sign} {bound}")
        return search(turn)


def search(turn: Mapping[str, Any], more: str = "") -> str:
    """Return the query of a turn that says itself what it wants."""
    texts = [
        f"answer(reviews, '{QUESTIONS[name]}') = '{'Yes' if wanted else 'No'}'"
        for name, wanted in turn.get("attributes", {}).items()
    ]
    where = " AND ".join(part for part in (turn["where"], more, *texts) if part) or "TRUE"
    if turn.get("expect") == "count":
        return f"SELECT COUNT(*) FROM restaurants WHERE {where}"
    order = f" ORDER BY {turn['order']}" if "order" in turn else ""
    return f"SELECT name, price, rating FROM restaurants WHERE {where}{order} LIMIT {turn.get('limit', 3)}"


def _ranked(column: str) -> str:
    return RANK if column == "price" else column


def _among(ids: list[int]) -> str:
    return f"id IN ({', '.join(map(str, ids))})"


def _pointed(turn: Mapping[str, Any], lists: list[list[int]]) -> list[int]:
    """Return the rows that a turn points at, by the lists that the prompt shows."""
    if "row" not in turn:
        return lists[-1]
    several = next((ids for ids in reversed(lists) if len(ids) > 1), lists[-1])
    return [several[turn["row"] if turn["row"] < 0 else turn["row"] - 1]]
