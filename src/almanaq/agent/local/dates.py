"""Months and days of a question: "in March 2024", "after 3 May 2021", "between 2024-02-01 and 2024-03-31"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date, timedelta

from almanaq.agent.local.joins import Hop
from almanaq.agent.local.links import DateLink, Links
from almanaq.agent.local.quantities import COMPARISONS, COMPARISONS_AFTER
from almanaq.agent.local.schema_index import Place
from almanaq.agent.local.words import roots

_MONTHS = "january february march april may june july august september october november december".split()
_MONTH = "|".join(f"{name}|{name[:3]}" for name in _MONTHS)
_DATE = re.compile(
    rf"""(?<![\w-])(?:
    (?P<iso>\d{{4}}-\d{{1,2}}(?:-\d{{1,2}})?)
    |(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\ (?:of\ )?(?P<month>{_MONTH})\.?,?\ (?P<year>\d{{4}})
    |(?P<month2>{_MONTH})\.?(?:\ (?P<day2>\d{{1,2}})(?:st|nd|rd|th)?)?,?\ (?:of\ )?(?P<year2>\d{{4}})
    )(?![\w-])""",
    re.IGNORECASE | re.VERBOSE,
)


def link_dates(links: Links) -> None:
    """Find months and days with the comparisons they stand in; what names no day of the calendar stays unlinked."""
    found = []
    for match in _DATE.finditer(links.question):
        inside = [i for i, w in enumerate(links.words) if match.start() <= w.start and w.end <= match.end()]
        span = _span(match)
        if span and all(links.used[i] in (None, "mark") for i in inside):
            found.append((inside[0], inside[-1] + 1, *span))
    while found:
        first, last, start, after = found.pop(0)
        low = links.folded(first - 1)
        if found and low in ("between", "from") and links.folded(last) in ("and", "to", "until"):
            _, last, _, after = found.pop(0)
            first, operator = first - 1, "between"
        else:
            first, last, operator = _compared(links, first, last)
        links.dates.append(DateLink(first, last, operator, start, after))
        links.take(first, last, "date")


def _compared(links: Links, first: int, last: int) -> tuple[int, int, str]:
    """Give the span with its comparison; without one it is the whole day or month."""
    for cue, sign in COMPARISONS_AFTER:
        if links.says(last, cue):
            return first, last + len(cue), sign
    for cue, sign in COMPARISONS:
        if links.says(first - len(cue), cue):
            return first - len(cue), last, "=" if sign == "<=" and cue == ("within",) else sign
    return first, last, "="


def _span(match: re.Match[str]) -> tuple[date, date] | None:
    """Give the first day, and the day after the last; None for a day that no calendar has."""
    if match["iso"]:
        year, month, day = (int(part) for part in (match["iso"] + "-0").split("-")[:3])
    else:
        name = (match["month"] or match["month2"]).casefold()
        month = next(i for i, known in enumerate(_MONTHS, 1) if known.startswith(name[:3]))
        year, day = int(match["year"] or match["year2"]), int(match["day"] or match["day2"] or 0)
    try:
        start = date(year, month, day or 1)
        return start, start + timedelta(1) if day else date(year + month // 12, month % 12 + 1, 1)
    except (ValueError, OverflowError):
        return None


def date_place(
    link: DateLink, links: Links, places: Iterable[Place], paths: Mapping[str, tuple[Hop, ...]]
) -> Place | None:
    """Give the column of dates that is meant, None where none is in reach: the nearest, by the words before it."""
    near = {root for k in range(max(0, link.first - 5), link.first) for root in roots(links.folded(k))}
    found = [p for p in places if p.kind == "date"]

    def score(place: Place) -> float:
        spoken = any(near & roots(part) for part in place.stems)
        return 1.5 * spoken - len(paths[place.relation.name])

    return max(found, key=score, default=None)


def date_template(link: DateLink) -> str:
    """Write the comparison of a column with the days of a link."""
    return span_template(link.operator, link.start, link.after)


def span_template(operator: str, start: date, after: date) -> str:
    """Write the comparison of a column with the days from `start` up to and without `after`."""
    whole = f"({{}} >= '{start}' AND {{}} < '{after}')"
    forms = {
        "between": whole,
        "=": whole,
        "<>": f"NOT {whole}",
        ">": f"{{}} >= '{after}'",
        ">=": f"{{}} >= '{start}'",
        "<": f"{{}} < '{start}'",
        "<=": f"{{}} < '{after}'",
    }
    return forms[operator]
