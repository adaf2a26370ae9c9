import json
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path

import ir_measures
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_datasets import write_dataset

from almanaq.corpus.table import TableId
from almanaq.errors import BenchmarkError, UsageError
from almanaq.retrieval.protocols import Hit
from almanaq_bench import compare as compare_module
from almanaq_bench.compare import alike, compare
from almanaq_bench.config import RunRequest
from almanaq_bench.evaluation import significance
from almanaq_bench.records import Record
from almanaq_bench.report.runs import collect
from almanaq_bench.reproduce import reproduce
from almanaq_bench.run_measures import read_run, score
from almanaq_bench.runner import run
from almanaq_bench.testing import StandInServer
from almanaq_bench.trec import _run_lines, export


@pytest.fixture
def runs(request_: RunRequest, tmp_path: Path) -> list[Path]:
    folders = []
    for retriever in ("bm25", "random", "oracle"):
        folders.append(tmp_path / retriever)
        run(replace(request_, retriever=retriever, out=folders[-1], cutoffs=(1, 5)))
    return folders


def test_two_runs_are_compared_query_by_query(runs: list[Path]) -> None:
    told = compare(runs[:2]).to_dict()
    (pair,) = told["pairs"]
    best = pair["measures"]["recall@1"]
    assert (told["queries"], best["a"], best["difference"]) == (20, 1.0, best["b"] - 1)
    assert best["significant"]
    assert best["interval"][0] <= best["difference"] <= best["interval"][1] < 0
    assert best["p"] <= best["p_corrected"] < 0.05
    json.dumps(told)


def test_systems_that_cannot_be_told_apart_form_groups(runs: list[Path]) -> None:
    bm25, chance, oracle = map(str, runs)
    found = compare(runs)
    assert found.groups["recall@1"] == [(bm25, oracle), (chance,)]
    equal = next(each for each in found.differences[bm25, oracle] if each.measure == "recall@1")
    assert (equal.p_corrected, equal.interval) == (1.0, (0.0, 0.0))


def test_replies_are_compared_too(request_: RunRequest, tmp_path: Path) -> None:
    request = replace(request_, task="question-answering", cutoffs=(1,), generator="local")
    for retriever in ("oracle", "none"):
        run(replace(request, retriever=retriever, out=tmp_path / retriever))
    found = compare([tmp_path / "oracle", tmp_path / "none"])
    (differences,) = found.differences.values()
    exact = next(each for each in differences if each.measure == "exact_match")
    assert (exact.a, exact.b, exact.significant) == (1.0, 0.0, True)
    assert found.groups["exact_match"] == [(str(tmp_path / "oracle"),), (str(tmp_path / "none"),)]


def test_runs_that_cannot_be_compared(runs: list[Path], request_: RunRequest, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="two or more different run folders"):
        compare([runs[0], runs[0]])
    run(replace(request_, out=tmp_path / "few", limit=3))
    with pytest.raises(BenchmarkError, match="their limit is None and 3"):
        compare([runs[0], tmp_path / "few"])
    run(replace(request_, out=tmp_path / "deep", cutoffs=(7,)))
    with pytest.raises(BenchmarkError, match="share no cutoff"):
        compare([runs[0], tmp_path / "deep"])
    records = runs[1] / "records.jsonl"
    records.write_text("".join(records.read_text().splitlines(keepends=True)[:-1]))
    (runs[1] / "metrics.json").unlink()  # as of a run that has not ended
    with pytest.raises(BenchmarkError, match="1 questions are in one alone, first 'q19'"):
        compare(runs[:2])


def test_exported_files_give_their_tools_the_same_measures(runs: list[Path], tmp_path: Path) -> None:
    for folder in runs[:2]:
        run_file, qrels_file = export(folder, tmp_path / "trec")
        measures = [ir_measures.parse_measure(text) for text in ("R@5", "RR@5", "nDCG@5")]
        qrels = list(ir_measures.read_trec_qrels(str(qrels_file)))
        theirs = ir_measures.calc_aggregate(measures, qrels, list(ir_measures.read_trec_run(str(run_file))))
        ours = json.loads((folder / "metrics.json").read_text())["metrics"]
        found = [ours["recall@5"], ours["mrr@5"], ours["ndcg@5"]]
        assert [theirs[measure] for measure in measures] == pytest.approx(found, abs=1e-6)


names = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)


@given(st.lists(st.tuples(names, st.floats(-1e6, 1e6, width=32)), max_size=8))
def test_trec_lines_have_six_columns_and_scores_that_fall(hits) -> None:
    ranked = sorted(hits, key=lambda hit: -hit[1])
    record = Record("q 1", (), tuple(Hit(TableId("a b", name), score) for name, score in ranked))
    lines = [line.split() for line in _run_lines(record, "x")]
    assert {len(line) for line in lines} <= {6}
    scores = [float(line[4]) for line in lines]
    assert all(high > low for high, low in pairwise(scores))


