"""Keyword rules that map a question to a hidden attribute: the ground truth's own, no model in them."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

Form = Literal["yes", "no", "value"]


@dataclass(frozen=True, slots=True)
class QuestionMeaning:
    """What a question asks.

    Attributes:
        attributes: the attributes that decide; for the form "value" the first that holds gives the value.
        form: "yes" asks whether it holds, "no" whether it does not, "value" what it is like.
    """

    attributes: tuple[str, ...]
    form: Form


_ATMOSPHERE = re.compile(r"atmosphere|ambian|ambien|\bvibes?\b|\bmood\b|decor|setting")
_OPEN = re.compile(r"^\s*(?:what|how|describe|which kind|tell me)\b")
_HOW_GOOD = re.compile(r"^\s*(?:how (?:many|much)|what (?:time|day|price|phone|dish))")
_MOODS = ("upbeat_atmosphere", "romantic", "unique_atmosphere", "quiet")


def parse_question(question: str) -> QuestionMeaning | None:
    """Return what a question asks, or None when it is about nothing that the truth knows."""
    text = question.lower()
    if _HOW_GOOD.match(text):
        return None
    is_open = bool(_OPEN.match(text))
    if is_open and _ATMOSPHERE.search(text):
        return QuestionMeaning(_MOODS, "value")
    for rule in _read_rules():
        for form in ("opposite", "asks"):
            if any(re.search(pattern, text) for pattern in rule.get(form, ())):
                return QuestionMeaning(
                    (rule["attribute"],), "value" if is_open else "no" if form == "opposite" else "yes"
                )
    return None


@cache
def _read_rules() -> list[dict[str, Any]]:
    rules: list[dict[str, Any]] = tomllib.loads(files(__package__).joinpath("rules.toml").read_text("utf-8"))["rule"]
    return rules


# What an attribute is like, when it holds and when it does not.
VALUES: dict[str, tuple[str, str]] = {
    "upbeat_atmosphere": ("upbeat", "subdued"),
    "romantic": ("romantic", "not romantic"),
    "unique_atmosphere": ("unique", "ordinary"),
    "quiet": ("quiet", "loud"),
    "warm_lighting": ("warm", "harsh"),
    "water_view": ("Great view of the bay", "No view of the water"),
    "golden_gate_view": ("View of the Golden Gate bridge", "No view of the Golden Gate bridge"),
    "good_service": ("great", "poor"),
    "long_wait": ("long", "short"),
    "easy_parking": ("easy", "hard"),
    "good_desserts": ("good", "poor"),
    "creative_plant_based": ("creative and tasty", "uninspired"),
}
