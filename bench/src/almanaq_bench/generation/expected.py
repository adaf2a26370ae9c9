"""What replies are expected to cost before the first is asked for, from the prompts that would be sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar, runtime_checkable

from almanaq.models.prompted_reader import asked_values
from almanaq.models.prompts import prompt_file
from almanaq.models.protocols import Prompt, TextCall, Usage
from almanaq.models.token_estimate import estimate_tokens
from almanaq_bench.generation.protocols import Asked

WRITTEN_QUERY, WRITTEN_REPLY, WRITTEN_ANSWER = 150, 150, 40
"""Tokens that a reply has: a query with its reasoning, a reply in sentences, a short value with its quotes."""

_SAMPLE = 25
_Item = TypeVar("_Item")


@runtime_checkable
class Expecting(Protocol):
    """A generator that can say what its replies are expected to cost."""

    def expected(self, asked: Sequence[Asked]) -> Usage:
        """Return calls and tokens, money aside; no call where nothing is paid for."""


def of_prompt(prompt: Prompt, written: int) -> Usage:
    """Return what one call with this prompt takes, with a reply of so many tokens."""
    return Usage(1, 0, sum(estimate_tokens(message.content) for message in prompt.messages), written)


def of_text_call(passages: Sequence[str], question: str) -> Usage:
    """Return what reading one document takes."""
    call = TextCall("answer", tuple(passages), question)
    shown = {"passages": list(enumerate(passages, 1)), "part": 0, "parts": 0}
    return of_prompt(prompt_file("answer").prompt(shown | asked_values(call)), WRITTEN_ANSWER)


def times(usage: Usage, factor: float) -> Usage:
    """Return so many times what a usage says, money aside."""
    calls, read, written = usage.calls, usage.input_tokens, usage.output_tokens
    return Usage(round(factor * calls), 0, round(factor * read), round(factor * written))


def sample_of(items: Sequence[_Item], most: int = _SAMPLE) -> Sequence[_Item]:
    """Return items spread evenly over all of them, as many as are enough for an estimate."""
    return items if len(items) <= most else [items[len(items) * n // most] for n in range(most)]
