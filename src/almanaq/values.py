"""Values as people write them: canonical text, numbers, dates, durations, yes and no."""

from __future__ import annotations

import re

_SPACE = re.compile(r"\s+")


def canonical(text: str) -> str:
    """Give the form in which two replies that mean one value are equal (semantics 4): trimmed, white space and case folded."""
    return _SPACE.sub(" ", text).strip().casefold()
