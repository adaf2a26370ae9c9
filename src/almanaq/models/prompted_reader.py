"""PromptedReader and PromptedLinker: text calls and value linking by prompts to a language model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextvars import Context
from copy import copy
from dataclasses import replace
from functools import lru_cache
from typing import Literal, TypeVar

from almanaq.errors import ModelCallError
from almanaq.models.failure import UnusableReply
from almanaq.models.parts import Piece, cut_into_parts
from almanaq.models.prompts import Frame, prompt_file
from almanaq.models.protocols import (
    AllOf,
    AnswerType,
    Completion,
    LanguageModel,
    LinkRequest,
    Message,
    Prompt,
    Quote,
    TextCall,
    TextReply,
    Usage,
)
from almanaq.models.quotes import located
from almanaq.models.reply_lengths import usual_tokens
from almanaq.models.reply_schemas import (
    MalformedReply,
    ParsedReply,
    link_schema,
    parse_object,
    parse_reply,
    reply_schema,
)
from almanaq.models.similar import most_similar
from almanaq.models.spending import record_read_in_parts
from almanaq.values import canonical, parse_list, parse_typed, write_list

FORMS = {
    "text": "",
    "number": "a number in digits, such as 1234.5",
    "integer": "a whole number in digits, such as 1234",
    "date": "a date, such as 1968-02-15",
    "timestamp": "a date and time, such as 1968-02-15 18:30:00",
    "time": "a time of day or a duration, such as 18:30:00",
    "boolean": '"true" or "false"',
    "list": "a JSON array of texts",
}
_MOST_LINKED = 200
"""Up to this many values of a column are shown, above it the most similar ones (semantics 11)."""

P = TypeVar("P")


class PromptedReader:
    """Reads documents by asking a language model, each as a whole (semantics 2-6).

    Args:
        context_tokens: what the model reads at once, prompt and reply included; longer documents are read in parts,
            all of them, and the answers combined.
        chances: ask how likely each verdict of a yes-or-no question is; replies hold it where the server tells.

    Attributes:
        dropped_quotes: quotes that did not stand in the document.
        unparsed: values that were not of the type asked for, twice, and became "no information".
        repairs: replies that were not in the form asked for, and were asked again.
    """

    remote = True
    paid = True

    def __init__(
        self,
        model: LanguageModel,
        *,
        context_tokens: int = 32_000,
        max_output_tokens: int = 1024,
        chances: bool = False,
    ) -> None:
        self.name, self._chances = model.name, chances
        self.bounds_calls = bool(getattr(model, "bounds_calls", False))
        self._model = model
        self._max_output = max_output_tokens
        self.part_tokens = max(64, context_tokens - max_output_tokens - 700)
        self.dropped_quotes = self.unparsed = self.repairs = 0

    async def read(self, call: TextCall) -> TextReply:
        """Return what the document says; raises FailedCall when the model fails or its reply cannot be used."""
        reply = await self._read(call)
        return await self.typed(call, reply)

    async def kept(self, call: TextCall) -> bool:
        """Return whether the cache has every reply that reading a document takes; nothing is asked or recorded."""
        kept_only: Callable[[], LanguageModel] | None = getattr(self._model, "kept_only", None)
        if kept_only is None:
            return False
        reader = copy(self)
        reader._model = kept_only()
        try:
            await asyncio.get_running_loop().create_task(reader.read(call), context=Context())
        except ModelCallError:
            return False
        return True

    async def _read(self, call: TextCall, *, again: bool = False) -> TextReply:
        parts = cut_into_parts(call.passages, self.part_tokens)
        if len(parts) == 1:
            return await self._read_part(call, parts[0], 0, 0)
        if not again:
            record_read_in_parts()
        read = [self._read_part(call, part, n, len(parts)) for n, part in enumerate(parts, 1)]
        return await self._combined(call, await asyncio.gather(*read))

    async def _read_part(self, call: TextCall, pieces: Sequence[Piece], part: int, parts: int) -> TextReply:
        asked = call.question, call.type, call.options, call.compared, call.from_rows, call.about
        frame, schema = _frame(call.function, *asked, part, parts, len(pieces))
        shown = [piece.text for piece in pieces]
        prompt = frame.prompt(shown, schema=schema, max_output_tokens=self._max_output)
        prompt = replace(prompt, usual_output_tokens=usual_tokens(call))
        if self._chances and call.yes_or_no:
            prompt = replace(prompt, verdict=True)
        parsed, usage = await self._ask(call, prompt)
        quotes, dropped = located(parsed.quotes, pieces)
        self.dropped_quotes += dropped
        return TextReply(parsed.value, parsed.verdicts, quotes, usage, chances=parsed.chances)

    async def _ask(self, call: TextCall, prompt: Prompt) -> tuple[ParsedReply, Usage]:
        parsed, usage, repaired = await _asked_whole(self._model, prompt, lambda reply: _parsed(reply, call))
        self.repairs += repaired
        return parsed, usage

    async def _combined(self, call: TextCall, replies: Sequence[TextReply]) -> TextReply:
        """Return one reply for the replies to the parts of a document, in as many rounds as their length needs."""
        usage = sum((reply.usage for reply in replies), Usage())
        telling = [reply for reply in replies if reply.value is not None or any(reply.verdicts.values())]
        if len(telling) < 2:
            return replace(telling[0] if telling else replies[0], usage=usage)
        if call.type == "list":  # all that any part says, which takes no model
            texts = parse_list(write_list(tuple(text for reply in telling for text in parse_list(reply.value or ""))))
            return TextReply(write_list(texts), {}, tuple(q for reply in telling for q in reply.quotes), usage)
        findings = [_finding(reply) for reply in telling]
        groups = cut_into_parts(findings, self.part_tokens)
        if len(groups) > 1:
            chosen = [[telling[n] for n in sorted({piece.passage for piece in group})] for group in groups]
            if len(chosen) < len(telling):
                rounds = [self._combined(call, group) for group in chosen]
                combined = await self._combined(call, await asyncio.gather(*rounds))
                # The replies of a round already hold the usage of the parts they combine.
                silent = sum((reply.usage for reply in replies if reply not in telling), Usage())
                return replace(combined, usage=combined.usage + silent)
        values = {**asked_values(call), "findings": findings}
        prompt = prompt_file("combine").prompt(values, schema=reply_schema(call), max_output_tokens=self._max_output)
        prompt = replace(prompt, usual_output_tokens=usual_tokens(call))
        parsed, spent = await self._ask(call, prompt)
        return TextReply(parsed.value, parsed.verdicts, _best_quotes(telling, parsed.value), usage + spent)

    async def typed(self, call: TextCall, reply: TextReply) -> TextReply:
        """Return the reply with its value in the form of its type; one that has none is asked again, once."""
        if call.type == "text" or call.function == "summary" or reply.value is None:
            return reply
        value = parse_typed(reply.value, call.type)
        if value is None:
            # What was replied may be the words of a row: they do not enter the question.
            question = f"{call.question} (Give {FORMS[call.type]}: an earlier reply could not be read as that.)"
            again = await self._read(replace(call, question=question), again=True)
            reply = replace(again, usage=reply.usage + again.usage)
            value = None if again.value is None else parse_typed(again.value, call.type)
            if value is None and again.value is not None:
                self.unparsed += 1
                reply = replace(reply, unread=True)
        return replace(reply, value=value, quotes=reply.quotes if value is not None else ())


@lru_cache(maxsize=256)
def _frame(
    function: Literal["answer", "summary"],
    question: str,
    type_: AnswerType,
    options: tuple[str, ...],
    compared: tuple[str, ...],
    from_rows: bool,
    about: str,
    part: int,
    parts: int,
    count: int,
) -> tuple[Frame, dict[str, object]]:
    """Return the prompt of a question without its documents, and the schema of its replies: few differ in a query."""
    call = TextCall(function, (), question, type_, options, compared, from_rows, about)
    name = "summarise" if function == "summary" else "answer_list" if type_ == "list" else "answer"
    file = prompt_file(name)
    return file.frame({**asked_values(call), "part": part, "parts": parts}, count), reply_schema(call)


def _parsed(completion: Completion, call: TextCall) -> ParsedReply:
    """Return what a reply says, with how likely each literal is where the model's server told."""
    parsed = parse_reply(completion.text, call)
    chances = completion.chances
    if chances is None or not call.yes_or_no:
        return parsed
    yes = canonical("Yes")
    return replace(parsed, chances={c: chances["Yes" if canonical(c) == yes else "No"] for c in call.compared})


