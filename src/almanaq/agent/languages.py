"""In which language a question is, as far as its commonest words and its letters tell."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from almanaq.agent.linking.english import english

_FEWEST = 2
"""Words of another language that a question has to have."""


def foreign(question: str) -> str | None:
    """Return the name of the language of a question, in English; None for English, and where nothing tells."""
    profiles, scripts = _known()
    letters = [letter for letter in question if letter.isalpha()]
    for name, blocks in scripts.items():
        own = sum(unicodedata.name(letter, "").split()[0].split("-")[0] in blocks for letter in letters)
        if own > len(letters) / 2:
            return name
    said = re.findall(r"[^\W\d_]+(?:-[^\W\d_]+)*", question.casefold())
    english = sum(word in _english() for word in said)
    found = {name: sum(word in profile for word in said) for name, profile in profiles.items()}
    name, most = max(found.items(), key=lambda pair: pair[1])
    return name if most >= _FEWEST and most > 2 * english and most >= len(said) / 4 else None


def declined(language: str) -> str:
    """Say that a question is in another language than is understood here."""
    return (
        f"Your question seems to be in {language}. Without a language model I understand English alone, so I ran "
        "nothing: please ask in English, or name a model with --model."
    )


@cache
def _english() -> frozenset[str]:
    known = english()
    return known.silent | {word for phrase in known.phrases for word in phrase}


@cache
def _known() -> tuple[Mapping[str, frozenset[str]], Mapping[str, frozenset[str]]]:
    data = tomllib.loads(files("almanaq.agent").joinpath("languages.toml").read_text("utf-8"))
    scripts = {name: frozenset(blocks.split()) for name, blocks in data.pop("scripts").items()}
    return {name: frozenset(said.split()) for name, said in data.items()}, scripts
