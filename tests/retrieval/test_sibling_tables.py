import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from small_corpora import BagOfWords, table

from almanaq.corpus.table import TableId
from almanaq.models.embedders.vector_store import VectorStore
from almanaq.retrieval.bm25 import BM25
from almanaq.retrieval.dense import Dense
from almanaq.retrieval.protocols import _POOLED_TABLES, group_by_database
from almanaq_bench.retrievers.variants import Hybrid


@given(st.lists(st.sampled_from("abcd"), min_size=2, max_size=15), st.randoms())
def test_pooled_is_the_sum_of_the_best_of_the_database(names: list[str], random) -> None:
    ids = [TableId(name, str(number)) for number, name in enumerate(names)]
    row = [number - 4.5 for number in random.sample(range(len(ids)), len(ids))]
    (pooled,) = group_by_database(ids).pool(np.array([row], dtype=np.float32))
    if len(set(names)) == 1:
        assert not pooled.any()
        return
    for table_id, value in zip(ids, pooled, strict=True):
        shared = [score for other, score in zip(ids, row, strict=True) if other.database == table_id.database]
        assert value == sum(sorted((max(score, 0) for score in shared), reverse=True)[:_POOLED_TABLES])


def test_the_rest_of_the_database_decides_between_like_tables() -> None:
    corpus = [
        table("school/people", "people", ("name", "age")),
        table("hospital/people", "people", ("name", "age")),
        table("hospital/wards", "wards", ("beds",)),
        table("school/classes", "classes", ("room",)),
        *(table(f"other/{word}", word) for word in ("rain", "snow", "hail", "wind")),
    ]
    hybrid = Hybrid(BM25(), Dense(VectorStore(None, BagOfWords())))
    (ranking,) = hybrid.index(corpus, ["title", "header"]).search(["age of people by wards with beds"], 2)
    assert {hit.id for hit in ranking} == {TableId("hospital", "people"), TableId("hospital", "wards")}
