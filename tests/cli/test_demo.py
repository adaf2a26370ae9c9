"""The questions of `almanaq demo` are answered rightly, by the sample's hidden ground truth."""

from __future__ import annotations

import pytest

import almanaq
from almanaq import sample
from almanaq.cli.ask import QUESTIONS, SOURCE
from almanaq_bench.sample.truth import truth_for

# For each question its structured part, and the attribute that the reviews must express.
MEANT = (
    (lambda row: row["location"] == "Palo Alto" and "italian" in row["cuisines"], "romantic"),
    (lambda row: row["location"] == "San Francisco" and row["rating"] >= 4, "dog_friendly"),
    (lambda row: row["location"] == "San Francisco" and "thai" in row["cuisines"], "easy_parking"),
)
BEST_ONLY = (False, False, True)


@pytest.fixture(scope="module")
def replies():
    with almanaq.connect(SOURCE, cache=False) as connection:
        return [connection.ask(question) for question in QUESTIONS]


@pytest.mark.parametrize("number", range(len(QUESTIONS)))
def test_rows_are_right(replies, number):
    fits, attribute = MEANT[number]
    rows = sample.load("restaurants").tables["restaurants"].to_pylist()
    right = {row["name"]: row["rating"] for row in rows if fits(row) and truth_for(row["id"], attribute)}
    names = [row[0] for row in replies[number].rows]
    assert names
    assert set(names) <= set(right)
    if BEST_ONLY[number]:
        assert len(names) == 1
        assert right[names[0]] == max(right.values())
    else:
        assert len(names) == min(3, len(right))


@pytest.mark.parametrize("number", range(len(QUESTIONS)))
def test_every_row_is_quoted_from_its_own_reviews(replies, number):
    reviews = {row["name"]: row["reviews"] for row in sample.load("restaurants").tables["restaurants"].to_pylist()}
    reply = replies[number]
    for row, quotes in zip(reply.rows, reply.evidence, strict=True):
        assert quotes
        for quote in quotes:
            passage = reviews[row[0]][quote.passage]
            assert passage[quote.start : quote.start + len(quote.quote)] == quote.quote


def test_only_text_that_may_matter_is_read(replies):
    assert all(reply.trace.text_calls < 300 for reply in replies)
