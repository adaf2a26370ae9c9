"""Replies of an OpenAI-compatible server: what they say, what they cost, and the error behind a refusal."""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from almanaq.errors import ModelError
from almanaq.models.http import SHORTEST_SECRET, NoReply, Reply, may_pass, redact_keys, remove_secrets
from almanaq.models.protocols import VERDICTS, Completion, PieceSink, Usage
from almanaq.models.retrying import LONGEST_RETRY_AFTER, FailedCall, UnusableReply

_MOST_STATED = 10_000_000
"""Largest credible token count of a call: five times the longest context window."""
_log = logging.getLogger("almanaq")
_warned = set[str]()


def read_token_count(content: Mapping[str, Any], name: str, *, most: Callable[[], int], server: str) -> int | None:
    """Return a token count that a reply reports, None where it reports none.

    An impossible number counts as the `most` that the call can have cost, with a warning about the server: a false
    report must not stretch a budget.
    """
    usage = content.get("usage")
    stated = usage.get(name) if isinstance(usage, dict) else None
    if not isinstance(stated, (int, float)) or isinstance(stated, bool):
        return None
    if 0 <= stated <= _MOST_STATED:
        return int(stated)
    if server not in _warned:
        _warned.add(server)
        _log.warning(
            "the server at %s says that a call took %.3g tokens (%s): counted as %d, the most it can have been",
            server,
            min(max(stated, -1e300), 1e300),
            name,
            most(),
        )
    return most()


def count_reasoning_tokens(content: Mapping[str, Any]) -> int:
    """Return the output tokens spent on reasoning, which the text does not show."""
    return read_count(content, "usage", "completion_tokens_details", "reasoning_tokens")


def count_cached_tokens(content: Mapping[str, Any]) -> int:
    """Return the input tokens that the server reports as cached from an equal prefix."""
    known = read_count(content, "usage", "prompt_tokens_details", "cached_tokens")
    return known or read_count(content, "usage", "prompt_cache_hit_tokens")


def read_count(content: object, *path: str) -> int:
    """Return a count that a reply reports at a path; 0 where it reports none that can be."""
    for name in path:
        if not isinstance(content, dict):
            return 0
        content = content.get(name)
    return int(content) if isinstance(content, (int, float)) and 0 < content <= _MOST_STATED else 0


_VALUE = re.compile(r'"value"\s*:\s*')
_LEAST_MASS = 0.5
"""Minimum probability mass that must fall on verdicts; below it the result is not representative."""


def read_verdict_probabilities(content: Mapping[str, Any]) -> Mapping[str, float] | None:
    """Return the probabilities of the VERDICTS as `value` of a JSON reply, summing to 1; None where not reported.

    Each token's alternatives are followed while the text so far is compatible with several verdicts. An alternative
    that is itself compatible with several verdicts is split evenly among them.
    """
    try:
        tokens = [_read_token(token) for token in content["choices"][0]["logprobs"]["content"]]
    except (LookupError, TypeError, ValueError, AttributeError):
        return None
    found = dict.fromkeys(VERDICTS, 0.0)
    text, mass = "", 1.0
    for token, alternatives in tokens:
        fits = _find_possible_verdicts(text + token)
        if fits is not None:
            for other, chance in alternatives.items():
                named = _find_possible_verdicts(text + other) or ()
                if other != token or len(named) == 1:
                    found |= {verdict: found[verdict] + mass * chance / len(named) for verdict in named}
            if len(fits) < 2:
                break
            mass *= alternatives[token]
        text += token
    total = sum(found.values())
    return {verdict: chance / total for verdict, chance in found.items()} if total >= _LEAST_MASS else None


def _read_token(token: Mapping[str, Any]) -> tuple[str, dict[str, float]]:
    others = token.get("top_logprobs") or ()
    alternatives = {str(other["token"]): _read_probability(other) for other in others}
    return str(token["token"]), {**alternatives, str(token["token"]): _read_probability(token)}


def _read_probability(token: Mapping[str, Any]) -> float:
    logarithm = float(token["logprob"])
    if math.isnan(logarithm):
        raise ValueError("a probability that is not a number")
    return min(1.0, math.exp(min(0.0, logarithm)))


