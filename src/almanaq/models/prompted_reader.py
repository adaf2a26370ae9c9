"""PromptedReader and PromptedLinker: text calls and value linking by prompts to a language model."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from copy import copy
from dataclasses import replace
from functools import lru_cache
from operator import attrgetter
from typing import Any, TypeVar

from almanaq.errors import ModelCallError
from almanaq.models.budget import estimate_tokens, record_count
from almanaq.models.prompts import Frame, prompt_file
from almanaq.models.protocols import (
    NO_USAGE,
    AllOf,
    Completion,
    LanguageModel,
    LinkRequest,
    Message,
    Prompt,
    Quote,
    TextCall,
    TextReply,
    Usage,
    forget_reply,
)
from almanaq.models.providers import USUAL_CONTEXT
from almanaq.models.retrying import FailedCall, UnusableReply
from almanaq.models.text_calls import (
    MalformedReply,
    OutsideOptions,
    Piece,
    link_schema,
    parse_contents,
    parse_object,
    parse_objects,
    reply_schema,
    split_document,
    typical_tokens,
)
from almanaq.text.words import most_similar
from almanaq.values import canonical, parse_list, parse_typed, write_list

TYPE_FORMS = {
    "text": "",
    "number": "a number in digits, such as 1234.5; a count of nothing is 0, not null",
    "integer": "a whole number in digits, such as 1234; a count of nothing is 0, not null",
    "date": "a date, such as 1968-02-15",
    "timestamp": "a date and time, such as 1968-02-15 18:30:00",
    "time": "a time of day or a duration, such as 18:30:00",
    "boolean": '"true" or "false"',
    "list": "a JSON array of texts",
}
_COUNTED = "the number in digits, with the unit where the document gives one"
_COUNTS = re.compile(r"\bhow (?:many|much|long|old)\b|\bnumber of\b", re.IGNORECASE)
_OPEN = re.compile(
    r"(?:what|how|why)\b(?! (?:many|much|old|long|far|high|big|year|date|time|name|number)\b)", re.IGNORECASE
)
"""Questions that a person wants to read a sentence on; of the others, a word or a figure says it all."""

_MAX_LINKED = 200
"""Maximum values of a column in a prompt; of more, the most similar ones are shown (semantics 11)."""

_SHORT_TOKENS = 1000
"""Documents of at most so many tokens fit into nearly every context."""
_LEAST_PART = 64
"""Tokens: a document is cut no smaller."""

P = TypeVar("P")


class PromptedReader:
    """Reads documents by prompting a language model, each as a whole (semantics 2-6).

    Args:
        context_tokens: the model's context window, prompt and reply included; longer documents are read in parts, and
            the answers combined. None: what `ask_context` says when the first long document comes, else the usual one.
        probabilities: ask for the probability of each verdict of a yes-or-no question, where the server reports it.

    Attributes:
        repairs: malformed replies that were requested again.
    """

    remote = True
    paid = True

    def __init__(
        self,
        model: LanguageModel,
        *,
        context_tokens: int | None = None,
        max_output_tokens: int = 1024,
        probabilities: bool = False,
        ask_context: Callable[[], Awaitable[int | None]] | None = None,
    ) -> None:
        self.name, self._probabilities = model.name, probabilities
        self.bounds_calls = bool(getattr(model, "bounds_calls", False))
        self._model = model
        self._max_output = max_output_tokens
        self._ask_context = ask_context if context_tokens is None else None
        self.part_tokens = self._part_of(context_tokens or USUAL_CONTEXT)
        self.repairs = 0

    async def read(self, call: TextCall) -> TextReply:
        """Return what the document says; raises FailedCall when the model fails or its reply cannot be used."""
        reply = await self._read(call)
        return await self.convert_value(call, reply)

    def _part_of(self, context_tokens: int) -> int:
        return max(_LEAST_PART, context_tokens - self._max_output - 700)

    async def _fit_context(self, call: TextCall) -> None:
        ask = self._ask_context
        if ask is None or sum(map(estimate_tokens, call.passages)) <= _SHORT_TOKENS:
            return
        stated = await ask()
        if stated is not None and self._ask_context is not None:
            self.part_tokens = self._part_of(stated)
        self._ask_context = None

    async def read_cached(self, call: TextCall) -> TextReply | None:
        """Return what the document says by the cache alone, None where it lacks a reply; asks and records nothing."""
        cache_only: Callable[[], LanguageModel] | None = getattr(self._model, "cache_only", None)
        if cache_only is None:
            return None
        reader = copy(self)
        reader._model = cache_only()
        try:
            return await asyncio.get_running_loop().create_task(reader.read(call), context=Context())
        except ModelCallError:
            return None

    async def _read(self, call: TextCall, *, again: bool = False) -> TextReply:
        """Read the document, in smaller parts where the server says that these are longer than the model reads."""
        spent = NO_USAGE
        await self._fit_context(call)
        while True:
            parts = split_document(call.passages, self.part_tokens)
            try:
                if len(parts) == 1:
                    reply = await self._read_part(call, parts[0], 0, 0)
                else:
                    read = [self._read_part(call, part, n, len(parts)) for n, part in enumerate(parts, 1)]
                    reply = await self._combine_parts(call, await asyncio.gather(*read))
                    if not again:
                        record_count("read_in_parts")
                return reply if spent is NO_USAGE else replace(reply, usage=spent + reply.usage)
            except FailedCall as failure:
                longest = max(sum(estimate_tokens(piece.text) for piece in part) for part in parts)
                failure.usage += spent
                if not failure.too_long or longest <= _LEAST_PART:
                    raise
                spent = failure.usage
                self.part_tokens = min(self.part_tokens, max(_LEAST_PART, longest // 2))

    async def _read_part(self, call: TextCall, pieces: Sequence[Piece], part: int, parts: int) -> TextReply:
        frame = _make_frame(_ASKED(call), part, parts, len(pieces))
        prompt = frame.prompt(
            [piece.text for piece in pieces],
            max_output_tokens=self._max_output,
            verdict=self._probabilities and call.yes_or_no,
            usual_output_tokens=typical_tokens(call),
        )
        return await self._ask(call, prompt, pieces)

    async def _ask(self, call: TextCall, prompt: Prompt, pieces: Sequence[Piece] = ()) -> TextReply:
        try:
            reply, usage, repaired = await _ask_with_repair(
                self._model, prompt, lambda completion: _parse_completion(completion, call, pieces)
            )
        except UnusableReply as problem:
            if not isinstance(problem.__cause__, OutsideOptions):
                raise
            self.repairs += 1
            return TextReply(None, dict.fromkeys(call.compared), usage=problem.usage, unreadable=True)
        self.repairs += repaired
        return replace(reply, usage=usage) if repaired else reply

    async def _combine_parts(self, call: TextCall, replies: Sequence[TextReply]) -> TextReply:
        usage = sum((reply.usage for reply in replies), Usage())
        telling = [reply for reply in replies if reply.value is not None or any(reply.verdicts.values())]
        if len(telling) < 2:
            return replace(telling[0] if telling else replies[0], usage=usage)
        if call.type == "list":  # the union of the parts, which needs no model
            texts = parse_list(write_list(tuple(text for reply in telling for text in parse_list(reply.value or ""))))
            return TextReply(write_list(texts), {}, tuple(q for reply in telling for q in reply.quotes), usage)
        findings = [_describe_finding(reply) for reply in telling]
        groups = split_document(findings, self.part_tokens)
        if len(groups) > 1:
            chosen = [[telling[n] for n in sorted({piece.passage for piece in group})] for group in groups]
            if len(chosen) < len(telling):
                rounds = [self._combine_parts(call, group) for group in chosen]
                combined = await self._combine_parts(call, await asyncio.gather(*rounds))
                # The replies of a round include the usage of the parts they combine.
                silent = sum((reply.usage for reply in replies if reply not in telling), Usage())
                return replace(combined, usage=combined.usage + silent)
        values = {**prompt_values(call), "findings": findings}
        prompt = prompt_file("combine").prompt(
            values,
            schema=reply_schema(call),
            max_output_tokens=self._max_output,
            usual_output_tokens=typical_tokens(call),
        )
        reply = await self._ask(call, prompt)
        return replace(reply, quotes=_choose_quotes(telling, reply.value), usage=usage + reply.usage)

    async def convert_value(self, call: TextCall, reply: TextReply) -> TextReply:
        """Return the reply with its value converted to the requested type; asks once more where that fails."""
        if call.type == "text" or call.function == "summary" or reply.value is None:
            return reply
        value = parse_typed(reply.value, call.type)
        if value is None:
            # The reply may quote a row, so it must not enter the question.
            question = f"{call.question} (Give {TYPE_FORMS[call.type]}: an earlier reply could not be read as that.)"
            again = await self._read(replace(call, question=question), again=True)
            reply = replace(again, usage=reply.usage + again.usage)
            value = None if again.value is None else parse_typed(again.value, call.type)
            unreadable = value is None and again.value is not None
            reply = replace(reply, unreadable=reply.unreadable or unreadable)
        return replace(reply, value=value, quotes=reply.quotes if value is not None else ())


_ASKED = attrgetter("question", "type", "options", "compared", "from_rows", "about", "served", "function")


@lru_cache(maxsize=256)
def _make_frame(asked: tuple[Any, ...], part: int, parts: int, count: int) -> Frame:
    """Return the prompt of calls that ask the same, with its reply schema; cached, as a query has few."""
    call = TextCall(asked[-1], (), *asked[:-1])
    name = "summarise" if call.function == "summary" else "answer_list" if call.type == "list" else "answer"
    return prompt_file(name).frame({**prompt_values(call), "part": part, "parts": parts}, count, reply_schema(call))


def _parse_completion(completion: Completion, call: TextCall, pieces: Sequence[Piece]) -> TextReply:
    reply = parse_contents(parse_objects(completion.text), call, pieces, completion.usage)
    probabilities = completion.probabilities
    if probabilities is None or not call.yes_or_no:
        return reply
    yes = canonical("Yes")
    found = {c: probabilities["Yes" if canonical(c) == yes else "No"] for c in call.compared}
    return replace(reply, probabilities=found)


def prompt_values(call: TextCall) -> dict[str, object]:
    """Return the template values of a call, except its document."""
    form = TYPE_FORMS[call.type] or (_COUNTED if call.served and _COUNTS.search(call.question) else "")
    compared = set(map(canonical, call.compared)) if call.yes_or_no else ()
    names = ("function", "question", "from_rows", "about", "options", "compared", "served")
    return {name: getattr(call, name) for name in names} | {
        "form": form,
        "sentence": bool(call.served and not form and _OPEN.match(call.question)),
        # The verdicts that need quotes are those that the query looks for.
        "yes_or_no": " and ".join(f'"{word}"' for word in ("Yes", "No") if canonical(word) in compared),
    }


class PromptedLinker:
    """Links a literal to the values of a column that mean the same, by asking a language model (semantics 11)."""

    def __init__(self, model: LanguageModel) -> None:
        self.name = model.name
        self._model = model

    async def link(self, request: LinkRequest) -> tuple[str, ...]:
        """Return the values that mean the same as the literal, in the column's order."""
        same = tuple(v for v in request.values if canonical(v) == canonical(request.literal))
        if same or not request.values:
            return same
        shown = most_similar(request.literal, request.values, _MAX_LINKED)
        values = {"literal": request.literal, "column": request.column, "shown": shown, "several": request.several}
        schema = link_schema(shown, several=request.several)
        prompt = prompt_file("link").prompt(values, schema=schema, max_output_tokens=2048)
        (chosen, every), _, _ = await ask_model(self._model, prompt, _parse_links)
        linked = tuple(v for v in request.values if canonical(v) in chosen)
        return AllOf(linked) if every and request.several and len(linked) > 1 else linked


