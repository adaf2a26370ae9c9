"""Prompts and replies in a file, and a language model that gives them again and asks nobody.

with RecordingModel(model, file) as recording:      # everything that is asked of `model` meanwhile
    connect(source, model=recording).ask(question)

connect(source, model=ReplayingModel(file)).ask(question)     # the same reply, rows, evidence and counts
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from almanaq.errors import ModelCallError, ModelError, SourceError
from almanaq.models.clients import PerLoop
from almanaq.models.own_files import open_own
from almanaq.models.protocols import Completion, LanguageModel, Prompt, Usage
from almanaq.models.reply_order import ReplyOrder

FORMAT = "almanaq-prompts-1"
_SHOWN = 160
_STOPPED = 60.0


@dataclass(frozen=True, slots=True)
class Exchange:
    """A prompt as it was sent, its random code left out, and the reply.

    Attributes:
        reply: None where the call failed, as `failed` says, or was stopped before its reply came.
    """

    prompt: str
    version: str
    messages: tuple[tuple[str, str], ...]
    reply: str | None
    usage: Mapping[str, Any]
    failed: str = ""

    @property
    def key(self) -> str:
        """The identity of the prompt: its name and words. A file of prompts that is worded anew is another one."""
        return _key(self.prompt, self.messages)


class RecordingModel:
    """A LanguageModel that writes what is asked of another, and the replies, to a file, a JSON object a line.

    The file holds what prompts hold, rows of the source too: it is made for its owner's eyes alone.

    Args:
        file: is written anew. Raises SourceError where it cannot be.
    """

    persistent = False
    """Replies are not kept in the cache file: a call that it would serve would be missing from the record."""

    def __init__(self, model: LanguageModel, file: str | Path) -> None:
        self.name = model.name
        self._model, self._lock = model, threading.Lock()
        try:
            self._out = open(file, "w", encoding="utf-8", opener=open_own)  # noqa: SIM115 - closed by close()
        except OSError as problem:
            raise SourceError(f"the record {file} cannot be written: {problem.strerror}") from problem
        self._write({"format": FORMAT, "model": model.name})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; what is asked afterwards is answered, and not recorded."""
        with self._lock:
            self._out.close()

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the other's reply, recorded."""
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
        """Drop a reply of no use where the other keeps any."""
        getattr(self._model, "forget", lambda _: None)(prompt)

    def _record(self, prompt: Prompt, reply: str | None, usage: Usage, failed: str = "") -> None:
        self._write(asdict(Exchange(prompt.name, prompt.version, _messages(prompt), reply, asdict(usage), failed)))

    def _write(self, line: Mapping[str, Any]) -> None:
        with self._lock:
            if not self._out.closed:
                self._out.write(json.dumps(line, ensure_ascii=False) + "\n")
                self._out.flush()


class ReplayingModel:
    """A LanguageModel that gives the replies of a record, in the order in which they came then.

    The order matters where LIMIT stops a query: which rows are read depends on who replied first. A prompt that came
    several times gets its replies in turn, and the last one from then on.

    Args:
        file: that a RecordingModel wrote. Raises SourceError where it is none.
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
        """Return the recorded reply; raises ModelError, with the nearest recorded prompt, where there is none."""
        messages = _messages(prompt)
        with self._lock:
            places = self._places.get(_key(prompt.name, messages))
            if places is None:
                raise ModelError(self._unseen(prompt.name, messages))
            place = places.pop(0) if len(places) > 1 else places[0]
        exchange = self._exchanges[place]
        if exchange.reply is None and not exchange.failed:
            # It never ended then; it is cancelled now as it was then, or the order of things differs.
            await asyncio.sleep(_STOPPED)
            raise ModelError(
                f"{self.file}: the prompt {prompt.name!r} was stopped before its reply came: record it anew"
            )
        await (await self._queues.get()).turn(place)
        if exchange.reply is None:
            raise ModelCallError(exchange.failed)
        return Completion(exchange.reply, Usage(**exchange.usage))

    def _unseen(self, name: str, messages: Sequence[tuple[str, str]]) -> str:
        asked = _words(messages)
        near = max(
            self._exchanges,
            key=lambda each: (each.prompt == name, _likeness(asked, _words(each.messages))),
            default=None,
        )
        if near is None:
            return f"{self.file} holds no prompt at all: record it anew"
        now, then = _first_difference(messages, near.messages)
        return (
            f"{self.file} holds no reply to this prompt {name!r}; the nearest recorded one is a {near.prompt!r} that"
            f" goes on {then!r} where this one has {now!r}: the question, the data, an option or the prompt's file"
            " differs from what was recorded"
        )


def read_record(file: Path) -> tuple[str, list[Exchange]]:
    """Return the model's name and the exchanges of a record; raises SourceError where it is none."""
    try:
        head, *lines = file.read_text("utf-8").splitlines()
        about = json.loads(head)
        if about["format"] != FORMAT:
            raise ValueError(f"its format is not {FORMAT}")
        exchanges = [Exchange(**json.loads(line)) for line in lines]
        # JSON has no tuples
        same = [Exchange(e.prompt, e.version, tuple((r, c) for r, c in e.messages), e.reply, e.usage, e.failed)
                for e in exchanges]  # fmt: skip
        return str(about["model"]), same
    except OSError as problem:
        raise SourceError(f"the record {file} cannot be read: {problem.strerror}") from problem
    except (ValueError, TypeError, KeyError) as problem:
        raise SourceError(
            f"{file} is no record of prompts that can be replayed ({problem}): record it anew"
        ) from problem


def _messages(prompt: Prompt) -> tuple[tuple[str, str], ...]:
    fence = prompt.fence
    return tuple((m.role, m.content.replace(fence, "CODE") if fence else m.content) for m in prompt.messages)


def _key(name: str, messages: Sequence[tuple[str, str]]) -> str:
    return hashlib.sha256(json.dumps([name, list(messages)]).encode("utf-8", "surrogatepass")).hexdigest()


def _words(messages: Sequence[tuple[str, str]]) -> frozenset[str]:
    return frozenset(word for _, content in messages[1:] for word in content.split())


def _likeness(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(1, len(one | other))


def _first_difference(now: Sequence[tuple[str, str]], then: Sequence[tuple[str, str]]) -> tuple[str, str]:
    one, other = ("\n".join(content for _, content in messages) for messages in (now, then))
    at = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    start = max(0, at - 20)
    return one[start : start + _SHOWN], other[start : start + _SHOWN]
