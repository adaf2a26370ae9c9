"""Text calls, without a model: documents split to fit, schemas of replies, parsing, quotes, usual lengths."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field

from almanaq.event_loops import set_within
from almanaq.models.budget import estimate_tokens, record_count
from almanaq.models.prompts import QUOTES, one_of
from almanaq.models.prompts import strict_object as _object
from almanaq.models.protocols import NO_USAGE, Quote, TextCall, TextReply, Usage
from almanaq.values import canonical, only_options, option_of, parse_list, write_list

_BREAK_PATTERNS = (re.compile(r"\n\s*\n"), re.compile(r"(?<=[.!?])\s+"), re.compile(r"\s+"))
"""Where a long passage may be cut, in order of preference."""


Piece = Quote
"""Words of one passage, as a quote is."""


def split_document(passages: Sequence[str], tokens: int) -> list[list[Piece]]:
    """Split a document that exceeds a model's context into parts of about `tokens` tokens, in order (semantics 5)."""
    if len(passages) == 1 and passages[0] and estimate_tokens(passages[0]) + 6 <= tokens:
        return [[Piece(0, 0, passages[0])]]
    parts: list[list[Piece]] = []
    room = 0
    for number, passage in enumerate(passages):
        for start, text in _split_passage(passage, tokens):
            size = estimate_tokens(text) + 6
            if not parts or size > room:
                parts.append([])
                room = max(tokens, size)
            parts[-1].append(Piece(number, start, text))
            room -= size
    return parts


def _split_passage(text: str, tokens: int) -> Iterator[tuple[int, str]]:
    """Yield (start, words) of pieces of one passage, each of at most about `tokens` tokens."""
    start = 0
    limit = max(1, tokens * 4 - 32)
    while estimate_tokens(text[start:]) + 6 > tokens and len(text) - start > 1:
        width = _count_fitting(text, start, limit)
        end = _find_cut(text, start, start + width)
        yield start, text[start:end]
        start = end
    if text[start:]:
        yield start, text[start:]


