"""What a model said, given again without one: of a query (bundles, here), and of anything else (models/recorded.py).

A bundle reproduces one result: what a reader and a linker said, in the order in which they said it, without the texts
that they read. RecordingModel and ReplayingModel keep whole prompts, and so reproduce conversations and benchmarks.

recording = Recording(models)
result = Engine(database, recording.models).run(suql)
write_bundle(recording.bundle(suql, snapshot=…, plan=…), file)

Engine(database, replay_models(read_bundle(file))).run(suql)    # the same rows, evidence and counts
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any

from almanaq.errors import ModelCallError, ModelError, SourceError
from almanaq.models.clients import PerLoop
from almanaq.models.protocols import (
    AllOf,
    Embedder,
    Linker,
    LinkRequest,
    Models,
    Quote,
    Reader,
    TextCall,
    TextReply,
    Usage,
)
from almanaq.models.recorded import RecordingModel, ReplayingModel
from almanaq.models.reply_order import ReplyOrder

__all__ = [
    "Bundle", "Recording", "RecordingModel", "ReplayReader", "ReplayingModel", "call_hash", "file_hash", "read_bundle",
    "replay_models", "write_bundle",
]  # fmt: skip
FORMAT = "almanaq-replay-1"


@dataclass(frozen=True, slots=True)
class Bundle:
    """All that a result rests on, apart from the data itself.

    Attributes:
        query, parameters, plan: what was run, and how, as text.
        snapshot: a hash of the data, as the caller takes it: a replay over other data is refused.
        model: the name of the model that replied.
        replies: text calls by their hash, with their replies in the order in which they came; {"failed": message} for
            a call that failed, None for one that was cancelled before its reply.
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
    """Return a hash of the contents of files, in the order of their names: the snapshot of a source made of files."""
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.name.encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def write_bundle(bundle: Bundle, file: Path) -> None:
    """Write a bundle as JSON."""
    links = [(column, literal, values, isinstance(values, AllOf)) for column, literal, values in bundle.links]
    content = {"format": FORMAT, **asdict(bundle), "links": links}
    try:
        file.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", "utf-8")
    except OSError as problem:
        raise SourceError(f"the bundle {file} cannot be written: {problem.strerror}") from problem


def read_bundle(file: Path) -> Bundle:
    """Return the bundle in a file; raises SourceError when there is none that can be read."""
    try:
        content = json.loads(file.read_text("utf-8"))
        if content.pop("format") != FORMAT:
            raise ValueError(f"its format is not {FORMAT}")
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
        raise SourceError(f"{file} is no bundle that this program can replay ({problem}): record it anew") from problem


class Recording:
    """Models that keep what they say; `models` is what to run queries with."""

    def __init__(self, models: Models) -> None:
        self._inner = models
        self._replies: list[tuple[str, dict[str, Any] | None]] = []
        self._links: list[tuple[str, str, tuple[str, ...]]] = []
        reader = _RecordingReader(models.reader, self._replies)
        self.models = Models(models.name, reader, _RecordingLinker(models.linker, self._links), models.embedder)

    def bundle(self, query: str, *, snapshot: str = "", plan: str = "", parameters: Sequence[object] = ()) -> Bundle:
        """Return what was said so far."""
        reader = self._inner.reader
        content = tuple(self._replies), tuple(self._links)
        values = tuple(str(value) for value in parameters)
        return Bundle(query, snapshot, plan, values, self._inner.name, reader.remote, reader.paid, *content)


class _RecordingReader:
    def __init__(self, reader: Reader, replies: list[tuple[str, dict[str, Any] | None]]) -> None:
        self.name, self.remote, self.paid = reader.name, reader.remote, reader.paid
        self._reader, self._replies = reader, replies

    async def read(self, call: TextCall) -> TextReply:
        """Return the reply, kept."""
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
        """Return the values, kept."""
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
            f" {snapshot[:12]}): replay it over the data of then"
        )
    if embedder is None:
        from almanaq.models.lexical import LexicalEmbedder

        embedder = LexicalEmbedder()
    return Models(bundle.model, ReplayReader(bundle), _ReplayLinker(bundle), embedder)


class ReplayReader:
    """A Reader that gives the replies of a bundle, in the order in which they came then.

    The order matters where LIMIT stops a query: which rows are kept depends on who replied first.
    """

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
            # It never ended then; it is cancelled now as it was then, or the order of things differs.
            await asyncio.sleep(60)
            raise ModelError("the bundle's query was stopped before this reply came: record it anew")
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
    """Return the identity of a text call, without its text: a bundle holds none of the documents."""
    fields = astuple(call)[:-2]  # where the question and the document come from makes no other reply of it
    return hashlib.sha256(json.dumps(fields).encode("utf-8", "surrogatepass")).hexdigest()
