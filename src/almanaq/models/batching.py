"""BatchingReader: fewer requests: several questions about one text, or one question about several short texts."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import astuple, dataclass, field, replace

from almanaq.errors import BudgetExceeded, ModelCallError
from almanaq.event_loops import PerLoop
from almanaq.models.budget import estimate_tokens, record_count
from almanaq.models.cached import CacheQueue, ReplyCache
from almanaq.models.prompted_reader import PromptedReader, prompt_values
from almanaq.models.prompts import prompt_file
from almanaq.models.protocols import LanguageModel, Prompt, Quote, TextCall, TextReply, Usage, forget_reply
from almanaq.models.retrying import FailedCall
from almanaq.models.text_calls import (
    MalformedReply,
    Piece,
    item_schema,
    parse_contents,
    parse_objects,
    typical_batch_tokens,
)

_PROMPTS = ("answer_many", "answer_texts")


_TEXT_TOKENS, _ITEM_OUTPUT = 1000, 1024


@dataclass(frozen=True, slots=True)
class Batching:
    """What may share a call.

    Attributes:
        questions: maximum questions about one text in a request; 1 turns this off.
        texts: maximum texts for one question in a request; 1 turns this off.
        text_tokens: longer texts are always read alone.
        window: seconds that a call waits for others to join it.
        chosen: texts share a request only where the reply is a verdict, an option or a number, and questions about a
            text only where the query asks them at the same time.
    """

    questions: int = 8
    texts: int = 8
    text_tokens: int = 300
    window: float = 0.01
    chosen: bool = False

    @classmethod
    def of(cls, number: int) -> Batching | None:
        """Return the batching for at most `number` calls in a request; None for 1."""
        return cls(questions=number, texts=number, text_tokens=_TEXT_TOKENS) if number > 1 else None


AGREED = Batching(texts=6, text_tokens=_TEXT_TOKENS, chosen=True)
"""The batches of texts that a strong reader was measured to answer as well as single calls (docs/prompts.md)."""

_MANY_VOID = 5
"""No batches are sent after so many whose replies held other items, and so many for each whose reply held its own."""
_MOST_HELD = 0.5
"""Seconds that a request waits at most for a stage that is still starting rows."""


@dataclass(eq=False)
class _Group:
    calls: list[TextCall] = field(default_factory=list)
    replies: list[asyncio.Future[TextReply]] = field(default_factory=list)
    task: asyncio.Task[None] | None = None
    full: asyncio.Event = field(default_factory=asyncio.Event)


class _Groups:
    def __init__(self, turns: CacheQueue | None) -> None:
        self.open: dict[tuple[object, ...], _Group] = {}
        self.turns = turns
        self.held, self.busy_until = 0, 0.0

    def is_busy(self, window: float) -> bool:
        """Return whether calls are being prepared, or were within a window."""
        return self.held > 0 or asyncio.get_running_loop().time() - self.busy_until < window


class BatchingReader:
    """A Reader that merges calls made within a short window into one request; each still gets its own reply.

    A batch whose reply is malformed or declined, or whose request fails, is halved, down to single calls by the plain
    reader: one bad text must not cost the others their answers. Only where any request would fail now, all of it has
    failed. Where nearly no reply holds the items that were sent, calls are made singly from then on; as the items of a
    batch are that is refused before any reply, since single texts tell whether the key is wrong. The first item carries
    the usage.
    """

    remote = True
    paid = True

    def __init__(
        self,
        reader: PromptedReader,
        model: LanguageModel,
        batching: Batching,
        *,
        cache: ReplyCache | None = None,
    ) -> None:
        self.name, self.bounds_calls = reader.name, reader.bounds_calls
        self._fitting, self._void = Counter[str](), Counter[str]()
        self._reader, self._model, self._batching, self._cache = reader, model, batching, cache
        self._groups = PerLoop(lambda: _Groups(None if cache is None else CacheQueue(cache, model.name)))

    @property
    def company(self) -> int:
        """How many texts share a request."""
        return 1 if self._is_void("answer_texts") else self._batching.texts

    @property
    def questions(self) -> int:
        """How many questions on a text share a request."""
        return 1 if self._is_void("answer_many") else self._batching.questions

    def _is_void(self, name: str) -> bool:
        return self._void[name] >= _MANY_VOID * max(1, self._fitting[name])

    async def read(self, call: TextCall) -> TextReply:
        """Return what the document says; raises FailedCall when the model fails or its reply cannot be used."""
        kind = self._group_key(call)
        if kind is None:
            return await self._reader.read(call)
        if (cached := await self._find(call)) is not None:
            return cached
        turns = self._groups.get().turns
        if self._is_void(str(kind[0])):
            record_count("asked_singly")
            reply = await self._reader.read(call)
        else:
            reply = await self._join_group(kind, call)
        if turns is not None and not reply.unreadable:
            kept = [reply.value, dict(reply.verdicts), [astuple(quote) for quote in reply.quotes]]
            await turns.keep(_item_key(self._model, call), json.dumps(kept))
        return reply

    async def read_cached(self, call: TextCall) -> TextReply | None:
        """Return what the document says by the cache alone, None where it lacks a reply; asks and records nothing."""
        return await (self._reader.read_cached(call) if self._group_key(call) is None else self._find(call))

    async def _find(self, call: TextCall) -> TextReply | None:
        turns = self._groups.get().turns
        cached = None if turns is None else await turns.find(_item_key(self._model, call))
        if cached is None:
            return None
        value, verdicts, quotes = json.loads(cached)
        return TextReply(value, verdicts, tuple(Quote(*quote) for quote in quotes), Usage(cached_calls=1))

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """Let requests wait, for a moment, while more calls are being prepared: they fill before they are sent."""
        groups = self._groups.get()
        groups.held += 1
        try:
            yield
        finally:
            groups.held -= 1
            groups.busy_until = asyncio.get_running_loop().time()

    def _group_key(self, call: TextCall) -> tuple[object, ...] | None:
        batching, tokens = self._batching, sum(map(estimate_tokens, call.passages))
        alike = call.chosen if batching.chosen else call.function == "answer" and call.type != "list"
        if (
            alike
            and not (call.beside and batching.questions > 1)
            and batching.texts > 1
            and tokens <= batching.text_tokens
        ):
            asked = (call.question, call.from_rows, call.type, call.options, call.compared, call.about, call.served)
            return ("answer_texts", *asked)
        if batching.questions > 1 and (call.beside or not batching.chosen) and tokens <= self._reader.part_tokens:
            return ("answer_many", call.passages, call.about)
        return None

    async def _join_group(self, kind: tuple[object, ...], call: TextCall) -> TextReply:
        groups = self._groups.get().open
        group = groups.get(kind)
        if group is None:
            group = groups[kind] = _Group()
            group.task = asyncio.create_task(self._run_group(kind, group))
        reply: asyncio.Future[TextReply] = asyncio.get_running_loop().create_future()
        group.calls.append(call)
        group.replies.append(reply)
        most = self._batching.texts if kind[0] == "answer_texts" else self._batching.questions
        if len(group.calls) >= most:
            del groups[kind]
            group.full.set()
        try:
            return await reply
        except asyncio.CancelledError:
            # The last waiter to leave cancels the request, as nobody needs it any more.
            if all(other.done() for other in group.replies) and group.task is not None:
                group.task.cancel()
            raise

    async def _run_group(self, kind: tuple[object, ...], group: _Group) -> None:
        groups, window = self._groups.get(), self._batching.window
        until = asyncio.get_running_loop().time() + _MOST_HELD
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(group.full.wait(), window)
            if group.full.is_set() or not groups.is_busy(window) or asyncio.get_running_loop().time() > until:
                break
        if groups.open.get(kind) is group:
            del groups.open[kind]
        try:
            outcomes = await self._answer_items(str(kind[0]), group.calls)
            for reply, outcome in zip(group.replies, outcomes, strict=True):
                _settle(reply, outcome)
        except BaseException as problem:
            for reply in group.replies:
                _settle(reply, problem if isinstance(problem, Exception) else asyncio.CancelledError())
            if not isinstance(problem, Exception):
                raise

    async def _answer_items(self, name: str, calls: Sequence[TextCall]) -> list[TextReply | Exception]:
        """Return the outcome of each item; a batch that fails is halved."""
        if len(calls) == 1:
            try:
                return [await self._reader.read(calls[0])]
            except ModelCallError as problem:
                return [problem]
        if self._is_void(name):
            return await self._answer_parts(name, calls)
        prompt = self._prompt(name, calls)
        found: list[TextReply | None] = [None] * len(calls)
        usage, singly = Usage(), False
        try:
            completion = await self._model.complete(prompt)
            found, usage = self._parse_items(name, completion.text, calls), completion.usage
        except BudgetExceeded:
            # The budget has no room for the whole batch, but may have for a part of it.
            half = (len(calls) + 1) // 2
            return [*await self._answer_items(name, calls[:half]), *await self._answer_items(name, calls[half:])]
        except FailedCall as problem:
            if problem.befalls_others:
                alike = FailedCall(str(problem), cause=problem.cause, tries=problem.tries)
                return [problem, *(copy(alike) for _ in calls[1:])]
            usage, singly = problem.usage, problem.setup is not None
        missing = [call for call, reply in zip(calls, found, strict=True) if reply is None]
        if missing:
            forget_reply(self._model, prompt)
        # The first reply carries the cost of the request.
        shared = Usage(cached_calls=1) if usage.cached_calls and not usage.calls else Usage()
        outcomes: list[TextReply | Exception | None] = []
        for call, reply in zip(calls, found, strict=True):
            cost = shared if any(outcomes) else usage
            outcomes.append(reply and await self._reader.convert_value(call, replace(reply, usage=cost)))
        again = await self._answer_parts(name, missing, singly=singly) if missing else []
        if again and not any(outcomes):
            if isinstance(first := again[0], FailedCall):
                first.usage += usage
            elif isinstance(first, TextReply):
                again[0] = replace(first, usage=first.usage + usage)
        rest = iter(again)
        return [outcome or next(rest) for outcome in outcomes]

    async def _answer_parts(
        self, name: str, calls: Sequence[TextCall], *, singly: bool = False
    ) -> list[TextReply | Exception]:
        """Return the outcomes of items that are asked in halves; one by one where batches are not answered."""
        size = 1 if singly else (len(calls) + 1) // 2
        if self._is_void(name):
            size = 1
            record_count("asked_singly", len(calls))
        parts = [calls[start : start + size] for start in range(0, len(calls), size)]
        return [each for part in await asyncio.gather(*(self._answer_items(name, p) for p in parts)) for each in part]

    def _prompt(self, name: str, calls: Sequence[TextCall]) -> Prompt:
        if name == "answer_many":
            values: dict[str, object] = {"passages": list(enumerate(calls[0].passages, 1)), "about": calls[0].about}
            values["items"] = [prompt_values(call) for call in calls]
        else:
            several = any(len(call.passages) > 1 for call in calls)
            documents = [list(enumerate(call.passages, 1)) for call in calls]
            values = {**prompt_values(calls[0]), "documents": documents, "several": several}
        return prompt_file(name).prompt(
            values,
            schema=item_schema(calls),
            max_output_tokens=_ITEM_OUTPUT * min(len(calls), 4),
            usual_output_tokens=typical_batch_tokens(calls),
            divisible=True,
        )

    def _parse_items(self, name: str, text: str, calls: Sequence[TextCall]) -> list[TextReply | None]:
        """Return what a reply says of each item; None where it says nothing that can be used."""
        contents: Sequence[Mapping[str, object]] = [{}]
        with contextlib.suppress(MalformedReply):
            contents = parse_objects(text)
        # Items that are not those that were sent may stand for their neighbours.
        names = [f"item{number}" for number in range(1, len(calls) + 1)]
        fits = set(contents[-1]) == set(names)
        (self._fitting if fits else self._void)[name] += 1
        found: list[TextReply | None] = []
        for item, call in zip(names, calls, strict=True):
            try:
                pieces = [Piece(n, 0, text) for n, text in enumerate(call.passages)]
                said = [content.get(item) for content in contents] if fits else [None]
                found.append(parse_contents(said, call, pieces))
            except MalformedReply:
                found.append(None)
        return found


def _settle(reply: asyncio.Future[TextReply], outcome: TextReply | BaseException) -> None:
    if reply.done():
        return
    if isinstance(outcome, TextReply):
        reply.set_result(outcome)
    elif isinstance(outcome, asyncio.CancelledError):
        reply.cancel()
    else:
        reply.set_exception(outcome)


def _item_key(model: LanguageModel, call: TextCall) -> bytes:
    versions = [prompt_file(name).version for name in _PROMPTS]
    key = call.function, call.passages, call.question, call.type, call.options, call.compared, call.from_rows
    identity = json.dumps(
        ["item", str(getattr(model, "identity", model.name)), versions, [*key, call.about, call.served]]
    )
    return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).digest()
