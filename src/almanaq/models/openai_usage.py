"""What a reply says that it cost, believed only where it can be true: a lie must not make a budget last longer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

_MOST_STATED = 10_000_000
"""Tokens of one call from which a count is no count: five times the longest window there is."""
_MESSAGE_TOKENS = 8
_log = logging.getLogger("almanaq")
_warned = set[str]()


def most_tokens(texts: Iterable[str]) -> int:
    """Return how many tokens texts can be at most: no tokenizer makes more of them than there are bytes."""
    return sum(len(text.encode("utf-8", "replace")) + _MESSAGE_TOKENS for text in texts)


def stated_tokens(content: Mapping[str, Any], name: str, *, most: Callable[[], int], told: str) -> int | None:
    """Return the tokens that a reply says were read or written, None where it says nothing.

    A number that cannot be one counts as the most that the call can have cost, with a warning.

    Args:
        name: of the count in the reply.
        most: gives the tokens that the call can have cost at most.
        told: the server's address, for the warning.
    """
    usage = content.get("usage")
    stated = usage.get(name) if isinstance(usage, dict) else None
    if not isinstance(stated, int | float) or isinstance(stated, bool):
        return None
    if 0 <= stated <= _MOST_STATED:
        return int(stated)
    if told not in _warned:
        _warned.add(told)
        _log.warning(
            "the server at %s says that a call took %.3g tokens (%s): counted as %d, the most it can have been",
            told,
            min(max(stated, -1e300), 1e300),
            name,
            most(),
        )
    return most()


def hidden_tokens(content: Mapping[str, Any]) -> int:
    """Return the number of output tokens that went into reasoning and are not in the text."""
    usage = content.get("usage")
    details = usage.get("completion_tokens_details") if isinstance(usage, dict) else None
    hidden = details.get("reasoning_tokens") if isinstance(details, dict) else None
    return hidden if isinstance(hidden, int) and 0 < hidden <= _MOST_STATED else 0


def known_tokens(content: Mapping[str, Any]) -> int:
    """Return the number of input tokens that the server says it had computed for an equal prefix before."""
    usage = content.get("usage")
    if not isinstance(usage, dict):
        return 0
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else usage.get("prompt_cache_hit_tokens")
    return cached if isinstance(cached, int) and 0 < cached <= _MOST_STATED else 0
