"""What a language model must reply, as a JSON schema, and the strict reading of what it did reply."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from almanaq.models.prompts.schemas import QUOTES, one_of
from almanaq.models.prompts.schemas import strict_object as _object
from almanaq.models.protocols import TextCall
from almanaq.values import canonical, only_options, option_of, parse_list, write_list

_VERDICTS: Mapping[str, bool | None] = {"yes": True, "no": False, "unknown": None}
_FENCED_JSON = re.compile(r"\A\s*(?:<think>.*?</think>)?\s*(?:```(?:json)?\s*)?(\{.*\})\s*(?:```)?\s*\Z", re.DOTALL)


class MalformedReply(ValueError):
    """A reply that is not what was asked for; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """A reply in the form asked for; `quotes` are (passage number as shown, words), not yet checked.

    `chances` are how likely each compared literal is, where the model's server told.
    """

    value: str | None
    verdicts: Mapping[str, bool | None]
    quotes: tuple[tuple[int, str], ...]
    chances: Mapping[str, float] = field(default_factory=dict)


def reply_schema(call: TextCall) -> dict[str, object]:
    """Return the JSON schema of the reply to a text call."""
    value: dict[str, object] = {"type": ["string", "null"]}
    if call.type == "list":
        value = {"type": ["array", "null"], "items": one_of(*call.options) if call.options else {"type": "string"}}
    elif call.options:
        value["enum"] = [*call.options, None]
    elif call.yes_or_no:
        value["enum"] = ["Yes", "No", None]
    properties: dict[str, object] = {"value": value}
    if call.compared and not call.yes_or_no:
        properties["verdicts"] = _object(dict.fromkeys(call.compared, one_of(*_VERDICTS)))
    properties["quotes"] = QUOTES
    return _object(properties)


def link_schema(values: Sequence[str], *, several: bool = False) -> dict[str, object]:
    """Return the JSON schema of a reply that chooses some of `values`, and says whether a row has to hold
    all of them.
    """
    properties: dict[str, object] = {"values": {"type": "array", "items": {"type": "string", "enum": list(values)}}}
    return _object(properties | ({"every": {"type": "boolean"}} if several else {}))


def item_schema(calls: Sequence[TextCall]) -> dict[str, object]:
    """Return the JSON schema of a reply to several text calls: `item1`, `item2` and so on."""
    return _object({f"item{number}": reply_schema(call) for number, call in enumerate(calls, 1)})


def parse_object(text: str) -> dict[str, object]:
    """Return the JSON object that a reply consists of; a code fence or visible reasoning around it is forgiven."""
    try:
        try:
            content = json.loads(text)
        except ValueError:
            match = _FENCED_JSON.match(text)
            if match is None:
                raise
            content = json.loads(match[1])
    except (ValueError, RecursionError) as problem:
        raise MalformedReply(f"it is not one JSON object ({problem})") from problem
    if not isinstance(content, dict):
        raise MalformedReply("it is not a JSON object")
    return content


def parse_reply(text: str, call: TextCall) -> ParsedReply:
    """Return what a reply to a text call says; raises MalformedReply for anything that the schema does not allow."""
    return parse_content(parse_object(text), call)


def parse_content(content: Mapping[str, object], call: TextCall) -> ParsedReply:
    """Return what the object of a reply says; raises MalformedReply as `parse_reply` does."""
    known = {"value", "verdicts", "quotes"}
    if "value" not in content or set(content) - known:
        raise MalformedReply(
            f"its keys are {sorted(content)}, expected value, quotes"
            + ", verdicts" * bool(call.compared and not call.yes_or_no)
        )
    value, quotes = (
        (_list if call.type == "list" else _value)(content["value"], call.options),
        _quotes(content.get("quotes", [])),
    )
    if call.yes_or_no:
        return _settled(value, content.get("verdicts"), quotes, call)
    return ParsedReply(value, _verdicts(content.get("verdicts"), call.compared), quotes)


def _settled(value: str | None, verdicts: object, quotes: tuple[tuple[int, str], ...], call: TextCall) -> ParsedReply:
    """Return the reply to a question that yes or no settles, whose value is the verdict.

    Verdicts beside it, which were not asked for, must not say otherwise: what was meant would be left open.
    """
    if canonical(value or "no") not in ("yes", "no"):
        raise MalformedReply(f'"value" is {value!r}, expected "Yes", "No" or null')
    found = {literal: None if value is None else canonical(literal) == canonical(value) for literal in call.compared}
    if verdicts is not None and _verdicts(verdicts, call.compared) != found:
        raise MalformedReply('"verdicts" and "value" contradict each other')
    return ParsedReply(value, found, quotes)


def _value(value: object, options: Sequence[str]) -> str | None:
    if isinstance(value, bool):
        value = "Yes" if value else "No"
    if isinstance(value, int | float):
        value = json.dumps(value)
    if value is None:
        return None
    if not isinstance(value, str):
        raise MalformedReply('"value" must be a string or null')
    if not value.strip() or (canonical(value) in {"null", "none", "n/a", "unknown"} and not options):
        return None
    if options:
        option = option_of(value, options)
        if option is None:
            raise MalformedReply(f'"value" is {value!r}, which is not among the allowed values')
        return option
    return value.strip()


def _list(value: object, options: Sequence[str]) -> str | None:
    """Return a list as JSON; a reply in one text is read as people write lists."""
    if isinstance(value, list):
        if not all(isinstance(item, str | int | float) for item in value):
            raise MalformedReply('"value" must be an array of strings, or null')
        texts = parse_list(json.dumps(value))
    else:
        items = _value(value, ())
        if items is None:
            return None
        texts = parse_list(items)
    chosen = only_options(texts, options) if options else texts
    if len(chosen) < len(texts):
        raise MalformedReply(f'"value" is {list(texts)!r}, not all of which are among the allowed values')
    return write_list(chosen)


def _verdicts(verdicts: object, compared: Sequence[str]) -> dict[str, bool | None]:
    if not compared:
        return {}
    if not isinstance(verdicts, dict):
        raise MalformedReply('"verdicts" must be an object with one verdict for each literal')
    by_canonical = {canonical(key): verdict for key, verdict in verdicts.items()}
    found: dict[str, bool | None] = {}
    for literal in compared:
        verdict = by_canonical.get(canonical(literal))
        if not isinstance(verdict, str) or canonical(verdict) not in _VERDICTS:
            raise MalformedReply(f'the verdict on {literal!r} must be "yes", "no" or "unknown"')
        found[literal] = _VERDICTS[canonical(verdict)]
    return found


def _quotes(quotes: object) -> tuple[tuple[int, str], ...]:
    if not isinstance(quotes, list):
        raise MalformedReply('"quotes" must be a list')
    found = []
    for quote in quotes:
        number, words = (quote.get("passage"), quote.get("quote")) if isinstance(quote, dict) else (None, None)
        if not isinstance(number, int) or isinstance(number, bool) or not isinstance(words, str):
            raise MalformedReply('each quote must be {"passage": number, "quote": words}')
        found.append((number, words))
    return tuple(found)
