"""Opening hours as texts write them, and whether a place is open when a question asks: "open on Sunday after 9 pm?"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

_NAMES = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY = r"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:days?)?|mo|tu|we|th|fr|sa|su)\b"
_GROUPS = {"daily": range(7), "every": range(7), "weekday": range(5), "weekend": range(5, 7)}
_LISTED = rf"(?:{_DAY}|daily|every ?day|weekdays?|weekends?)"
_CLOCK = r"(?:\d{1,2}(?:[:.]\d\d)?(?: ?[ap]\.?m\b\.?)?|noon|midnight)"
_SPAN = re.compile(rf"({_CLOCK}) ?(?:-|–|to) ?({_CLOCK})")
_PART = re.compile(
    rf"(?:closed(?: on)? (?P<shut>{_LISTED})|(?P<days>{_LISTED}(?:(?: ?[-–/&] ?| to | and ){_LISTED})*)?:? ?"
    rf"(?P<times>{_SPAN.pattern}(?:(?:,| and|) {_SPAN.pattern})*|closed|off|24 ?hours))"
)
_VERB = re.compile(r"\b(does\b.*\bopen|open|opens|close|closes|closed)\b", re.IGNORECASE)
_SAID_DAY = re.compile(
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|weekdays?|weekends?)\b"
    r"(?! (?:morning|afternoon|evening|night))",
    re.IGNORECASE,
)
_ALWAYS = re.compile(r"\b(?:every ?day|daily|all week|(?:7|seven) days(?: a week)?|any day)\b", re.IGNORECASE)
_SAID_TIME = re.compile(
    rf"\b(at|after|past|until|till|before|by|from) (?:about |around |at least )?({_CLOCK})(?![\w/])", re.IGNORECASE
)
_NOON, _WHOLE_DAY, _NIGHT = 12 * 60, 24 * 60, 5 * 60

Hours = dict[int, tuple[tuple[int, int], ...]]
"""For each day of the week, Monday first, when it opens and closes, in minutes; after midnight, more than a day's."""


@lru_cache(maxsize=10_000)
def read_hours(text: str) -> Hours | None:
    """Return the hours that a text writes; None for any other text.

    >>> read_hours("Mon-Wed 9 AM-5 PM; closed Tuesday")
    {0: ((540, 1020),), 1: (), 2: ((540, 1020),)}
    """
    found: Hours = {}
    for part in re.split(r"[;\n]", text.casefold()):
        match = _PART.fullmatch(part.strip())
        if match is None:
            return None
        times = match["times"] or ""
        spans = ((0, _WHOLE_DAY),) if times.startswith("24") else tuple(map(_span, _SPAN.finditer(times)))
        found |= dict.fromkeys(_days(match["shut"] or match["days"] or "daily"), spans)
    return found if any(found.values()) else None


def is_open(text: str, question: str) -> bool | None:
    """Return whether a place with such opening hours is open, or closed, as a question asks.

    None where the text or the question does not say, and where it is so on some of the days asked about alone; a time
    without a day is one of every day that the place opens.
    """
    hours, verb = read_hours(text), _VERB.search(question)
    days = [day for match in _SAID_DAY.finditer(question) for day in _days(match[0].casefold())]
    time, always = _SAID_TIME.search(question), _ALWAYS.search(question)
    if hours is None or verb is None or not (days or time or always):
        return None
    shut = verb[0].casefold().startswith("close")
    if always and not time:
        every = all(hours.get(day) for day in range(7))
        return every is not shut
    asked = days or [day for day in range(7) if hours.get(day)]
    if time:
        held = {_holds(hours.get(day, ()), verb[0].casefold(), time) for day in asked}
    else:
        held = {bool(hours.get(day)) is not shut for day in asked}
    return held.pop() if len(held) == 1 else None


def find_hours(question: str) -> re.Match[str] | None:
    """Return the words of a question that say when a place is to be open, or closed; None where there are none."""
    when = "|".join(pattern.pattern for pattern in (_SAID_DAY, _ALWAYS, _SAID_TIME))
    said = rf"\b(?:opens?|close[sd]?)(?: (?:late|early|up))?(?: (?:(?:and|or|on|in|as|an?|the|late) )*(?:{when}))+"
    return re.search(said, question, re.IGNORECASE)


def _holds(spans: Sequence[tuple[int, int]], verb: str, said: re.Match[str]) -> bool | None:
    """Return whether a day's hours are as a question asks by a verb and a time."""
    word, clock = said[1].casefold(), said[2].casefold()
    late = word in ("after", "past", "until", "till")
    time = _minutes(clock, _NOON if late else 0)
    if word == "at" and not re.search(r"[amn:]", clock):
        return None
    if not spans:
        return False
    first, last = spans[0][0], spans[-1][1]
    time += _WHOLE_DAY if late and time < _NIGHT else 0
    if verb in ("close", "closes"):
        return {"at": last == time, "by": last <= time, "before": last < time, "from": None}.get(word, last > time)
    if word in ("at", "from"):
        inside = any(start <= each < end for start, end in spans for each in (time, time + _WHOLE_DAY))
        return inside is not (verb == "closed")
    if verb == "closed":
        return None
    if verb != "open" and word in ("after", "past"):
        return first > time
    kept = {"before": first < time, "by": first <= time, "until": last >= time, "till": last >= time}
    return kept.get(word, last > time)


def _days(listed: str) -> Iterator[int]:
    """Yield the days of the week that a list or a range says."""
    for part in re.split(r" ?[/&] ?| and ", listed):
        ends = re.split(r" ?[-–] ?| to ", part)
        group = next((days for name, days in _GROUPS.items() if part.startswith(name)), None)
        places = [next(i for i, name in enumerate(_NAMES) if name.startswith(end[:3])) for end in ends if group is None]
        yield from group if group is not None else (places[0] + i for i in range((places[-1] - places[0]) % 7 + 1))


def _span(match: re.Match[str]) -> tuple[int, int]:
    start, end = match[1], match[2]
    half = re.search(r"[ap](?=\.?m)", end)
    opens, closes = _minutes(start, 0), _minutes(end, 0)
    if half and half[0] == "p" and not re.search(r"[amn]", start) and opens + _NOON < closes:
        opens += _NOON  # "5-9 pm"
    plain = not re.search(r"[amn]", start + end)
    while closes <= opens:
        closes += _NOON if plain and opens < _NOON else _WHOLE_DAY  # "9-5" is no night
    return opens, closes


def _minutes(clock: str, unsaid: int) -> int:
    """Return the minutes after midnight; `unsaid` are added to hours of which nothing says whether they are of noon."""
    if clock in ("noon", "midnight"):
        return _NOON if clock == "noon" else _WHOLE_DAY
    hour, minute = re.match(r"(\d+)(?:[:.](\d\d))?", clock).groups()  # type: ignore[union-attr]
    half = re.search(r"[ap](?=\.?m)", clock)
    added = unsaid if half is None and int(hour) < 12 else _NOON if half is not None and half[0] == "p" else 0
    return (int(hour) % 12 if half else int(hour)) * 60 + int(minute or 0) + added
