from small_corpora import FILMS, table

from almanaq.corpus.table import parse_fields
from almanaq.retrieval.bm25 import explain_match


def test_fields_and_cells_that_matched_are_named() -> None:
    lines = explain_match("Which Kurosawa film is Rashomon?", FILMS, parse_fields("title,cells"))
    assert lines == [
        "title: Films of Akira Kurosawa",
        "  matched: kurosawa, film",
        "cells: 1950 | Rashomon / 1954 | Seven Samurai",
        "  matched: rashomon",
        "  row 1, Film: Rashomon",
    ]


def test_fields_that_are_not_declared_are_not_shown() -> None:
    assert explain_match("films", FILMS, parse_fields("header")) == ["header: Year | Film", "  matched: film"]


def test_the_row_with_most_matches_comes_first() -> None:
    lines = explain_match(
        "Which film of 1954 is like Rashomon, Seven Samurai or Samurai?", FILMS, parse_fields("cells")
    )
    assert lines[2:] == ["  row 2, Film: Seven Samurai", "  row 2, Year: 1954", "  row 1, Film: Rashomon"]


def test_of_a_long_cell_the_piece_that_matched_is_shown() -> None:
    long = table(
        "long", header=("a",), rows=[("word " * 500 + "Rashomon " + "more " * 500,), ("word " * 500 + "ikiru",)]
    )
    *_, first, second = explain_match("rashomon, ikiru", long, parse_fields("cells"))
    assert first.startswith("  row 1, a: …")
    assert " Rashomon more " in first
    assert second.endswith(" ikiru")
    assert max(len(first), len(second)) < 200
