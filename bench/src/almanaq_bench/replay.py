"""Model replies recorded to a file and given again without a model, so that a conversation or a run can be reproduced.

with RecordingModel(model, file) as recording:      # records every prompt sent to `model`
    connect(source, model=recording).ask(question)

connect(source, model=f"replay:{file}").ask(question)     # the same reply, rows, evidence and counts
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from almanaq.errors import ModelCallError, ModelError, SourceError
from almanaq.event_loops import PerLoop
from almanaq.models.private_files import open_private
from almanaq.models.protocols import (
    Completion,
    LanguageModel,
    Prompt,
    Usage,
    forget_reply,
)


@dataclass
class ReplyOrder:
    """Releases waiting calls in the order in which their replies came when they were recorded.

    The order matters where LIMIT stops a query: which rows are read depends on which reply comes first.
    """

    _waiting: dict[int, asyncio.Future[None]] = field(default_factory=dict)
    _pump: asyncio.Task[None] | None = None

    async def turn(self, place: int) -> None:
        """Wait for the turn of the reply recorded at `place`."""
        mine = self._waiting[place] = asyncio.get_running_loop().create_future()
        if self._pump is None or self._pump.done():
            self._pump = asyncio.create_task(self._run())
        try:
            await mine
        finally:
            self._waiting.pop(place, None)

    async def _run(self) -> None:
        while self._waiting:
            seen = -1
            while seen != len(self._waiting):
                # Wait until no more calls join: all calls that the recorded run had in flight are then waiting.
                seen = len(self._waiting)
                await asyncio.sleep(0.001)
            first = min(self._waiting, default=None)
            if first is not None and not self._waiting[first].done():
                self._waiting[first].set_result(None)
            await asyncio.sleep(0)

    async def close(self) -> None:
        """Stop; waiting calls are cancelled with the loop."""
        if self._pump is not None:
            self._pump.cancel()
            with suppress(asyncio.CancelledError):
                await self._pump


_RECORD_FORMAT = "almanaq-prompts-1"
_EXCERPT = 160
_STOPPED_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Exchange:
    """A prompt as sent, without its random fence, and the reply.

    Attributes:
        reply: None where the call failed, as `failed` says, or was cancelled.
    """

    prompt: str
    version: str
    messages: Sequence[Sequence[str]]
    reply: str | None
    usage: Mapping[str, Any]
    failed: str = ""

    @property
    def key(self) -> str:
        """The identity of the prompt: its name and words. A reworded prompt file makes another prompt."""
        return _exchange_key(self.prompt, self.messages)


class RecordingModel:
    """A LanguageModel that records the prompts to another one, and its replies, in a file of JSON lines.

    The file contains rows of the source, as prompts do, and only its owner can read it.

    Args:
        file: is overwritten. Raises SourceError where it cannot be written.
    """

    persistent = False
    """Replies are not cached, as a cache hit would be missing from the record."""

    def __init__(self, model: LanguageModel, file: str | Path) -> None:
        self.name = model.name
        self._model, self._lock = model, threading.Lock()
        try:
            self._out = open(file, "w", encoding="utf-8", opener=open_private)  # noqa: SIM115 - closed by close()
        except OSError as problem:
            raise SourceError(f"the record {file} cannot be written: {problem.strerror}") from problem
        self._write({"format": _RECORD_FORMAT, "model": model.name})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; later prompts are answered but not recorded."""
        with self._lock:
            self._out.close()

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the model's reply, recorded."""
        try:
            completion = await self._model.complete(prompt)
        except asyncio.CancelledError:
            self._record(prompt, None, Usage(calls=1))
            raise
        except ModelCallError as problem:
            self._record(prompt, None, getattr(problem, "usage", Usage(calls=1)), str(problem))
            raise
        self._record(prompt, completion.text, completion.usage)
        return completion

    def forget(self, prompt: Prompt) -> None:
        """Drop an unusable reply, where the model caches replies."""
        forget_reply(self._model, prompt)

    def _record(self, prompt: Prompt, reply: str | None, usage: Usage, failed: str = "") -> None:
        self._write(asdict(Exchange(prompt.name, prompt.version, _mask_fence(prompt), reply, asdict(usage), failed)))

    def _write(self, line: Mapping[str, Any]) -> None:
        with self._lock:
            if not self._out.closed:
                self._out.write(json.dumps(line, ensure_ascii=False) + "\n")
                self._out.flush()