def asked_values(call: TextCall) -> dict[str, object]:
    """Return what a prompt says of a call, its document apart."""
    form = FORMS[call.type]
    values: dict[str, object] = {"question": call.question, "from_rows": call.from_rows, "about": call.about}
    values |= {"options": call.options, "compared": call.compared, "form": form}
    return values | {"yes_or_no": _wanted(call) if call.yes_or_no else ""}


def _wanted(call: TextCall) -> str:
    """Say for which verdicts quotes are wanted: those that the query looks for."""
    return " and ".join(
        word for word in ('"Yes"', '"No"') if canonical(word.strip('"')) in map(canonical, call.compared)
    )


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
        shown = most_similar(request.literal, request.values, _MOST_LINKED)
        values: dict[str, object] = {"literal": request.literal, "column": request.column, "shown": shown}
        schema = link_schema(shown, several=request.several)
        prompt = prompt_file("link").prompt(
            values | {"several": request.several}, schema=schema, max_output_tokens=2048
        )
        (chosen, every), _, _ = await asked(self._model, prompt, _parse_links)
        linked = tuple(v for v in request.values if canonical(v) in chosen)
        return AllOf(linked) if every and request.several and len(linked) > 1 else linked


def _parse_links(text: str) -> tuple[frozenset[str], bool]:
    """Return the values chosen, and whether a row has to hold all of them."""
    reply = parse_object(text)
    values = reply.get("values")
    if not isinstance(values, list) or not all(isinstance(v, str) for v in values):
        raise MalformedReply('"values" must be a list of strings')
    return frozenset(canonical(v) for v in values), reply.get("every") is True


