"""TokenUse: what each token of a question was taken for; and the words by which searches are read."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from almanaq.agent.linking.words import Token, word_set
from almanaq.agent.local.search.domain import NONE, Domain


@dataclass
class TokenUse:
    """The tokens of one question, each with what it was taken for (None for nothing yet).

    Attributes:
        domain: words of the domain that the source is about.
    """

    question: str
    tokens: tuple[Token, ...]
    used: list[str | None]
    domain: Domain = NONE

    def __post_init__(self) -> None:
        pairs = zip(self.tokens, self.tokens[1:], strict=False)
        found = [i for i, pair in enumerate(pairs) if (pair[0].stem, pair[1].stem) in self.domain.idioms]
        self.idioms = frozenset(k for i in found for k in (i, i + 1))

    def free(self, first: int, last: int) -> bool:
        """Return whether no token from `first` to `last` (exclusive) is taken."""
        return not any(self.used[first:last])

    def take(self, first: int, last: int, label: str) -> None:
        """Mark tokens as taken for something."""
        self.used[first:last] = [label] * (min(last, len(self.used)) - first)

    def drop(self, first: int, last: int) -> None:
        """Mark tokens as telling of the asker alone."""
        self.take(first, last, "dropped")

    def folded(self, i: int) -> str:
        """Return token i in lower case, "" outside the question."""
        return self.tokens[i].folded if 0 <= i < len(self.tokens) else ""

    def stem(self, i: int) -> str:
        """Return the stem of token i, "" outside the question."""
        return self.tokens[i].stem if 0 <= i < len(self.tokens) else ""

    def text(self, first: int, last: int) -> str:
        """Return the question's own text from token `first` to `last` (exclusive)."""
        return self.question[self.tokens[first].start : self.tokens[last - 1].end] if first < last else ""


@dataclass(frozen=True, slots=True)
class SearchWords:
    """The word lists of `search.toml`, whose comments say what each is."""

    ignored: frozenset[str]
    glue: frozenset[str]
    entity_words: frozenset[str]
    quality: frozenset[str]
    negations: frozenset[str]
    adjectives: frozenset[str]
    not_adjectives: frozenset[str]
    adjective_endings: tuple[str, ...]
    owning: frozenset[str]
    verbs: frozenset[str]
    seeking: frozenset[str]
    moving: frozenset[str]
    telling: frozenset[str]
    wishing: frozenset[str]

    def is_adjective(self, word: str) -> bool:
        """Guess whether a word is an adjective, by a short list and by its ending."""
        if word in self.not_adjectives:
            return False
        return word in self.adjectives or word.endswith(self.adjective_endings)


@cache
def search_words() -> SearchWords:
    """Return the words of searches."""
    text = files("almanaq.agent.local.search").joinpath("search.toml").read_text("utf-8")
    data = {name: word_set(said) for name, said in tomllib.loads(text).items()}
    endings: Sequence[str] = sorted(data.pop("adjective_endings"))
    return SearchWords(adjective_endings=tuple(endings), **data)