def _parse_links(text: str) -> tuple[frozenset[str], bool]:
    reply = parse_object(text)
    values = reply.get("values")
    if not isinstance(values, list) or not all(isinstance(v, str) for v in values):
        raise MalformedReply('"values" must be a list of strings')
    return frozenset(canonical(v) for v in values), reply.get("every") is True


async def ask_model(model: LanguageModel, prompt: Prompt, parse: Callable[[str], P]) -> tuple[P, Usage, int]:
    """Return a model's reply as parsed, its cost, and the number of repairs (0 or 1). Raises UnusableReply."""
    return await _ask_with_repair(model, prompt, lambda completion: parse(completion.text))


async def _ask_with_repair(
    model: LanguageModel, prompt: Prompt, parse: Callable[[Completion], P]
) -> tuple[P, Usage, int]:
    completion = await model.complete(prompt)
    try:
        return parse(completion), completion.usage, 0
    except MalformedReply as problem:
        fault = problem
    repair = Message("user", prompt_file("repair").render_user(fault=str(fault)).strip())
    reply = Message("assistant", completion.text[:4000])
    second = replace(prompt, messages=(*prompt.messages, reply, repair))
    again = await model.complete(second)
    usage = completion.usage + again.usage
    try:
        return parse(again), usage, 1
    except MalformedReply as problem:
        # The call has failed: its replies must not be served from the cache next time.
        forget_reply(model, prompt)
        forget_reply(model, second)
        raise UnusableReply(
            f"the model's reply cannot be used, twice: {problem}",
            retryable=False,
            usage=usage,
            cause="a reply not in the form asked for, twice",
        ) from problem


def _describe_finding(reply: TextReply) -> str:
    words = {True: "yes", False: "no", None: "unknown"}
    verdicts = "".join(f" {literal!r}: {words[verdict]}." for literal, verdict in reply.verdicts.items())
    quotes = "".join(f" “{quote.text}”" for quote in reply.quotes)
    value = "no information" if reply.value is None else reply.value
    return f"answer: {value}.{verdicts}{' quotes:' + quotes if quotes else ''}"


def _choose_quotes(replies: Sequence[TextReply], value: str | None) -> tuple[Quote, ...]:
    if value is None:
        return ()
    agreeing = [r for r in replies if r.value is not None and canonical(r.value) == canonical(value)]
    return tuple(quote for reply in agreeing or replies for quote in reply.quotes)[:3]
