import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from almanaq.errors import BenchmarkError, UsageError
from almanaq_bench.evaluation.rankings import MEASURES, Measure, RankedResult, evaluate, parse_measure, query_value

items = st.integers(0, 14).map(lambda number: (f"db{number % 3}", f"t{number}"))
rankings = st.lists(items, max_size=12, unique=True)
golds = st.lists(items, min_size=1, max_size=5, unique=True)
runs = st.lists(st.tuples(golds, rankings), min_size=1, max_size=4)
cutoffs = st.integers(1, 15)

THEIRS = {"recall": "R", "precision": "P", "mrr": "RR", "ndcg": "nDCG", "map": "AP"}


@given(runs, cutoffs)
def test_measures_equal_ir_measures(run: list[tuple[list, list]], k: int) -> None:
    import ir_measures

    qrels = {str(q): {"/".join(item): 1 for item in gold} for q, (gold, _) in enumerate(run)}
    # A query without hits is missing from their run, and counts 0 there as here.
    found = {
        str(q): {"/".join(item): float(-rank) for rank, item in enumerate(hits)} for q, (_, hits) in enumerate(run)
    }
    for name, theirs in THEIRS.items():
        measure = ir_measures.parse_measure(f"{theirs}@{k}")
        expected = ir_measures.calc_aggregate([measure], qrels, found)[measure]
        ours = evaluate(
            [Measure(name, k)],
            {str(q): gold for q, (gold, _) in enumerate(run)},
            {str(q): RankedResult(hits) for q, (_, hits) in enumerate(run) if hits},
        )
        assert math.isclose(ours[0], expected, abs_tol=1e-9), name


def value(name: str, k: int, gold: Sequence, hits: Sequence, databases: Sequence[str] = ()) -> float:
    return query_value(Measure(name, k), gold, RankedResult(hits, databases))


@given(st.sampled_from(sorted(MEASURES)), golds, rankings, cutoffs)
def test_every_measure_lies_between_0_and_1_and_nothing_found_is_0(name, gold, hits, k) -> None:
    databases = [database for database, _ in hits]
    assert 0 <= value(name, k, gold, hits, databases) <= 1
    assert value(name, k, gold, []) == 0


@given(golds, rankings)
def test_the_ideal_ranking_has_1(gold, rest) -> None:
    ideal = list(dict.fromkeys([*gold, *rest]))
    for name in set(MEASURES) - {"precision"}:
        assert value(name, len(gold), gold, ideal, [gold[0][0]]) == pytest.approx(1)
    assert value("precision", len(gold), gold, ideal) == 1


@given(golds, rankings, items, cutoffs, st.integers(0, 12))
def test_a_distractor_never_raises_a_measure(gold, hits, extra, k, place) -> None:
    if extra in gold or extra in hits:
        return
    other = ("distractors", extra[1])
    for name in set(MEASURES) - {"routed_database_recall"}:
        assert value(name, k, gold, [*hits[:place], other, *hits[place:]]) <= value(name, k, gold, hits)


@given(golds, rankings, cutoffs)
def test_renaming_and_repeating_change_nothing(gold, hits, k) -> None:
    def renamed(some):
        return [(f"x{database}", f"y{name}") for database, name in some]

    for name in MEASURES:
        assert value(name, k, renamed(gold), renamed(hits)) == value(name, k, gold, hits)
        assert value(name, k, gold, [hit for hit in hits for _ in range(2)]) == value(name, k, gold, hits)


def test_what_tells_the_recalls_apart() -> None:
    gold = [("a", "1"), ("a", "2"), ("b", "3")]
    hits = [("a", "1"), ("c", "9")]
    assert value("recall", 2, gold, hits) == pytest.approx(1 / 3)
    assert value("capped_recall", 2, gold, hits) == pytest.approx(1 / 2)
    assert value("complete_recall", 2, gold, hits) == 0
    assert value("precision", 5, gold, hits) == pytest.approx(1 / 5)


def test_micro_recall_counts_gold_and_macro_counts_queries() -> None:
    qrels = {"1": [("a", "1")], "2": [("a", "2"), ("a", "3"), ("a", "4")]}
    run = {"1": RankedResult([("a", "1")])}
    micro, macro = evaluate([Measure("recall_micro", 5), Measure("recall", 5)], qrels, run)
    assert (micro, macro) == (pytest.approx(1 / 4), pytest.approx(1 / 2))


def test_database_recall_looks_at_tables_and_routed_at_databases() -> None:
    gold = [("right", "t")]
    hits = [("wrong", "1"), ("wrong", "2"), ("right", "other")]
    assert value("database_recall", 2, gold, hits, ["wrong", "right"]) == 0
    assert value("database_recall", 3, gold, hits) == 1
    assert value("routed_database_recall", 2, gold, hits, ["wrong", "right"]) == 1


@given(st.sampled_from(sorted(MEASURES)), st.integers(1, 1000))
def test_the_text_form_is_exact(name: str, k: int) -> None:
    assert parse_measure(str(Measure(name, k))) == Measure(name, k)


@pytest.mark.parametrize("text", ["recall", "recall@", "recal@5", "recall@0", "RECALL@5", "recall@-1"])
def test_wrong_measures(text: str) -> None:
    with pytest.raises(UsageError):
        parse_measure(text)


def test_runs_that_cannot_be_scored() -> None:
    measures = [Measure("recall", 1)]
    with pytest.raises(BenchmarkError, match="no queries"):
        evaluate(measures, {}, {})
    with pytest.raises(BenchmarkError, match="no gold table, first 'q'"):
        evaluate(measures, {"q": []}, {})
    with pytest.raises(BenchmarkError, match="does not hold, first 'z'"):
        evaluate(measures, {"q": [("a", "1")]}, {"z": RankedResult()})
