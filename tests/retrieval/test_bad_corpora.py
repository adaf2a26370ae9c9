"""What every retriever does with corpora and questions that nobody planned for."""

import pytest
from small_corpora import CORPUS, FILMS, BagOfWords, table

from almanaq.errors import SourceError, UsageError
from almanaq.retrieval.retriever_names import RetrieverParts, open_retriever
from almanaq.testing import ScriptedModel
from almanaq_bench.retrievers.openers import NAMES

WRITER = ScriptedModel(lambda prompt: {"title": "a table", "summary": prompt.messages[1].content[-60:]})
PARTS = RetrieverParts(BagOfWords, gold={"films": (FILMS.id,)}, language=WRITER)
FIELDS = ["title", "header", "cells"]
READING = [name for name in NAMES if name not in ("none", "random", "oracle")]


def index(name: str, corpus):
    return open_retriever(name, PARTS).retriever.index(corpus, FIELDS)


@pytest.mark.parametrize("name", READING)
def test_an_empty_corpus_and_repeated_ids_are_refused(name: str) -> None:
    with pytest.raises(SourceError, match="holds no table"):
        index(name, [])
    with pytest.raises(SourceError, match="d/films occurs more than once"):
        index(name, [*CORPUS, FILMS])


@pytest.mark.parametrize("name", NAMES)
def test_k_is_positive_and_may_exceed_the_corpus(name: str) -> None:
    made = index(name, CORPUS)
    assert all(len(ranking) <= len(CORPUS) for ranking in made.search(["films", "", "zzz"], 10_000))
    if name in READING:
        with pytest.raises(UsageError, match="k must be 1 or more"):
            made.search(["films"], 0)


@pytest.mark.parametrize("name", READING)
def test_odd_tables_are_indexed(name: str) -> None:
    odd = [
        table("1950", "Ids that are numbers"),
        table("bare", header=(), rows=()),
        table("unnamed", header=("", ""), rows=[("walrus", "\ud800")]),
        table("big", header=("a",), rows=[("x" * 1_000_000 + " needle",)]),
    ]
    (ranking,) = index(name, [*CORPUS, *odd]).search(["walrus needle"], 10)
    assert len({hit.id for hit in ranking}) == len(ranking)
