"""Words that the reader knows, by what they do in a text or a question."""

import tomllib
from collections.abc import Iterable
from importlib.resources import files

from almanaq.text.words import stem

_DATA = tomllib.loads((files(__package__) / "words.toml").read_text("utf-8"))
WORDS: dict[str, frozenset[str]] = {name: frozenset(spoken.split()) for name, spoken in _DATA.items()}


def stem_set(spoken: Iterable[str]) -> frozenset[str]:
    """Return the stems of words."""
    return frozenset(map(stem, spoken))
