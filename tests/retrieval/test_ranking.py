import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from almanaq.corpus.table import TableId
from almanaq.errors import UsageError
from almanaq.retrieval.protocols import Hit, search_by_scores, top_k
from almanaq_bench.run_measures import route_databases

few_values = st.lists(st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 2.0]), min_size=1, max_size=30)


@given(few_values, st.integers(1, 40))
def test_top_k_is_the_head_of_a_stable_sort(values: list[float], k: int) -> None:
    scores = np.array(values, dtype=np.float32)
    expected = [i for i in sorted(range(len(values)), key=lambda i: (-values[i], i)) if values[i] > -np.inf]
    assert top_k(scores, k).tolist() == expected[:k]


class Constant:
    ids = tuple(TableId("d", str(number)) for number in range(5))

    def scores(self, questions):
        return np.tile(np.arange(5, dtype=np.float32), (len(questions), 1))


def test_search_gives_a_ranking_per_question_across_batches() -> None:
    rankings = search_by_scores(Constant(), ["q"] * 600, 2)
    assert len(rankings) == 600
    assert {tuple(hit.id.table for hit in ranking) for ranking in rankings} == {("4", "3")}


def test_k_must_be_positive() -> None:
    with pytest.raises(UsageError, match="1 or more, not 0"):
        search_by_scores(Constant(), ["q"], 0)


def hits(*pairs: tuple[str, float]) -> tuple[Hit, ...]:
    return tuple(Hit(TableId(database, str(rank)), score) for rank, (database, score) in enumerate(pairs))


def test_several_tables_of_one_database_outweigh_one_of_another() -> None:
    ranking = hits(("a", 10.0), ("b", 9.9), ("b", 9.8), ("b", 9.7), ("c", 0.0))
    assert [name for name, _ in route_databases(ranking)][:2] == ["b", "a"]


def test_routing_defines_nothing_one_and_ties() -> None:
    assert route_databases(()) == ()
    assert [name for name, _ in route_databases(hits(("a", 1.0)))] == ["a"]
    assert [name for name, _ in route_databases(hits(("b", 1.0), ("a", 1.0)))] == ["b", "a"]
