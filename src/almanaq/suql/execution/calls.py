"""Text calls of one query: each distinct one is made once, counted, bounded, and its reply made canonical."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from typing import Any, Literal

from sqlglot import exp

from almanaq.errors import BudgetExceeded, ModelCallError, ModelError, QueryTypeError
from almanaq.models.concurrent import calls_at_once
from almanaq.models.protocols import AnswerType, Quote, Reader, TextCall, TextReply, Usage
from almanaq.models.retrying import FailedCall, describe_failure
from almanaq.models.text_calls import served_question
from almanaq.suql.execution.evidence import UnknownAnswers, spelled, spellings_of
from almanaq.suql.plan.sites import Site
from almanaq.values import join_texts, only_options, option_of, parse_list, parse_typed, writable

MOST_OPTIONS = 500
"""Options that a query may give to answer(): each call names them all."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a text call came to: `value` None is "no information".

    Attributes:
        unknown: the call failed, so that nothing is known.
        reason: why there is no value: the call failed, or the reply is not what was asked for.
        probabilities: how likely each verdict is "yes", where the reader says so.
    """

    value: str | None = None
    verdicts: Mapping[str, bool | None] = field(default_factory=dict)
    quotes: tuple[Quote, ...] = ()
    unknown: bool = False
    reason: str = ""
    probabilities: Mapping[str, float] = field(default_factory=dict)


MOST_WAITED = 1.0
"""Seconds that a query with all its rows waits for replies that only a later one needs."""

_UNREADABLE: Mapping[AnswerType, str] = {
    "text": "cannot be read",
    "number": "cannot be read as a number",
    "integer": "cannot be read as an integer",
    "date": "cannot be read as a date",
    "timestamp": "cannot be read as a date and time",
    "time": "cannot be read as a time",
    "boolean": "is neither yes nor no",
    "list": "cannot be read as a list",
}
_NONE: Mapping[str, bool | None] = {}
_UNTOLD: Mapping[str, float] = {}
NOTHING = Outcome()
"""The outcome for NULL, empty or blank text: no call is made."""


class TextCalls:
    """Makes the text calls of one query.

    Args:
        sites: all sites of the query: the same (document, question, type) may come up in several of them, and one
            call must give the verdicts that any of them needs (semantics 2).
        max_calls: budget of calls; None: none.
        strict: raise ModelCallError for a failed call instead of counting it.
        beside: sites whose texts are asked another question at the same time, so that both share a request.
        spellings: texts of the query, whose spelling equal replies take.
    """

    def __init__(
        self,
        reader: Reader,
        sites: Iterable[Site],
        *,
        max_calls: int | None,
        strict: bool,
        concurrency: int,
        cited: bool = True,
        unknown_answers: UnknownAnswers | None = None,
        beside: Collection[Site] = (),
        spellings: Iterable[str] = (),
    ) -> None:
        self.unknown_answers = unknown_answers or UnknownAnswers()
        self._cited, self._beside = cited, frozenset(map(id, beside))
        self._reader, self._max_calls, self._strict = reader, max_calls, strict
        self._slots = asyncio.Semaphore(concurrency)
        # A reader that bounds what its model is asked looks into its cache, and finds company, for more rows than that.
        self._bounded = bool(getattr(reader, "bounds_calls", False))
        self.company = int(getattr(reader, "company", 1)) if self._bounded else 1
        sites = tuple(sites)
        self._sites: dict[tuple[object, ...], list[Site]] = {}  # by what is asked; None: what each row asks
        for site in sites:
            asked = site.question.name if site.question.is_string else None
            self._sites.setdefault((*_kind_of(site), asked), []).append(site)
        self._served = served_question()
        self._written = {site.question.name for site in sites if site.question.is_string}
        self._replies: dict[bytes, asyncio.Future[Outcome] | Outcome | str] = {}
        self.usage = Usage()
        self.made = self.cached = self.answered = self.silent = 0
        self.cast: dict[tuple[str, exp.DataType, str], None] = {}
        """Questions, types and texts: the answers that the engine casts to a type."""
        self.failures: Counter[str] = Counter()
        self.under_way = 0
        self._ended: asyncio.Event | None = None
        self._refused = self._undecided = 0
        self._setup: ModelError | None = None
        self._problem: BudgetExceeded | None = None
        self._options: dict[exp.Query, tuple[str, ...]] = {}
        self._unified = spellings_of(spellings)
        self._asked: dict[str, _Asked] = {}

    def call_for(self, site: Site, passages: tuple[str, ...], question: str) -> tuple[bytes, TextCall]:
        """Return the call for a site's document and question, and its identity: equal ones in other places are one."""
        options = self.options_of(site) or ()
        found = self._asked.get(site.id)
        if found is None or found.question != question or found.options != options or found.site is not site:
            found = self._asked[site.id] = self._asked_of(site, question, options)
        digest = found.begun.copy()
        for passage in passages:
            _add(digest, passage)
        return digest.digest(), found.call(passages)

    def _asked_of(self, site: Site, question: str, options: tuple[str, ...]) -> _Asked:
        alike = [each for asked in (question, None) for each in self._sites.get((*_kind_of(site), asked), ())]
        compared = tuple(dict.fromkeys(literal for each in alike for literal in each.compared))
        about = {each.about for each in alike}
        # A person reads the answer as it is where no query compares it, casts it or lists what it may be.
        is_open = site.function == "answer" and site.type == "text" and not options and not compared
        function: Literal["answer", "summary"] = "summary" if site.function == "summary" else "answer"
        call = partial(
            TextCall,
            function,
            question=question,
            type=site.type,
            options=options,
            compared=compared,
            # A question that the query writes out is the query's own, also where a row makes the same.
            from_rows=question not in self._written,
            # Of equal documents in several columns one call is made, which cannot say where they stand.
            about=about.pop() if len(about) == 1 else "",
            served=self._served.question if is_open else "",
            beside=id(site) in self._beside,
        )
        begun = hashlib.blake2b(digest_size=16)
        for part in (function, site.type, question, "\x1e".join(options)):
            _add(begun, part)
        return _Asked(site, question, options, call, begun)

    @property
    def unknown(self) -> int:
        return self.failures.total()

    @property
    def causes(self) -> str:
        return "; ".join(f"{cause}: {count:,}" for cause, count in self.failures.most_common())

    def refuse_if_none_answered(self) -> None:
        """End the query where no call was answered: rows made of failures alone look like an empty result."""
        if self.unknown and not self.answered:
            raise self._setup or ModelError(
                f"none of the query's {self.unknown:,} model call(s) was answered ({self.causes}): run it again when "
                "the model answers, or change --model; --strict shows the first failure in full"
            )

    @property
    def reads_words_alone(self) -> bool:
        return self._reader.name == "local"

    def options_of(self, site: Site) -> tuple[str, ...] | None:
        """Return the options of a site; None where those of its query are not known yet."""
        return site.options if site.options_from is None else self._options.get(site.options_from)

    def know_options(self, site: Site, values: Sequence[object]) -> None:
        """Take the options of a site: values of rows, or the one list that `(SELECT list(…) …)` gives."""
        assert site.options_from is not None
        if any(isinstance(value, list) for value in values):
            if len(values) != 1:
                raise QueryTypeError(
                    f"the query of the options of answer() gives {len(values):,} lists: write ARRAY(SELECT unnest(…) …)"
                )
            (values,) = values  # type: ignore[assignment]
        found = tuple(dict.fromkeys(str(value) for value in values if value is not None and str(value).strip()))
        if len(found) > MOST_OPTIONS:
            raise QueryTypeError(
                f"ARRAY(SELECT …) gives {len(found):,} options; answer() takes {MOST_OPTIONS} at most: narrow it"
            )
        self._options[site.options_from] = found

    def is_answered(self, identity: bytes) -> bool:
        """Return whether a call has been made and answered already, so that it costs nothing more."""
        found = self._replies.get(identity)
        return isinstance(found, Outcome | str) or (isinstance(found, asyncio.Future) and found.done())

    def is_asked(self, identity: bytes) -> bool:
        """Return whether a call has been made, or is under way."""
        return identity in self._replies

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """Let a reader that merges calls wait for those that are being prepared."""
        hold = getattr(self._reader, "hold", None)
        async with hold() if hold is not None else nullcontext():
            yield

    async def kept(self, call: TextCall) -> TextReply | None:
        """Return the reply to a call that the reader's cache has, so that it costs nothing."""
        kept: Callable[[TextCall], Awaitable[TextReply | None]] | None = getattr(self._reader, "read_cached", None)
        return None if kept is None else await kept(call)

    async def ask(self, identity: bytes, call: TextCall, *, in_own_task: bool = False) -> Outcome:
        """Return the outcome of a call; equal calls, also those under way, share one.

        Args:
            in_own_task: no LIMIT cancels the task that asks, so that the call needs none beside it.
        """
        if identity not in self._replies and self._is_at_budget:
            await self._find_room(call)
        found = self._replies.get(identity)
        if isinstance(found, Outcome | str):
            return found if isinstance(found, Outcome) else Outcome(found)
        if found is None:
            self.made += 1
            self.under_way += 1
            if in_own_task:
                return await self._share(identity, self._read(identity, call))
            found = self._replies[identity] = asyncio.ensure_future(self._read(identity, call))
        return await asyncio.shield(found) if not found.done() else found.result()

    async def _share(self, identity: bytes, reading: Awaitable[Outcome]) -> Outcome:
        shared = self._replies[identity] = asyncio.get_running_loop().create_future()
        try:
            outcome = await reading
        except BaseException as error:
            shared.set_exception(error)
            shared.exception()  # looked at, so that asyncio does not report it
            raise
        shared.set_result(outcome)
        return outcome

    def stop(self, problem: BudgetExceeded) -> None:
        """Make no more calls, and raise this where one would be made; replies that are kept are still given."""
        self._problem = problem

    @property
    def _is_at_budget(self) -> bool:
        """Whether the budget is used up if each call under way turns out to cost something."""
        return self._problem is not None or (self._max_calls is not None and self.made >= self._max_calls)

    async def _find_room(self, call: TextCall) -> None:
        """Return when a call may be made: a cache has its reply, or of those under way enough were served by one."""
        if await self.kept(call) is not None:
            return
        if self._problem is not None:
            raise self._problem
        while self._is_at_budget:
            if not self.under_way:
                raise BudgetExceeded(
                    f"stopped at the budget of {self._max_calls} model calls; raise --max-calls to go on: "
                    "what was answered is kept and not paid for again"
                )
            await self._wait_for_end()

    def within(self, site: Site, outcome: Outcome) -> Outcome:
        """Return an outcome, without its value where that is a number beyond the SQL type asked for.

        A text that the engine is to cast is noted in `cast`.
        """
        bounds = site.bounds
        if outcome.value is not None:
            for cast in site.casts:
                self.cast[site.question.name, cast, str(outcome.value)] = None
        if bounds is None or outcome.value is None or bounds[0] < Decimal(outcome.value) < bounds[1]:
            return outcome
        return replace(outcome, value=None, reason="a number beyond the type asked for")

    def unify(self, value: object) -> object:
        """Return one spelling for all equals of a value while rows are still compared: the query's, or the first."""
        return spelled(value, self._unified) if isinstance(value, str) else value

    async def finish(self, most: float | None) -> None:
        """Wait a moment for the calls that LIMIT left under way: they are paid for, and a cache keeps their replies.

        Args:
            most: seconds that are left; None: any number.
        """
        tasks = [task for task in self._replies.values() if isinstance(task, asyncio.Task) and not task.done()]
        if tasks and self._reader.paid:
            await asyncio.wait(tasks, timeout=max(0.0, min(MOST_WAITED, MOST_WAITED if most is None else most)))

    async def cancel(self) -> None:
        tasks = [task for task in self._replies.values() if isinstance(task, asyncio.Task)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for task in tasks:
            if task.done() and not task.cancelled():
                task.exception()  # looked at, so that asyncio does not report it

    async def _read(self, identity: bytes, call: TextCall) -> Outcome:
        try:
            return await self._make_call(identity, call)
        finally:
            self.under_way -= 1
            self._wake()

    async def _wait_for_end(self) -> None:
        self._ended = self._ended or asyncio.Event()
        await self._ended.wait()

    def _wake(self) -> None:
        if self._ended is not None:
            self._ended.set()
            self._ended = None

    async def _make_call(self, identity: bytes, call: TextCall) -> Outcome:
        try:
            if self._bounded:
                calls_at_once.set(self._slots)  # the task's own: a row's, or this call's
                reply = await self._reader.read(call)
            else:
                async with self._slots:
                    reply = await self._reader.read(call)
        except ModelCallError as failure:
            if self._strict:
                raise
            await self._check_setup(failure)
            cause, tries = describe_failure(failure)
            self.failures[cause if tries == 1 else f"{cause}, in {tries} tries"] += 1
            return Outcome(unknown=True, reason=cause)
        # From now on the outcome stands for the call: its task takes ten times as much memory.
        outcome = self._outcome(call, reply)
        self._served.note(call.question, reply.value)
        self._replies[identity] = _reduce_outcome(outcome)
        return outcome

    async def _check_setup(self, failure: ModelCallError) -> None:
        """Raise the error that a refusal stands for where the key or the address is wrong, not one text.

        That is decided by the other texts, in any order of the replies: by one that is answered, else by a
        second that is refused once no call is under way that could be answered.
        """
        setup = failure.setup if isinstance(failure, FailedCall) else None
        if setup is None or self.answered:
            return
        self._setup = setup
        self._refused += 1
        self._undecided += 1
        try:
            self._wake()
            while not self.answered and self._undecided < self.under_way:
                await self._wait_for_end()
        finally:
            self._undecided -= 1
        if not self.answered and self._refused > 1:
            raise setup from failure

    def _outcome(self, call: TextCall, reply: TextReply) -> Outcome:
        self.usage, self.answered = self.usage + reply.usage, self.answered + 1
        if reply.usage.cached_calls and not reply.usage.calls:
            self.made -= 1
            self.cached += 1
        self.silent += reply.value is None
        quotes = reply.quotes if self._cited else ()
        value = None if reply.value is None else _read_as(call, writable(reply.value))
        unreadable = reply.unreadable or (reply.value is not None and value is None)
        reason = f"a reply that {_UNREADABLE[call.type]}" if unreadable else ""
        if unreadable and call.options:  # what is none of the options equals none of them
            return Outcome(quotes=quotes, reason="a reply that is none of the options")
        verdicts = {literal: reply.verdicts.get(literal) for literal in call.compared} if call.compared else _NONE
        return Outcome(value, verdicts, quotes, reason=reason, probabilities=reply.probabilities or _UNTOLD)


def _reduce_outcome(outcome: Outcome) -> Outcome | str:
    """Return what is kept of an outcome: of most, in a query over a million rows, only the words."""
    alone = not outcome.verdicts and not outcome.quotes and not outcome.reason
    return outcome.value if alone and outcome.value is not None else NOTHING if alone else outcome


def _read_as(call: TextCall, value: str) -> str | None:
    if call.type == "list":
        listed = parse_list(value)
        texts = only_options(listed, call.options) if call.options else listed
        return join_texts(texts) if texts or not listed else None
    if call.options:
        return option_of(value, call.options)
    return value if call.type == "text" else parse_typed(value, call.type)


def _kind_of(site: Site) -> tuple[object, ...]:
    return site.function, site.type, site.options, site.options_from


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the calls of one site with one question have in common: all but their passages, and the hash's beginning."""

    site: Site
    question: str
    options: tuple[str, ...]
    call: partial[TextCall]
    begun: Any


def _add(digest: Any, part: str) -> None:
    encoded = part.encode("utf-8", "surrogatepass")
    digest.update(len(encoded).to_bytes(8, "little") + encoded)
