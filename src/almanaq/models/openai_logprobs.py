"""How likely a model found each verdict, read from the log probabilities of the tokens that it wrote."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from almanaq.models.protocols import VERDICTS

_VALUE = re.compile(r'"value"\s*:\s*')
_TOLD = 0.5
"""Share of the probability that must fall to verdicts; below it the others are too many to speak for all."""


def verdict_chances(content: Mapping[str, Any]) -> Mapping[str, float] | None:
    """Return the probabilities of the VERDICTS as `value` of a JSON reply, together 1; None where they are not told.

    Each token's likeliest alternatives are followed for as long as what is written leaves several verdicts open. One
    that was not written, and would leave several open too, counts for each of them alike.
    """
    try:
        tokens = [_token(token) for token in content["choices"][0]["logprobs"]["content"]]
    except (LookupError, TypeError, ValueError, AttributeError):
        return None
    found = dict.fromkeys(VERDICTS, 0.0)
    written, mass = "", 1.0
    for token, alternatives in tokens:
        fits = _fitting(written + token)
        if fits is not None:
            for other, chance in alternatives.items():
                named = _fitting(written + other) or ()
                if other != token or len(named) == 1:
                    found |= {verdict: found[verdict] + mass * chance / len(named) for verdict in named}
            if len(fits) < 2:
                break
            mass *= alternatives[token]
        written += token
    total = sum(found.values())
    return {verdict: chance / total for verdict, chance in found.items()} if total >= _TOLD else None


def _token(told: Mapping[str, Any]) -> tuple[str, dict[str, float]]:
    """Return a token and the probabilities of what might stand in its place, itself included."""
    others = told.get("top_logprobs") or ()
    alternatives = {str(other["token"]): _chance(other) for other in others}
    return str(told["token"]), {**alternatives, str(told["token"]): _chance(told)}


def _chance(told: Mapping[str, Any]) -> float:
    logarithm = float(told["logprob"])
    if math.isnan(logarithm):
        raise ValueError("a probability that is no number")
    return min(1.0, math.exp(min(0.0, logarithm)))


def _fitting(written: str) -> Sequence[str] | None:
    """Return the verdicts that a reply so far may still have as its value; None before its value begins."""
    begun = _VALUE.search(written)
    return None if begun is None else tuple(_begun_by(written[begun.end() :].lower()))


def _begun_by(text: str) -> Iterator[str]:
    for verdict in VERDICTS:
        whole = "null" if verdict == "null" else json.dumps(verdict).lower()
        if whole.startswith(text) or text.startswith(whole):
            yield verdict
