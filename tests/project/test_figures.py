"""`make figures`: every published number has a record and a command, and a re-run that disagrees is seen."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.fixture(scope="module")
def figures(root):
    sys.path.insert(0, str(root / "scripts"))
    try:
        import figures
    finally:
        sys.path.pop(0)
    return figures


def test_every_record_that_is_printed_says_how_it_is_made(figures, root) -> None:
    listed = figures.records()
    assert len(listed) > 100
    unmade = [each.path for each in listed if not each.command and not each.path.startswith(("src/", "bench/src/"))]
    assert unmade == []
    assert [page for each in listed for page in each.pages if page.startswith("nowhere")] == []
    told = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=False)
    if told.returncode == 0:  # a copy without its history has no list
        assert {each.path for each in listed} <= set(told.stdout.split())


def test_every_committed_result_is_printed_or_says_why_it_is_not(figures) -> None:
    listed = {each.path: each for each in figures.records()}
    kept = figures.list_results()
    assert len(kept) > 150
    assert set(kept) - set(listed) == set(figures.NOT_PRINTED)
    assert [path for path, each in listed.items() if not each.pages] == []


def test_a_rerun_outside_of_the_interval_disagrees(figures) -> None:
    kept = {"metrics": {"recall@1": 0.5, "f1": 0.25, "index_seconds": 3.0}, "intervals": {"recall@1": [0.4, 0.6]}}
    same = {"metrics": {"recall@1": 0.59, "f1": 0.25, "index_seconds": 9.0}}
    assert figures.compare(kept, same) == []
    assert figures.compare(kept, {"metrics": {"recall@1": 0.61, "f1": 0.25}})[0].startswith("recall@1")
    assert figures.compare(kept, {"metrics": {"recall@1": 0.5, "f1": 0.26}})[0].startswith("f1")
    assert figures.compare(kept, {"metrics": {"recall@1": 0.5}}) == ["f1: None instead of 0.25 [0.25, 0.25]"]


def test_the_leaderboard_has_a_row_for_each_run_with_what_makes_it_again(root) -> None:
    sys.path.insert(0, str(root / "scripts"))
    try:
        import leaderboard
    finally:
        sys.path.pop(0)
    rows = list(leaderboard.rows())
    assert len(rows) > 100
    for row in rows:
        measure, _, questions, made_with, _, data, _, record = row.cells
        assert int(questions.replace(",", "")) > 0, row
        assert all((measure, made_with, data)), row
        assert (root / record.strip("`")).exists()
    measures = {row.place[0]: row.cells[0].split()[0] for row in rows}
    assert measures["table-retrieval"] == "recall@10"
    assert measures["fact-verification"] == "f1"
    assert measures["text-to-sql"] == "execution_accuracy"
    unknown = sum(row.cells[4] == leaderboard.UNKNOWN for row in rows)
    assert (f"Of {unknown} of the {len(rows)} records" in leaderboard.page()) is (unknown > 0)
    heads = [line for line in leaderboard.page().splitlines() if line.startswith("## ")]
    assert len(heads) == len({row.place for row in rows})