async def asked(model: LanguageModel, prompt: Prompt, parse: Callable[[str], P]) -> tuple[P, Usage, int]:
    """Return a model's reply as `parse` reads it, what it cost, and how many times (0 or 1) it had to be repaired.

    Raises:
        UnusableReply: the reply and its repair were both refused by `parse`.
    """
    return await _asked_whole(model, prompt, lambda completion: parse(completion.text))


async def _asked_whole(model: LanguageModel, prompt: Prompt, parse: Callable[[Completion], P]) -> tuple[P, Usage, int]:
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
        # A call that failed is asked for anew another time: its replies must not be found in the cache.
        forget: Callable[[Prompt], None] = getattr(model, "forget", lambda _: None)
        forget(prompt)
        forget(second)
        raise UnusableReply(
            f"the model's reply cannot be used, twice: {problem}",
            retryable=False,
            usage=usage,
            cause="a reply not in the form asked for, twice",
        ) from problem


def _finding(reply: TextReply) -> str:
    words = {True: "yes", False: "no", None: "unknown"}
    verdicts = "".join(f" {literal!r}: {words[verdict]}." for literal, verdict in reply.verdicts.items())
    quotes = "".join(f" “{quote.text}”" for quote in reply.quotes)
    value = "no information" if reply.value is None else reply.value
    return f"answer: {value}.{verdicts}{' quotes:' + quotes if quotes else ''}"


def _best_quotes(replies: Sequence[TextReply], value: str | None) -> tuple[Quote, ...]:
    """Return quotes of the parts that say what the whole says, else of any."""
    if value is None:
        return ()
    agreeing = [r for r in replies if r.value is not None and canonical(r.value) == canonical(value)]
    return tuple(quote for reply in agreeing or replies for quote in reply.quotes)[:3]
