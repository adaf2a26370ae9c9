"""Values as people write them: canonical text, numbers, dates, times, durations, yes and no.

Every parser takes the whole text or nothing: `None` means "not surely that", never a guess. A reading that depends on
where the writer lives ("02/03/1968") is not sure.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal

MISSING = frozenset({"", "-", "\u2013", "\u2014", "n/a", "na", "n.a.", "null", "none", "nan", "?"})
"""What people write for "no value", in lower case: NULL in a typed column, kept as it is in a column of text."""
LONGEST = 80
"""No number, date or time is written in more characters; longer text is refused at once."""
_SPACE = re.compile(r"\s+")


def canonical(text: str) -> str:
    """Return the form in which two replies that mean one value are equal (semantics 4): space and case folded."""
    return _SPACE.sub(" ", text).strip().casefold()


def option_of(text: str, options: Sequence[str]) -> str | None:
    """Return the one of some options that a text means, as that is spelled; None when it means none of them."""
    meant = canonical(text)
    return next((option for option in options if canonical(option) == meant), None)


_UNWRITABLE = re.compile("[\\0\\ud800-\\udfff]")


def writable(text: str) -> str:
    """Return text that every database takes: NUL and halves of characters, as replies may have, become U+FFFD."""
    return _UNWRITABLE.sub("\ufffd", text)


SEPARATOR = "\u241f"
"""Stands between the texts of a list that is kept in one column; no text of a list has it."""
_BETWEEN = (re.compile(r"[;\n]"), re.compile(","))
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")


def parse_list(text: str) -> tuple[str, ...]:
    """Return the texts of a list, each once: a JSON array's, else those between semicolons or lines, else commas."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = None
    if isinstance(content, list):
        items = [item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in content]
    else:
        between = next((found for found in _BETWEEN if found.search(text)), None)
        items = [_BULLET.sub("", item) for item in ([text] if between is None else between.split(text))]
    kept: dict[str, str] = {}
    for item in items:
        if item.strip():
            kept.setdefault(canonical(item), item.strip())
    return tuple(kept.values())


def write_list(texts: tuple[str, ...]) -> str:
    """Return a list as a JSON array, which `parse_list` reads as it was."""
    return json.dumps(texts, ensure_ascii=False)


def join_texts(texts: tuple[str, ...]) -> str:
    """Return a list as one text of a column, of which `string_to_array` with SEPARATOR makes it again."""
    return SEPARATOR.join(text.replace(SEPARATOR, " ") for text in texts)


def only_options(texts: tuple[str, ...], options: Sequence[str]) -> tuple[str, ...]:
    """Return those texts of a list that are among some options, as these are spelled."""
    chosen = (option_of(text, options) for text in texts)
    return tuple(dict.fromkeys(option for option in chosen if option is not None))


