"""The words by which turns are told apart, from `cues.toml`."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files

_SET = r"(?:them|these|those|the (?:\w+ )?(?:ones|three|two|four|five|results|list))"
_COMPARATIVE = (
    r"(?:cheaper|pricier|fancier|costlier|dearer|better|worse|higher|lower|longer|shorter|newer|older|younger|bigger"
    r"|larger|smaller|closer|nearer|quicker|faster|slower|earlier|later|taller|heavier|lighter|richer|poorer|fewer"
    r"|stronger)"
)


@cache
def cue(name: str) -> re.Pattern[str]:
    """Return the pattern that matches where any expression of a list does."""
    listed = "|".join(f"(?:{each})" for each in _lists()[name])
    return re.compile(listed.replace("{set}", _SET).replace("{comparative}", _COMPARATIVE), re.IGNORECASE)


@cache
def _lists() -> dict[str, list[str]]:
    return tomllib.loads((files("almanaq.agent.local") / "cues.toml").read_text("utf-8"))
