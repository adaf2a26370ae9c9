"""Physical calls seen from outside: a debug log, off by default, and OpenTelemetry spans.

Neither holds keys, nor texts unless asked for. This is the only module that imports opentelemetry.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from almanaq.errors import MissingExtraError, SourceError
from almanaq.models.private_files import open_private
from almanaq.models.protocols import Completion, LanguageModel, Prompt, Usage

_KEY_PATTERN = re.compile(r"\b(sk|key|Bearer)([-_ ])[\w.-]{6,}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class DebugLog:
    """Where calls are logged, one JSON object a line; `texts` also logs prompts and replies, rows included."""

    file: Path
    texts: bool = False


def debug_log_from_environment() -> DebugLog | None:
    """Return the log that ALMANAQ_DEBUG_LOG names; ALMANAQ_DEBUG_LOG_TEXTS=1 lets texts in."""
    file = os.environ.get("ALMANAQ_DEBUG_LOG")
    return DebugLog(Path(file), os.environ.get("ALMANAQ_DEBUG_LOG_TEXTS", "") in ("1", "true", "yes")) if file else None


def redact_keys(text: str, secrets: tuple[str, ...] = ()) -> str:
    """Return a text without the given secrets and without anything that looks like a key."""
    for secret in secrets:
        if len(secret) > 3:
            text = text.replace(secret, "[key]")
    return _KEY_PATTERN.sub(r"\1\2[key]", text)


class LoggedModel:
    """Logs a line per call: time, prompt, duration, cost, and outcome."""

    def __init__(self, model: LanguageModel, log: DebugLog, *, secrets: tuple[str, ...] = ()) -> None:
        self.name = model.name
        self._model, self._log, self._secrets = model, log, secrets
        self._lock = threading.Lock()

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the reply, logged."""
        started = time.time()
        try:
            completion = await self._model.complete(prompt)
        except asyncio.CancelledError:
            self._write(prompt, started, Usage(calls=1), error="cancelled")
            raise
        except Exception as problem:
            # An error message may quote the model's reply, and with it a row.
            message = str(problem) if self._log.texts else ""
            self._write(
                prompt, started, getattr(problem, "usage", Usage()), error=type(problem).__name__, message=message
            )
            raise
        self._write(prompt, started, completion.usage, reply=completion.text)
        return completion

    def _write(
        self, prompt: Prompt, started: float, usage: Usage, *, error: str = "", message: str = "", reply: str = ""
    ) -> None:
        line: dict[str, object] = {
            "at": round(started, 3),
            "seconds": round(time.time() - started, 4),
            "model": self.name,
            "prompt": prompt.name,
            "version": prompt.version,
            "error": error,
            **asdict(usage),
        }
        if self._log.texts:
            line |= {"messages": [m.content for m in prompt.messages], "reply": reply, "said": message}
        text = redact_keys(json.dumps(line, ensure_ascii=False), self._secrets)
        try:
            with (
                self._lock,
                open(self._log.file, "a", encoding="utf-8", errors="replace", opener=open_private) as file,
            ):
                file.write(text + "\n")
        except OSError as problem:
            raise SourceError(
                f"the debug log {self._log.file} cannot be written ({problem.strerror}): change or unset"
                " ALMANAQ_DEBUG_LOG"
            ) from problem


def traces_from_environment() -> bool:
    """Return whether ALMANAQ_OTEL asks for spans."""
    return os.environ.get("ALMANAQ_OTEL", "") in ("1", "true", "yes")


class TracedModel:
    """Opens a span for each call, with its cost and without texts; OpenTelemetry decides where spans go."""

    def __init__(self, model: LanguageModel) -> None:
        try:
            from opentelemetry import trace
        except ImportError as problem:
            raise MissingExtraError("opentelemetry-api", "otel", "tracing model calls") from problem
        self.name = model.name
        self._model = model
        self._tracer: Any = trace.get_tracer("almanaq")

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the reply, traced; a failure is recorded by its type alone, as its message may quote a row."""
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
                _add_usage(span, getattr(problem, "usage", Usage()))
                raise
            _add_usage(span, completion.usage)
            return completion


def _add_usage(span: Any, usage: Usage) -> None:
    span.set_attribute("gen_ai.usage.input_tokens", usage.input_tokens)
    span.set_attribute("gen_ai.usage.output_tokens", usage.output_tokens)
    if usage.money is not None:
        span.set_attribute("almanaq.money", usage.money)
