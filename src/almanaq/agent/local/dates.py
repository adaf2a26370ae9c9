"""Months and days of a question: "in March 2024", "after 3 May 2021", "between 2024-02-01 and 2024-03-31"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date

from almanaq.agent.local.calendar_spans import Span, spans
from almanaq.agent.local.joins import Hop
from almanaq.agent.local.links import DateLink, Links
from almanaq.agent.local.quantities import COMPARISONS, COMPARISONS_AFTER
from almanaq.agent.local.schema_index import Place
from almanaq.agent.local.spoken import relation_stems
from almanaq.agent.local.words import roots


def link_dates(links: Links, today: date) -> None:
    """Find months, days and words like "last year" with the comparisons they stand in."""
    found: list[tuple[int, int, Span]] = []
    for span in spans(links.question, today):
        inside = [i for i, w in enumerate(links.words) if span.first <= w.start and w.end <= span.last]
        if inside and all(links.used[i] in (None, "mark") for i in inside):
            found.append((inside[0], inside[-1] + 1, span))
    while found:
        first, last, span = found.pop(0)
        if found and links.folded(first - 1) in ("between", "from") and links.folded(last) in ("and", "to", "until"):
            _, last, end = found.pop(0)
            span = Span(span.first, end.last, span.start, end.after, span.yearless and end.yearless)
            first, operator = first - 1, "between"
        else:
            first, last, operator = _compared(links, first, last)
        links.dates.append(DateLink(first, last, operator, span))
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


def date_place(
    link: DateLink, links: Links, places: Iterable[Place], paths: Mapping[str, tuple[Hop, ...]]
) -> Place | None:
    """Give the column of dates that is meant, None where none is in reach: the nearest, by the words before it."""
    near = {root for k in range(max(0, link.first - 5), link.first) for root in roots(links.folded(k))}
    found = [p for p in places if p.kind == "date" or (link.whole_years and "year" in p.stems and p.kind == "number")]

    def score(place: Place) -> float:
        spoken = any(near & roots(part) for part in (*place.stems, *relation_stems(place.relation)))
        return 1.5 * spoken - len(paths[place.relation.name])

    return max(found, key=score, default=None)


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
