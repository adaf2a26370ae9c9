"""Words: the form in which two spellings of a word are equal, and the roots that verbs share with nouns."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_FORMS = tomllib.loads(files("almanaq.agent.local_old").joinpath("en/forms.toml").read_text("utf-8"))
PAST: Mapping[str, str] = _FORMS["past"]
"""Past forms of irregular verbs, with the plain ones."""
_DERIVING = tuple("ness ly ion ation ment er or ee ing ed al ial ous ity y ance ence ant ent ism ist th".split())
_ENDINGS = ("ing", "ed", "er", "or", "e", "ion", "ment")


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Return a word without its plural or possessive ending, case-folded.

    Nothing more is stripped: "rating" and "rated" differ as names of columns do.
    """
    folded = word.casefold()
    for ending in ("'s", "s'"):
        if folded.endswith(ending) and len(folded) > len(ending) + 1:
            folded = folded[:-2] + ("s" if ending == "s'" else "")
    if folded in _FORMS["irregular"]:
        return str(_FORMS["irregular"][folded])
    if len(folded) > 4 and folded.endswith("ies"):
        return folded[:-3] + "y"
    if len(folded) > 4 and folded.endswith(("sses", "xes", "ches", "shes", "zzes")):
        return folded[:-2]
    if len(folded) > 3 and folded.endswith("s") and not folded.endswith(("ss", "us", "is")):
        return folded[:-1]
    return folded


@lru_cache(maxsize=65536)
def stems(text: str) -> tuple[str, ...]:
    """Return the stems of the words of a value or of a run of text; punctuation drops out."""
    return tuple(stem(part) for part in re.findall(r"[^\W_]+(?:'[^\W_]+)?", text.replace("\u2019", "'")))


@lru_cache(maxsize=16384)
def identifier_stems(identifier: str) -> tuple[str, ...]:
    """Return the stems of the words of an identifier: `PhoneNumber` and `phone_number` are (phone, number)."""
    return tuple(stem(part) for part in _PARTS.findall(identifier))


@lru_cache(maxsize=16384)
def roots(word: str) -> frozenset[str]:
    """Return forms that a verb shares with the noun made of it: "directed" and "director" have "direct"."""
    plain = stem(word)
    found = {plain, PAST.get(plain, plain)}
    found |= {kin for form in tuple(found) for kin in _FORMS["kin"].get(form.removesuffix("ed"), ())}
    found |= {form.removesuffix(ending) for form in tuple(found) for ending in _ENDINGS if form.endswith(ending)}
    found |= {form[:-1] for form in tuple(found) if form[-1:] == form[-2:-1] != "s"}  # "shipped"
    found |= {form[:-1] + "i" for form in tuple(found) if form.endswith("y")}
    return frozenset(form for form in found if len(form) > 2)


@lru_cache(maxsize=16384)
def derived(word: str) -> frozenset[str]:
    """Return what is left of a word without an ending that makes it another part of speech: "weak" of weakness."""
    found = {word.removesuffix(ending) for ending in _DERIVING if word.endswith(ending)}
    found = {form for form in found if len(form) > 3}
    return frozenset((word, *found, *(form + "e" for form in found)))


def singular(name: str) -> str:
    """Return an identifier as words in the singular: `hotel_rooms` becomes "hotel room"."""
    parts = [part.casefold() for part in _PARTS.findall(name)] or [name]
    return " ".join([*parts[:-1], stem(parts[-1])])


def word_set(text: str) -> frozenset[str]:
    """Return the words of a list written as running text."""
    return frozenset(text.split())
