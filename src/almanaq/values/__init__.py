"""Values as people write them: canonical text, numbers, dates, times, durations, yes and no.

Every parser takes the whole text or nothing: `None` means "not surely that", never a guess. A reading that depends on
where the writer lives ("02/03/1968") is not sure.
"""

from __future__ import annotations

from almanaq.values.dates import parse_date, parse_timestamp
from almanaq.values.lists import join_texts, only_options, parse_list, write_list
from almanaq.values.numbers import parse_integer, parse_number, parse_quantity
from almanaq.values.texts import canonical, option_of, writable
from almanaq.values.times import parse_duration, parse_time
from almanaq.values.typed import parse_boolean, parse_typed

__all__ = [
    "canonical",
    "join_texts",
    "only_options",
    "option_of",
    "parse_boolean",
    "parse_date",
    "parse_duration",
    "parse_integer",
    "parse_list",
    "parse_number",
    "parse_quantity",
    "parse_time",
    "parse_timestamp",
    "parse_typed",
    "writable",
    "write_list",
]
