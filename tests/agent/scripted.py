"""A language model that replies from a list, and remembers what it was asked."""

from __future__ import annotations

import json
from collections.abc import Sequence

from almanaq.errors import ModelCallError
from almanaq.models.protocols import Completion, LinkRequest, Models, Prompt, TextCall, TextReply, Usage


class Script:
    """Replies in order; an exception in the list is raised; running out is a failed test."""

    name = "script"

    def __init__(self, *replies: str | Exception) -> None:
        self._replies = list(replies)
        self.prompts: list[Prompt] = []

    async def complete(self, prompt: Prompt) -> Completion:
        self.prompts.append(prompt)
        if not self._replies:
            raise ModelCallError(f"the script ended before {prompt.name}")
        reply = self._replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return Completion(reply, Usage(calls=1, input_tokens=10, output_tokens=5))


def query(suql: str | None, *, reasoning: str = "scripted", **fields: object) -> str:
    """Return a reply of the form that the prompt `parse` asks for; `fields` are those that are not as for a query."""
    plain = {"needs_data": True, "clarify": None, "reply": None, "left_out": []}
    return json.dumps({"reasoning": reasoning, "suql": suql, **plain, **fields})


class _Nothing:
    name = "nothing"
    remote = paid = False

    async def read(self, call: TextCall) -> TextReply:
        raise AssertionError(f"the agent reads no text itself: {call.question}")

    async def link(self, request: LinkRequest) -> tuple[str, ...]:
        raise AssertionError(f"the agent links through the engine: {request.literal}")

    def embed(self, texts: Sequence[str]) -> object:
        raise AssertionError("the agent embeds nothing")


def models(language: Script | None = None) -> Models:
    """Return Models of which only the language model may be used."""
    nothing = _Nothing()
    return Models("test", nothing, nothing, nothing, language)  # type: ignore[arg-type]
