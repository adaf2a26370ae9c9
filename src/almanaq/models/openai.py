"""Models behind an OpenAI-compatible server: OpenAI, Azure, vLLM, Ollama, llama.cpp."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from almanaq.errors import ModelCallError, ModelError
from almanaq.event_loops import PerLoop, run_sync
from almanaq.models.budget import estimate_tokens, max_tokens, record_count, record_usage
from almanaq.models.embedders.base import Prefixes, find_input_types, find_prefixes, normalize
from almanaq.models.http import (
    CHAT_BYTES,
    JsonServer,
    NoReply,
    Reply,
    address_identity,
    find_secrets,
    redact_address,
    redact_keys,
)
from almanaq.models.openai_replies import (
    LEAST_LIMIT,
    ChatStream,
    check_encoding,
    count_cached_tokens,
    decode_body,
    find_output_limit,
    find_refused_feature,
    has_reasoned,
    make_connection_error,
    make_status_error,
    read_completion,
    read_count,
    read_error_message,
    read_likelihood,
    read_text,
    read_token_count,
    read_verdict_probabilities,
)
from almanaq.models.protocols import Completion, Message, Price, Prompt, Usage
from almanaq.models.providers import ask_context
from almanaq.models.retrying import FailedCall, seconds_to_wait

_log = logging.getLogger("almanaq")
OPENAI = "https://api.openai.com/v1"
_REASONING_ROOM, _MOST_REASONING_ROOM = 8192, 32_768
"""Tokens added once a model has shown that it reasons, as its output limit includes that; doubled up to the second."""
_WORDS_READ, _WORDS_CUT, _TOKENS_CUT = 0.9, 500, 500
"""A prompt of more than `_WORDS_CUT` words takes at least `_WORDS_READ` tokens a word; where a server counted fewer, it
read a part. Below `_TOKENS_CUT` it is one that leaves out what it had cached."""
_ALTERNATIVES = 20
"""Alternatives requested per token for verdict probabilities: the maximum of OpenAI."""
_SILENT = ("api.openai.com",)
"""Servers that are known not to say how much their models read."""
_VECTOR_BYTES = 2**19
"""Maximum size of one vector in a reply: 16,384 numbers as text."""


class OpenAIModel:
    """A LanguageModel behind an OpenAI-compatible server.

    A feature that the server refuses (a JSON schema, temperature 0, `max_completion_tokens`) is left out from then on;
    the call that was refused fails, and RetryingModel repeats it at once.

    Args:
        base_url, api_key: by default OPENAI_BASE_URL, else OpenAI's, and OPENAI_API_KEY; other servers may need none.
        price: what tokens cost; None leaves `usage.money` unknown.
        reasoning_effort: sent to models that reason, e.g. "low".
        provider: the part of the model's name before the colon.
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        timeout: float = 60.0,
        price: Price | None = None,
        reasoning_effort: str | None = None,
        provider: str = "openai",
        most_bytes: int = CHAT_BYTES,
    ) -> None:
        self.name = f"{provider}:{model}"
        self._model, self._price, self._effort = model, price, reasoning_effort
        address, key = address_and_key(base_url, api_key)
        self._base_url = redact_address(address)
        self.secrets = (key, *find_secrets(address))
        self.identity = f"{self.name} at {address_identity(address)} {reasoning_effort or ''}"
        headers = _make_headers(address, key)
        self._server = JsonServer(address, headers, timeout=timeout, secrets=self.secrets, most_bytes=most_bytes)
        self._refused: frozenset[str] = frozenset()
        self._room = self._output_limit = self._context = 0
        self._served = False
        self._far = provider in ("openai", "azure")
        self._cut_at: tuple[int, int] | None = None
        self._last_options: tuple[Any, ...] = (None, None, {}, "")
        self._asking = PerLoop(asyncio.Lock)
        self._stated_context: int | None = None
        self._has_asked = urlsplit(address).hostname in _SILENT
        self._ask_server = partial(ask_context, address, headers, self.secrets, model)

    async def ask_context(self) -> int | None:
        """Return the tokens that the model reads at once, as its server says; asked once, None where it does not."""
        async with self._asking.get():
            if not self._has_asked:
                self._stated_context = await self._ask_server()
                self._has_asked = True
        return self._stated_context

    def most_output_tokens(self, prompt: Prompt) -> int:
        """Return the maximum tokens of a reply, hidden ones included."""
        most = prompt.max_output_tokens + self._room
        return min(most, self._output_limit) if self._output_limit else most

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the reply to a prompt; raises FailedCall for this call, ModelError when no call can succeed."""
        if "system" in self._refused:
            # The instructions go to the head of the first message of the user.
            system = "\n\n".join(m.content for m in prompt.messages if m.role == "system")
            first, *others = [m for m in prompt.messages if m.role != "system"]
            if system:
                first = replace(first, content=f"{system}\n\n{first.content}")
            prompt = replace(prompt, messages=(first, *others))
        options, written = self._request_options(prompt)
        stream = ChatStream(prompt.pieces, self.secrets) if prompt.pieces and "stream" in options else None
        try:
            body = _write_request(prompt.messages, written)
            reply = await self._post(body, prompt, stream.feed if stream else None)
        except NoReply as problem:
            failed = make_connection_error(problem, base_url=self._base_url, served=self._served)
            if isinstance(failed, FailedCall) and problem.timed_out and not self._far:
                failed.retryable = False  # the same request would take this machine as long again
            raise failed from problem
        if not reply.succeeded:
            raise self._make_error(reply, options, prompt)
        if reply.body.lstrip().startswith((b"data:", b":", b"event:", b"id:", b"retry:")):
            if stream is None:  # nobody asked for events
                stream = ChatStream(None, self.secrets)
                stream.feed(reply.body + b"\n")
            content = stream.content()
            if "choices" not in content:
                message = (
                    read_error_message(json.dumps(content).encode()) if "error" in content else "the stream broke off"
                )
                raise FailedCall(
                    f"the reply is not whole: {redact_keys(message)}",
                    usage=Usage(calls=1),
                    sure=False,
                    cause="a stream that broke off",
                )
        else:
            content = decode_body(reply.body, base_url=self._base_url, served=self._served)
        usage = self._read_usage(content, prompt)
        if has_reasoned(content):
            self._room = max(self._room, _REASONING_ROOM)
        self._check_prompt_read(content, prompt, usage)
        try:
            completion = read_completion(content, usage)
            check_encoding(completion.text, reply.body, usage)
        except FailedCall as failure:
            failure.at_once = failure.cut and self._give_room(content, options, prompt)
            if failure.cut and not failure.at_once and not self._far:
                failure.retryable = False  # it would be cut again, after as long
            raise
        self._served = True
        if prompt.likelihood:
            completion = replace(completion, likelihood=read_likelihood(content))
        return replace(completion, probabilities=read_verdict_probabilities(content)) if prompt.verdict else completion

    async def _post(self, body: bytes, prompt: Prompt, read: Callable[[bytes], None] | None) -> Reply:  # noqa: ARG002
        return await self._server.post("/chat/completions", body, read)

    def _give_room(self, content: Mapping[str, Any], options: Mapping[str, Any], prompt: Prompt) -> bool:
        """Give a model whose reply was cut at its limit more room; return whether there is more now.

        One that reasons gets most; a server that writes no more than with less room has a limit of its own.
        """
        asked = _output_limit_of(options)
        written = read_count(content, "usage", "completion_tokens")
        least, before = self._cut_at or (asked, 0)
        if asked > least and LEAST_LIMIT <= written <= before:
            return False
        self._cut_at = asked, written
        reasoned = has_reasoned(content) or not read_text(content).strip()
        usual = prompt.max_output_tokens
        first, most = (_REASONING_ROOM, _MOST_REASONING_ROOM) if reasoned else (usual, 3 * usual)
        if self.most_output_tokens(prompt) <= asked:
            self._room = max(self._room, min(max(2 * self._room, first), most))
        return self.most_output_tokens(prompt) > asked

    def _check_prompt_read(self, content: Mapping[str, Any], prompt: Prompt, usage: Usage) -> None:
        """Raise FailedCall where the server cannot have read the whole prompt, by the tokens that it counted."""
        stated = read_count(content, "usage", "prompt_tokens")
        if stated < _TOKENS_CUT:
            return
        words = sum(len(message.content.split()) for message in prompt.messages if message.role != "system")
        if words <= _WORDS_CUT:
            return
        # Once caught, it is known how much the server reads: what takes as much may have been cut as well.
        if stated >= words * _WORDS_READ and not (self._context and stated >= self._context):
            return
        self._context = min(stated, self._context or stated)
        record_count("cut_prompts")
        raise FailedCall(
            f"the server read only {stated:,} tokens of a prompt of more than {words:,} words: give the model a larger"
            " context (Ollama: num_ctx)",
            retryable=False,
            usage=usage,
            cause="the server read only a part of the text: raise its context (Ollama: num_ctx)",
            too_long=True,
        )

    def _make_error(self, reply: Reply, options: Mapping[str, Any], prompt: Prompt) -> ModelError:
        message = read_error_message(reply.body)
        asked = _output_limit_of(options)
        limit = find_output_limit(reply.status, message, asked)
        if limit is not None:
            self._output_limit = min(limit, self._output_limit or limit)
            return _ask_otherwise(f"the server gives replies of at most {limit:,} tokens")
        known = {*options, *(message.role for message in prompt.messages)}
        feature = find_refused_feature(reply.status, message, known)
        if feature is not None:  # another call may have been refused for the same reason meanwhile
            if feature == "reasoning_effort" and feature not in self._refused:
                _log.warning("%s takes no reasoning effort: --reasoning-effort has no effect", self.name)
            self._refused |= {feature}
            return _ask_otherwise(f"the server does not support {feature}: {message[:200]}")
        return make_status_error(reply, message, model=self._model, base_url=self._base_url, served=self._served)

    def _request_options(self, prompt: Prompt) -> tuple[Mapping[str, Any], str]:
        """Return what a request holds beside its messages, and this as JSON: the prompts of a query share it."""
        refused, limit = self._refused, self.most_output_tokens(prompt)
        shape = (prompt.name, limit, prompt.pieces is None, prompt.verdict, prompt.likelihood, prompt.stop, refused)
        schema, last, options, written = self._last_options
        if schema is not prompt.schema or last != shape:
            options = self._make_options(prompt, limit)
            written = json.dumps(options)
            self._last_options = prompt.schema, shape, options, written
        return options, written

    def _make_options(self, prompt: Prompt, limit: int) -> dict[str, Any]:
        limit_name = "max_tokens" if "max_completion_tokens" in self._refused else "max_completion_tokens"
        request: dict[str, Any] = {"model": self._model, limit_name: limit, "temperature": 0}
        if prompt.schema is not None:
            schema = {"name": prompt.name, "strict": True, "schema": prompt.schema}
            request["response_format"] = {"type": "json_schema", "json_schema": schema}
        if self._effort:
            request["reasoning_effort"] = self._effort
        if prompt.pieces is not None:
            request |= {"stream": True, "stream_options": {"include_usage": True}}
        if prompt.verdict and "logprobs" not in self._refused:
            request |= {"logprobs": True, "top_logprobs": _ALTERNATIVES}
        if prompt.likelihood and "logprobs" not in self._refused:
            request["logprobs"] = True
        if prompt.stop:
            request["stop"] = list(prompt.stop)
        return {key: value for key, value in request.items() if key not in self._refused}

    def _read_usage(self, content: Mapping[str, Any], prompt: Prompt) -> Usage:
        output_tokens = read_token_count(
            content, "completion_tokens", most=lambda: self.most_output_tokens(prompt), server=self._base_url
        )
        input_tokens = read_token_count(
            content, "prompt_tokens", most=lambda: max_tokens(m.content for m in prompt.messages), server=self._base_url
        )
        if not input_tokens:
            input_tokens = sum(estimate_tokens(m.content) for m in prompt.messages)
        if not output_tokens:
            text = read_text(content)
            output_tokens = estimate_tokens(text) if text or output_tokens is None else 0
        money = None if self._price is None else self._price.of(input_tokens, output_tokens)
        return Usage(1, 0, input_tokens, output_tokens, money, min(input_tokens, count_cached_tokens(content)))


def _write_request(messages: Sequence[Message], options: str) -> bytes:
    # Messages first, so that server caches see equal prefixes.
    written = [f'{{"role": "{each.role}", "content": {json.dumps(each.content)}}}' for each in messages]
    return f'{{"messages": [{", ".join(written)}], {options[1:]}'.encode("ascii")


def _output_limit_of(options: Mapping[str, Any]) -> int:
    return options.get("max_completion_tokens") or options.get("max_tokens") or 0


def _ask_otherwise(message: str) -> FailedCall:
    return FailedCall(message, usage=Usage(calls=1), at_once=True)


class OpenAIEmbedder:
    """An Embedder behind an OpenAI-compatible server; sends texts in batches and normalizes the vectors.

    Questions and documents are distinguished by `input_type`, dropped once a server refuses it, or by a prefix.
    """

    remote = True

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        batch: int = 128,
        attempts: int = 4,
    ) -> None:
        self.name = f"openai:{model}"
        self._model, self._batch, self._most, self._attempts = model, batch, batch, attempts
        address, key = address_and_key(base_url, api_key)
        self._base_url = redact_address(address)
        self._server = JsonServer(
            address,
            _make_headers(address, key),
            timeout=120.0,
            secrets=(key, *find_secrets(address)),
            most_bytes=batch * _VECTOR_BYTES,
        )
        self._prefixes, self._types = find_prefixes(model), find_input_types(model)
        self.symmetric = self._types is None and self._prefixes == Prefixes()
        self._names_encoding = True
        self._width: int | None = None
        self.usage = Usage()

    def embed_questions(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of questions, shape (len(texts), dimensions)."""
        return run_sync(self._embed_batches([self._prefixes.question + text for text in texts], 0))

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of documents, shape (len(texts), dimensions)."""
        return run_sync(self._embed_batches([self._prefixes.document + text for text in texts], 1))

    async def _embed_batches(self, texts: Sequence[str], kind: int) -> NDArray[np.float32]:
        # A refused batch is halved, and a text that is too long is cut.
        vectors, start = [], 0
        while start < len(texts):
            batch = texts[start : start + self._batch]
            try:
                vectors.append(await self._embed_with_retries(batch, kind))
            except FailedCall as failure:
                if failure.retryable or (len(batch) == 1 and not failure.too_long):
                    raise failure.setup or failure from failure
                if len(batch) == 1:
                    vectors.append(await self._embed_cut(batch[0], kind))
                    self._batch = self._most
                else:
                    self._batch = (len(batch) + 1) // 2
                    if not failure.too_long:
                        self._most = self._batch  # it takes no more texts at once
                    continue
            start += len(batch)
        return np.concatenate(vectors) if vectors else np.zeros((0, 0), np.float32)

    async def _embed_cut(self, text: str, kind: int) -> NDArray[np.float32]:
        length = len(text) // 2
        while length:
            try:
                vector = await self._embed_with_retries([text[:length]], kind)
            except FailedCall as failure:
                if not failure.too_long:
                    raise
                length //= 2
                continue
            _log.warning(
                "a text of %d characters is longer than %s reads: its first %d were embedded",
                *(len(text), self.name, length),
            )
            return vector
        raise ModelCallError(f"{self.name} reads no part of a text")

    async def _embed_with_retries(self, texts: Sequence[str], kind: int) -> NDArray[np.float32]:
        """Return the vectors of one batch; retries here, as an embedding has no "unknown" value."""
        for attempt in range(self._attempts):
            try:
                return await self._embed_batch(texts, kind)
            except ModelCallError as failure:
                known = failure if isinstance(failure, FailedCall) else FailedCall(str(failure))
                self._record_usage(known.usage)
                if not known.retryable or attempt + 1 == self._attempts:
                    raise known from failure
                await asyncio.sleep(seconds_to_wait(attempt, known))
        raise AssertionError("a loop over attempts ends in vectors or a failure")

    async def _embed_batch(self, texts: Sequence[str], kind: int) -> NDArray[np.float32]:
        # The protocol refuses an empty text, but not a blank one.
        request: dict[str, Any] = {"model": self._model, "input": [text or " " for text in texts]}
        if self._names_encoding:
            request["encoding_format"] = "float"
        if self._types is not None:
            request["input_type"] = self._types[kind]
        try:
            reply = await self._server.post("/embeddings", request)
        except NoReply as problem:
            raise make_connection_error(problem, base_url=self._base_url, served=self._width is not None) from problem
        if not reply.succeeded:
            message = read_error_message(reply.body)
            refused = find_refused_feature(reply.status, message, request)
            if refused is not None:
                self._types = None if refused == "input_type" else self._types
                self._names_encoding = self._names_encoding and refused != "encoding_format"
                return await self._embed_batch(texts, kind)
            served = self._width is not None
            raise make_status_error(reply, message, model=self._model, base_url=self._base_url, served=served)
        content = decode_body(reply.body, base_url=self._base_url, served=self._width is not None)
        input_tokens = read_token_count(content, "prompt_tokens", most=lambda: max_tokens(texts), server=self._base_url)
        usage = Usage(calls=1, input_tokens=input_tokens or 0, money=None)
        vectors = self._read_vectors(content, len(texts), usage)
        self._record_usage(usage)
        return normalize(vectors)

    def _read_vectors(self, content: Mapping[str, Any], count: int, usage: Usage) -> NDArray[np.float32]:
        try:
            data = content["data"]
            # Some servers number nothing, and keep the order.
            numbered = any(item.get("index") is not None for item in data)
            items = sorted(data, key=lambda item: int(item["index"])) if numbered else data
            with np.errstate(over="ignore"):
                # Some servers write vectors as base64 of 32-bit floats, unasked.
                written = (item["embedding"] for item in items)
                read = [
                    np.frombuffer(base64.b64decode(each, validate=True), "<f4") if isinstance(each, str) else each
                    for each in written
                ]
                vectors = np.array(read, np.float32)
            places = [int(item["index"]) for item in items] if numbered else list(range(len(items)))
        except (ValueError, TypeError, LookupError, AttributeError) as problem:
            raise FailedCall(f"the server's reply holds no vectors: {str(problem)[:200]}", usage=usage) from problem
        if vectors.ndim != 2 or places != list(range(count)):
            raise FailedCall(f"the server gave vectors of shape {vectors.shape} for {count} texts", usage=usage)
        if not np.isfinite(vectors).all():
            raise FailedCall("the server gave vectors with values that are not finite", usage=usage)
        if self._width not in (None, vectors.shape[1]):
            raise FailedCall(
                f"the server gave vectors of {vectors.shape[1]} numbers after some of {self._width}",
                retryable=False,
                usage=usage,
            )
        self._width = vectors.shape[1]
        return vectors

    def _record_usage(self, usage: Usage) -> None:
        self.usage += usage
        record_usage(self.name, usage, virtual=usage.calls, purpose="embed")


def address_and_key(base_url: str | None, api_key: str | None) -> tuple[str, str]:
    """Return the server's address and the key to send, from arguments, else from the environment."""
    address = (base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI).rstrip("/")
    try:
        parts = urlsplit(address)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        shown = redact_address(address)
        raise ModelError(f"{shown!r} is not the address of a server: set OPENAI_BASE_URL to one such as {OPENAI}")
    if "@" in urlsplit(address).netloc:
        raise ModelError(
            f"the address {redact_address(address)} holds a user or a password: leave them out of OPENAI_BASE_URL, and"
            " set OPENAI_API_KEY"
        )
    key = api_key or os.environ.get("OPENAI_API_KEY") or ""
    if not key and address == OPENAI:
        raise ModelError(f"the server at {OPENAI} needs a key: set OPENAI_API_KEY, or OPENAI_BASE_URL for another")
    if not (key.isascii() and key.isprintable()):
        raise ModelError(
            "OPENAI_API_KEY contains characters that are invalid in a key: set it again, without line ends or quotes"
        )
    return address, key or "none"


def _make_headers(base_url: str, key: str) -> dict[str, str]:
    # Azure uses its own header for keys.
    if (urlsplit(base_url).hostname or "").endswith(".azure.com"):
        return {"api-key": key}
    return {"authorization": f"Bearer {key}"}
