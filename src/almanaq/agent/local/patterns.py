"""Parts of words that a question asks for: "whose name contains 'oak'", "cities that start with B"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from almanaq.agent.local import sql
from almanaq.agent.local.links import ColumnLink, Links, PatternLink
from almanaq.agent.local.reading import Condition
from almanaq.agent.local.schema_index import Place

_QUOTE = "[\"'\u2018\u201c]"
_PART = rf"{_QUOTE}(?P<{{0}}>[^\"'\u2019\u201d]{{{{1,40}}}}?) ?[\"'\u2019\u201d]"
_KIND = r"(?:the )?(?:sub-?string|word|string|text|phrase|letters?|prefix|suffix|characters?)"
_HOLDS = r"(?:contain(?:s|ing|ed)?|includ(?:es?|ing))"
_ASKS = re.compile(
    rf"\b(?:(?:{_HOLDS}|has|have|having|with) {_KIND} (?:{_PART.format('kind')}|(?P<word>\w+))"
    rf"|{_HOLDS} {_PART.format('quoted')}"
    rf"|(?:start|begin)(?:s|ing|ning)? (?:with|in) (?:{_KIND} )?"
    rf"(?:{_PART.format('start')}|(?P<capital>[A-Z]\w*|[a-z])\b)"
    rf"|end(?:s|ing)? (?:with|in) (?:{_KIND} )?(?:{_PART.format('end')}|(?P<last>[A-Z]|[a-z])\b))"
)
_FORMS = {"start": "{}%", "capital": "{}%", "end": "%{}", "last": "%{}"}
_NEAR = 5
"""Most words between the name of a column and what it is to hold."""


def link_patterns(links: Links) -> None:
    """Find the parts of words that are asked for, before they are taken for values."""
    for match in _ASKS.finditer(links.question):
        inside = [i for i, w in enumerate(links.words) if match.start() <= w.start and w.end <= match.end()]
        name, part = next((name, part) for name, part in match.groupdict().items() if part)
        if inside and links.free(inside[0], inside[-1] + 1):
            escaped = part.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
            text = _FORMS.get(name, "%{}%").replace("{}", escaped)
            links.patterns.append(PatternLink(inside[0], inside[-1] + 1, text))
            links.take(inside[0], inside[-1] + 1, "pattern")


def pattern_place(
    link: PatternLink, placed: Sequence[tuple[ColumnLink, Place]], named: Place
) -> tuple[ColumnLink | None, Place]:
    """Give the column of text named shortly before a pattern, with its link; else the one that names rows."""
    before = [(c, p) for c, p in placed if 0 <= link.first - c.last <= _NEAR and p.kind == "text"]
    return max(before, key=lambda pair: pair[0].first) if before else (None, named)


def pattern_condition(link: PatternLink, place: Place) -> Condition:
    """Write that a column holds a part of a word, whatever its case."""
    return Condition(place, "{} ILIKE " + sql.text(link.text))
