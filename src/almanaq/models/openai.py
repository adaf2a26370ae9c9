"""Models behind a server of the OpenAI protocol (OpenAI, Azure, vLLM, Ollama, llama.cpp); all HTTP is spoken here."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from almanaq.errors import ModelError
from almanaq.models.clients import PerLoop
from almanaq.models.failure import FailedCall
from almanaq.models.openai_errors import (
    connection_failure,
    decoded,
    hidden_tokens,
    refused_feature,
    status_failure,
    text_of,
)
from almanaq.models.prices import Price
from almanaq.models.protocols import Completion, Prompt, Usage
from almanaq.models.tokens import estimate_tokens
from almanaq.models.vectors import normalised

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

OPENAI = "https://api.openai.com/v1"
_REASONING_ROOM = 8192
"""Tokens added for hidden reasoning once a model has shown that it reasons: its limit counts them as output."""


class OpenAIModel:
    """A LanguageModel behind an OpenAI-compatible server.

    What the server refuses (a JSON schema, temperature 0, `max_completion_tokens`) is left out from then on. The
    client's own retries are off: RetryingModel does that, and counts.

    Args:
        model: the server's name for the model.
        base_url: the server's address, by default OPENAI_BASE_URL, else OpenAI's.
        api_key: by default OPENAI_API_KEY; a server at another address than OpenAI's may need none.
        timeout: seconds until a call is given up.
        price: what tokens cost; None leaves `usage.money` unknown.
        reasoning_effort: sent to models that reason, e.g. "low".
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
    ) -> None:
        self.name = f"openai:{model}"
        self._model, self._price, self._effort, self._timeout = model, price, reasoning_effort, timeout
        self._base_url, self._key = address_and_key(base_url, api_key)
        self.identity = f"{self.name} at {self._base_url} {reasoning_effort or ''}"
        self._clients = PerLoop(self._client)
        self._refused: frozenset[str] = frozenset()
        self._reasons = self._served = False

    async def complete(self, prompt: Prompt) -> Completion:
        """Give the reply to a prompt; raises FailedCall for this call, ModelError when no call can succeed."""
        client = await self._clients.get()
        spent = Usage()
        while True:
            request = self._request(prompt)
            try:
                completion = await self._call(client, request)
            except _RefusedFeature as refusal:
                self._refused |= {refusal.feature}
                spent += Usage(calls=1)
            except FailedCall as failure:
                failure.usage = spent + failure.usage
                raise
            else:
                return Completion(completion.text, spent + completion.usage)

    async def _call(self, client: AsyncOpenAI, request: dict[str, Any]) -> Completion:
        import openai

        try:
            raw = await client.chat.completions.with_raw_response.create(**request)
        except openai.APITimeoutError as problem:
            raise FailedCall(
                f"no reply within {self._timeout:g} s", usage=Usage(calls=int(_arrived(problem)))
            ) from problem
        except openai.APIConnectionError as problem:
            raise _unconnected(problem, self._base_url, served=self._served) from problem
        except openai.APIStatusError as problem:
            raise self._failure(problem, request) from problem
        content = decoded(raw.http_response.content)
        usage = self._usage(content, request)
        self._reasons = self._reasons or hidden_tokens(content) > 0
        self._served = True
        return text_of(content, usage)

    def _failure(self, problem: Any, request: Mapping[str, Any]) -> Exception:
        feature = refused_feature(problem.status_code, problem.message, set(request))
        if feature is not None:
            return _RefusedFeature(feature)
        return status_failure(
            problem.status_code,
            problem.message,
            model=self._model,
            base_url=self._base_url,
            retry_after=_retry_after(problem.response.headers),
        )

    def _request(self, prompt: Prompt) -> dict[str, Any]:
        limit = prompt.max_output_tokens + (_REASONING_ROOM if self._reasons else 0)
        limit_name = "max_tokens" if "max_completion_tokens" in self._refused else "max_completion_tokens"
        request: dict[str, Any] = {
            "model": self._model,
            "messages": [{"role": m.role, "content": m.content} for m in prompt.messages],
            limit_name: limit,
            "temperature": 0,
        }
        if prompt.schema is not None:
            schema = {"name": prompt.name, "strict": True, "schema": prompt.schema}
            request["response_format"] = {"type": "json_schema", "json_schema": schema}
        if self._effort:
            request["reasoning_effort"] = self._effort
        return {key: value for key, value in request.items() if key not in self._refused}

    def _usage(self, content: Mapping[str, Any], request: Mapping[str, Any]) -> Usage:
        """Give what the reply says it cost; where it says nothing, an estimate from the lengths of the texts."""
        stated = content.get("usage")
        stated = stated if isinstance(stated, dict) else {}
        read, written = stated.get("prompt_tokens"), stated.get("completion_tokens")
        if not isinstance(read, int):
            read = sum(estimate_tokens(m["content"]) for m in request["messages"])
        if not isinstance(written, int):
            written = estimate_tokens(str(content.get("choices", "")))
        return Usage(1, 0, read, written, None if self._price is None else self._price.of(read, written))

    def _client(self) -> AsyncOpenAI:
        from openai import AsyncOpenAI

        return AsyncOpenAI(base_url=self._base_url, api_key=self._key, max_retries=0, timeout=self._timeout)


