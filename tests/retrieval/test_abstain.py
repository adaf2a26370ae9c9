"""Saying that no table fits: by the shipped weights, over small corpora, and without a chance to tell."""

from __future__ import annotations

import pytest
from small_corpora import CORPUS, FILMS, RIVERS, table

from almanaq.agent.table_chooser import TableChooser
from almanaq.retrieval.bm25 import BM25
from almanaq.retrieval.protocols import find_tables
from almanaq.retrieval.rerank import Doubt, Rerank, Weights
from almanaq.suql.catalog.relations import Catalog, Column, Relation

FIELDS = ("title", "header", "cells")
ANSWERABLE = {
    "Which films did Akira Kurosawa make in 1954?": FILMS,
    "What is the length of the Amazon river in km?": RIVERS,
}
FOREIGN = ("Which enzyme splits lactose in the small bowel?", "Who composed the opera Norma?", "zzz", "the of")


@pytest.mark.parametrize("question", ANSWERABLE)
def test_what_a_table_answers_is_found(question: str) -> None:
    (found,) = find_tables(Rerank().index(CORPUS, FIELDS), [question], 2)
    assert found.fits
    assert found.ranking[0].id == ANSWERABLE[question].id
    assert 0 < (found.chance or 0) <= 1


@pytest.mark.parametrize("question", FOREIGN)
def test_what_no_table_answers_does_not_fit(question: str) -> None:
    (found,) = find_tables(Rerank().index(CORPUS, FIELDS), [question], 2)
    assert not found.fits


def test_the_chance_is_lower_without_the_right_table() -> None:
    for question, right in ANSWERABLE.items():
        rest = [each for each in CORPUS if each is not right]
        (with_it,), (without,) = (
            find_tables(Rerank().index(corpus, FIELDS), [question], 1) for corpus in (CORPUS, rest)
        )
        assert (without.chance or 0) < (with_it.chance or 0)


def test_finding_and_searching_give_the_same_rankings() -> None:
    index = Rerank().index(CORPUS, FIELDS)
    questions = [*ANSWERABLE, *FOREIGN, ""]
    assert [found.ranking for found in index.find(questions, 2)] == index.search(questions, 2)


def test_an_index_that_cannot_doubt_fits_when_it_finds() -> None:
    index = BM25().index(CORPUS, FIELDS)
    told = [(bool(found.ranking), found.chance, found.fits) for found in find_tables(index, ["films", "zzz"], 1)]
    assert told == [(True, None, True), (False, None, False)]


def test_weights_without_doubt_give_no_chance() -> None:
    index = Rerank(weights=Weights("test", {"any": 1.0})).index(CORPUS, FIELDS)
    (found,) = index.find(["films of Lyon"], 1)
    assert (found.chance, found.fits) == (None, True)


def test_a_chance_is_a_logistic_function_of_its_figures() -> None:
    doubt = Doubt({"any": 2.0, "margin": 1.0}, -1.0, 0.5)
    assert doubt.chance({"any": 0.5}) == 0.5
    assert 0.5 < doubt.chance({"any": 0.5, "margin": 0.1}) < doubt.chance({"any": 1.0, "margin": 0.1})
    assert 0.0 <= doubt.chance({"any": -1e9}) < 1e-9 < 1 - 1e-9 < doubt.chance({"any": 1e9}) <= 1.0


def test_relations_are_chosen_only_where_one_fits() -> None:
    names = ("singers", "concerts", "stadiums", "tickets")
    columns = tuple(Column(name, "text") for name in ("id", "name", "year"))
    catalog = Catalog(tuple(Relation(name, ("main", name), columns) for name in names))
    chooser = TableChooser()
    assert chooser("What are the names of all singers?", catalog)[0] == "singers"
    assert chooser("Which enzyme splits lactose?", catalog) == ()


def test_one_table_alone() -> None:
    index = Rerank().index([table("films", "Films", ("year", "film"), [("1950", "Rashomon")])], FIELDS)
    fits = [found.fits for found in index.find(["Which film came out in 1950?", "Who discovered radium?"], 1)]
    assert fits == [True, False]
