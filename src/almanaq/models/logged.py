"""A debug log of physical calls, off by default; it holds no keys, and texts only on request."""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from almanaq.errors import SourceError
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
