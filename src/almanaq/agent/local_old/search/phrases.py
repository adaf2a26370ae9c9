"""The rest of a question: phrases that nothing structured covers, as yes/no questions to a column of prose."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from almanaq.agent.local_old.lexicon import (
    ADJECTIVE_ENDINGS,
    ADJECTIVES,
    GLUE,
    IGNORED,
    MOVING,
    NEGATIONS,
    NOT_ADJECTIVES,
    OWNING,
    QUALITY,
    SEEKING,
    VERBS,
)
from almanaq.agent.local_old.search.domain import Domain
from almanaq.agent.local_old.search.links import Links

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


def phrases(links: Links, noun: str) -> tuple[Phrase, ...]:
    """Return the questions that the unlinked words ask of one row, which `noun` names in the singular."""
    return tuple(_phrase(links, first, last, noun) for first, last in runs(links))


def runs(links: Links) -> Iterator[tuple[int, int]]:
    """Yield spans of unlinked words that hold content, glue words inside included."""
    i = 0
    while i < len(links.tokens):
        if not content(links, i):
            i += 1
            continue
        last = k = i + 1
        while k < len(links.tokens) and links.free(k, k + 1):
            if content(links, k):
                last = k + 1
            elif links.folded(k) not in GLUE and not (links.folded(k) == "or" and content(links, k + 1)):
                break
            k += 1
        if any(links.stem(k) not in links.domain.empty for k in range(i, last) if content(links, k)):
            yield i, last
        i = last


def content(links: Links, i: int) -> bool:
    """Return whether word i is unlinked and carries meaning of its own."""
    if not links.free(i, i + 1):
        return False
    folded = links.folded(i)
    if i in links.idioms:
        return True
    cue = folded in OWNING or folded in links.domain.serving or folded in NEGATIONS or folded in GLUE
    quality = folded in QUALITY or folded in IGNORED
    return not cue and not quality and (folded[:1].isalnum() or folded[:1].isalpha())


def adjective(word: str) -> bool:
    """Guess whether a word is an adjective, by a short list and by its ending."""
    if word in NOT_ADJECTIVES:
        return False
    return word in ADJECTIVES or word.endswith(ADJECTIVE_ENDINGS)


def _phrase(links: Links, first: int, last: int, noun: str) -> Phrase:
    cue, wanted = _cue(links, first)
    opening = _article(links, first) if cue else first
    words = _spoken(links.text(opening, last))
    dish = cue in links.domain.dish_cues or any(links.folded(k) in links.domain.foods for k in range(first, last))
    # "Fresh bread" is an opinion, which a list of dishes does not hold.
    dish = dish and links.idioms.isdisjoint(range(first, last)) and not adjective(links.folded(first))
    if cue == "with" and opening == first and links.folded(first - 1) in QUALITY:
        words, dish = f"{links.folded(first - 1)} {words}", False
    someone = _SOMEONE.search(links.text(0, first)) if first else None
    if someone and len(words.split()[0]) > 2:
        verb, *rest = words.split()
        asked = " ".join(("does someone", _bare(verb), *rest, f"in this {noun}?"))
        return Phrase(first, last, words, asked, True, False)
    return Phrase(first, last, words, _question(words, cue, noun, links.domain, dish=dish), wanted, dish)


def _article(links: Links, first: int) -> int:
    """Return the index of the article that opens a phrase, "very" between them forgiven; `first` when there is none."""
    before = first - 1
    while links.folded(before) in ("very", "really", "quite", "pretty"):
        before -= 1
    return before if links.folded(before) in ("a", "an", "the") else first


def _cue(links: Links, first: int) -> tuple[str, bool]:
    """Return the word before a phrase that says how it belongs to the row, and whether it is wanted."""
    cue, wanted = "", True
    for k in range(first - 1, max(first - 5, -1), -1):
        word = links.folded(k)
        if links.used[k] not in (None, "negation"):
            break
        if word in NEGATIONS:
            wanted = not wanted
            cue = cue or ("with" if word in ("without", "no") else "")
        elif word == "for" and links.folded(k - 1) in SEEKING:
            break
        elif not cue and (word in OWNING or word in links.domain.serving or word in ("for", "to", "about", "can")):
            cue = "with" if word in OWNING else links.domain.serving.get(word, word)
            if word == "without":
                wanted = False
        elif word not in GLUE and word not in IGNORED and word not in QUALITY:
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
    does, owned = opening in VERBS, cue == "with"
    asked = (
        # The noun that it stood beside is linked: "have a romantic Italian dinner".
        (owned and len(more) < 2 and adjective(head), f"is {row} {head}?"),
        (cue == "can", f"can you {words} {'to' if opening in MOVING else 'at'} {row}?"),
        (head in domain.pets and cue in _COMING and not does, f"does {row} welcome {words}?"),
        (owned and head in domain.companions, f"is {row} good for {words}?"),
        (does and cue != "to", f"does {row} {_bare(opening)} {rest}".rstrip() + "?"),
        (adjective(opening) and more[:1] == ["to"] and not does and more[1:], f"is {row} {opening} enough {rest}?"),
        (cue in ("serve", "offer"), f"does {row} {cue} {words}?"),
        (cue == "about", f"is {row} about {words}?"),
        (cue == "for" or (not cue and _stem_in(head, domain.occasions)), f"is {row} good for {words}?"),
        (cue == "to", f"is {row} a good place to {words}?"),
        (adjective(head) and not owned, f"is {row} {words}?"),
        (dish and not cue, f"does {row} serve {words}?"),
    )
    article = "a " if head in domain.counted and opening not in _DETERMINED else ""
    return next((question for fits, question in asked if fits), f"does {row} have {article}{words}?")


def _stem_in(word: str, known: frozenset[str]) -> bool:
    return word in known or word.removesuffix("s") in known or word.removesuffix("ies") + "y" in known


def _bare(verb: str) -> str:
    return verb if not verb.endswith("s") else verb.removesuffix("s")