def _count_fitting(text: str, start: int, limit: int) -> int:
    piece = text[start : start + limit]
    return max(1, len(piece.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")))


def _find_cut(text: str, start: int, end: int) -> int:
    """Return the best place to cut before `end`, in the second half, so that parts stay few."""
    for pattern in _BREAK_PATTERNS:
        places = [match.end() for match in pattern.finditer(text, start, end)]
        if places and places[-1] > start + (end - start) // 2:
            return places[-1]
    return end


_VERDICT_VALUES: Mapping[str, bool | None] = {"yes": True, "no": False, "unknown": None}
_ENDS = ".!\"'"
"""What models put behind a word that was asked for alone."""


class MalformedReply(ValueError):
    """A reply that does not match its schema; the message says why."""


class OutsideOptions(MalformedReply):
    """A reply whose value is not among those allowed."""


_Said = tuple[str | None, dict[str, bool | None], tuple[str, ...]]
"""The value, the verdicts and the words quoted."""


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
        properties["verdicts"] = _object(dict.fromkeys(call.compared, one_of(*_VERDICT_VALUES)))
    properties["quotes"] = QUOTES
    return _object(properties)


def link_schema(values: Sequence[str], *, several: bool = False) -> dict[str, object]:
    """Return the JSON schema of a reply that chooses among `values`, and whether a row must have all chosen."""
    properties: dict[str, object] = {"values": {"type": "array", "items": {"type": "string", "enum": list(values)}}}
    return _object(properties | ({"every": {"type": "boolean"}} if several else {}))


def item_schema(calls: Sequence[TextCall]) -> dict[str, object]:
    """Return the JSON schema of a reply to several text calls: `item1`, `item2` and so on, equal ones by reference."""
    kinds: dict[str, int] = {}
    schemas = [reply_schema(call) for call in calls]
    names = [kinds.setdefault(json.dumps(schema), len(kinds) + 1) for schema in schemas]
    items = {f"item{number}": {"$ref": f"#/$defs/reply{name}"} for number, name in enumerate(names, 1)}
    definitions = {f"reply{name}": schema for name, schema in zip(names, schemas, strict=True)}
    return _object(items) | {"$defs": definitions}


def parse_object(text: str) -> dict[str, object]:
    """Return the last complete JSON object of a reply, whatever words, fences and drafts are around it.

    An object that holds a key twice, with different values, is none: either value may be the one meant.
    """
    return parse_objects(text)[-1]


def parse_objects(text: str) -> list[dict[str, object]]:
    """Return all complete JSON objects of a reply; raises MalformedReply as `parse_object` does."""
    found, problem, start = list[object](), "it holds none", text.find("{")
    while start >= 0:
        try:
            read, end = _DECODER.raw_decode(text, start)
            found.append(read)
        except (ValueError, RecursionError) as error:
            problem, end = str(error), start + 1
        start = text.find("{", end)
    if not found:
        raise MalformedReply(f"it is not a JSON object ({problem})")
    if found[-1] is _AMBIGUOUS:
        raise MalformedReply("it holds a key twice, with different values")
    return [each for each in found if isinstance(each, dict)]


_AMBIGUOUS = object()


def _make_object(pairs: list[tuple[str, object]]) -> object:
    made = dict(pairs)
    if len(made) < len(pairs) and any(repr(value) != repr(made[key]) for key, value in pairs):
        return _AMBIGUOUS
    return made


_DECODER = json.JSONDecoder(object_pairs_hook=_make_object)


def parse_contents(
    contents: Sequence[object], call: TextCall, pieces: Sequence[Piece], usage: Usage = NO_USAGE
) -> TextReply:
    """Parse the last of the JSON objects of a reply; raises MalformedReply for what the schema does not allow.

    Quotes are looked up in `pieces`; those of a reply that was shown none are left out.
    An earlier one with another verdict or option voids it: the last may be an afterthought, or a text that the model
    made up. Of other questions an earlier one may be the form that was asked for, so that the last counts.
    """
    value, verdicts, quotes = _parse_content(contents[-1], call)
    if len(contents) > 1 and (call.options or call.compared):
        for each in contents[:-1]:
            try:
                other, others, _ = _parse_content(each, call)
            except MalformedReply:
                continue
            if (others or canonical(other or "")) != (verdicts or canonical(value or "")):
                raise MalformedReply("it holds two answers that contradict each other")
    return TextReply(value, verdicts, locate_quotes(quotes, pieces) if pieces else (), usage)


def _parse_content(content: object, call: TextCall) -> _Said:
    if not isinstance(content, dict):
        raise MalformedReply("it holds no object for the text")
    if "value" not in content:
        raise MalformedReply(
            f"its keys are {sorted(content)}, expected value, quotes"
            + ", verdicts" * bool(call.compared and not call.yes_or_no)
        )
    value = (_parse_list_value if call.type == "list" else _parse_value)(content["value"], call.options)
    quotes, verdicts = _parse_quotes(content.get("quotes")), content.get("verdicts")
    if call.yes_or_no:
        return *_parse_yes_or_no(value, verdicts, call), quotes
    return value, _parse_verdicts(verdicts, call.compared), quotes


def _parse_yes_or_no(value: str | None, verdicts: object, call: TextCall) -> tuple[str | None, dict[str, bool | None]]:
    # Verdicts that were not asked for must agree: a contradiction would leave the meaning open.
    value = value and value.strip().rstrip(_ENDS)
    if canonical(value or "no") not in ("yes", "no"):
        raise MalformedReply(f'"value" is {value!r}, expected "Yes", "No" or null')
    found = {literal: None if value is None else canonical(literal) == canonical(value) for literal in call.compared}
    if verdicts is not None and _parse_verdicts(verdicts, call.compared) != found:
        raise MalformedReply('"verdicts" and "value" contradict each other')
    return value, found


def _parse_value(value: object, options: Sequence[str]) -> str | None:
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
        option = option_of(value, options) or option_of(value.strip().strip(_ENDS), options)
        if option is None:
            raise OutsideOptions(f'"value" is {value!r}, which is not among the allowed values')
        return option
    return value.strip()


def _parse_list_value(value: object, options: Sequence[str]) -> str | None:
    if isinstance(value, list):
        if not all(isinstance(item, str | int | float) for item in value):
            raise MalformedReply('"value" must be an array of strings, or null')
        texts = parse_list(json.dumps(value))
    else:
        items = _parse_value(value, ())
        if items is None:
            return None
        texts = parse_list(items)
    chosen = only_options(texts, options) if options else texts
    if len(chosen) < len(texts):
        raise OutsideOptions(f'"value" is {list(texts)!r}, not all of which are among the allowed values')
    return write_list(chosen)


def _parse_verdicts(verdicts: object, compared: Sequence[str]) -> dict[str, bool | None]:
    if not compared:
        return {}
    if not isinstance(verdicts, dict):
        raise MalformedReply('"verdicts" must be an object with one verdict for each literal')
    by_canonical = {canonical(key): verdict for key, verdict in verdicts.items()}
    found: dict[str, bool | None] = {}
    for literal in compared:
        verdict = by_canonical.get(canonical(literal))
        word = canonical(verdict.rstrip(_ENDS)) if isinstance(verdict, str) else ""
        if word not in _VERDICT_VALUES:
            raise MalformedReply(f'the verdict on {literal!r} must be "yes", "no" or "unknown"')
        found[literal] = _VERDICT_VALUES[word]
    return found


def _parse_quotes(quotes: object) -> tuple[str, ...]:
    """Return quotes, "" for what is no text: a right value counts, and words that are not in the text are dropped."""
    listed = [] if quotes is None else quotes if isinstance(quotes, list) else [quotes]
    found = [quote.get("quote") if isinstance(quote, dict) else quote for quote in listed]
    return tuple(words if isinstance(words, str) else "" for words in found)


_MAX_QUOTES = 3


def locate_quotes(quotes: Sequence[str], pieces: Sequence[Piece]) -> tuple[Quote, ...]:
    """Return quotes with their places, white space and case aside; those that are not in the pieces are counted."""
    found: list[Quote] = []
    dropped = 0
    for words in quotes[:_MAX_QUOTES]:
        match = next((quote for piece in pieces if (quote := _find_quote(words, piece)) is not None), None)
        if match is None:
            dropped += 1
        elif match not in found:
            found.append(match)
    if dropped:
        record_count("dropped_quotes", dropped)
    return tuple(found)


def _find_quote(words: str, piece: Piece) -> Quote | None:
    wanted = words.strip().strip('"“”').strip()
    if not wanted:
        return None
    start = piece.text.find(wanted)
    if start >= 0:
        return Quote(piece.passage, piece.start + start, wanted)
    pattern = r"\s+".join(re.escape(word).replace("\u2039", "[\u2039<]") for word in wanted.split())
    match = re.search(pattern, piece.text, re.IGNORECASE)
    return None if match is None else Quote(piece.passage, piece.start + match.start(), match[0])


_CHOICE_TOKENS, _SENTENCE_TOKENS, _LONG_TOKENS, _ITEM_TOKENS = 192, 384, 768, 64
"""Tokens of a reply that chooses, that is a sentence, that is a list or summary, each with quotes; of one item of a
batch."""


@dataclass(frozen=True, slots=True)
class ServedQuestion:
    """What a person asked in full, which the readers of open questions are shown.

    Attributes:
        said: for each question that texts were asked, how many said "yes", "no", something else, or "" (nothing).
    """

    question: str = ""
    said: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def note(self, question: str, value: str | None) -> None:
        """Count what a text said to a question."""
        self.said[question][canonical(value or "")] += 1


_SERVED: ContextVar[ServedQuestion | None] = ContextVar("almanaq_served_question", default=None)


def serve_question(served: ServedQuestion) -> AbstractContextManager[None]:
    """Have the text calls inside the block serve a person's question."""
    return set_within(_SERVED, served)


def served_question() -> ServedQuestion:
    """Return what a person asked; an empty question outside a turn of a conversation."""
    return _SERVED.get() or ServedQuestion()


def typical_tokens(call: TextCall) -> int:
    """Return a length that nearly no reply to a call exceeds: what a nearly spent budget reserves."""
    if call.function == "summary" or call.type == "list":
        return _LONG_TOKENS
    return _CHOICE_TOKENS if call.yes_or_no or call.options or call.type != "text" else _SENTENCE_TOKENS


def typical_batch_tokens(calls: Iterable[TextCall]) -> int:
    """Return the same for a reply to several calls at once."""
    return _ITEM_TOKENS + sum(_ITEM_TOKENS if call.yes_or_no else typical_tokens(call) for call in calls)
