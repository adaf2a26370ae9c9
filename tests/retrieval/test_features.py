"""The features against a slow, plain reading of their definitions."""

import numpy as np
import pytest
from small_corpora import CORPUS, FILMS, RIVERS, table

from almanaq.corpus.table import parse_fields
from almanaq.retrieval.features import CELL, FEATURES, ROW, Featurizer, StreamWriter
from almanaq.text.index_terms import Analyzer

ALL = parse_fields("title,section,header,cells,description,keys,database")


def featurizer(tables=CORPUS, fields="title,header,cells") -> Featurizer:
    writer = StreamWriter(parse_fields(fields), Analyzer())
    for each in tables:
        writer.add(each)
    return Featurizer(writer.finish())


def features(question: str, tables=CORPUS, fields="title,header,cells") -> list[dict[str, float]]:
    made = featurizer(tables, fields).features(question, range(len(tables)))
    return [dict(zip(FEATURES, map(float, row), strict=True)) for row in made]


def test_shares_of_a_question_that_one_table_holds_whole() -> None:
    films, rivers, _ = features("Films of Akira Kurosawa: Seven Samurai 1954")
    assert [films[name] for name in ("any", "row_title_header", "rare")] == pytest.approx([1, 1, 1])
    assert films["title_whole"] == pytest.approx(1)
    assert films["row"] == films["cells"] < 1
    assert films["numbers"] == 1
    assert rivers["any"] == rivers["row"] == rivers["phrases"] == 0


def test_the_best_row_is_one_row() -> None:
    (films, *_) = features("Rashomon 1954")
    assert films["cells"] == pytest.approx(1)
    assert films["row"] == pytest.approx(0.5, abs=0.1)


def test_two_rows_of_which_the_second_adds_most() -> None:
    rows = [("red", "fox"), ("red", "owl"), ("blue", "hen")]
    (one,) = features("red fox hen", [table("t", header=("colour", "animal"), rows=rows)], "cells")
    assert one["row"] < one["two_rows"] == pytest.approx(1)
    (same,) = features("red owl", [table("t", rows=[("red owl",), ("red owl",)])], "cells")
    assert same["two_rows"] == same["row"] == pytest.approx(1)


def test_cells_of_one_row_cover_the_question_and_hold_its_numbers() -> None:
    together = table("together", rows=[("red fox", "12"), ("owl", "30")])
    apart = table("apart", rows=[("red fox", "30"), ("owl", "12")])
    one, other = features("red fox 12", (together, apart), "cells")
    assert one["values"] == other["values"] == one["row_values"] == pytest.approx(1)
    assert other["row_values"] < 1
    assert one["row_numbers"] == other["row_numbers"] == 1
    (parted, *_) = features("12 30", (together,), "cells")
    assert parted["row_numbers"] == 0.5


def test_a_cell_under_the_column_that_the_question_names() -> None:
    home = table("home", header=("home team", "away team"), rows=[("Lyon", "Nice")])
    away = table("away", header=("home team", "away team"), rows=[("Nice", "Lyon")])
    plain = table("plain", header=("a", "b"), rows=[("Lyon", "Nice")])
    one, other, none = features("away side Lyon", (home, away, plain), "header,cells")
    assert other["column"] == pytest.approx(1)
    assert other["column"] > one["column"] > none["column"] > 0
    assert other["named_row"] > one["named_row"] == none["named_row"] == 0


def test_columns_past_the_sixty_fourth_count_as_one() -> None:
    wide = table("wide", header=[f"c{n}" for n in range(100)], rows=[[f"w{n}" for n in range(100)]])
    (made,) = features("w70 w90 c80", [wide], "header,cells")
    assert made["column"] == pytest.approx(1)


def test_the_share_of_words_that_no_table_holds() -> None:
    made = featurizer()
    assert [made.unknown_share(text) for text in ("films", "films zzz", "zzz", "")] == [0, 0.5, 1, 1]


def test_whole_cells_and_column_names_stand_in_the_question_word_for_word() -> None:
    films, rivers, _ = features("Was Seven Samurai longer than Amazon in length km?")
    assert films["entities"] == films["values"] > 0
    assert rivers["entities"] == 0 < rivers["values"]
    assert rivers["columns"] > 0 == films["columns"]
    (apart, *_) = features("seven old Samurai old")
    assert apart["entities"] > 0  # words that no table holds do not part a phrase
    (turned, *_) = features("Samurai Seven")
    assert turned["entities"] == turned["phrases"] == 0


def test_neighbours_count_within_a_cell_only() -> None:
    one, two = table("one", rows=[("red", "fox")]), table("two", rows=[("red fox",)])
    apart, together = features("red fox", (one, two), "cells")
    assert apart["phrases"] == 0
    assert together["phrases"] == 1
    assert apart["row"] == together["row"] == 1


def test_features_do_not_depend_on_the_other_candidates() -> None:
    made = featurizer()
    question = "films and rivers of 1950"
    together = made.features(question, [0, 1, 2])
    for number in range(3):
        np.testing.assert_allclose(made.features(question, [number])[0], together[number], rtol=1e-6)
    np.testing.assert_allclose(made.features(question, [2, 0]), together[[2, 0]], rtol=1e-6)


@pytest.mark.parametrize("question", ["", "the of", "zzz qqq"])
def test_a_question_without_known_words_has_nothing_in_common(question: str) -> None:
    assert not featurizer().features(question, [0, 1]).any()


def test_tables_without_header_rows_or_title() -> None:
    bare = table("bare", "", (), ())
    empty, films = features("films", (bare, FILMS), ",".join(ALL))
    assert empty["any"] == 0 < films["any"]


def test_streams_keep_where_terms_stand() -> None:
    writer = StreamWriter(parse_fields("cells"), Analyzer())
    writer.add(RIVERS)
    streams = writer.finish()
    assert streams.tokens.tolist()[1:] == [ROW, CELL, 0, CELL, 1, ROW, CELL, 2, CELL, 3]
    assert streams.held.tolist() == [1, 1, 1, 1]