def read_likelihood(content: Mapping[str, Any]) -> float | None:
    """Return the mean logarithm of the probabilities of a reply's tokens; None where not reported."""
    try:
        found = [float(token["logprob"]) for token in content["choices"][0]["logprobs"]["content"]]
    except (LookupError, TypeError, ValueError):
        return None
    mean = sum(found) / len(found) if found else math.nan
    return mean if math.isfinite(mean) else None


def _find_possible_verdicts(text: str) -> Sequence[str] | None:
    # Those compatible with a partial reply; None before its value begins.
    start = _VALUE.search(text)
    if start is None:
        return None
    value, wholes = text[start.end() :].lower(), {"Yes": '"yes"', "No": '"no"', "null": "null"}
    return [verdict for verdict, whole in wholes.items() if whole.startswith(value) or value.startswith(whole)]


_ONE_CALL = Usage(calls=1)

_FEATURE_WORDS = {
    "response_format": (
        *("response_format", "json_schema", "json schema", "structured output", "guided", "grammar"),
        *("response_schema", "responseschema", "$defs", "$ref", "additionalproperties"),
    ),
    "temperature": ("temperature",),
    "max_completion_tokens": ("max_completion_tokens",),
    "reasoning_effort": ("reasoning_effort", "reasoning effort"),
    "dimensions": ("dimensions",),
    "input_type": ("input_type",),
    "encoding_format": ("encoding_format",),
    "logprobs": ("logprobs", "log probabilities"),
    "stream_options": ("stream_options",),
    "stream": ("'stream'", '"stream"', "streaming"),
    "system": (
        *("system role", "role system", "system message", "system prompt", "system instruction", "'system' role"),
        *("role 'system'", "developer instruction", "roles must alternate", "user and assistant roles"),
    ),
}
"""Words by which servers name a feature that they do not support."""

_ABOUT_ONE_TEXT = ("content_filter", "content filter", "content management", "policy", "safety", "moderation")
_LONGEST_MESSAGE = 1000
_TOO_LONG = re.compile(
    r"context.?length|maximum context|context.?(size|window)|too many tokens|too long|prompt length|input length"
    r"|input token count|must have less than \d+ tokens|maximum input length|longer than the model|exceed\w* .*tokens"
    r"|reduce the length|inputs`? tokens \+"
)
"""How servers say that a request is longer than the model reads."""
_TOO_MUCH_AT_ONCE = re.compile(r"request too large")
"""How they say that one request takes more tokens than a minute has: no wait would help."""
_TOO_MUCH_OUTPUT = re.compile(r"max_(?:completion_|output_|new_)?tokens|output tokens|completion tokens")
LEAST_LIMIT = 256
"""No server's own limit of output is lower; where one counts fewer tokens, it leaves out the reasoning."""
_UNNAMED_LIMIT = re.compile(
    r"invalid \W?max_\w*tokens\W? value|invalid value \w+ \W?max_\w*tokens"
    r"|max_\w*tokens\W? (?:value )?(?:is )?(?:too (?:large|high|big)|out of range)"
)
"""How they refuse to be asked for so many, without a number that they would take."""
_STATED_LIMIT = re.compile(
    r"(?:at most|maximum(?: value)? (?:is|of|allowed is)|limit (?:is|of)|up to|less than or equal to|<=|\[1, ?|1 and)"
    r"\s*(\d[\d,]*)"
)
"""Where a message names the most output tokens that a model may have."""
_COMPLETION_TOO_LONG = re.compile(
    r"(?:context length is|must be <=) (\d+).*?(?:\((\d+) (?:tokens )?in the (?:messages|prompt|input)"
    r"|given: (\d+) `?inputs)"
)


_NO_SUCH_PATH = re.compile(r"not found|invalid url|no (?:such )?route|cannot post|unknown (?:path|url|endpoint)")
"""How servers say that the address is wrong, and not what one request holds."""