class ReplayingModel:
    """A LanguageModel that returns recorded replies, in their recorded order.

    A prompt that was recorded several times gets its replies in turn, then the last one again.

    Args:
        file: written by a RecordingModel. Raises SourceError for any other file.
    """

    persistent = False

    def __init__(self, file: str | Path) -> None:
        self.file = Path(file)
        self.name, self._exchanges = read_record(self.file)
        self._places: dict[str, list[int]] = {}
        for place, exchange in enumerate(self._exchanges):
            self._places.setdefault(exchange.key, []).append(place)
        self._lock = threading.Lock()
        self._queues = PerLoop(ReplyOrder)

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the recorded reply; raises ModelError, quoting the nearest recorded prompt, where none."""
        messages = _mask_fence(prompt)
        with self._lock:
            places = self._places.get(_exchange_key(prompt.name, messages))
            if places is None:
                raise ModelError(self._unseen(prompt.name, messages))
            place = places.pop(0) if len(places) > 1 else places[0]
        exchange = self._exchanges[place]
        if exchange.reply is None and not exchange.failed:
            # The recorded call was cancelled: the query will cancel this one too, unless it runs differently.
            await asyncio.sleep(_STOPPED_SECONDS)
            raise ModelError(f"{self.file}: the prompt {prompt.name!r} was stopped before its reply came: record again")
        await self._queues.get().turn(place)
        if exchange.reply is None:
            raise ModelCallError(exchange.failed)
        return Completion(exchange.reply, Usage(**exchange.usage))

    def _unseen(self, name: str, messages: Sequence[Sequence[str]]) -> str:
        asked = _content_words(messages)
        near = max(
            self._exchanges,
            key=lambda each: (each.prompt == name, _jaccard(asked, _content_words(each.messages))),
            default=None,
        )
        if near is None:
            return f"{self.file} holds no prompts: record again"
        now, then = _first_difference(messages, near.messages)
        return (
            f"{self.file} holds no reply to this prompt {name!r}; the nearest recorded one is a {near.prompt!r} that"
            f" goes on {then!r} where this one has {now!r}: the question, the data, an option or the prompt's file"
            " differs from what was recorded"
        )


def read_record(file: Path) -> tuple[str, list[Exchange]]:
    """Return the model's name and the exchanges of a record; raises SourceError for any other file."""
    try:
        head, *lines = file.read_text("utf-8").splitlines()
        about = json.loads(head)
        if about["format"] != _RECORD_FORMAT:
            raise ValueError(f"its format is not {_RECORD_FORMAT}")
        return str(about["model"]), [Exchange(**json.loads(line)) for line in lines]
    except OSError as problem:
        raise SourceError(f"the record {file} cannot be read: {problem.strerror}") from problem
    except (ValueError, TypeError, KeyError) as problem:
        raise SourceError(
            f"{file} is not a record of prompts that can be replayed ({problem}): record again"
        ) from problem


def _mask_fence(prompt: Prompt) -> tuple[tuple[str, str], ...]:
    fence = prompt.fence
    return tuple((m.role, m.content.replace(fence, "CODE") if fence else m.content) for m in prompt.messages)


def _exchange_key(name: str, messages: Sequence[Sequence[str]]) -> str:
    return hashlib.sha256(json.dumps([name, list(messages)]).encode("utf-8", "surrogatepass")).hexdigest()


def _content_words(messages: Sequence[Sequence[str]]) -> frozenset[str]:
    return frozenset(word for _, content in messages[1:] for word in content.split())


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(1, len(one | other))


def _first_difference(now: Sequence[Sequence[str]], then: Sequence[Sequence[str]]) -> tuple[str, str]:
    one, other = ("\n".join(content for _, content in messages) for messages in (now, then))
    at = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    start = max(0, at - 20)
    return one[start : start + _EXCERPT], other[start : start + _EXCERPT]
