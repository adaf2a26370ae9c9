"""LocalReader and LocalLinker: text calls and links without a language model, a key or a network; deterministic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product

from almanaq.models.extractive.clauses import Clause, clauses, clauses_of, tokens_of
from almanaq.models.extractive.polarity import asks_yes_or_no, polarity, quotes_of, sentiment, sides
from almanaq.models.extractive.spans import Span, best_span
from almanaq.models.protocols import LinkRequest, Quote, TextCall, TextReply
from almanaq.sample import read_toml
from almanaq.text.hours import is_open
from almanaq.text.words import decode_entities, stem, stems, text_similarity
from almanaq.values import canonical, parse_typed, write_list

_SENTENCES = 3
"""Sentences of a summary."""

_YES = frozenset({"yes", "true"})
_NO = frozenset({"no", "false"})


class LocalReader:
    """A Reader that finds evidence by words: fit for yes-or-no questions about common matters, and for spans.

    Yes and no are what most passages that speak of the matter say; every reply quotes its evidence.
    """

    name = "local"
    remote = False
    paid = False

    async def read(self, call: TextCall) -> TextReply:
        """Return what the document says, as far as words show it."""
        return self.evaluate(call)

    def evaluate(self, call: TextCall) -> TextReply:
        """Return the reply at once; HTML entities are decoded for reading, and quotes are of the text as it is."""
        if not any("&" in passage for passage in call.passages):
            return _read(call)
        decoded = [decode_entities(passage) for passage in call.passages]
        reply = _read(replace(call, passages=tuple(text for text, _ in decoded)))
        quotes = []
        for quote in reply.quotes:
            places = decoded[quote.passage][1]
            start, end = places[quote.start], places[quote.start + len(quote.text)]
            quotes.append(Quote(quote.passage, start, call.passages[quote.passage][start:end]))
        return replace(reply, quotes=tuple(quotes))


def _read(call: TextCall) -> TextReply:
    if call.function == "summary":
        quotes = central_sentences(call.passages)
        return TextReply(" ".join(quote.text for quote in quotes) or None, quotes=quotes)
    if call.type == "list":
        return _option(call) if call.options else _span(call)
    if is_yes_or_no(call):
        if len(call.passages) == 1 and (open_ := is_open(call.passages[0], call.question)) is not None:
            return yes_or_no_reply(call, open_, (Quote(0, 0, call.passages[0]),))
        found = polarity(call.passages, call.question)
        return yes_or_no_reply(call, found.verdict, quotes_of(found.evidence))
    if sides(call.options) is not None:
        return _choice(call, *sentiment(call.passages, call.options))
    if call.options:
        return _option(call)
    return _span(call)


def is_yes_or_no(call: TextCall) -> bool:
    """Return whether a call asks for yes or no, by its options, its type, its comparisons, or its question."""
    spoken = {canonical(word) for word in (*call.options, *call.compared)}
    if call.options:
        return bool(spoken & _YES) and bool(spoken & _NO)
    return (
        call.type == "boolean" or bool(spoken & (_YES | _NO)) or (call.type == "text" and asks_yes_or_no(call.question))
    )


def yes_or_no_reply(call: TextCall, verdict: bool | None, quotes: tuple[Quote, ...]) -> TextReply:
    """Return a verdict as a reply: in the words of the options where there are some, with one for each literal."""
    if verdict is None:
        return _choice(call, None)
    words = _YES if verdict else _NO
    verdicts: dict[str, bool | None] = {literal: canonical(literal) in words for literal in call.compared}
    spelled = next((option for option in call.options if canonical(option) in words), None)
    plain = {True: "true", False: "false"} if call.type == "boolean" else {True: "Yes", False: "No"}
    return TextReply(spelled or plain[verdict], verdicts, quotes)


def _choice(call: TextCall, chosen: str | None, quotes: tuple[Quote, ...] = ()) -> TextReply:
    if chosen is None:
        return TextReply(None, dict.fromkeys(call.compared))
    verdicts: dict[str, bool | None] = {literal: canonical(literal) == canonical(chosen) for literal in call.compared}
    return TextReply(chosen, verdicts, quotes)


def _option(call: TextCall) -> TextReply:
    scores: dict[str, float] = dict.fromkeys(call.options, 0.0)
    quotes: dict[str, list[Quote]] = {option: [] for option in call.options}
    for option, (number, clause) in product(call.options, clauses_of(call.passages)):
        if (place := _place(option, clause.stems)) is not None:
            scores[option] += -1.0 if clause.negated(place) else 1.0
            quotes[option].append(Quote(number, clause.start, clause.text))
    if call.type == "list":
        chosen = tuple(option for option in call.options if scores[option] > 0)
        places = tuple(dict.fromkeys(quotes[option][0] for option in chosen))  # one for each
        return TextReply(write_list(chosen) if chosen else None, {}, places)
    best = max(call.options, key=lambda option: scores[option])
    return _choice(call, best, tuple(quotes[best][:3])) if scores[best] > 0 else _choice(call, None)


def _span(call: TextCall) -> TextReply:
    span = best_span(call.passages, call.question, call.type, lambda words: parse_typed(words, call.type) is not None)
    if span is None:
        return _choice(call, None)
    value = parse_typed(span.value, call.type)
    verdicts: dict[str, bool | None] = {literal: _is_supported(span, literal) for literal in call.compared}
    return TextReply(value, verdicts, (span.quote,), confidence=span.confidence)


def _is_supported(span: Span, literal: str) -> bool:
    placed = ((clause, _place(literal, clause.stems)) for clause in clauses(span.quote.text))
    stated = any(place is not None and not clause.negated(place) for clause, place in placed)
    return stated or canonical(span.value) == canonical(literal)


def _place(words: str, within: str) -> int | None:
    wanted = " ".join(stem(token) for token in tokens_of(words))
    at = f" {within} ".find(f" {wanted} ") if wanted else -1
    return None if at < 0 else at


def central_sentences(passages: Sequence[str]) -> tuple[Quote, ...]:
    """Return up to three clauses that together say most of what the document says most often."""
    spread = Counter(word for passage in passages for word in set(stems(passage)))
    candidates = [(number, clause, Counter(stems(clause.text))) for number, clause in clauses_of(passages)]
    chosen: list[tuple[int, Clause]] = []
    covered: set[str] = set()
    for _ in range(min(_SENTENCES, len(candidates))):
        # What has been said counts little the second time: three sentences, not one sentence three times.
        gain = [
            sum(spread[word] * (0.2 if word in covered else 1.0) for word in counted) / (len(counted) + 4) ** 0.7
            for _, _, counted in candidates
        ]
        at = max(range(len(candidates)), key=lambda i: (gain[i], -i))
        number, clause, counted = candidates.pop(at)
        chosen.append((number, clause))
        covered |= set(counted)
    return tuple(Quote(n, c.start, c.text) for n, c in sorted(chosen, key=lambda item: (item[0], item[1].start)))


_SPELLING = 0.55
"""Similarity of letters from which a value counts as another spelling of the literal."""


class LocalLinker:
    """A Linker that knows words, not the world: the first of its means that finds any value decides."""

    name = "local"

    async def link(self, request: LinkRequest) -> tuple[str, ...]:
        """Return the values that mean the same as the literal, in the column's order."""
        literal = canonical(request.literal)
        wanted = frozenset(stems(literal))
        groups = ([frozenset(stems(word)) for word in group.split(", ")] for group in read_toml("places.toml")["same"])
        same = (group for group in groups if any(word and word <= wanted for word in group))
        meanings = [other for group in same for other in group if other and other != wanted]
        tests: tuple[Callable[[str], bool], ...] = (
            lambda value: canonical(value) == literal,
            lambda value: bool(wanted) and _whole(wanted, value),
            lambda value: any(_whole(other, value) for other in meanings),
            lambda value: len(literal) > 3 and text_similarity(literal, canonical(value)) >= _SPELLING,
        )
        found = (tuple(value for value in request.values if test(value)) for test in tests)
        return next((values for values in found if values), ())


def _whole(wanted: frozenset[str], value: str) -> bool:
    held = frozenset(stems(value))
    return bool(held) and (wanted <= held or held <= wanted)
