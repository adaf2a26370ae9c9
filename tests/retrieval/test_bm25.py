import bm25s
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_corpora import CORPUS, FILMS, RIVERS, TEAMS, table

from almanaq.corpus.table import Field
from almanaq.errors import SourceError, UsageError
from almanaq.retrieval.bm25 import BM25, BM25Options

texts = st.lists(
    st.lists(st.sampled_from(["ant", "bee", "cow", "dog"]), min_size=1, max_size=12).map(" ".join),
    min_size=2,
    max_size=8,
)


def found(question: str, fields: str = "title,header,cells", corpus=CORPUS) -> list[object]:
    (ranking,) = BM25().index(corpus, fields.split(",")).search([question], 10)
    return [hit.id for hit in ranking]


@given(texts, st.lists(st.sampled_from(["ant", "bee", "cow", "dog"]), min_size=1, max_size=4))
def test_one_field_scores_as_bm25s_does(documents: list[str], question: list[str]) -> None:
    tables = [table(str(number), text) for number, text in enumerate(documents)]
    options = BM25Options(weights={Field.TITLE: 1.0}, language=None)
    ours = BM25(options).index(tables, ["title"]).sums([" ".join(question)])[0]
    theirs = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    theirs.index([text.split() for text in documents], show_progress=False)
    known = [word for word in question if word in " ".join(documents)]
    expected = theirs.get_scores(known) if known else np.zeros(len(documents))
    np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-6)


def test_titles_headers_and_cells_are_collect_scores() -> None:
    assert found("films by Kurosawa") == [FILMS.id]
    assert found("river length") == [RIVERS.id]
    assert found("Seven Samurai") == [FILMS.id]


def test_only_declared_fields_are_seen() -> None:
    assert found("Samurai", "title") == []
    assert found("Kurosawa", "header,cells") == []


def test_a_long_table_does_not_drown_its_title() -> None:
    long = table("long", "Mountains of Peru", ("x",), [(f"cell{number}",) for number in range(3000)])
    passing = table("passing", "Something else", ("x",), [("the mountains",), ("other",)])
    assert found("mountains of Peru", corpus=[passing, long, *CORPUS])[0] == long.id


def test_ties_are_in_corpus_order_and_no_known_word_finds_nothing() -> None:
    twins = [table(name, "same words") for name in ("z", "a", "m")]
    assert [item.table for item in found("same", corpus=twins)] == ["z", "a", "m"]
    assert found("zzz") == []
    assert found("") == []


def test_bad_input() -> None:
    with pytest.raises(SourceError, match="no table"):
        BM25().index([], ["title"])
    with pytest.raises(UsageError, match="'cels'; did you mean 'cells'"):
        BM25().index(CORPUS, ["cels"])


def test_tables_without_header_and_rows_are_indexed() -> None:
    bare = table("bare", "Bare", (), ())
    assert found("bare", corpus=[bare, TEAMS]) == [bare.id]
