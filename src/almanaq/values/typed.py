"""Yes and no, and any value by the name of its type."""

from __future__ import annotations

from datetime import datetime, timedelta

from almanaq.values.dates import parse_timestamp
from almanaq.values.lists import parse_list, write_list
from almanaq.values.numbers import parse_integer, parse_number
from almanaq.values.texts import canonical
from almanaq.values.times import parse_duration, parse_time

_TRUTH = {"yes": True, "y": True, "true": True, "t": True, "1": True} | {
    "no": False,
    "n": False,
    "false": False,
    "f": False,
    "0": False,
}


def parse_boolean(text: str) -> bool | None:
    """Return what "yes", "no", "true", "false", "y", "n", "t", "f", "1" and "0" mean, or None.

    >>> parse_boolean("yes"), parse_boolean("perhaps")
    (True, None)
    """
    return _TRUTH.get(canonical(text).rstrip(".!"))


def parse_typed(text: str, type: str) -> str | None:
    """Return `text` as DuckDB and PostgreSQL both cast it to `type`, or None when it cannot be read so.

    `type` is an AnswerType of the models. A number is in plain digits, an integer within 64 bits, a date and a
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
    return _WRITERS[type](bare)


def _write_number(text: str) -> str | None:
    number = parse_number(text)
    if number is None:
        return None
    return format(number, "f") if -20 <= number.adjusted() <= 30 else format(number, "E")


def _write_integer(text: str) -> str | None:
    number = parse_integer(text)
    return str(number) if number is not None and -(2**63) <= number < 2**63 else None


def _write_date(text: str) -> str | None:
    moment = parse_timestamp(text)
    return None if moment is None else moment.date().isoformat()


def _write_timestamp(text: str) -> str | None:
    moment = parse_timestamp(text)
    return None if moment is None else moment.isoformat(sep=" ")


def _write_time(text: str) -> str | None:
    moment = parse_time(text)
    if moment is None:
        span = parse_duration(text)
        if span is None or not timedelta(0) <= span < timedelta(days=1):
            return None
        moment = (datetime.min + span).time()
    return moment.isoformat()


def _write_boolean(text: str) -> str | None:
    truth = parse_boolean(text)
    return None if truth is None else str(truth).lower()


_WRITERS = {
    "number": _write_number,
    "integer": _write_integer,
    "date": _write_date,
    "timestamp": _write_timestamp,
    "time": _write_time,
    "boolean": _write_boolean,
}
