from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_corpora import CORPUS, FILMS, RIVERS, BagOfWords, table

from almanaq.corpus.table import parse_fields
from almanaq.errors import UsageError
from almanaq.models.embedders.vector_store import VectorStore
from almanaq.retrieval.features import Featurizer, StreamWriter, load_word_association
from almanaq.retrieval.protocols import find_tables
from almanaq.retrieval.stored import StoredIndex, build_index, open_index, update_index
from almanaq.retrieval.stored_search import StoredHybrid, StoredRerank, candidate_streams
from almanaq.text.index_terms import Analyzer

FIELDS = "title,section,header,cells"
ODD = table("odd", "", (), [])
MANY = (*CORPUS, ODD, *(table(f"t{n}", f"walk {n} of {n % 7}", ("a", "b"), [(f"x{n}", "y")]) for n in range(60)))
QUESTIONS = ["films of Kurosawa in 1954", "longest rivers", "walk 12 of 5", "Seven Samurai x3 zebra", "zzz"]


def built(tables, folder: Path, *, vectors: bool = True) -> StoredRerank:
    store = VectorStore(None, BagOfWords()) if vectors else None
    return opened(build_index(tables, folder, parse_fields(FIELDS), store=store))


def opened(index: StoredIndex) -> StoredRerank:
    return StoredRerank(index, StoredHybrid(index, BagOfWords()) if index.recipe.embedder else None)


def ids(ranking) -> list[str]:
    return [hit.id.table for hit in ranking]


@pytest.mark.parametrize("question", QUESTIONS)
def test_candidates_have_the_figures_of_the_index_in_memory_in_one_segment_and_in_several(
    question: str, tmp_path: Path
) -> None:
    writer = StreamWriter(parse_fields(FIELDS), Analyzer())
    for each in MANY:
        writer.add(each)
    memory = Featurizer(writer.finish())
    build_index(MANY[:55], tmp_path, parse_fields(FIELDS))
    index, change = update_index(MANY, tmp_path)
    assert not change.rebuilt
    assert len(index.segments) == 2
    chosen = np.array([62, 0, 3, 51, 17])
    association = load_word_association(statements=False)
    mine = Featurizer(candidate_streams(index, chosen, question, association.named))
    np.testing.assert_allclose(
        mine.features(question, range(len(chosen)), association),
        memory.features(question, chosen.tolist(), association),
        atol=1e-6,
    )
    assert mine.unknown_share(question) == memory.unknown_share(question)


@pytest.mark.parametrize("vectors", [True, False])
def test_what_a_table_answers_is_found_and_fits(vectors: bool, tmp_path: Path) -> None:
    index = built(MANY, tmp_path, vectors=vectors)
    found, named = index.best("Which film of Akira Kurosawa is from 1950?", 3)
    assert found.fits
    assert named[0].id == found.ranking[0].id == FILMS.id
    assert named[0].title == FILMS.title
    scores = [hit.score for hit in found.ranking]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("vectors", [True, False])
def test_what_no_table_answers_does_not_fit(vectors: bool, tmp_path: Path) -> None:
    (found,) = find_tables(built(MANY, tmp_path, vectors=vectors), ["How many goals did zebras kick in Timbuktu?"], 3)
    assert not found.fits
    assert found.chance is not None
    assert 0 <= found.chance < 0.5


def test_dead_tables_are_not_found(tmp_path: Path) -> None:
    built(MANY, tmp_path)
    index, change = update_index(
        [each for each in MANY if each is not FILMS], tmp_path, store=VectorStore(None, BagOfWords())
    )
    assert (change.deleted, change.rebuilt) == (1, False)
    (ranking,) = opened(index).search(["films of Kurosawa"], 100)
    assert FILMS.id not in {hit.id for hit in ranking}
    assert len(ranking) == len(MANY) - 1


def test_those_behind_the_candidates_follow(tmp_path: Path) -> None:
    index = replace(built(MANY, tmp_path), candidates=2)
    (ranking,) = index.search(["walk 12 of 5"], 20)
    assert len(set(ids(ranking))) == 20
    scores = [hit.score for hit in ranking]
    assert scores == sorted(scores, reverse=True)
    assert set(ids(ranking)[:2]) == set(ids(index.search(["walk 12 of 5"], 2)[0]))


def test_a_table_gains_by_its_database(tmp_path: Path) -> None:
    shop = [table(f"shop/{name}", name, ("id", name), [("1", "x")]) for name in ("orders", "customers", "parts")]
    zoo = [table("zoo/orders", "orders", ("id", "orders"), [("1", "x")])]
    index = built([*zoo, *shop], tmp_path)
    assert index.index.several
    assert open_index(tmp_path).several
    (ranking,) = index.search(["customers and their orders"], 4)
    assert {hit.id.database for hit in ranking[:2]} == {"shop"}


def test_an_update_may_bring_another_database(tmp_path: Path) -> None:
    assert not built(MANY, tmp_path).index.several
    added = (*MANY, table("zoo/animals", "Animals"))
    assert update_index(added, tmp_path, store=VectorStore(None, BagOfWords()))[0].several


@pytest.mark.parametrize("vectors", [True, False])
def test_bounds(vectors: bool, tmp_path: Path) -> None:
    index = built([FILMS, RIVERS, table("z/odd", "", (), [])], tmp_path, vectors=vectors)
    assert [found.fits for found in index.find(["", "  ", "zzz qqq"], 5)] == [False] * 3
    assert index.search([], 5) == []
    (ranking,) = index.search(["rivers"], 1000)
    assert len(ranking) <= 3
    assert ids(ranking)[0] == "rivers"
    with pytest.raises(UsageError, match="k must be"):
        index.search(["rivers"], 0)


def test_batches_and_single_questions_agree(tmp_path: Path) -> None:
    index = built(MANY, tmp_path)
    assert index.search(QUESTIONS, 5) == [index.search([question], 5)[0] for question in QUESTIONS]
