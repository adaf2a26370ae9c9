import pytest
from hypothesis import given
from hypothesis import strategies as st

from almanaq.errors import UsageError
from almanaq.text.index_terms import Analyzer, words


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("num_reviews", ["num", "reviews"]),
        ("numReviews", ["numreviews", "num", "reviews"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("CITY Paris", ["city", "paris"]),
        ("1,234,567 and 1.5", ["1234567", "and", "1.5"]),
        ("12,34", ["12", "34"]),
        ("3.0 1.50 0.05 1.2.30", ["3", "1.5", "0.05", "1.2.30"]),
        ("1950-03-05", ["1950", "march", "5"]),
        ("1950-13-05 12-3-1950", ["1950", "13", "05", "12", "3", "1950"]),
        ("José Müller", ["jose", "muller"]),
        ("top10", ["top", "10"]),
        ("", []),
    ],
)
def test_words(text: str, found: list[str]) -> None:
    assert list(words(text)) == found


def test_an_identifier_is_found_however_it_is_written() -> None:
    terms = Analyzer().terms
    assert set(terms("num reviews")) <= set(terms("numReviews"))
    assert set(terms("numreviews")) <= set(terms("numReviews"))


def test_stems_and_stopwords() -> None:
    assert Analyzer().terms("What were the longest rivers?") == Analyzer().terms("longest river")
    assert Analyzer(language=None).terms("the rivers") == ["rivers"]


def test_a_date_is_found_however_it_is_written() -> None:
    terms = Analyzer().terms
    assert sorted(terms("5 March 1950")) == sorted(terms("1950-03-05")) == sorted(terms("March 5, 1950"))


def test_words_are_stemmed_by_the_rules_of_a_language() -> None:
    german = Analyzer("german").terms
    assert german("Häuser") == german("Haus")
    assert Analyzer().terms("Häuser") != Analyzer().terms("Haus")
    with pytest.raises(UsageError, match="no stemmer for the language 'germann'; did you mean 'german'"):
        Analyzer("germann")


@given(st.text())
def test_terms_do_not_depend_on_what_was_seen_before(text: str) -> None:
    used = Analyzer()
    used.terms("rivers running " + text)
    assert used.terms(text) == Analyzer().terms(text)
