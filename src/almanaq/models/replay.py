"""Model replies recorded to a file and given again without a model.

RecordingModel and ReplayingModel record whole prompts, so that conversations and benchmarks can be reproduced:

with RecordingModel(model, file) as recording:      # records every prompt sent to `model`
    connect(source, model=recording).ask(question)

connect(source, model=ReplayingModel(file)).ask(question)     # the same reply, rows, evidence and counts

A bundle reproduces one result: what a reader and a linker replied, in order, without the texts that they read:

recording = Recording(models)
result = Engine(database, recording.models).run(suql)
write_bundle(recording.bundle(suql, snapshot=…, plan=…), file)

Engine(database, replay_models(read_bundle(file))).run(suql)    # the same rows, evidence and counts
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass, field
from pathlib import Path
from typing import Any, Self

from almanaq.errors import ModelCallError, ModelError, SourceError
from almanaq.event_loops import PerLoop
from almanaq.models.private_files import open_private
from almanaq.models.protocols import (
    AllOf,
    Completion,
    Embedder,
    LanguageModel,
    Linker,
    LinkRequest,
    Models,
    Prompt,
    Quote,
    Reader,
    TextCall,
    TextReply,
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
    messages: tuple[tuple[str, str], ...]
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
        await (await self._queues.get()).turn(place)
        if exchange.reply is None:
            raise ModelCallError(exchange.failed)
        return Completion(exchange.reply, Usage(**exchange.usage))

    def _unseen(self, name: str, messages: Sequence[tuple[str, str]]) -> str:
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
        exchanges = [Exchange(**json.loads(line)) for line in lines]
        # JSON has no tuples
        same = [Exchange(e.prompt, e.version, tuple((r, c) for r, c in e.messages), e.reply, e.usage, e.failed)
                for e in exchanges]  # fmt: skip
        return str(about["model"]), same
    except OSError as problem:
        raise SourceError(f"the record {file} cannot be read: {problem.strerror}") from problem
    except (ValueError, TypeError, KeyError) as problem:
        raise SourceError(
            f"{file} is not a record of prompts that can be replayed ({problem}): record again"
        ) from problem


def _mask_fence(prompt: Prompt) -> tuple[tuple[str, str], ...]:
    fence = prompt.fence
    return tuple((m.role, m.content.replace(fence, "CODE") if fence else m.content) for m in prompt.messages)


def _exchange_key(name: str, messages: Sequence[tuple[str, str]]) -> str:
    return hashlib.sha256(json.dumps([name, list(messages)]).encode("utf-8", "surrogatepass")).hexdigest()


def _content_words(messages: Sequence[tuple[str, str]]) -> frozenset[str]:
    return frozenset(word for _, content in messages[1:] for word in content.split())


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(1, len(one | other))


def _first_difference(now: Sequence[tuple[str, str]], then: Sequence[tuple[str, str]]) -> tuple[str, str]:
    one, other = ("\n".join(content for _, content in messages) for messages in (now, then))
    at = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    start = max(0, at - 20)
    return one[start : start + _EXCERPT], other[start : start + _EXCERPT]


_BUNDLE_FORMAT = "almanaq-replay-1"


@dataclass(frozen=True, slots=True)
class Bundle:
    """Everything that a result depends on, except the data.

    Attributes:
        query, parameters, plan: what ran, and how, as text.
        snapshot: a hash of the data, made by the caller: a replay over other data is refused.
        model: the name of the model that replied.
        replies: hashes of text calls with their replies, in order; {"failed": message} for a failed call, None for a
            cancelled one.
        links: (column, literal, values chosen).
    """

    query: str
    snapshot: str = ""
    plan: str = ""
    parameters: tuple[str, ...] = ()
    model: str = ""
    remote: bool = False
    paid: bool = False
    replies: tuple[tuple[str, dict[str, Any] | None], ...] = ()
    links: tuple[tuple[str, str, tuple[str, ...]], ...] = ()


def file_hash(*files: Path) -> str:
    """Return a hash of the contents of files, sorted by name: the snapshot of a source of files."""
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.name.encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def write_bundle(bundle: Bundle, file: Path) -> None:
    """Write a bundle as JSON."""
    links = [(column, literal, values, isinstance(values, AllOf)) for column, literal, values in bundle.links]
    content = {"format": _BUNDLE_FORMAT, **asdict(bundle), "links": links}
    try:
        file.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", "utf-8")
    except OSError as problem:
        raise SourceError(f"the bundle {file} cannot be written: {problem.strerror}") from problem


def read_bundle(file: Path) -> Bundle:
    """Read a bundle; raises SourceError where the file holds none."""
    try:
        content = json.loads(file.read_text("utf-8"))
        if content.pop("format") != _BUNDLE_FORMAT:
            raise ValueError(f"its format is not {_BUNDLE_FORMAT}")
        content["parameters"] = tuple(content["parameters"])
        content["replies"] = tuple((key, reply) for key, reply in content["replies"])
        content["links"] = tuple(
            (column, literal, (AllOf if every == [True] else tuple)(values))
            for column, literal, values, *every in content["links"]
        )
        return Bundle(**content)
    except OSError as problem:
        raise SourceError(f"the bundle {file} cannot be read: {problem.strerror}") from problem
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        raise SourceError(f"{file} is not a bundle that this version can replay ({problem}): record again") from problem


class Recording:
    """Records the replies of models; run queries with its `models`."""

    def __init__(self, models: Models) -> None:
        self._inner = models
        self._replies: list[tuple[str, dict[str, Any] | None]] = []
        self._links: list[tuple[str, str, tuple[str, ...]]] = []
        reader = _RecordingReader(models.reader, self._replies)
        self.models = Models(models.name, reader, _RecordingLinker(models.linker, self._links), models.embedder)

    def bundle(self, query: str, *, snapshot: str = "", plan: str = "", parameters: Sequence[object] = ()) -> Bundle:
        """Return the bundle of the replies so far."""
        reader = self._inner.reader
        content = tuple(self._replies), tuple(self._links)
        values = tuple(str(value) for value in parameters)
        return Bundle(query, snapshot, plan, values, self._inner.name, reader.remote, reader.paid, *content)


class _RecordingReader:
    def __init__(self, reader: Reader, replies: list[tuple[str, dict[str, Any] | None]]) -> None:
        self.name, self.remote, self.paid = reader.name, reader.remote, reader.paid
        self._reader, self._replies = reader, replies

    async def read(self, call: TextCall) -> TextReply:
        """Return the reply, recorded."""
        try:
            reply = await self._reader.read(call)
        except asyncio.CancelledError:
            self._replies.append((call_hash(call), None))
            raise
        except ModelCallError as problem:
            self._replies.append((call_hash(call), {"failed": str(problem)}))
            raise
        self._replies.append((call_hash(call), asdict(reply)))
        return reply


class _RecordingLinker:
    def __init__(self, linker: Linker, links: list[tuple[str, str, tuple[str, ...]]]) -> None:
        self.name = linker.name
        self._linker, self._links = linker, links

    async def link(self, request: LinkRequest) -> tuple[str, ...]:
        """Return the values, recorded."""
        values = await self._linker.link(request)
        self._links.append((request.column, request.literal, values))
        return values


def replay_models(bundle: Bundle, *, snapshot: str = "", embedder: Embedder | None = None) -> Models:
    """Return models that say what a bundle holds, and ask nobody.

    Args:
        snapshot: the hash of the data at hand; one that differs from the bundle's is refused.

    Raises:
        SourceError: the data is not what the bundle was recorded over.
    """
    if snapshot and bundle.snapshot and snapshot != bundle.snapshot:
        raise SourceError(
            f"the data has changed since the bundle was recorded (snapshot {bundle.snapshot[:12]}, now"
            f" {snapshot[:12]}): replay it over the data as they were"
        )
    if embedder is None:
        from almanaq.models.embedders.base import LexicalEmbedder

        embedder = LexicalEmbedder()
    return Models(bundle.model, ReplayReader(bundle), _ReplayLinker(bundle), embedder)


class ReplayReader:
    """A Reader that returns the replies of a bundle, in their recorded order."""

    def __init__(self, bundle: Bundle) -> None:
        self.name, self.remote, self.paid = bundle.model, False, bundle.paid
        self._places = {key: place for place, (key, _) in reversed(list(enumerate(bundle.replies)))}
        self._replies = [reply for _, reply in bundle.replies]
        self._queues = PerLoop(ReplyOrder)

    async def read(self, call: TextCall) -> TextReply:
        """Return the recorded reply; raises ModelError where the bundle has none."""
        place = self._places.get(call_hash(call))
        if place is None:
            raise ModelError(
                f"the bundle holds no reply to {call.question!r} for one of the texts: the query, its options or the"
                " data differ from those it was recorded with"
            )
        content = self._replies[place]
        if content is None:
            # The recorded call was cancelled: the query will cancel this one too, unless it runs differently.
            await asyncio.sleep(60)
            raise ModelError("the bundle's query was stopped before this reply came: record again")
        await (await self._queues.get()).turn(place)
        if "failed" in content:
            raise ModelCallError(content["failed"])
        quotes = tuple(Quote(**quote) for quote in content["quotes"])
        return TextReply(content["value"], content["verdicts"], quotes, Usage(**content["usage"]))


class _ReplayLinker:
    def __init__(self, bundle: Bundle) -> None:
        self.name = bundle.model
        self._links = {(column, literal): values for column, literal, values in bundle.links}

    async def link(self, request: LinkRequest) -> tuple[str, ...]:
        """Return the recorded values; raises ModelError where there are none."""
        if (request.column, request.literal) not in self._links:
            raise ModelError(f"the bundle does not say what {request.literal!r} in {request.column} means")
        return self._links[request.column, request.literal]


def call_hash(call: TextCall) -> str:
    """Return the hash of a text call: a bundle identifies calls without storing documents."""
    fields = astuple(call)[:-2]  # `from_rows` and `about` do not change the reply
    return hashlib.sha256(json.dumps(fields).encode("utf-8", "surrogatepass")).hexdigest()
