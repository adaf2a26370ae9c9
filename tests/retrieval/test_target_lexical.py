import math

import pytest
from small_corpora import CORPUS, FILMS, table

from almanaq.errors import SourceError
from almanaq_bench.retrievers.target_lexical import TARGET_LEXICAL, buckets, code_text, described_text


def found(name: str, question: str, corpus=CORPUS) -> list[str]:
    (ranking,) = TARGET_LEXICAL[name].index(corpus, ()).search([question], 10)
    return [hit.id.table for hit in ranking]


def test_the_code_sees_ids_and_headers_but_no_title_and_no_cell() -> None:
    assert code_text(table("t_1", "Title", ("a", "b"), [("cell", "x")], section="Own")) == "t_1 |  | a b"
    assert "| S |" in code_text(table("t", context={"section_title": "S"}))
    assert found("target-bm25", "films") == ["films"]
    assert found("target-bm25", "Kurosawa Samurai") == []
    assert found("target-bm25-notitle", "films") == []


def test_the_described_text_has_titles_and_cells() -> None:
    assert "Samurai" in described_text(FILMS)
    for name in ("target-bm25-described", "target-tfidf-described"):
        assert found(name, "Kurosawa") == found(name, "Samurai") == ["films"]


def test_words_and_pairs_without_stop_words() -> None:
    assert len(list(buckets("red fox"))) == 3
    assert len(list(buckets("fox of the north"))) == 2
    assert list(buckets("Rød")) == list(buckets("rød"))


def test_bm25_of_one_word_is_the_formula() -> None:
    corpus = [table("a", "red red blue", ()), table("b", "blue green", ()), table("c", "grey", ())]
    (ranking,) = TARGET_LEXICAL["target-bm25-described"].index(corpus, ()).search(["red"], 3)
    lengths = [5, 3, 1]  # words and pairs
    tf = 2 * 2.5 / (2 + 1.5 * (0.25 + 0.75 * lengths[0] / (sum(lengths) / 3)))
    assert ranking[0].score == pytest.approx(tf * math.log(2.5 / 1.5), rel=1e-5)


def test_an_empty_corpus_is_refused() -> None:
    with pytest.raises(SourceError, match="no table"):
        TARGET_LEXICAL["target-bm25"].index([], ())
