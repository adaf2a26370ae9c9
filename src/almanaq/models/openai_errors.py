"""What a server's refusal means: is the request, the setting or the moment at fault, and which setting to change."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from typing import Any

from almanaq.errors import ModelError
from almanaq.models.failure import LONGEST_WAIT, FailedCall, UnusableReply
from almanaq.models.http import NoReply
from almanaq.models.logged import redacted
from almanaq.models.openai_usage import hidden_tokens
from almanaq.models.protocols import Completion, Usage

_ONE_CALL = Usage(calls=1)

_NAMES_OF_FEATURES = {
    "response_format": ("response_format", "json_schema", "json schema", "structured output", "guided", "grammar"),
    "temperature": ("temperature",),
    "max_completion_tokens": ("max_completion_tokens",),
    "reasoning_effort": ("reasoning_effort", "reasoning effort"),
    "dimensions": ("dimensions",),
    "input_type": ("input_type",),
    "logprobs": ("logprobs", "log probabilities"),
    "stream_options": ("stream_options",),
    "stream": ("'stream'", '"stream"', "streaming"),
}
"""How servers name what they do not support."""

_ABOUT_ONE_TEXT = ("content_filter", "content filter", "content management", "policy", "safety", "moderation")
_LONGEST_SAID = 1000
_TOO_LONG = ("context_length", "context length", "maximum context", "too many tokens", "context window", "too long")


def refused_feature(status: int, message: str, used: Collection[str]) -> str | None:
    """Return the feature of a request that the server does not support, by its own words; None when it is not that."""
    if status not in (400, 404, 415, 422, 500, 501):
        return None
    lowered = message.lower()
    named = [f for f, words in _NAMES_OF_FEATURES.items() if f in used and any(word in lowered for word in words)]
    return named[0] if named else None


def status_failure(
    status: int, message: str, *, model: str, base_url: str, retry_after: float | None, served: bool = True
) -> ModelError:
    """Return the error for a reply with an HTTP status that is not 200; `served`: other calls have succeeded."""
    shown = redacted(" ".join(message.split())[:300])
    lower = shown.lower()
    if 300 <= status < 400:
        return ModelError(
            f"the server at {base_url} sends requests on to another address ({status}), and redirects are not followed:"
            " what is asked would go to whoever it names. Set OPENAI_BASE_URL to the address itself"
        )
    if status in (401, 403):
        return ModelError(f"the server at {base_url} refused the key ({status}): set OPENAI_API_KEY. It said: {shown}")
    if status in (400, 404) and "model" in lower and any(word in lower for word in ("exist", "found", "unknown")):
        return ModelError(f"the server at {base_url} has no model {model!r}: change --model. It said: {shown}")
    if status in (404, 405):
        return ModelError(
            f"nothing at {base_url} speaks the OpenAI protocol ({status}): set OPENAI_BASE_URL to the address"
            f" that ends before /chat/completions, often in /v1. It said: {shown}"
        )
    if status == 402 or "insufficient_quota" in shown:
        return ModelError(f"the account of OPENAI_API_KEY has no money left, the server at {base_url} says: {shown}")
    if status in (408, 409, 425, 429) or status >= 500:
        busy = FailedCall(
            f"the server answered {status}: {shown}", retry_after=retry_after, usage=_ONE_CALL, cause=f"HTTP {status}"
        )
        busy.too_many = status == 429
        return busy
    if any(word in lower for word in _TOO_LONG):
        failure = FailedCall(f"the text is longer than {model!r} reads: {shown}", retryable=False, usage=_ONE_CALL)
        failure.too_long, failure.cause = True, "longer than the model reads"
        return failure
    if not served and not any(word in lower for word in _ABOUT_ONE_TEXT):
        return ModelError(
            f"the server at {base_url} does not accept our requests ({status}): set OPENAI_BASE_URL to a server of"
            f" the OpenAI protocol, or change --model. It said: {shown}"
        )
    return FailedCall(
        f"the server refused the request ({status}): {shown}",
        retryable=False,
        usage=_ONE_CALL,
        cause=f"refused, HTTP {status}",
    )


def connection_failure(problem: NoReply, *, base_url: str, served: bool) -> ModelError:
    """Return the error for a call without a reply; a server that has answered before may well come back."""
    if problem.timed_out:
        return FailedCall(str(problem), usage=_ONE_CALL, sure=False, cause="no reply in time")
    if served or problem.arrived:
        usage = Usage(calls=int(problem.arrived))
        message = f"the connection to {base_url} failed ({problem})"
        return FailedCall(message, usage=usage, sure=not problem.arrived, cause="the connection failed")
    return ModelError(f"no server at {base_url} can be reached ({problem}): set OPENAI_BASE_URL, or start the server")


def message_of(body: bytes) -> str:
    """Return what a refusal says, in whichever of the usual forms."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return body[:500].decode("utf-8", "replace")
    found = content.get("error", content) if isinstance(content, dict) else content
    if isinstance(found, dict):
        detail = found.get("message") or found.get("detail") or found
        code = found.get("code")
        return f"{detail} ({code})" if isinstance(code, str) and isinstance(detail, str) else _repeated(detail)
    return _repeated(found)


