"""How long replies usually are, by what is asked: what is reserved of a budget that is nearly spent."""

from __future__ import annotations

from collections.abc import Iterable

from almanaq.models.protocols import TextCall

_CHOSEN, _WRITTEN, _LONG, _AMONG_OTHERS = 192, 384, 768, 64
"""Tokens of a reply that chooses, that says something, and that lists or sums up, each with its quotes; of a
verdict among others in one reply."""


def usual_tokens(call: TextCall) -> int:
    """Return the tokens that nearly every reply to a call has at most."""
    if call.function == "summary" or call.type == "list":
        return _LONG
    return _CHOSEN if call.yes_or_no or call.options or call.type not in (None, "text") else _WRITTEN


def usual_tokens_of_all(calls: Iterable[TextCall]) -> int:
    """Return the same for a reply to several calls at once."""
    return _AMONG_OTHERS + sum(_AMONG_OTHERS if call.yes_or_no else usual_tokens(call) for call in calls)
