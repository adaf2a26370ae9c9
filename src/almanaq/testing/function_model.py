"""FunctionModel: a deterministic model made of a Python function, with every call counted (semantics 18)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from almanaq.errors import UsageError
from almanaq.models.protocols import TextCall, TextReply, Usage
from almanaq.values import canonical


class FunctionModel:
    """A Reader whose replies a function computes.

    Args:
        function: called with the document's passages joined by a blank line, and the question (`"summary"` for
            `summary`); None is "no information".
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
