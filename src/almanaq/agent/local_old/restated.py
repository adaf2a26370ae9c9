"""A few words that go on from a question → the whole question that they make of it: "only in 2024", "and by city?"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from almanaq.agent.local_old.recognize.heard import heard
from almanaq.agent.local_old.recognize.spans import Span, best_cover
from almanaq.agent.local_old.recognize.vocabulary import Vocabulary
from almanaq.agent.local_old.schema_index import Meaning

_OPENS = re.compile(
    r"^(?:(?:and|ok|okay|so|but|now|then|also|please|(?:what|how) about|what if|(?:the )?same(?: \w+)? for|only|just"
    r"|instead|rather|show(?: me)?|(?:filter|restrict|limit|narrow)(?: (?:it|that|this|them))?(?: down)?(?: to| by)?"
    r"|(?:the |those |these )?ones|those|these|(?:that|which|who) (?:are|were|is|was))\b[,:]?\s*)+",
    re.IGNORECASE,
)
_GOES_ON = re.compile(
    r"^(?:and|or|but|now|then|also|(?:what|how) about|only|just|(?:the )?same|without|except|excluding)\b"
    r"|\binstead\W*$",
    re.IGNORECASE,
)
_CLOSES = re.compile(
    r"(?:[\s,]+(?:instead|only|too|as well|please|ones?|though|then))*[\s?.!,]*$",
    re.IGNORECASE,
)
_GROUPING = re.compile(r"Bw*(?:RC|[CRY])(?:w*&w*[CRY])*")
_MEASURE = re.compile(r"A(?:[w&]+A)*(?:w*C)?|H[wU]*[RC]?")
_AGGREGATE = re.compile(r"A(?:[w&]+A)*")
_OF_YEAR = re.compile(r"(?:after|before|since|until|till|by|from) (?:19|20)\d\d", re.IGNORECASE)
_CONNECTED = "DXBMOZ"
"""Kinds of spans that need no preposition before them."""
_PREPOSITIONS = frozenset("in on at for from with of to by during whose where".split())


@dataclass(frozen=True)
class Words:
    """Some words, with what they are of the source."""

    text: str
    vocabulary: Vocabulary

    @cached_property
    def spans(self) -> Sequence[Span]:
        tokens, found = heard(self.text, self.vocabulary)
        return best_cover(found, len(tokens))

    @property
    def value(self) -> Sequence[Meaning]:
        """What the one value among them may be."""
        found: Sequence[Meaning] = self.spans[self.kinds.index("V")].data
        return found

    @cached_property
    def kinds(self) -> str:
        return "".join(span.kind for span in self.spans)

    def range(self, first: int, last: int) -> tuple[int, int]:
        """Return where the characters of spans begin and end."""
        tokens, _ = heard(self.text, self.vocabulary)
        return tokens[self.spans[first].first].start, tokens[self.spans[last - 1].last - 1].end

    def found(self, pattern: re.Pattern[str]) -> tuple[int, int] | None:
        """Return where the characters stand whose kinds a pattern matches."""
        match = pattern.search(self.kinds)
        return self.range(*match.span()) if match else None

    def said(self, at: tuple[int, int]) -> str:
        return self.text[at[0] : at[1]]

    def without(self, at: tuple[int, int]) -> Words:
        return Words(" ".join((self.text[: at[0]] + " " + self.text[at[1] :]).split()), self.vocabulary)


def goes_on(said: str) -> bool:
    """Return whether words say themselves that they go on from others: "and …", "only …", "… instead"."""
    return _GOES_ON.search(said.strip()) is not None


def core(said: str) -> str:
    """Return the words of a follow-up without those that only say that it is one."""
    plain = " ".join(said.replace("\u2019", "'").split())
    return _CLOSES.sub("", _OPENS.sub("", plain))


def is_fragment(words: Words) -> bool:
    """Return whether words are values, days, a grouping, or an aggregate alone: no rows and no figures of their own."""
    kinds = _AGGREGATE.sub("A", _GROUPING.sub("B", words.kinds)).strip("w&")
    return bool(kinds) and not set(kinds) & set("RC?") and kinds[0] != "H"


def restated(said: Words, question: Words) -> Iterator[str]:
    """Yield the whole questions that words may make of an earlier one, the likeliest first."""
    if "?" in said.kinds or ("D" in said.kinds and _groups_by_days(said)):
        return  # "from 1997 by order date" says which date is meant
    whole: Words | None = question
    for pattern, change in ((_GROUPING, _grouped), (_MEASURE, _measured), (re.compile("S"), _ranked)):
        at = said.found(pattern)
        if at is not None and whole is not None:
            whole = change(whole, said, at)
            said = said.without(at)
    if whole is None:
        return
    rest = Words(core(said.text), said.vocabulary)
    if rest.kinds.strip("w&"):
        yield from _conditioned(whole, rest)
    elif whole.text != question.text:
        yield whole.text


def lessened(question: Words) -> Iterator[str]:
    """Yield a question without each of its conditions in turn."""
    for match in re.finditer(r"X?[w]{0,2}C?w{0,2}[VDON]", question.kinds):
        first = match.start()
        for start in range(first, match.end()):
            yield question.without(question.range(start, match.end())).text


def _put(question: Words, at: tuple[int, int], text: str) -> Words:
    return Words(f"{question.text[: at[0]]}{text}{question.text[at[1] :]}", question.vocabulary)


def _groups_by_days(said: Words) -> bool:
    match = _GROUPING.search(said.kinds)
    spans = said.spans[match.start() : match.end()] if match else ()
    return any(place.kind == "date" for span in spans if span.kind == "C" for place, _ in span.data)


def _grouped(question: Words, said: Words, at: tuple[int, int]) -> Words:
    """The grouping of a question, or one more part of it, is another."""
    old = question.found(_GROUPING)
    end = len(question.text.rstrip("?.! "))
    return _put(question, old, said.said(at)) if old else _put(question, (end, len(question.text)), f" {said.said(at)}")


def _measured(question: Words, said: Words, at: tuple[int, int]) -> Words | None:
    """What is computed is something else: another function of the same column, or of another."""
    said_kinds = "".join(found) if (found := _MEASURE.findall(said.kinds)[:1]) else ""
    alone = not said_kinds.endswith(("C", "R"))
    old = question.found(_AGGREGATE if alone else _MEASURE)
    if old is None or (alone and said_kinds.startswith("H")):
        return None
    return _put(question, old, said.said(at))


def _ranked(question: Words, said: Words, at: tuple[int, int]) -> Words | None:
    """Other ones rank first, or more of them."""
    old = question.found(re.compile("S"))
    return _put(question, old, said.said(at)) if old and question.kinds.count("S") == 1 else None


def _conditioned(question: Words, rest: Words) -> Iterator[str]:
    """Conditions take the place of those on the same column or time, or stand beside the others."""
    replaced = _replaced(question, rest)
    if replaced is not None:
        if replaced != question.text:
            yield replaced
        return
    bound = question.found(re.compile("O")) if rest.kinds.strip("w&") == "O" else None
    if bound is not None:
        yield f"{question.text[: bound[1]]} and {rest.text}{question.text[bound[1] :]}"
    text, first = rest.text, rest.spans[0]
    connected = first.kind in _CONNECTED or text.split()[0].casefold() in _PREPOSITIONS
    forms = (text,) if connected else ((f"for {text}", text) if first.kind == "V" else (text, f"with {text}"))
    if rest.kinds.strip("w&") == "C":
        yield from _described(question, rest)
        return
    bare = question.text.rstrip("?.! ")
    grouping = question.found(_GROUPING)
    for form in forms:
        yield f"{bare} {form}"
        if grouping is not None:
            yield f"{bare[: grouping[0]]}{form} {bare[grouping[0] :]}"


def _described(question: Words, rest: Words) -> Iterator[str]:
    """Yield a question with what its rows are before their name: "only discontinued ones"."""
    columns = [span for span in rest.spans if span.kind == "C"]
    yes_or_no = [place for span in columns for place, _ in span.data if place.kind == "boolean"]
    if not yes_or_no:
        return
    at = question.kinds.find("R")
    if at >= 0:
        start, _ = question.range(at, at + 1)
        yield f"{question.text[:start]}{rest.text} {question.text[start:]}"
    for name in dict.fromkeys(place.relation.name.replace("_", " ") for place in yes_or_no):
        yield f"{question.text.rstrip('?.! ')} for {rest.text} {name}"


def _replaced(question: Words, rest: Words) -> str | None:
    """Return a question with a value or days in the place of its own; itself where it is not sure of which."""
    content = [i for i, kind in enumerate(rest.kinds) if kind not in "w&"]
    if len(content) != 1 or rest.kinds[content[0]] not in "VDON":
        return None
    new = rest.spans[content[0]]
    if _OF_YEAR.fullmatch(rest.text) and "O" not in question.kinds:
        new = replace(new, kind="D", data=(">", *new.data))  # a year is no amount
    old = [i for i, span in enumerate(question.spans) if _alike(span, new)]
    if not old:
        return None
    if len(old) > 1 or "X" in question.kinds[max(0, old[0] - 3) : old[0]]:
        return question.text
    first = old[0]
    text = rest.said(rest.range(content[0], content[0] + 1))
    was = question.said(question.range(first, first + 1))
    if new.kind == "D":
        text = _with_year(text, was)
        before = question.spans[first - 1] if first else None
        if before is not None and before.kind == "w" and new.data[0] != "=" and before.data in _PREPOSITIONS:
            first -= 1
    return _put(question, question.range(first, old[0] + 1), text).text


def _alike(old: Span, new: Span) -> bool:
    """Return whether one of two spans takes the place of the other: no row can be both."""
    if old.kind != new.kind:
        return False
    if old.kind == "V":
        places = [{(p.relation.name, p.column.name) for p, _ in span.data} for span in (old, new)]
        return bool(places[0] & places[1])
    if old.kind == "O":
        (sign, one, *_), (other_sign, other, *_) = old.data, new.data
        apart = other[0] <= one[-1] if sign[:1] == ">" else other[-1] >= one[0]
        return bool(sign[:1] == other_sign[:1] or apart)
    return True


def _with_year(text: str, was: str) -> str:
    """Return a month with the year that was spoken of: "April" after "March 2024"."""
    year = re.search(r"\b(?:19|20)\d\d\b", was)
    has_own = re.search(r"\d{4}|year|last|this|today|yesterday|ago", text, re.IGNORECASE)
    is_month = re.search(r"[a-z]{3,}", was, re.IGNORECASE) is not None
    return f"{text} {year.group()}" if year and is_month and not has_own else text