class OpenAIEmbedder:
    """An Embedder behind an OpenAI-compatible server; texts are sent in batches, and vectors come back normalised.

    Attributes:
        usage: what it has cost so far.
    """

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
        self._model, self._batch, self._attempts = model, batch, attempts
        self._base_url, self._key = address_and_key(base_url, api_key)
        self.usage = Usage()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Give unit vectors, shape (len(texts), dimensions)."""
        from openai import OpenAI

        # The client's own retries serve here: embeddings are made while indexing, where no call is ever "unknown".
        with OpenAI(base_url=self._base_url, api_key=self._key, max_retries=self._attempts - 1) as client:
            parts = [
                self._embed(client, texts[start : start + self._batch]) for start in range(0, len(texts), self._batch)
            ]
        return np.concatenate(parts) if parts else np.zeros((0, 0), np.float32)

    def _embed(self, client: OpenAI, texts: Sequence[str]) -> NDArray[np.float32]:
        import openai

        # An empty text is refused by the protocol; a blank one is not.
        request = [text or " " for text in texts]
        try:
            reply = client.embeddings.create(model=self._model, input=request, encoding_format="float")
            vectors = np.array([item.embedding for item in sorted(reply.data, key=lambda i: i.index)], np.float32)
        except openai.APIStatusError as problem:
            raise status_failure(
                problem.status_code, problem.message, model=self._model, base_url=self._base_url, retry_after=None
            ) from problem
        except openai.APIConnectionError as problem:
            raise _unconnected(problem, self._base_url, served=False) from problem
        except (ValueError, TypeError, AttributeError) as problem:
            raise FailedCall(f"the server's reply holds no vectors: {problem}") from problem
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise FailedCall(f"the server gave vectors of shape {vectors.shape} for {len(texts)} texts")
        self.usage += Usage(calls=1, input_tokens=getattr(reply.usage, "prompt_tokens", 0) or 0, money=None)
        return normalised(vectors)


class _RefusedFeature(Exception):
    def __init__(self, feature: str) -> None:
        self.feature = feature


def address_and_key(base_url: str | None, api_key: str | None) -> tuple[str, str]:
    """Give the server's address and the key to send, from arguments, else from the environment."""
    address = (base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI).rstrip("/")
    if not address.startswith(("http://", "https://")):
        raise ModelError(f"{address!r} is no address of a server: set OPENAI_BASE_URL to one such as {OPENAI}")
    key = api_key or os.environ.get("OPENAI_API_KEY") or ""
    if not key and address == OPENAI:
        raise ModelError(f"the server at {OPENAI} needs a key: set OPENAI_API_KEY, or OPENAI_BASE_URL for another")
    return address, key or "none"


def _unconnected(problem: Exception, base_url: str, *, served: bool) -> ModelError:
    cause = problem.__cause__ or problem
    reason = str(cause) or type(cause).__name__
    return connection_failure(reason, base_url=base_url, served=served, arrived=_arrived(problem))


def _arrived(problem: Exception) -> bool:
    """Say whether a failed request reached the server, which then counts it and may charge for it."""
    return type(problem.__cause__).__name__ not in (
        "ConnectError",
        "ConnectTimeout",
        "PoolTimeout",
        "UnsupportedProtocol",
    )


def _retry_after(headers: Mapping[str, str]) -> float | None:
    try:
        return max(0.0, float(headers.get("retry-after", "")))
    except ValueError:
        return None
