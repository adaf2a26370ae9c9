"""TracedModel: an OpenTelemetry span for each physical call; the only module that imports opentelemetry."""

from __future__ import annotations

import os
from typing import Any

from almanaq.errors import MissingExtraError
from almanaq.models.protocols import Completion, LanguageModel, Prompt, Usage


def traces_from_environment() -> bool:
    """Return whether ALMANAQ_OTEL asks for spans."""
    return os.environ.get("ALMANAQ_OTEL", "") in ("1", "true", "yes")


class TracedModel:
    """Opens a span for each call, with its cost and without its texts; where spans go is OpenTelemetry's to say."""

    def __init__(self, model: LanguageModel) -> None:
        try:
            from opentelemetry import trace
        except ImportError as problem:
            raise MissingExtraError("opentelemetry-api", "otel", "tracing model calls") from problem
        self.name = model.name
        self._model = model
        self._tracer: Any = trace.get_tracer("almanaq")

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the reply, traced; a failure is recorded by its kind alone, as its words may hold those of a row."""
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": self.name,
            "almanaq.prompt": prompt.name,
            "almanaq.prompt_version": prompt.version,
        }
        with self._tracer.start_as_current_span(
            f"chat {self.name}", attributes=attributes, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                completion = await self._model.complete(prompt)
            except BaseException as problem:
                span.set_attribute("error.type", type(problem).__name__)
                _add(span, getattr(problem, "usage", Usage()))
                raise
            _add(span, completion.usage)
            return completion


def _add(span: Any, usage: Usage) -> None:
    span.set_attribute("gen_ai.usage.input_tokens", usage.input_tokens)
    span.set_attribute("gen_ai.usage.output_tokens", usage.output_tokens)
    if usage.money is not None:
        span.set_attribute("almanaq.money", usage.money)
