"""The rest of a question: phrases that nothing structured covers, as yes/no questions to a column of prose."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from almanaq.agent.local.search.domain import Domain
from almanaq.agent.local.search.token_use import TokenUse, search_words

_COMING = ("", "with", "for", "to")
"""Words before those who come along."""
_DETERMINED = ("a", "an", "the", "your", "any")
_SOMEONE = re.compile(r"\b(?:in which|where) (?:someone|somebody|a person)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Phrase:
    """A yes/no question made of words `first` to `last` (exclusive).

    Attributes:
        question: begins with a verb and ends with "?".
        wanted: False when the asker wants it not to be so.
        dish: it is about food or drink.
    """

    first: int
    last: int
    words: str
    question: str
    wanted: bool
    dish: bool


def phrases(use: TokenUse, noun: str) -> tuple[Phrase, ...]:
    """Return the questions that the unlinked words ask of one row, which `noun` names in the singular."""
    return tuple(_phrase(use, first, last, noun) for first, last in runs(use))


def runs(use: TokenUse) -> Iterator[tuple[int, int]]:
    """Yield spans of unlinked words that hold content, glue words inside included."""
    i = 0
    while i < len(use.tokens):
        if not content(use, i):
            i += 1
            continue
        last = k = i + 1
        while k < len(use.tokens) and use.free(k, k + 1):
            if content(use, k):
                last = k + 1
            elif use.folded(k) not in search_words().glue and not (use.folded(k) == "or" and content(use, k + 1)):
                break
            k += 1
        if any(use.stem(k) not in use.domain.empty for k in range(i, last) if content(use, k)):
            yield i, last
        i = last


def content(use: TokenUse, i: int) -> bool:
    """Return whether word i is unlinked and carries meaning of its own."""
    if not use.free(i, i + 1):
        return False
    folded = use.folded(i)
    if i in use.idioms:
        return True
    cue = (
        folded in search_words().owning
        or folded in use.domain.serving
        or folded in search_words().negations
        or folded in search_words().glue
    )
    quality = folded in search_words().quality or folded in search_words().ignored
    return not cue and not quality and (folded[:1].isalnum() or folded[:1].isalpha())


def _phrase(use: TokenUse, first: int, last: int, noun: str) -> Phrase:
    cue, wanted = _cue(use, first)
    opening = _article(use, first) if cue else first
    words = _spoken(use.text(opening, last))
    dish = cue in use.domain.dish_cues or any(use.folded(k) in use.domain.foods for k in range(first, last))
    # "Fresh bread" is an opinion, which a list of dishes does not hold.
    dish = dish and use.idioms.isdisjoint(range(first, last)) and not search_words().is_adjective(use.folded(first))
    if cue == "with" and opening == first and use.folded(first - 1) in search_words().quality:
        words, dish = f"{use.folded(first - 1)} {words}", False
    someone = _SOMEONE.search(use.text(0, first)) if first else None
    if someone and len(words.split()[0]) > 2:
        verb, *rest = words.split()
        asked = " ".join(("does someone", _bare(verb), *rest, f"in this {noun}?"))
        return Phrase(first, last, words, asked, True, False)
    return Phrase(first, last, words, _question(words, cue, noun, use.domain, dish=dish), wanted, dish)


def _article(use: TokenUse, first: int) -> int:
    """Return the index of the article that opens a phrase, "very" between them forgiven; `first` when there is none."""
    before = first - 1
    while use.folded(before) in ("very", "really", "quite", "pretty"):
        before -= 1
    return before if use.folded(before) in ("a", "an", "the") else first


def _cue(use: TokenUse, first: int) -> tuple[str, bool]:
    """Return the word before a phrase that says how it belongs to the row, and whether it is wanted."""
    cue, wanted = "", True
    for k in range(first - 1, max(first - 5, -1), -1):
        word = use.folded(k)
        if use.used[k] not in (None, "not"):
            break
        if word in search_words().negations:
            wanted = not wanted
            cue = cue or ("with" if word in ("without", "no") else "")
        elif word == "for" and use.folded(k - 1) in search_words().seeking:
            break
        elif not cue and (
            word in search_words().owning or word in use.domain.serving or word in ("for", "to", "about", "can")
        ):
            cue = "with" if word in search_words().owning else use.domain.serving.get(word, word)
            if word == "without":
                wanted = False
        elif (
            word not in search_words().glue
            and word not in search_words().ignored
            and word not in search_words().quality
        ):
            break
    return cue, wanted


def _spoken(text: str) -> str:
    """Turn the asker's own pronouns to the second person: the question is put to a reader of the text."""
    text = re.sub(r"\b(my|our)\b", "your", text, flags=re.IGNORECASE)
    return re.sub(r"\b(me|us|I|we)\b", "you", text)


def _question(words: str, cue: str, noun: str, domain: Domain, *, dish: bool) -> str:
    """Ask what the phrase wants, as the first wording that fits has it; else whether the row has it."""
    stated = re.match(r"(?:the )?(.+?) (is|are) (.+)$", words)
    if stated:
        return f"{stated[2]} the {stated[1]} {stated[3]}?"
    row, (first, *more) = f"this {noun}", words.split()
    rest, opening, head = " ".join(more), first.casefold(), [first, *more][-1].casefold()
    does, owned = opening in search_words().verbs, cue == "with"
    asked = (
        # The noun that it stood beside is linked: "have a romantic Italian dinner".
        (owned and len(more) < 2 and search_words().is_adjective(head), f"is {row} {head}?"),
        (cue == "can", f"can you {words} {'to' if opening in search_words().moving else 'at'} {row}?"),
        (head in domain.pets and cue in _COMING and not does, f"does {row} welcome {words}?"),
        (owned and head in domain.companions, f"is {row} good for {words}?"),
        (does and cue != "to", f"does {row} {_bare(opening)} {rest}".rstrip() + "?"),
        (
            search_words().is_adjective(opening) and more[:1] == ["to"] and not does and more[1:],
            f"is {row} {opening} enough {rest}?",
        ),
        (cue in ("serve", "offer"), f"does {row} {cue} {words}?"),
        (cue == "about", f"is {row} about {words}?"),
        (cue == "for" or (not cue and _stem_in(head, domain.occasions)), f"is {row} good for {words}?"),
        (cue == "to", f"is {row} a good place to {words}?"),
        (search_words().is_adjective(head) and not owned, f"is {row} {words}?"),
        (dish and not cue, f"does {row} serve {words}?"),
    )
    article = "a " if head in domain.counted and opening not in _DETERMINED else ""
    return next((question for fits, question in asked if fits), f"does {row} have {article}{words}?")


def _stem_in(word: str, known: frozenset[str]) -> bool:
    return word in known or word.removesuffix("s") in known or word.removesuffix("ies") + "y" in known


def _bare(verb: str) -> str:
    return verb if not verb.endswith("s") else verb.removesuffix("s")
