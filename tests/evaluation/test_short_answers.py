"""Short answers against gold answers: laws of the measures, and the published definition by example."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from almanaq_bench.evaluation.answers import exact_match, f1, mutual_substring, same_number, score_short_answers

TEXT = st.text(alphabet="ab .,the1'", max_size=20)


@given(TEXT, TEXT)
def test_measures_are_symmetric_and_bounded_and_agree_where_answers_are_the_same(one: str, other: str) -> None:
    assert f1(one, other) == pytest.approx(f1(other, one))
    assert mutual_substring(one, other) == mutual_substring(other, one)
    assert 0 <= f1(one, other) <= 1
    if exact_match(one, other):
        assert f1(one, other) == 1


@given(TEXT)
def test_case_punctuation_articles_and_spaces_do_not_count(text: str) -> None:
    assert exact_match(f" The {text.upper()} !", text)


@pytest.mark.parametrize(
    ("answer", "gold", "exact", "words", "part"),
    [
        ("Starke Rudolf", "starke rudolf .", True, 1.0, True),
        ("Johnson City , Tennessee", "Johnson City", False, 0.8, True),
        ("1,234", "1234", True, 1.0, True),
        ("two", "2", False, 0.0, False),
        ("", "2", False, 0.0, False),
        ("the", "", True, 1.0, False),
    ],
)
def test_answers_are_scored_as_published(answer: str, gold: str, exact: bool, words: float, part: bool) -> None:
    assert exact_match(answer, gold) is exact
    assert f1(answer, gold) == pytest.approx(words)
    assert mutual_substring(answer, gold) is part


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("two", "2", True),
        ("twenty-one", "21", True),
        ("1,200", "one thousand two hundred", True),
        ("two hundred and five", "205", True),
        ("two", "3", False),
        ("two rivers", "2", False),
        ("", "", False),
    ],
)
def test_numbers_in_words_and_digits_are_told_to_be_the_same(one: str, other: str, same: bool) -> None:
    assert same_number(one, other) is same_number(other, one) is same


def test_means_are_over_all_questions() -> None:
    scores = score_short_answers([("a b", "b c"), ("x", "x"), ("", "y")])
    assert (scores.questions, scores.exact_match) == (3, pytest.approx(1 / 3))
    assert (scores.f1, scores.substring) == (pytest.approx(5 / 9), pytest.approx(2 / 3))
    assert score_short_answers([]).questions == 0
