"""The Movie scenario of SemBench: its ten queries, their measures, and the task as a run."""

from __future__ import annotations

import json

import pytest
from tests.benchmark.test_bench_commands import call

from almanaq_bench.evaluation.significance import spearman
from almanaq_bench.sembench.dataset import FEW, MANY, QUERIES, SembenchData, measure_query

QUERY = {query.id: query for query in QUERIES}


@pytest.fixture
def data_dir(tmp_path):
    folder = tmp_path / "sembench_movie"
    folder.mkdir()
    folder.joinpath("Movies.csv").write_text(f"id,title,audienceScore\n{FEW},Few,40\n{MANY},Many,80\nother,Other,60\n")
    rows = ["id,reviewId,originalScore,reviewText,scoreSentiment"]
    for number in range(60):
        film = (FEW, MANY, "other")[number % 3]
        good = {FEW: number % 5 == 0, MANY: number % 4 != 0, "other": number % 2 == 0}[film]
        rows.append(
            f"{film},{number},{4 if good else 1}/5,text of review {number},{'POSITIVE' if good else 'NEGATIVE'}"
        )
    folder.joinpath("Reviews.csv").write_text("\n".join(rows) + "\n")
    return tmp_path


def test_labels_are_hidden_from_what_is_asked(data_dir):
    data = SembenchData(data_dir / "sembench_movie")
    assert {"scoreSentiment", "originalScore"}.isdisjoint(data.tables["reviews"].column_names)
    assert [question.id for question in data.questions("movie")] == [query.id for query in QUERIES]


def test_a_run_answered_by_the_labels_is_right_and_asks_little(data_dir, tmp_path):
    command = "bench run --task sembench-movie --dataset sembench_movie --split movie --retriever oracle".split()
    rest = f"--generator labels --k 1 --json --data-dir {data_dir} --out {tmp_path / 'run'}".split()
    done = call(*command, *rest)
    metrics = json.loads(done.stdout)["metrics"]
    assert {name: metrics[f"quality_{name}"] for name in QUERY} == dict.fromkeys(QUERY, 1.0)
    assert metrics["quality"] == 1.0
    assert metrics["calls_Q5"] <= 8
    assert metrics["calls_Q6"] <= 8
    assert metrics["calls_Q3"] == metrics["calls_Q8"] == 20
    assert metrics["calls"] == sum(metrics[f"calls_{name}"] for name in QUERY)


@pytest.mark.parametrize(
    ("query", "found", "gold", "measures"),
    [
        ("Q1", [(1,), (2,), (9,)], [(i,) for i in range(8)], {"precision": 2 / 3, "recall": 2 / 5, "f1": 0.5}),
        ("Q1", [], [(1,)], {"f1": 0.0}),
        ("Q5", [("f", 1, 2), ("f", 2, 1)], [("f", 2, 1)], {"precision": 1.0, "recall": 1.0}),
        ("Q7", [("f", 1, 2)], [("f", 1, 2), ("f", 1, 3)], {"recall": 0.5, "precision": 1.0}),
        ("Q3", [(8,)], [(10,)], {"relative_error": 0.2, "quality": 1 / 1.2}),
        ("Q3", [(None,)], [(10,)], {"relative_error": 1.0}),
        ("Q8", [("positive", 5), ("unsure", 1)], [("POSITIVE", 10)], {"relative_error": 0.75}),
        ("Q9", [("a", 1), ("b", 2), ("c", None)], [("a", 3), ("b", 4), ("c", 1)], {"spearman": 1.0}),
    ],
)
def test_measures(query, found, gold, measures):
    given = measure_query(QUERY[query], found, gold)
    assert {name: given[name] for name in measures} == pytest.approx(measures)


def test_spearman_shares_ranks_and_needs_two_values():
    assert spearman([1, 1, 2], [1, 2, 3]) == pytest.approx(0.866025403784)
    assert spearman([1, 1], [1, 2]) == 0.0
    assert spearman([3, 2, 1], [1, 2, 3]) == -1.0