_CURRENCIES = (
    r"US\$|A\$|C\$|CA\$|AU\$|NZ\$|HK\$|S\$|R\$|[$€£¥₹₩₽₺฿]|USD|EUR|GBP|JPY|CHF|INR|CNY|AUD|CAD|SEK|NOK|DKK|RMB|Rs\.?"
)
_SCALES = {
    word: power
    for power, words in {
        2: "hundred",
        3: "k thousand",
        6: "m mn mio million millions",
        9: "b bn billion billions",
        12: "tn trillion trillions",
    }.items()
    for word in words.split()
}
_NUMBER = re.compile(
    rf"(?P<open>\()?(?P<sign>[+-])?\s?(?P<before>{_CURRENCIES})?\s?(?P<within>\()?(?P<inner>[+-])?"
    r"(?P<digits>[0-9](?:[0-9.,' ]*[0-9])?\.?|\.[0-9]+)(?P<exponent>[eE][+-]?[0-9]{1,3})?"
    rf"(?:\s?(?P<scale>[A-Za-z]+?))??(?:\s?(?P<after>%|percent|per cent|{_CURRENCIES}))?(?P<close>\))?"
    r"(?P<behind>-)?",
    re.ASCII,
)
_PLAIN = re.compile(r"[0-9]*\.?[0-9]*", re.ASCII)
_ORDINARY = re.compile(r"-?[0-9]{1,18}(?:\.[0-9]{1,18})?", re.ASCII)
_GROUPED = (
    re.compile(r"([0-9]{1,3}(?:,[0-9]{3})+)(\.[0-9]*)?", re.ASCII),  # 1,234.5
    re.compile(r"([0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3})(\.[0-9]*)?", re.ASCII),  # 12,34,567.5
    re.compile(r"([0-9]{1,3}(?:[ '][0-9]{3})+)([.,][0-9]*)?", re.ASCII),  # 1 234,5 and 1'234.5
    re.compile(r"([0-9]{1,3}(?:\.[0-9]{3})+)(,[0-9]*)", re.ASCII),  # 1.234,5
    re.compile(r"([0-9]{1,3}(?:\.[0-9]{3}){2,})()", re.ASCII),  # 1.234.567
    re.compile(r"([0-9]+)(,(?:[0-9]{1,2}|[0-9]{4,}))", re.ASCII),  # 1,5: no group of thousands has this length
)
_ENGLISH = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+|[0-9]{1,3}(?:[, '][0-9]{3})+(?:\.[0-9]*)?", re.ASCII)
_SWAPPED = str.maketrans(",.", ".,")
_SPELLED_SPACES = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2212": "-", "\u2019": "'"})


def parse_quantity(text: str, decimal: str | None = None) -> tuple[Decimal, str] | None:
    """Return the number that `text` writes and its unit (a currency as written, "%", or ""), or None.

    `decimal` is the decimal mark where it is known, as from the other cells of a column: with "," "1.234" is 1234.

    Understood: "1,234", "1 234", "1.234,5", "US$3m", "3.5 million", "12%", "1e5", and as negative "(5)", "$(5)", "5-".
    "12%" is 12 with the unit "%". "1,234" and "1.234" are read as in English. A bare "m" or "b" is a scale only after
    a currency or as a capital: "3 m" may be metres.

    >>> parse_quantity("$1,234.50")
    (Decimal('1234.50'), '$')
    """
    if _ORDINARY.fullmatch(text) and (decimal != "," or "." not in text):
        return Decimal(text), ""
    text = text.translate(_SPELLED_SPACES).strip()
    match = _NUMBER.fullmatch(text) if len(text) <= LONGEST else None
    opened = [bracket for bracket in ("open", "within") if match and match[bracket]]
    if match is None or len(opened) != bool(match["close"]):
        return None
    signs = [s for s in (match["sign"], match["inner"], match["behind"], *map(match.group, opened)) if s]
    unit = (match["before"] or "") if match["after"] is None else match["after"]
    word = match["scale"] or ""
    # A bare "m" or "b" may be another unit: it is a scale beside a currency alone.
    bare = word in ("m", "b") and not (match["before"] or match["after"])
    scale = None if bare else _SCALES.get(word.lower(), None if word else 0)
    digits = _digits(match["digits"], decimal)
    if len(signs) > 1 or (match["before"] and match["after"]) or scale is None or digits is None:
        return None
    value = Decimal(f"{digits}e{int((match['exponent'] or 'e0')[1:]) + scale}")  # arithmetic would keep 28 digits
    if value and not -308 <= value.adjusted() <= 308:
        return None
    return (value.copy_negate() if signs and signs[0] in "-(" else value), "%" if unit.startswith("per") else unit


def parse_number(text: str) -> Decimal | None:
    """Return the number that `text` writes, or None; "12%" is 12 (see `parse_quantity`)."""
    quantity = parse_quantity(text)
    return None if quantity is None else quantity[0]


def parse_integer(text: str) -> int | None:
    """Return the whole number that `text` writes ("1,234", "3 million", "4.0"), or None."""
    number = parse_number(text)
    return int(number) if number is not None and number == number.to_integral_value() else None


def _digits(written: str, decimal: str | None = None) -> str | None:
    if decimal == "," and ("," in written or "." in written):
        swapped = written.translate(_SWAPPED)
        return _digits(swapped) if _ENGLISH.fullmatch(swapped) else None
    if _PLAIN.fullmatch(written):
        return written
    for pattern in _GROUPED:
        if match := pattern.fullmatch(written):
            return re.sub(r"[,.' ]", "", match[1]) + (match[2] or "").replace(",", ".")
    return None


def shortest(value: float | None) -> float | None:
    """Return a number of single precision as the one with fewest digits that it stands for."""
    if value is None or not math.isfinite(value):
        return value
    texts = (f"{value:.{digits}g}" for digits in range(6, 10))
    same = struct.Struct("f")
    return next((float(t) for t in texts if same.unpack(same.pack(float(t)))[0] == value), value)


_TIME = re.compile(
    r"(?P<h>[0-9]{1,2})(?:[:.](?P<m>[0-9]{2})(?::(?P<s>[0-9]{2})(?:\.(?P<f>[0-9]{1,9}))?)?)?\s?(?P<half>[ap])?(?:\.?m\.?)?",
    re.I | re.A,
)
_CLOCK = re.compile(r"(?:(?P<h>[0-9]+):(?=[0-9]{1,2}:))?(?P<m>[0-9]+):(?P<s>[0-9]{2}(?:\.[0-9]{1,9})?)", re.ASCII)
_UNITS = {
    word: seconds
    for seconds, words in {
        86400: "d day days",
        3600: "h hr hrs hour hours",
        60: "m min mins minute minutes",
        1: "s sec secs second seconds",
    }.items()
    for word in words.split()
}
_PART = re.compile(r"([0-9]+(?:\.[0-9]{1,9})?)\s?([a-z]+)\.?,?\s*(?:and\s+)?", re.I | re.A)


def parse_time(text: str) -> time | None:
    """Return the time of day that `text` names ("13:45", "1:45 pm", "5pm", "noon", "10:00:30.5"), or None."""
    folded = canonical(text[: LONGEST + 1])
    if folded in ("noon", "midnight"):
        return time(12) if folded == "noon" else time()
    match = _TIME.fullmatch(folded)
    if match is None or (match["half"] is None and (match["m"] is None or "m" in folded)):
        return None
    if match["half"] is None and ":" not in folded:
        return None  # "1.45" is a number
    hour = int(match["h"])
    if match["half"]:
        if not 1 <= hour <= 12 or "m" not in folded:
            return None
        hour = hour % 12 + (12 if match["half"] == "p" else 0)
    micro = int((match["f"] or "0").ljust(6, "0")[:6])
    minute, second = int(match["m"] or 0), int(match["s"] or 0)
    return time(hour, minute, second, micro) if hour < 24 and minute < 60 and second < 60 else None


def parse_duration(text: str) -> timedelta | None:
    """Return the length of time that `text` writes ("2:13.32" is minutes, "1:02:03", "1h 5m", "90 min"), or None."""
    folded = canonical(text[: LONGEST + 1])
    if len(folded) > LONGEST:
        return None
    if match := _CLOCK.fullmatch(folded):
        hours, minutes, seconds = int(match["h"] or 0), int(match["m"]), float(match["s"])
        return (
            _span(hours * 3600 + minutes * 60, seconds) if seconds < 60 and (minutes < 60 or not match["h"]) else None
        )
    parts = [(float(number), _UNITS.get(unit)) for number, unit in _PART.findall(folded)]
    sizes = [size for _, size in parts if size is not None]
    whole = not _PART.sub("", folded) and len(sizes) == len(parts)
    if not parts or not whole or sizes != sorted(set(sizes), reverse=True):
        return None
    return _span(0, sum(number * size for (number, _), size in zip(parts, sizes, strict=True)))


def _span(base: int, seconds: float) -> timedelta | None:
    try:
        return timedelta(seconds=base) + timedelta(seconds=seconds)
    except OverflowError:
        return None


_MONTHS = {
    name: number
    for number, names in enumerate(
        "jan january,feb february,mar march,apr april,may,jun june,jul july,aug august,sep sept september,oct october,"
        "nov november,dec december".split(","),
        start=1,
    )
    for name in names.split()
}
_WEEKDAY = re.compile(r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\.?,?\s+", re.I)
_DATES = (
    re.compile(r"(?P<y>[0-9]{4})[-/.](?P<m>[0-9]{1,2})[-/.](?P<d>[0-9]{1,2})", re.ASCII),
    re.compile(
        r"(?P<d>[0-9]{1,2})(?:st|nd|rd|th)?[\s-]+(?:of\s+)?(?P<m>[a-z]+)\.?,?[\s-]+(?P<y>[0-9]{4})", re.I | re.A
    ),
    re.compile(r"(?P<m>[a-z]+)\.?\s+(?P<d>[0-9]{1,2})(?:st|nd|rd|th)?,?\s+(?P<y>[0-9]{4})", re.I | re.A),
    re.compile(r"(?P<y>[0-9]{4})[\s-]+(?P<m>[a-z]+)\.?[\s-]+(?P<d>[0-9]{1,2})", re.I | re.A),
    re.compile(r"(?P<d>[0-9]{1,2})\.\s?(?P<m>[0-9]{1,2})\.\s?(?P<y>[0-9]{4})", re.ASCII),
)
_SLASHED = re.compile(r"([0-9]{1,2})[/-]([0-9]{1,2})[/-]([0-9]{4})", re.ASCII)


def parse_date(text: str, order: str | None = None) -> date | None:
    """Return the day that `text` names, or None.

    `order` ("DMY", "MDY") says what "02/03/1968" means where it is known, as from the other cells of a column.

    Understood: "1968-02-15", "15 February 1968", "Feb 15, 1968", "15.02.1968" (dots are day first), and "02/15/1968"
    where only one order is possible. A year or a month alone names no day; two-digit years name no year.
    """
    text = text.strip()
    if len(text) > LONGEST or not any(c.isdigit() for c in text):
        return None
    text = _WEEKDAY.sub("", text, count=1)
    for pattern in _DATES:
        if match := pattern.fullmatch(text):
            month = int(match["m"]) if match["m"].isdigit() else _MONTHS.get(match["m"].lower(), 0)
            return _day(int(match["y"]), month, int(match["d"]))
    if match := _SLASHED.fullmatch(text):
        first, second, year = (int(part) for part in match.groups())
        month_first, day_first = _day(year, first, second), _day(year, second, first)
        if month_first and day_first and month_first != day_first:
            return {"MDY": month_first, "DMY": day_first}.get(order or "")
        return month_first or day_first
    return None


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


_ZONE = re.compile(
    r"(?P<rest>.*[0-9m])\s?(?:(?P<utc>Z|UTC|GMT)|(?P<sign>[+-])(?P<h>[0-9]{2}):?(?P<m>[0-9]{2})?)", re.I | re.A
)
_MOMENT = re.compile(
    r"(?P<day>.*?[0-9])(?:T|,?\s+(?:at\s+)?)(?P<time>[0-9]{1,2}(?:[:.][0-9]{2}.*|\s?[ap]\.?m\.?))", re.I | re.A
)


def parse_timestamp(text: str, order: str | None = None) -> datetime | None:
    """Return the moment that `text` names, without a zone (with one: in UTC), or None; a day is its midnight.

    `order` is that of `parse_date`.

    >>> parse_timestamp("2024-05-03T10:00:00+02:00"), parse_timestamp("3 May 2024")
    (datetime.datetime(2024, 5, 3, 8, 0), datetime.datetime(2024, 5, 3, 0, 0))
    """
    text = text.strip()
    if len(text) > LONGEST:
        return None
    day = parse_date(text, order)
    if day is not None:
        return datetime.combine(day, time())
    zone = _ZONE.fullmatch(text)
    if zone is not None and zone["sign"] and ":" not in zone["rest"]:
        zone = None  # the "-15" of a date
    match = _MOMENT.fullmatch(zone["rest"] if zone else text)
    parsed = (parse_date(match["day"], order), parse_time(match["time"])) if match else (None, None)
    if parsed[0] is None or parsed[1] is None:
        return None
    moment = datetime.combine(parsed[0], parsed[1])
    if zone is None or zone["utc"]:
        return moment
    offset = timedelta(hours=int(zone["h"]), minutes=int(zone["m"] or 0))
    try:
        return moment - offset if zone["sign"] == "+" else moment + offset
    except OverflowError:
        return None


_TRUTH = dict.fromkeys(("yes", "y", "true", "t", "1"), True) | dict.fromkeys(("no", "n", "false", "f", "0"), False)


def parse_boolean(text: str) -> bool | None:
    """Return what "yes", "no", "true", "false", "y", "n", "t", "f", "1" and "0" mean, or None."""
    return _TRUTH.get(canonical(text).rstrip(".!"))


_HOURS = re.compile(r"[0-9]+:[0-9]{2}", re.ASCII)
"""Hours and minutes to every engine, so that "25:00" is no time of day; in a column of durations it may be minutes."""
_END_OF_DAY = re.compile(r"24:00(?::00(?:\.0+)?)?", re.ASCII)


def parse_typed(text: str, type: str) -> str | None:
    """Return `text` as DuckDB and PostgreSQL both cast it to `type`, or None when it cannot be read so.

    `type` is an AnswerType of the models. A number is in plain digits, an integer within 128 bits, a date and a
    timestamp in ISO form, a time as HH:MM:SS[.ffffff] (a duration of less than a day counts as one), a boolean
    "true" or "false", a list a JSON array of texts. Text is trimmed; blank text is None. A full stop at the end is
    ignored, but in texts.

    >>> parse_typed("$3.5 million.", "number"), parse_typed("5 May 2024", "date"), parse_typed("1:45 pm", "time")
    ('3500000', '2024-05-05', '13:45:00')
    >>> parse_typed("a few", "integer") is None
    True
    """
    stripped = text.strip()
    if type == "text":
        return stripped or None
    if type == "list":
        return write_list(parse_list(stripped))
    bare = stripped[:-1].rstrip() if stripped.endswith(".") and not stripped.endswith(".m.") else stripped
    if type == "integer":
        whole = parse_integer(bare)
        return str(whole) if whole is not None and -(2**127) <= whole < 2**128 else None
    if type == "number":
        number = parse_number(bare)
        return None if number is None else format(number, "f" if -20 <= number.adjusted() <= 30 else "E")
    if type in ("date", "timestamp"):
        moment = parse_timestamp(bare)
        if moment is None:
            return None
        return moment.date().isoformat() if type == "date" else moment.isoformat(sep=" ")
    if type == "time":
        if _END_OF_DAY.fullmatch(bare):
            return "24:00:00"
        clock, span = parse_time(bare), None if _HOURS.fullmatch(bare) else parse_duration(bare)
        if clock is None and span is not None and timedelta(0) <= span < timedelta(days=1):
            clock = (datetime.min + span).time()
        return None if clock is None else clock.isoformat()
    truth = parse_boolean(bare)
    return None if truth is None else str(truth).lower()
