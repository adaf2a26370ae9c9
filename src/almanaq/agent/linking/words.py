"""Words of questions and identifiers: tokens, stems, the roots that verbs share with nouns."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from almanaq.suql.catalog.terms import Term

_FORMS = tomllib.loads(files("almanaq.agent.linking").joinpath("forms.toml").read_text("utf-8"))
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_UNIT_END = re.compile(r"(?<=[a-z])(km|m|mi)(2|3)$")
_GLUED = re.compile(
    r"(height|weight|length|width|depth|distance|area|speed|elevation|altitude|temp|temperature|duration|mass)"
    r"(cm|mm|km|kg|ft|lb|lbs|mph|kmh|min|sec|m|f|c|g|s)$"
)
_JOINED = re.compile(r"^(?!candi|man|vali|liqui|consoli|antece|sur|nick)([a-z]{3,})(date|size|value|price|name)$")
_TOKEN = re.compile(
    r"\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\w.])|\d+\.\d+(?![\w.])|[^\W_]+(?:['’](?:t|re|ve|ll|d|m)\b)?|['’]s\b|[<>!]=|\$+|\S"
)
_BARE = re.compile(
    r"\b(?:(?:do|does|did|is|are|was|were|has|have|had|ca|wo|could|would|should|need)nt|(?:what|that|there|where|how)s"
    r"|its(?= (?:not|a|an|the|for|too|so|just|ok|fine)\b))\b",
    re.IGNORECASE,
)
_DERIVING = tuple("ness ly ion ation ment er or ee ing ed al ial ous ity y ance ence ant ent ism ist th".split())
_ENDINGS = ("ing", "ed", "er", "or", "e", "ion", "ment", "s")
_SHORTEST_ROOT = 3


@dataclass(frozen=True, slots=True)
class Token:
    """A word, number or mark of a question.

    Attributes:
        text: as it is written; `folded` without case and accents, `stem` also without a plural ending.
        start, end: the characters of the question that it takes.
    """

    text: str
    folded: str
    stem: str
    start: int
    end: int

    @property
    def is_word(self) -> bool:
        return self.folded[:1].isalnum()


@lru_cache(maxsize=256)
def tokenize(question: str) -> tuple[Token, ...]:
    """Return the tokens of a question.

    >>> [token.folded for token in tokenize("Rex's café, 1,200 m")]
    ['rex', "'s", 'cafe', ',', '1,200', 'm']
    """
    found = []
    for match in _TOKEN.finditer(question.replace("_", " ")):
        folded = fold(match[0])
        found.append(Token(question[match.start() : match.end()], folded, stem(folded), *match.span()))
    return tuple(found)


@lru_cache(maxsize=65_536)
def fold(text: str) -> str:
    """Return a text without case and accents: "Café" and "cafe" are one."""
    if text.isascii():
        return text.casefold()
    decomposed = unicodedata.normalize("NFKD", text.replace("\u2019", "'"))
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter)).casefold()


def restore_apostrophes(text: str) -> str:
    """Return a text with the apostrophes of words that are nothing without them: "doesnt", "whats", "its not"."""
    return _BARE.sub(lambda match: f"{match[0][:-1]}'{match[0][-1]}", text)


@lru_cache(maxsize=65_536)
def value_key(text: str) -> str:
    """Return the form in which a value and the words that spell it are equal: letters and digits, single blanks."""
    return " ".join(re.findall(r"[^\W_]+", re.sub(r"(?<=\w)['’](?=\w)", " ", fold(text))))


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return a word without its plural or possessive ending, case-folded.

    Nothing more is stripped: "rating" and "rated" differ, as names of columns do.
    """
    folded = word.casefold()
    for ending in ("'s", "s'"):
        if folded.endswith(ending) and len(folded) > len(ending) + 1:
            folded = folded[:-2] + ("s" if ending == "s'" else "")
    if folded in _FORMS["irregular"]:
        return str(_FORMS["irregular"][folded])
    if len(folded) > 4 and folded.endswith("ies"):
        return folded[:-3] + "y"
    if len(folded) > 4 and folded.endswith(("sses", "xes", "ches", "shes", "zzes", "roes", "toes")):
        return folded[:-2]
    if len(folded) > 3 and folded.endswith("s") and not folded.endswith(("ss", "us", "is")):
        return folded[:-1]
    return folded


@lru_cache(maxsize=65_536)
def stems(text: str) -> tuple[str, ...]:
    """Return the stems of the words of a text; marks drop out."""
    return tuple(stem(part) for part in re.findall(r"[^\W_]+", fold(text)))


@lru_cache(maxsize=16_384)
def identifier_stems(identifier: str) -> tuple[str, ...]:
    """Return the stems of the words of an identifier: `PhoneNumber` and `phone_number` are (phone, number)."""
    parts = _PARTS.findall(_GLUED.sub(r"\1_\2", _UNIT_END.sub(r"_\1_\2", _JOINED.sub(r"\1_\2", identifier))))
    return tuple(stem(fold(part)) for part in parts)


def name_stems(term: Term) -> list[tuple[str, ...]]:
    """Return the stems of each name of a term: its own, and its synonyms, also without a unit: "Revenue (USD)"."""
    plain = dict.fromkeys(each for name in term.synonyms for each in (name, re.sub(r"\s*\([^()]*\)$", "", name)))
    return [identifier_stems(term.name), *map(stems, plain)]


@lru_cache(maxsize=16_384)
def roots(word: str) -> frozenset[str]:
    """Return forms that a verb shares with the noun made of it: "directed" and "director" have "direct"."""
    plain = stem(word)
    found = {plain, _FORMS["past"].get(plain, plain)}
    found |= {kin for form in tuple(found) for kin in _FORMS["kin"].get(form.removesuffix("ed"), ())}
    found |= {form.removesuffix(ending) for form in tuple(found) for ending in _ENDINGS if form.endswith(ending)}
    found |= {form[:-1] for form in tuple(found) if form[-1:] == form[-2:-1] != "s"}  # "shipped"
    found |= {end for form in tuple(found) if form.endswith("y") for end in (form[:-1] + "i", form[:-1])}
    return frozenset(form for form in found if len(form) > _SHORTEST_ROOT)


@lru_cache(maxsize=16_384)
def derived_forms(word: str) -> frozenset[str]:
    """Return what is left of a word without an ending that makes it another part of speech: "weak" of weakness."""
    found = {word.removesuffix(ending) for ending in _DERIVING if word.endswith(ending)}
    found = {form for form in found if len(form) > _SHORTEST_ROOT}
    return frozenset((word, *found, *(form + "e" for form in found)))


def is_verb_form(word: str) -> bool:
    """Return whether a word may be a past form or a participle: "painted", "built", "leaving"."""
    return word in _FORMS["past"] or (len(word) > 4 and word.endswith(("ed", "ing")))


def is_plural(token: Token) -> bool:
    """Return whether a word has a plural ending."""
    return token.folded != token.stem and not token.folded.endswith("'s")


def singular(name: str) -> str:
    """Return an identifier as words in the singular: `hotel_rooms` becomes "hotel room"."""
    parts = [part.casefold() for part in _PARTS.findall(name)] or [name]
    return " ".join([*parts[:-1], stem(parts[-1])])


def word_set(text: str) -> frozenset[str]:
    """Return the words of a list that is written as running text."""
    return frozenset(text.split())
