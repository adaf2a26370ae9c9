"""Opening hours are read as they are written, and say of every day and time whether a place is open."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from almanaq.text.hours import find_hours, is_open, read_hours

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
WEEK = st.lists(st.none() | st.tuples(st.integers(5, 11), st.integers(13, 26)), min_size=7, max_size=7).filter(any)


def clock(hour: int, *, half: bool) -> str:
    hour %= 24
    return f"{hour % 12 or 12} {'AM' if hour < 12 else 'PM'}" if half else f"{hour}:00"


def write(week: Sequence[tuple[int, int] | None], *, half: bool) -> str:
    days = zip((day[:3] for day in DAYS), week, strict=True)
    return "; ".join(
        f"{day} {f'{clock(span[0], half=half)}-{clock(span[1], half=half)}' if span else 'closed'}"
        for day, span in days
    )


@given(WEEK, st.booleans(), st.integers(0, 6), st.integers(6, 23))
def test_a_day_and_a_time_are_answered_as_the_week_says(
    week: list[tuple[int, int] | None], half: bool, day: int, hour: int
) -> None:
    text, span = write(week, half=half), week[day]
    assert is_open(text, f"is it open on {DAYS[day]}?") is (span is not None)
    assert is_open(text, f"is it closed on {DAYS[day]}s?") is (span is None)
    said = clock(hour, half=True)
    assert is_open(text, f"is it open at {said} on {DAYS[day]}?") is (span is not None and span[0] <= hour < span[1])
    assert is_open(text, f"open on {DAYS[day]} until {said}") is (span is not None and span[1] >= hour)
    assert is_open(text, f"open before {said} on {DAYS[day]}") is (span is not None and span[0] < hour)
    assert is_open(text, f"does it open after {said} on {DAYS[day]}?") is (span is not None and span[0] > hour)
    assert is_open(text, f"closes by {said} on {DAYS[day]}") is (span is not None and span[1] <= hour)


@given(WEEK)
def test_a_question_without_a_day_is_of_all_days(week: list[tuple[int, int] | None]) -> None:
    text = write(week, half=True)
    assert is_open(text, "is it open every day?") is all(week)
    assert is_open(text, "is it closed on any day?") is (not all(week))
    late = {span[1] >= 21 for span in week if span}
    assert is_open(text, "is it open until 9 pm?") is (late.pop() if len(late) == 1 else None)


@pytest.mark.parametrize(
    ("text", "opens", "closes"),
    [
        ("daily 9-5", 540, 1020),
        ("Mo-Su 5-9 pm", 1020, 1260),
        ("every day: noon to midnight", 720, 1440),
        ("24 hours", 0, 1440),
        ("weekdays 18:00–1:30; weekends 18:00–1:30", 1080, 1530),
    ],
)
def test_spellings(text: str, opens: int, closes: int) -> None:
    assert read_hours(text) == dict.fromkeys(range(7), ((opens, closes),))


def test_exceptions_come_after_the_rule() -> None:
    hours = read_hours("Mon-Thu 11 AM-9 PM; Fri-Sun 11 AM-10:30 PM; closed Tuesday")
    assert hours is not None
    assert [len(hours[day]) for day in range(7)] == [1, 0, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("text", ["", "cozy; closed Monday", "open late", "10", "Mon, Tue", "We sat 9-5 hours"])
def test_other_texts_are_no_hours(text: str) -> None:
    assert read_hours(text) is None
    assert is_open(text, "is it open on Monday?") is None


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("cafes open on Sunday after 9 pm in Rome", "open on Sunday after 9 pm"),
        ("is it closed on Mondays and Tuesdays?", "closed on Mondays and Tuesdays"),
        ("places that close before noon", "close before noon"),
        ("is it open late?", None),
        ("open on Sunday night", None),
        ("an open kitchen at 5 Main Street", None),
    ],
)
def test_what_a_question_says_of_hours(question: str, said: str | None) -> None:
    found = find_hours(question)
    assert (found and found[0]) == said