def find_refused_feature(status: int, message: str, used: Collection[str]) -> str | None:
    """Return the request feature that an error message calls unsupported; None for another error."""
    if status not in (400, 404, 415, 422, 500, 501):
        return None
    lowered = message.lower()
    named = [f for f, words in _FEATURE_WORDS.items() if f in used and any(word in lowered for word in words)]
    return named[0] if named else None


def find_output_limit(status: int, message: str, asked: int) -> int | None:
    """Return the output tokens that a model may be asked for, where it refuses to be asked for more; else None.

    Where the message names no number, it is half of what was asked.
    """
    if status not in (400, 413, 422):
        return None
    lowered = message.lower()
    if context := _COMPLETION_TOO_LONG.search(lowered):
        limit = int(context[1]) - int(context[2] or context[3])
    elif _TOO_MUCH_OUTPUT.search(lowered) and (stated := _STATED_LIMIT.search(lowered)):
        limit = int(stated[1].replace(",", ""))
        return limit if 0 < limit < asked else None
    elif _UNNAMED_LIMIT.search(lowered):
        limit = asked // 2
    else:
        return None
    return limit if LEAST_LIMIT <= limit < asked else None


def make_status_error(reply: Reply, message: str, *, model: str, base_url: str, served: bool = True) -> ModelError:
    """Return the error for a reply whose status is not 2xx; `served` says that other calls have succeeded."""
    status = reply.status
    shown = redact_keys(" ".join(message.split())[:300])
    lower = shown.lower()
    if 300 <= status < 400:
        return ModelError(
            f"the server at {base_url} sends requests on to another address ({status}), and redirects are not followed:"
            " what is asked would go to whoever it names. Set OPENAI_BASE_URL to the address itself"
        )
    refused_key = ModelError(
        f"the server at {base_url} refused the key ({status}): set OPENAI_API_KEY. It said: {shown}"
    )
    if status == 401:
        return refused_key
    if status in (400, 404) and "model" in lower and any(word in lower for word in ("exist", "found", "unknown")):
        return ModelError(f"the server at {base_url} has no model {model!r}: change --model. It said: {shown}")
    no_money = ModelError(f"the account of OPENAI_API_KEY has no money left, the server at {base_url} says: {shown}")
    if "insufficient_quota" in shown:
        return no_money
    no_protocol = ModelError(
        f"nothing at {base_url} speaks the OpenAI protocol ({status}): set OPENAI_BASE_URL to the address"
        f" that ends before /chat/completions, often in /v1. It said: {shown}"
    )
    if status == 405 or (status == 404 and not served and _NO_SUCH_PATH.search(lower)):
        return no_protocol
    if status == 413 or (_TOO_MUCH_AT_ONCE if status == 429 else _TOO_LONG).search(lower):
        message = f"the text is longer than {model!r} reads: {shown}"
        cause = "longer than the model reads"
        return FailedCall(message, retryable=False, usage=_ONE_CALL, cause=cause, too_long=True)
    if may_pass(status):
        wait = read_retry_after(reply.headers, message)
        message, cause = f"the server answered {status}: {shown}", f"HTTP {status}"
        return FailedCall(message, retry_after=wait, usage=_ONE_CALL, cause=cause, too_many=status == 429)
    setup = None
    if not served and not any(word in lower for word in _ABOUT_ONE_TEXT):
        setup = {402: no_money, 403: refused_key, 404: no_protocol}.get(status) or ModelError(
            f"the server at {base_url} does not accept our requests ({status}): set OPENAI_BASE_URL to a server of"
            f" the OpenAI protocol, or change --model. It said: {shown}"
        )
    message, cause = f"the server refused the request ({status}): {shown}", f"refused, HTTP {status}"
    return FailedCall(message, retryable=False, usage=_ONE_CALL, cause=cause, setup=setup)


