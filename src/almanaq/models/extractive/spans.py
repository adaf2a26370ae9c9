"""Answers to open questions: the words of a document that fitted weights hold likeliest, with a confidence."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import exp, log
from pathlib import Path

from almanaq.models.extractive.candidates import Asked, Scene, Token, read_question, read_tokens, shape
from almanaq.models.extractive.clauses import clauses_of
from almanaq.models.protocols import Quote
from almanaq.values import canonical

WEIGHTS_FILE = Path(__file__).with_name("span_weights.json")

LEAST_CONFIDENCE = 0.055
"""Below it a document says nothing of the matter: what 98 of 100 right answers on the development half reach."""
_CONFIDENCE = {"covered": 2.37, "focused": 0.53, "log share": 1.18, "score": 0.28, "constant": -2.5}
_NUMBERS = frozenset(("money", "percent", "number", "number unit", "year", "ranked", "number words", "time"))
_TYPED: Mapping[str, tuple[str, frozenset[str]]] = {
    "date": ("when", frozenset(("date", "daymonth", "year"))),
    "timestamp": ("when", frozenset(("date", "daymonth", "year", "time"))),
    "time": ("when", frozenset(("time",))),
    "number": ("how many", _NUMBERS),
    "integer": ("how many", _NUMBERS),
}
"""How a question is understood whose answer has a type, and the shapes that such an answer may have."""
_COUNTED = frozenset(("how many", "how much", "how long", "how old", "how far", "how tall", "when", "what:year"))
_NOTE_LENGTH = 14
_TELLING = frozenset("is are was were has have had do does did can will would be been".split())
_LEAST_SHARE = 0.5
"""Share of the question's words that a clause must hold to count as what a document says of it."""
_OPINION = re.compile(r"\b(?:say|said|think|thought|describe|mention|opinions?|feel|complain|praise)\b", re.IGNORECASE)
_REMARK = re.compile(r"\s*\([^()]*\)\s*$")


@dataclass(frozen=True, slots=True)
class Span:
    """Words that answer a question, the sentence that holds them, and a confidence from 0 to 1."""

    value: str
    quote: Quote
    confidence: float


@dataclass(frozen=True, slots=True)
class _Found:
    scene: Scene
    tokens: tuple[Token, ...]
    value: str
    quote: Quote
    score: float


def best_span(passages: Sequence[str], question: str, type: str, parses: Callable[[str], bool]) -> Span | None:
    """Return the words that best answer an open question and can be parsed, None where nothing speaks of it."""
    wanted, shapes = read_question(question), frozenset[str]()
    if type in _TYPED:
        kind, shapes = _TYPED[type]
        keeps = wanted.kind.startswith("how ") or wanted.kind in ("when", "what:date", "what:year", "what:number")
        wanted = wanted if keeps else replace(wanted, kind=kind)
    if wanted.kind in ("how", "why") or _OPINION.search(question):
        return _statement(passages, wanted) if type == "text" else None
    if (note := _note(passages, wanted, parses)) is not None:
        return note
    found = [each for each in _candidates(passages, wanted) if not shapes or shape(each.tokens) in shapes]
    found.sort(key=lambda each: -each.score)
    best = next((each for each in found if parses(each.value)), None)
    if best is None:
        return None
    same = canonical(best.value)
    total = sum(exp(each.score - best.score) for each in found)
    share = sum(exp(each.score - best.score) for each in found if canonical(each.value) == same) / total
    seen = {"covered": best.scene.covered, "focused": best.scene.focused, "log share": log(share), "score": best.score}
    confidence = 1 / (1 + exp(-sum(_CONFIDENCE[name] * value for name, value in (seen | {"constant": 1.0}).items())))
    return Span(best.value, best.quote, confidence) if confidence >= LEAST_CONFIDENCE else None


def _statement(passages: Sequence[str], wanted: Asked) -> Span | None:
    stems = wanted.stems
    shares = ((len(stems & {*c.stems.split()}) / max(1, len(stems)), n, c) for n, c in clauses_of(passages))
    best = max(shares, key=lambda each: each[0], default=None)
    if best is None or best[0] < _LEAST_SHARE:
        return None
    share, number, clause = best
    return Span(clause.text, Quote(number, clause.start, clause.text), share)


def _candidates(passages: Sequence[str], wanted: Asked) -> Iterator[_Found]:
    weights = _weights()
    for number, passage in enumerate(passages):
        scene = Scene(wanted, passage)
        # A passage that shares no word with the question cannot be distinguished from any other text.
        if not scene.covered and wanted.stems:
            continue
        for each in scene.candidates():
            score = sum(weights[name] * value for name, value in each.features.items() if name in weights)
            value = passage[each.tokens[0].start : each.tokens[-1].end]
            yield _Found(scene, each.tokens, value, Quote(number, each.start, passage[each.start : each.end]), score)


@cache
def _weights() -> dict[str, float]:
    return dict(json.loads(WEIGHTS_FILE.read_text("utf-8")))


def _note(passages: Sequence[str], wanted: Asked, parses: Callable[[str], bool]) -> Span | None:
    if len(passages) != 1:
        return None
    tokens = read_tokens(passages[0]).tokens
    if not 0 < len(tokens) <= _NOTE_LENGTH or not _TELLING.isdisjoint(token.lower for token in tokens):
        return None
    if tokens[-1].text in (".", "!", "?") and len(tokens) > 2:
        return None
    text = passages[0].strip()
    bare = _REMARK.sub("", text)
    text = bare if bare.strip() else text
    fits = wanted.kind not in _COUNTED or any(c.isdigit() for c in text)
    if not fits or not parses(text):
        return None
    start = passages[0].index(text)
    return Span(text, Quote(0, start, text), 0.5)
