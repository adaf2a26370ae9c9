"""DeadlineModel: gives a language model's call up after a time, retries included."""

from __future__ import annotations

import asyncio

from almanaq.errors import ModelCallError
from almanaq.models.protocols import Completion, LanguageModel, Prompt


class DeadlineModel:
    """A language model whose every reply must come within `seconds`."""

    def __init__(self, model: LanguageModel, seconds: float) -> None:
        self.name = model.name
        self._model, self._seconds = model, seconds

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the reply; raises ModelCallError when it does not come in time."""
        try:
            async with asyncio.timeout(self._seconds):
                return await self._model.complete(prompt)
        except TimeoutError as error:
            raise ModelCallError(
                f"{self.name} did not reply within {self._seconds:g} s; give it more with --deadline"
            ) from error

    def forget(self, prompt: Prompt) -> None:
        """Drop the reply to a prompt that turned out to be of no use, where the model keeps replies."""
        getattr(self._model, "forget", lambda _: None)(prompt)