def _repeated(found: object) -> str:
    try:
        return str(found)[:_LONGEST_SAID]
    except (ValueError, RecursionError):
        return "something that cannot be shown"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait, at most LONGEST_WAIT; None when it names none."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            asked = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if not math.isnan(asked):
            return min(max(0.0, asked), LONGEST_WAIT)
    return None


def decoded(body: bytes, *, base_url: str, served: bool) -> Mapping[str, Any]:
    """Return the JSON object in the body of a reply.

    Raises:
        FailedCall: it is broken; ModelError: it is of another protocol, and none of the right one has come before.
    """
    try:
        content = _loaded(body)
    except (ValueError, RecursionError) as problem:
        if not served and not body.lstrip().startswith(b"{"):
            raise _other_dialect(base_url, body) from problem
        raise FailedCall(
            f"the reply is not JSON: {redacted(repr(body[:80]))}", usage=_ONE_CALL, sure=False
        ) from problem
    if not isinstance(content, dict) or not {"choices", "data", "error", "usage"} & set(content):
        if not served:
            raise _other_dialect(base_url, body)
        raise FailedCall(f"the reply is no chat completion: {redacted(repr(body[:80]))}", usage=_ONE_CALL, sure=False)
    return content


def _loaded(body: bytes) -> Any:
    try:
        return json.loads(body.decode())
    except ValueError:
        return json.loads(body)  # it may be in one of the other encodings of JSON


def _other_dialect(base_url: str, body: bytes) -> ModelError:
    return ModelError(
        f"the server at {base_url} does not speak the OpenAI protocol: set OPENAI_BASE_URL to the address that ends"
        f" before /chat/completions, often in /v1. Its reply began {redacted(repr(body[:60]))}"
    )


def first_text(content: Mapping[str, Any]) -> str:
    """Return what a chat reply says, whole or not; "" where it says nothing."""
    try:
        text = content["choices"][0]["message"]["content"]
    except (LookupError, TypeError):
        return ""
    return text if isinstance(text, str) else ""


def text_of(content: Mapping[str, Any], usage: Usage) -> Completion:
    """Return the completion in a chat reply; raises FailedCall, with what it cost, where there is no whole one."""
    try:
        choice = content["choices"][0]
        message, finish = choice["message"], choice.get("finish_reason")
        text, refusal = message.get("content"), message.get("refusal")
    except (LookupError, TypeError, AttributeError) as problem:
        message = f"the reply is no chat completion: {_repeated(content)[:120]}"
        raise FailedCall(message, usage=usage, cause="a reply that is no chat completion") from problem
    if refusal or finish == "content_filter":
        reason = _repeated(refusal)[:300] if refusal else "content filter"
        raise UnusableReply(f"the model declined: {reason}", retryable=False, usage=usage, cause="the model declined")
    hidden = hidden_tokens(content)
    if not isinstance(text, str) or not text.strip():
        why = f", after {hidden} hidden tokens of reasoning" if hidden else ""
        raise _cut(UnusableReply(f"the model's reply is empty{why}", usage=usage, cause="an empty reply"), finish)
    if finish == "length":
        why = f" ({hidden} of its tokens went into hidden reasoning)" if hidden else ""
        raise _cut(
            UnusableReply(f"the model's reply was cut at its limit{why}", usage=usage, cause="a reply cut short"),
            finish,
        )
    # Half of a surrogate pair is no text: neither the cache nor a database can hold it.
    return Completion(text if text.isascii() else text.encode("utf-8", "replace").decode(), usage)


def _cut(failure: FailedCall, finish: object) -> FailedCall:
    failure.cut = finish == "length"
    return failure
