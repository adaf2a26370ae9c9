"""Words of questions and of headers that go together."""

import numpy as np
import pytest
from small_corpora import CORPUS, table

from almanaq.corpus.table import parse_fields
from almanaq.retrieval.features import (
    FEATURES,
    Featurizer,
    StreamWriter,
    WordAssociation,
    load_word_association,
    question_words,
)
from almanaq.text.index_terms import Analyzer

ASSOCIATION = FEATURES.index("association")
RNG = np.random.default_rng(7)
SMALL = WordAssociation(
    {"who": 0, "film": 1, "longest": 2},
    ("titl", "year", "nowher", "length"),
    RNG.normal(size=(3, 5)).astype(np.float32),
    RNG.normal(size=(4, 5)).astype(np.float32),
)
TABLES = (
    table("films", header=("Title", "Year", "Year of title"), rows=[("Ran", "1985", "1984")]),
    table("rivers", header=("River", "Length"), rows=[("Nile title", "6650")]),
    table("bare", header=(), rows=[]),
)


def association(question: str, tables=TABLES, known: WordAssociation | None = SMALL) -> list[float]:
    writer = StreamWriter(parse_fields("header,cells"), Analyzer())
    for each in tables:
        writer.add(each)
    return Featurizer(writer.finish()).features(question, range(len(tables)), known)[:, ASSOCIATION].tolist()


def test_the_product_of_the_means_of_the_words_of_a_question_and_of_a_header() -> None:
    asked = (SMALL.asking[0] + SMALL.asking[1]) / np.sqrt(2)
    films = (SMALL.naming[0] + SMALL.naming[1]) / np.sqrt(2)
    # Nile: a word that some table has, as nothing is computed for a question of unknown words.
    assert association("Who made the films, Nile?") == pytest.approx(
        [asked @ films, asked @ SMALL.naming[3], 0], abs=1e-5
    )


@pytest.mark.parametrize("question", ["Nile", "rivers of title", "zzz", ""])
def test_nothing_goes_with_unknown_words(question: str) -> None:
    assert association(question) == [0, 0, 0]


def test_without_learned_words_it_is_nothing() -> None:
    assert association("Who made the films, Nile?", known=None) == [0, 0, 0]


def test_a_featurizer_is_as_new_after_each_question() -> None:
    alone = association("longest Nile", TABLES)
    writer = StreamWriter(parse_fields("header,cells"), Analyzer())
    for each in TABLES:
        writer.add(each)
    made = Featurizer(writer.finish())
    made.features("Who made the films, Nile?", range(3), SMALL)
    assert made.features("longest Nile", range(3), SMALL)[:, ASSOCIATION].tolist() == alone


@pytest.mark.parametrize("statements", [True, False])
def test_the_learned_words_are_words_of_the_analyzer(statements: bool) -> None:
    known, analyzer = load_word_association(statements=statements), Analyzer()
    assert known.asking.shape == (len(known.asked), known.asking.shape[1])
    assert known.naming.shape == (len(known.named), known.asking.shape[1])
    assert {"who", "when"} <= set(known.asked)
    assert np.isfinite(known.asking).all()
    assert question_words("Who won the championships?", analyzer) == {"who", "won", "championship"}
    assert len(set(known.named)) == len(known.named)


def test_what_was_learned_tells_films_from_matches() -> None:
    films = table("films", header=("Year", "Title", "Role", "Notes"), rows=[("2001", "x", "y", "z")])
    matches = table("matches", header=("Date", "Opponent", "Result", "Attendance"), rows=[("2001", "x", "y", "z")])
    roles, scores = association(
        "What role did she play in 2001?", (films, matches), load_word_association(statements=False)
    )
    assert roles > scores
    assert len(association("films", CORPUS, load_word_association(statements=False))) == len(CORPUS)
