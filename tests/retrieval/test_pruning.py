import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from almanaq.retrieval import bm25
from almanaq.retrieval.bm25 import Term, TermPart, best_tables

SIZE = 60


@st.composite
def terms(draw) -> Term:
    held = sorted(draw(st.sets(st.integers(0, SIZE - 1), min_size=0, max_size=SIZE)))
    weights = draw(st.lists(st.sampled_from([0.1, 0.25, 0.5, 1.0]), min_size=len(held), max_size=len(held)))
    cut = draw(st.integers(0, SIZE))
    parts = [
        TermPart(base, np.array(tables, np.int32) - base, np.array(part, np.float32))
        for base, tables, part in [
            (0, [t for t in held if t < cut], weights[: sum(t < cut for t in held)]),
            (cut, [t for t in held if t >= cut], weights[sum(t < cut for t in held) :]),
        ]
        if tables
    ]
    return Term(np.float32(draw(st.sampled_from([0.2, 1.0, 3.0, 8.0]))), parts)


@settings(max_examples=80)
@given(st.lists(terms(), max_size=5), st.integers(1, SIZE + 5), st.sets(st.integers(0, SIZE - 1), max_size=20))
def test_the_result_is_that_of_adding_everything(small_lists, asked: list[Term], k: int, dead: set[int]) -> None:
    gone = np.array(sorted(dead), dtype=np.int64)
    places, scores = best_tables(asked, SIZE, k, gone)
    full = np.zeros(SIZE, np.float32)
    for term in sorted(asked, key=lambda term: -term.worth):
        term.add_all(full)
    full[gone] = 0
    expected = sorted(np.flatnonzero(full), key=lambda place: (-full[place], place))[:k]
    assert places.tolist() == expected
    np.testing.assert_array_equal(scores, full[expected])


@pytest.fixture(scope="module")
def small_lists():
    """Let short lists count as long, so that small examples are pruned; and few tables as many, for half of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bm25, "_LOOKUP_COST", 0.2)
        patch.setattr(bm25, "_SPARSE_SHARE", 0.5)
        yield


def test_a_common_word_is_only_looked_up() -> None:
    """A list that would have to be added is never read as a whole."""

    class Unread(np.ndarray):
        def __mul__(self, other):
            assert len(self) < 100
            return super().__mul__(other)

    size = 50_000
    common = TermPart(0, np.arange(size, dtype=np.int32), np.full(size, 0.5, np.float32).view(Unread))
    rare = TermPart(0, np.array([7, 70, 700], np.int32), np.array([0.5, 0.6, 0.7], np.float32))
    asked = [Term(np.float32(0.1), [common]), Term(np.float32(9), [rare])]
    places, _ = best_tables(asked, size, 2, np.zeros(0, np.int64))
    assert places.tolist() == [700, 70]
