"""What a model's tokens cost: prices come from a file that the user writes; an unknown price is None, never a guess."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path

from almanaq.errors import SourceError


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens."""

    input: float
    output: float = 0.0

    def of(self, input_tokens: int, output_tokens: int) -> float:
        """Return the dollars that one call with these tokens costs."""
        return (input_tokens * self.input + output_tokens * self.output) / 1e6


def price_of(model: str, file: Path | None = None) -> Price | None:
    """Return the price that `file` states for a model, None when it states none.

    Args:
        model: the name that the server knows the model by.
        file: TOML with one table for each model: `["gpt-x"]`, `input = 0.15`, `output = 0.60` (dollars for a million
            tokens); by default the file that the environment's ALMANAQ_PRICES names.
    """
    path = file or (Path(os.environ["ALMANAQ_PRICES"]) if os.environ.get("ALMANAQ_PRICES") else None)
    if path is None:
        return None
    try:
        entry = tomllib.loads(path.read_text("utf-8")).get(model)
        return None if entry is None else Price(float(entry["input"]), float(entry.get("output", 0.0)))
    except FileNotFoundError as problem:
        raise SourceError(f"there is no prices file {path}: write one, or correct or unset ALMANAQ_PRICES") from problem
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise SourceError(
            f"the prices file {path} cannot be used ({problem!r}): each model is a table such as\n"
            '  ["gpt-x"]\n  input = 0.15    # dollars for a million tokens\n  output = 0.60\n'
            "correct it, or unset ALMANAQ_PRICES"
        ) from problem