def test_a_published_table_is_run_again_beside_its_figures(request_: RunRequest, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    write_dataset(request_.data_dir / "fetaqa")
    request_ = replace(request_, generator="")
    told: list[str] = []
    cells = list(reproduce("target-table-2", request_, tell=told.append))
    assert {cell.dataset for cell in cells} == {"fetaqa"}
    assert len(told) == 4
    by_name = {cell.retriever: cell for cell in cells}
    bm25 = by_name["target-bm25"]
    assert (bm25.printed, bm25.split, bm25.published_split) == (0.082, "test", "test")
    assert bm25.ours is not None
    assert any("published: 2003" in reason for reason in bm25.why)
    embedding = by_name["openai-embedding-header"]
    assert (embedding.ours, embedding.right) == (None, 0.184)
    assert "needs an embedding model" in embedding.why[0]
    assert "0.184 is right" in embedding.why[-1]
    replied = list(reproduce("target-table-2", replace(request_, generator="first-cell", out=request_.out / "replies")))
    no_context = replied[0]
    assert (no_context.retriever, no_context.measure, no_context.printed) == ("none", "sacrebleu", 12.495)
    assert "another generator, first-cell" in no_context.why[0]
    assert len(replied) == 2 * len(cells) + 1
    with pytest.raises(UsageError, match="did you mean 'target-table-2'"):
        list(reproduce("target-table2", request_))
    with pytest.raises(UsageError, match="did you mean 'ottqa'"):
        list(reproduce("target-table-2", request_, datasets=["otqa"]))


class Installed:
    """What a run has that names no embedder: the paper's take its place."""

    name = "local"


def test_with_a_key_the_rows_of_paid_models_run_too(request_: RunRequest, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("ALMANAQ_CACHE_DIR", str(tmp_path / "cache"))
    write_dataset(request_.data_dir / "fetaqa", 5)
    with StandInServer(lambda request: {"title": "t", "summary": request["messages"][1]["content"]}) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        request = replace(request_, generator="", embedder=Installed)
        cells = list(reproduce("target-table-2", request))
        asked = server.ledger.calls
        assert list(reproduce("target-table-2", request)) == cells  # finished rows are not run again
        assert server.ledger.calls == asked > 0
    assert {cell.retriever for cell in cells} >= {"llm-summary", "openai-embedding", "openai-embedding-header"}
    assert all(cell.ours is not None for cell in cells)


def test_comparing_many_runs_gives_what_comparing_two_of_them_gives(runs: list[Path], monkeypatch) -> None:
    """Pairs are tested many at once, by the same draws: none of them sees the others, but for the correction."""
    monkeypatch.setattr(compare_module, "_COLUMNS", 45)  # two pairs at once, then the third
    together = compare(runs)
    for a, b in combinations(runs, 2):
        (alone,) = compare([a, b]).differences.values()
        found = together.differences[str(a), str(b)]
        assert [replace(each, p_corrected=0.0) for each in found] == [replace(each, p_corrected=0.0) for each in alone]


def test_one_measure_is_tested_for_a_page_without_the_others(runs: list[Path], monkeypatch) -> None:
    wanted = compare(runs).groups["recall@1"]
    read = {str(folder): read_run(folder) for folder in runs}
    columns = []
    monkeypatch.setattr(
        compare_module, "p_values", lambda apart: (columns.append(apart.shape[1]), significance.p_values(apart))[1]
    )
    tested, groups = alike(
        {name: config for name, (config, _) in read.items()}, {name: own for name, (_, own) in read.items()}, "recall"
    )
    assert (tested, groups) == ("recall@1", wanted)
    assert columns == [3]  # one for each pair


def test_a_finished_run_that_lost_records_or_replies_is_no_run(request_: RunRequest, tmp_path: Path) -> None:
    request = replace(request_, task="question-answering", cutoffs=(1,), generator="local")
    run(request)
    other = tmp_path / "other"
    run(replace(request, out=other, retriever="oracle"))
    metrics = (request.out / "metrics.json").read_bytes()
    for name in ("replies.jsonl", "records.jsonl"):
        file = request.out / name
        whole = file.read_bytes()
        file.write_bytes(b"".join(whole.splitlines(keepends=True)[:13]))
        for refused in (
            lambda: score(request.out),
            lambda: compare([request.out, other]),
            lambda: collect([request.out]),
        ):
            with pytest.raises(BenchmarkError, match=rf"{name} holds 13 lines, and 20 when the run ended"):
                refused()
        run(replace(request, resume=True))
        assert file.read_bytes() == whole
        assert (request.out / "metrics.json").read_bytes() == metrics
    (request.out / "metrics.json").write_text("{")
    with pytest.raises(BenchmarkError, match=r"metrics\.json is damaged"):
        score(request.out)


@pytest.mark.parametrize("wrong", ["NaN", "-Infinity", "1e999", '"2"', "null"])
def test_a_record_whose_score_is_no_number_is_refused(runs: list[Path], wrong: str) -> None:
    records = runs[0] / "records.jsonl"
    first, *rest = records.read_text().splitlines(keepends=True)
    fields = json.loads(first)
    fields["hits"][0][2] = "here"
    records.write_text(json.dumps(fields).replace('"here"', wrong) + "\n" + "".join(rest))
    for refused in (lambda: score(runs[0]), lambda: compare(runs), lambda: export(runs[0], runs[0].parent / "trec")):
        with pytest.raises(BenchmarkError, match=r"records\.jsonl, line 1: not a record"):
            refused()
