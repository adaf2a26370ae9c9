"""Fakes for tests of code that uses almanaq: deterministic, counted, offline.

almanaq-bench adds a stand-in for model servers: `StandInServer`, `Faults`, `Ledger`, `replies_from`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from almanaq.benchmark import import_bench
from almanaq.errors import UsageError
from almanaq.models.budget import estimate_tokens
from almanaq.models.protocols import Completion, Prompt, TextCall, TextReply, Usage
from almanaq.values import canonical

__all__ = ["FunctionModel", "ScriptedModel"]
_OF_BENCH = ("Faults", "Ledger", "StandInServer", "replies_from")
Reply = str | Mapping[str, object] | Exception
Script = (
    Sequence[Reply] | Mapping[str, "Sequence[Reply] | Reply | Callable[[Prompt], Reply]"] | Callable[[Prompt], Reply]
)


def __getattr__(name: str) -> Any:
    if name not in _OF_BENCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_bench("testing", f"almanaq.testing.{name}"), name)


class FunctionModel:
    """A Reader whose replies a function computes.

    Args:
        function: called with the document's passages joined by a blank line, and the question (`"summary"` for
            `summary`); None is "no information". It has to return at once, as deadlines and streams wait for it. What
            it raises ends the query and reaches the caller as it is: it is a fault of the test, not an answer that is
            unknown. To play a call that fails, raise a ModelCallError.
        latency: seconds that each call takes; calls overlap as those of a real model do.

    Attributes:
        calls: number of calls made.
        requests: (text, question) of every call, in order.

    >>> import almanaq
    >>> model = FunctionModel(lambda text, question: "Yes" if "friendly" in text else None)
    >>> dogs = {"age": [7, 3, 5], "about": ["Rex is friendly.", "Bella.", "Milo."]}
    >>> con = almanaq.connect({"dogs": dogs}, model=model, cache=False)
    >>> con.sql("SELECT age FROM dogs WHERE age > 4 AND answer(about, 'friendly?') = 'Yes'").rows
    [(7,)]
    >>> model.calls, sorted(model.requests)
    (2, [('Milo.', 'friendly?'), ('Rex is friendly.', 'friendly?')])
    """

    name = "function"
    remote = False
    paid = False

    def __init__(self, function: Callable[[str, str], str | None], latency: float = 0.0) -> None:
        self._function = function
        self._latency = latency
        self.calls = 0
        self.requests: list[tuple[str, str]] = []

    async def read(self, call: TextCall) -> TextReply:
        """Return the function's reply; a verdict compares its canonical form with the literal's."""
        text = "\n\n".join(call.passages)
        question = "summary" if call.function == "summary" else call.question
        self.calls += 1
        self.requests.append((text, question))
        if self._latency:
            await asyncio.sleep(self._latency)
        value = self._function(text, question)
        if not isinstance(value, str | None):
            raise UsageError(f"the function of a FunctionModel gave {value!r}: it must return text or None")
        verdicts = {
            literal: None if value is None else canonical(value) == canonical(literal) for literal in call.compared
        }
        return TextReply(value, verdicts, usage=Usage(calls=1))


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
        """How many calls were made: one for each prompt, failed ones included."""
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
