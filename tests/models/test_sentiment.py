"""Options that are a positive and a negative are chosen by what a text praises and blames."""

from __future__ import annotations

import pytest

from almanaq.models.extractive.reader import LocalReader
from almanaq.models.extractive.sentiment import sides
from almanaq.models.protocols import TextCall

OPTIONS = ("POSITIVE", "NEGATIVE")


def _asked(text, options=OPTIONS, compared=()):
    call = TextCall("answer", (text,), "What is the sentiment of the review?", options=options, compared=compared)
    return LocalReader().evaluate(call)


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("A gripping, beautifully acted film.", "POSITIVE"),
        ("Two hours of tedious, formulaic nonsense.", "NEGATIVE"),
        ("It is not good, and never funny.", "NEGATIVE"),
        ("The train leaves at noon.", None),
        ("Please send a technician, we have called three times already.", None),
        ("I wonder when you deliver.", None),
        ("I am pleased, everything works.", "POSITIVE"),
    ],
)
def test_the_side_with_more_words_for_it_is_chosen(text, chosen):
    reply = _asked(text, compared=OPTIONS)
    assert reply.value == chosen
    assert reply.verdicts == {option: None if chosen is None else option == chosen for option in OPTIONS}
    assert bool(reply.quotes) == (chosen is not None)


def test_praise_and_blame_alike_are_neutral_where_that_is_an_option():
    text = "The food was wonderful. The service was awful."
    assert _asked(text).value is None
    assert _asked(text, (*OPTIONS, "Neutral")).value == "Neutral"


def test_options_that_mean_something_else_are_left_to_words():
    assert sides(("red", "positive")) is None
    assert sides(("positive", "negative", "broken")) is None
    assert _asked("The door is red.", ("red", "blue")).value == "red"
