"""ScriptedModel: a language model that replies what a test wrote down, and records what it was asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence

from almanaq.models.budget import estimate_tokens
from almanaq.models.protocols import Completion, Prompt, Usage

Reply = str | Mapping[str, object] | Exception
Script = (
    Sequence[Reply] | Mapping[str, "Sequence[Reply] | Reply | Callable[[Prompt], Reply]"] | Callable[[Prompt], Reply]
)


class ScriptedModel:
    """A LanguageModel with written replies.

    Args:
        script: replies in order; or by prompt name, each one reply for always, replies in order, or a function of the
            prompt; or one function for all. A mapping is sent as JSON; an exception is raised.
        latency: seconds that each call takes.

    Attributes:
        prompts: every prompt, in order.

    >>> import almanaq
    >>> model = ScriptedModel({"answer": {"value": "Rex", "quotes": []}})
    >>> con = almanaq.connect({"dogs": {"about": ["This is Rex."]}}, model=model, cache=False)
    >>> con.sql("SELECT answer(about, 'what is its name?') FROM dogs").rows
    [('Rex',)]
    >>> model.calls, model.prompts[0].name
    (1, 'answer')
    """

    persistent = False
    """Its replies are no model's: they are never kept in the cache file."""

    def __init__(self, script: Script, *, latency: float = 0.0, name: str = "scripted") -> None:
        self.name = name
        self._script, self._latency = script, latency
        self._used: dict[str, int] = {}
        self.prompts: list[Prompt] = []

    @property
    def calls(self) -> int:
        """How many calls were made: one for each prompt, failed ones included.

        >>> ScriptedModel(["Yes", "No"]).calls
        0
        """
        return len(self.prompts)

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the next written reply; raises AssertionError when the script has none for this prompt."""
        self.prompts.append(prompt)
        if self._latency:
            await asyncio.sleep(self._latency)
        reply = self._reply(prompt)
        if isinstance(reply, Exception):
            raise reply
        text = reply if isinstance(reply, str) else json.dumps(reply)
        read = sum(estimate_tokens(message.content) for message in prompt.messages)
        return Completion(text, Usage(calls=1, input_tokens=read, output_tokens=estimate_tokens(text)))

    def _reply(self, prompt: Prompt) -> Reply:
        script, key = self._script, ""
        if isinstance(script, Mapping):
            key = prompt.name
            if key not in script:
                raise AssertionError(f"the script has no reply for the prompt {key!r}, only for {sorted(script)}")
            script = script[key]  # type: ignore[assignment]
        if callable(script):
            return script(prompt)
        if isinstance(script, str | Mapping | Exception):
            return script
        position = self._used[key] = self._used.get(key, -1) + 1
        if position >= len(script):
            raise AssertionError(f"the script ends after {len(script)} replies; asked for prompt {prompt.name!r}")
        return script[position]