def make_connection_error(problem: NoReply, *, base_url: str, served: bool) -> ModelError:
    """Return the error for a call without a reply; a server that answered before may recover, so it is retried."""
    if problem.timed_out:
        return FailedCall(str(problem), usage=_ONE_CALL, sure=False, cause=problem.cause)
    if served or problem.arrived:
        usage = Usage(calls=int(problem.arrived))
        message = f"the connection to {base_url} failed ({problem})"
        failure = FailedCall(message, usage=usage, sure=not problem.arrived, cause=problem.cause)
        failure.reached, failure.retryable = problem.arrived, not problem.oversized
        return failure
    return ModelError(f"no server at {base_url} can be reached ({problem}): set OPENAI_BASE_URL, or start the server")


def read_error_message(body: bytes) -> str:
    """Return the message of an error reply, in any of the usual forms."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return body[:500].decode("utf-8", "replace")
    found = content.get("error", content) if isinstance(content, dict) else content
    if isinstance(found, dict):
        detail = found.get("message") or found.get("detail") or found
        code = found.get("code")
        return f"{detail} ({code})" if isinstance(code, str) and isinstance(detail, str) else _shorten(detail)
    return _shorten(found)


def _shorten(found: object) -> str:
    try:
        return str(found)[:_LONGEST_MESSAGE]
    except (ValueError, RecursionError):
        return "something that cannot be shown"


_WAIT = re.compile(
    r"(?:retry|try again|retrydelay)\W{1,6}(?:(?:in|after)\W{1,3})?((?:[\d.]+\s?(?:ms|s|m|h)\w*\s?)+)", re.IGNORECASE
)
_DURATION = re.compile(r"([\d.]+)\s?(ms|s|m|h)")
_SECONDS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def read_retry_after(headers: Mapping[str, str], message: str = "") -> float | None:
    """Return the seconds that a server asks to wait, at most LONGEST_RETRY_AFTER; None where it names none.

    Headers come before the words of the body ("try again in 6m0s"), and these before when a limit is reset.
    """
    asked = _read_wait_headers(headers)
    if asked is None:
        resets = [headers.get(f"x-ratelimit-reset-{what}", "") for what in ("requests", "tokens")]
        named = _WAIT.search(message)
        waits = [_read_duration(text) for text in ([named[1]] if named else resets)]
        asked = max((wait for wait in waits if wait is not None), default=None)
    return None if asked is None else min(max(0.0, asked), LONGEST_RETRY_AFTER)


def _read_duration(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        parts = [(number, unit) for number, unit in _DURATION.findall(text) if number.count(".") < 2 and number != "."]
    return sum(float(number) * _SECONDS[unit] for number, unit in parts) if parts else None


def _read_wait_headers(headers: Mapping[str, str]) -> float | None:
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            asked = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if not math.isnan(asked):
            return asked
    return None


_OF_A_REPLY = frozenset(("choices", "data", "error", "usage"))


def decode_body(body: bytes, *, base_url: str, served: bool) -> Mapping[str, Any]:
    """Return the JSON object of a reply; raises FailedCall, for what may be no server of the protocol with `setup`."""
    try:
        content = load_json(body)
    except (ValueError, RecursionError) as problem:
        known = served or body.lstrip().startswith(b"{")
        raise _make_protocol_error("a reply that is not JSON", base_url, body, known) from problem
    if not isinstance(content, dict) or _OF_A_REPLY.isdisjoint(content):
        raise _make_protocol_error("a reply that is not of the OpenAI protocol", base_url, body, served)
    return content


def load_json(body: bytes) -> Any:
    """Return the content of JSON in UTF-8, UTF-16 or UTF-32; what is invalid in UTF-8 is read as U+FFFD."""
    try:
        return json.loads(body)
    except UnicodeDecodeError:
        return json.loads(body.decode("utf-8", "replace"))


def check_encoding(text: str, body: bytes, usage: Usage) -> None:
    """Raise UnusableReply where the text read from a body holds characters in place of invalid bytes."""
    if "\ufffd" in text:
        try:
            body.decode()
        except UnicodeDecodeError as problem:
            cause = "a reply that is not valid UTF-8"
            raise UnusableReply(f"the model's text is {cause}: {problem}", usage=usage, cause=cause) from problem


def _make_protocol_error(cause: str, base_url: str, body: bytes, known: bool) -> FailedCall:
    setup = ModelError(
        f"the server at {base_url} does not speak the OpenAI protocol: set OPENAI_BASE_URL to the address that ends"
        f" before /chat/completions, often in /v1. Its reply began {redact_keys(repr(body[:60]))}"
    )
    message = f"{cause} came: {redact_keys(repr(body[:80]))}"
    return FailedCall(message, usage=_ONE_CALL, sure=False, cause=cause, setup=None if known else setup)


def read_text(content: Mapping[str, Any]) -> str:
    """Return the text of a chat reply, complete or not; "" where it has none."""
    try:
        text = content["choices"][0]["message"]["content"]
    except (LookupError, TypeError):
        return ""
    if isinstance(text, dict):  # some servers have parsed it
        text = _write_json(text)
    if isinstance(text, list):  # as parts
        parts = [part.get("text") for part in text if isinstance(part, dict)]
        text = "".join(part for part in parts if isinstance(part, str))
    return text if isinstance(text, str) else ""


_REASONING_ENDS = re.compile(
    r".*(?:</(?:seed:)?think(?:ing)?>|</reasoning>|</thought>|\[/THINK\]|<\|channel\|>final<\|message\|>)", re.DOTALL
)
_REASONING_BEGINS = re.compile(
    r"\s*(?:<(?:seed:)?think(?:ing)?>|<reasoning>|<thought>|\[THINK\]|<\|channel\|>analysis)"
)
_END_MARKS = re.compile(r"(?:\s*(?:<\|im_end\|>|<\|eot_id\|>|<\|end\|>|<\|return\|>|<end_of_turn>|</s>))+\s*\Z")
_LONGEST_MARK = 24


def drop_reasoning(text: str) -> str:
    """Return what a reply says after its visible reasoning, or before it; "" where it ends within that."""
    if text.startswith("{") and "<" not in text and "THINK]" not in text:
        return text  # a clean reply, of nearly every model
    text = _END_MARKS.sub("", text.removeprefix("\ufeff"))
    if _is_object(text):
        return text  # a mark stands in a quote
    end, begin = _REASONING_ENDS.match(text), _REASONING_BEGINS.search(text)
    after = text[end.end() :].lstrip() if end else "" if begin and not begin.start() else text
    before = text[: begin.start()] if begin else ""
    return before if _is_object(before) and not (end and after) else after


def drop_begun_reasoning(text: str) -> str:
    """Return what of a reply that is still being written is surely no reasoning and no mark."""
    if any(mark in text for mark in ("</", "/THINK]", "<|")) and (end := _REASONING_ENDS.match(text)):
        text = text[end.end() :].lstrip()
    elif _REASONING_BEGINS.match(text) or (len(text) < _LONGEST_MARK and text.lstrip().startswith(("<", "["))):
        return ""
    mark = text.rfind("<")
    return text[:mark] if mark >= 0 and len(text) - mark < _LONGEST_MARK else text


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _read_elsewhere(message: Mapping[str, Any]) -> str:
    places = [message.get(name) for name in ("reasoning_content", "reasoning")]
    calls, called = message.get("tool_calls"), message.get("function_call")
    if isinstance(calls, list) and calls and isinstance(calls[0], dict):
        called = calls[0].get("function")
    if isinstance(called, dict):
        arguments = called.get("arguments")
        places.insert(0, _write_json(arguments) if isinstance(arguments, dict) else arguments)
    return next((text for text in places if isinstance(text, str) and _is_object(text)), "")


def _write_json(value: Mapping[str, Any]) -> str:
    try:
        return json.dumps(value)
    except RecursionError:
        return ""


def has_reasoned(content: Mapping[str, Any]) -> bool:
    """Return whether a reply shows that the model reasons: hidden, in a field of its own, or in its text."""
    try:
        message = content["choices"][0]["message"]
        fields = message.get("reasoning_content") or message.get("reasoning")
    except (LookupError, TypeError, AttributeError):
        return False
    return bool(fields or count_reasoning_tokens(content) or _REASONING_BEGINS.match(read_text(content)))


def read_completion(content: Mapping[str, Any], usage: Usage) -> Completion:
    """Return the completion in a chat reply; raises FailedCall, with the cost, where it is not complete."""
    try:
        choice = content["choices"][0]
        message, finish = choice["message"], choice.get("finish_reason")
        refusal = message.get("refusal")
    except (LookupError, TypeError, AttributeError) as problem:
        message = f"the reply is not a chat completion: {_shorten(content)[:120]}"
        raise FailedCall(message, usage=usage, cause="a reply that is not a chat completion") from problem
    if refusal or finish == "content_filter":
        reason = _shorten(refusal)[:300] if refusal else "content filter"
        raise UnusableReply(f"the model declined: {reason}", retryable=False, usage=usage, cause="the model declined")
    text = drop_reasoning(read_text(content))
    if not text.strip() and finish != "length":
        text = _read_elsewhere(message)
    cut = finish == "length" and not _is_object(text)  # some servers say so of whole replies
    hidden = count_reasoning_tokens(content) if cut or not text.strip() else 0
    if not text.strip():
        why = f", after {hidden} hidden tokens of reasoning" if hidden else ""
        raise UnusableReply(f"the model's reply is empty{why}", usage=usage, cause="an empty reply", cut=cut)
    if cut:
        why = f" ({hidden} of its tokens went into hidden reasoning)" if hidden else ""
        message = f"the model's reply was cut at its limit{why}"
        raise UnusableReply(message, usage=usage, cause="a reply cut short", cut=True)
    # Neither the cache nor a database can store half a surrogate pair.
    return Completion(text if text.isascii() else text.encode("utf-8", "replace").decode(), usage)


class ChatStream:
    """Parses the server-sent events of a chat reply, and forwards its text without secrets that it may repeat."""

    def __init__(self, sink: PieceSink | None, secrets: tuple[str, ...]) -> None:
        self._sink, self._secrets = sink, tuple(secret for secret in secrets if len(secret) >= SHORTEST_SECRET)
        self._left = b""
        self._texts: list[str] = []
        self._refusals: list[str] = []
        self._finish: str | None = None
        self._usage: Any = None
        self._error: Any = None
        self.ended = False

    def feed(self, data: bytes) -> None:
        """Parse some bytes of the body."""
        *lines, self._left = (self._left + data).split(b"\n")
        for line in lines:
            self._line(line.strip())

    def content(self) -> Mapping[str, Any]:
        """Return the reply in its unstreamed form; `choices` is absent where the stream broke off."""
        if self._error is not None:
            return {"error": self._error}
        usage = {} if self._usage is None else {"usage": self._usage}
        if self._finish is None and not self.ended:
            return usage
        message = {"role": "assistant", "content": self._text(), "refusal": "".join(self._refusals) or None}
        return {"choices": [{"message": message, "finish_reason": self._finish or "stop"}], **usage}

    def _line(self, line: bytes) -> None:
        if not line.startswith(b"data:"):
            return
        data = line.removeprefix(b"data:").strip()
        if data == b"[DONE]":
            self.ended = True
            return
        try:
            event = load_json(data)
            self._usage = event.get("usage") or self._usage
            self._error = event.get("error") or self._error
            for choice in (event.get("choices") or ())[:1]:
                self._delta(choice.get("delta") or {})
                self._finish = choice.get("finish_reason") or self._finish
        except (ValueError, RecursionError, AttributeError, TypeError):
            self._error = self._error or "an event of the stream is no JSON of the protocol"

    def _delta(self, delta: Mapping[str, Any]) -> None:
        if isinstance(delta.get("refusal"), str):
            self._refusals.append(delta["refusal"])
        if isinstance(delta.get("content"), str):
            self._texts.append(delta["content"])
            text = self._text()
            if self._sink is not None:
                self._sink.show(drop_begun_reasoning(text[: len(text) - self._beginning_of_a_secret(text)]))

    def _text(self) -> str:
        return remove_secrets("".join(self._texts), self._secrets)

    def _beginning_of_a_secret(self, text: str) -> int:
        begun = (secret[:n] for secret in self._secrets for n in range(1, len(secret)))
        return max((len(start) for start in begun if text.endswith(start)), default=0)
