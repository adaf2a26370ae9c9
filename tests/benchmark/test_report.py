import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from chromium import open_in_chromium
from hypothesis import given
from hypothesis import strategies as st
from small_datasets import write_dataset

from almanaq.errors import BenchmarkError, UsageError
from almanaq_bench.config import RunRequest
from almanaq_bench.report.figures import Line, Point, lines_figure, points_figure
from almanaq_bench.report.page import write_report
from almanaq_bench.report.runs import collect
from almanaq_bench.runner import run


class Tags(HTMLParser):
    """Checks that tags nest, and collects what they would load."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.loaded += [value for name, value in attrs if name in ("src", "href", "action", "srcset", "data")]
        if tag not in ("meta", "link", "br", "line", "circle", "polyline", "col"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in ("line", "circle", "polyline"):
            assert self.open.pop() == tag


@pytest.fixture
def runs(request_: RunRequest, tmp_path: Path) -> list[Path]:
    write_dataset(request_.data_dir / "<b>odd", 6)
    request = replace(request_, cutoffs=(1, 5, 10))
    made = []
    for name, changes in {
        "bm25": {},
        "random": {"retriever": "random"},
        "qa": {"task": "question-answering"},
        "qa-oracle": {"task": "question-answering", "retriever": "oracle"},
        "odd": {"dataset": "<b>odd"},
    }.items():
        made.append(tmp_path / "runs" / name)
        run(replace(request, out=made[-1], **changes))
    return made


def test_the_page_needs_nothing_else_and_says_what_the_runs_say(
    runs: list[Path], request_: RunRequest, tmp_path: Path
) -> None:
    page = write_report(runs, tmp_path / "report.html", data_dir=request_.data_dir).read_text()
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert all(address == "data:," or address.startswith("#group-") for address in tags.loaded)
    assert not re.search(r"url\(|@import|<script", page)
    assert "&lt;b&gt;odd" in page
    assert "<b>odd" not in page
    assert page.count("<h2>") == 3
    assert "Where questions are lost" in page


def test_chromium_opens_the_page_without_an_error_or_a_request(
    runs: list[Path], request_: RunRequest, tmp_path: Path
) -> None:
    page = write_report(runs, tmp_path / "report.html", data_dir=request_.data_dir)
    seen = open_in_chromium(page, tmp_path / "browser")
    assert "Where questions are lost" in seen.text
    assert (seen.console, seen.requests) == ([], set())


def test_chromium_would_notice(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text('<link rel="icon" href="data:,"><img src="https://example.org/x"><script>nothing()</script>')
    seen = open_in_chromium(page, tmp_path / "browser")
    assert seen.requests == {"https://example.org/x"}
    assert any("nothing is not defined" in line for line in seen.console)


def test_groups_hold_comparable_runs(runs: list[Path]) -> None:
    first, asked, odd = collect(runs)
    assert [run.name for run in first.runs] == ["bm25", "random"]
    assert first.measure == "database_recall"
    assert first.runs[0].curve.keys() == {1, 2, 3, 5, 10}
    assert list(first.runs[1].curve.values()) == sorted(first.runs[1].curve.values())
    assert sum(asked.errors[asked.runs[0].name].values()) == 20
    assert len(odd.runs) == 1
    assert all(failure.run == "bm25" for failure in first.failures)


class Silent:
    """Finds nothing."""

    def embed_corpus(self, corpus):
        pass

    def retrieve(self, query, top_k):
        return []


def test_the_page_says_that_a_retriever_found_nothing(request_: RunRequest, tmp_path: Path) -> None:
    run(replace(request_, retriever=f"{__name__}:Silent"))
    for name in ("page.md", "page.html"):
        page = write_report([request_.out], tmp_path / name).read_text()
        assert "20 of 20 questions got no table from test_report:Silent" in page


class Same(Silent):
    """Finds the same table for every question."""

    def retrieve(self, query, top_k):
        return [("db0", "t0")]


def test_tables_are_read_where_the_run_found_them_unless_they_changed(request_: RunRequest, tmp_path: Path) -> None:
    run(replace(request_, retriever=f"{__name__}:Same"))
    page = tmp_path / "page.html"
    assert "List of item0 (db0/t0)" in (told := write_report([request_.out], page).read_text())
    assert "words that it holds" in told
    write_dataset(request_.data_dir / "other", 21)
    (request_.data_dir / "other" / "corpus.parquet").replace(request_.data_dir / "small" / "corpus.parquet")
    assert "List of item0" not in (told := write_report([request_.out], page).read_text())
    assert "words that it holds" not in told
    assert "List of item0" in write_report([request_.out], page, data_dir=request_.data_dir).read_text()


def test_markdown_has_the_same_figures(runs: list[Path], tmp_path: Path) -> None:
    text = write_report(runs[:2], tmp_path / "report.md").read_text()
    assert "| bm25 | 1.000 [1.000 – 1.000] |" in text
    assert "All systems can be told apart by database recall@1" in text


def test_questions_and_titles_are_no_markup(request_: RunRequest, tmp_path: Path) -> None:
    file = request_.data_dir / "small" / "queries_test.parquet"
    rows = [{**row, "query": f"<script>\n\n# {row['query']}"} for row in pq.read_table(file).to_pylist()]
    pq.write_table(pa.Table.from_pylist(rows), file)
    run(replace(request_, retriever=f"{__name__}:Same"))
    for name in ("page.md", "page.html"):
        page = write_report([request_.out], tmp_path / name).read_text()
        assert "&lt;script>" in page.replace("&gt;", ">")
        assert "<script" not in page
    assert "&lt;script> # what is item" in (tmp_path / "page.md").read_text()


def test_a_run_without_replies_yet_stands_beside_others(runs: list[Path], tmp_path: Path) -> None:
    for file in ("replies.jsonl", "timings.jsonl", "metrics.json"):
        (runs[2] / file).unlink()
    page = write_report(runs[2:4], tmp_path / "report.html").read_text()
    assert "is not finished: 20 questions so far" in page
    assert page.count("<circle") == 3  # two in the retrieval's figure, one for the run that has answers


def test_reports_that_cannot_be_written(runs: list[Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"ends in \.html or \.md"):
        write_report(runs, tmp_path / "report.pdf")
    with pytest.raises(BenchmarkError, match="no such run folder"):
        write_report([tmp_path / "nowhere"], tmp_path / "report.html")
    with pytest.raises(BenchmarkError, match="cannot write"):
        write_report(runs[:1], tmp_path / "no" / "report.html")


shares = st.floats(0, 1)


@given(st.lists(st.tuples(st.text(max_size=30), st.lists(shares, min_size=1, max_size=6)), min_size=1, max_size=12))
def test_lines_stay_inside_their_figure(lines) -> None:
    svg = lines_figure([Line(n, range(1, len(y) + 1), y) for n, y in lines], x_label="k", y_label="recall")
    assert svg.count("<polyline") == len(lines)
    for points in re.findall(r'points="([^"]+)"', svg):
        for point in points.split():
            x, y = map(float, point.split(","))
            assert 0 <= x <= 640
            assert 0 <= y <= 320


@given(st.lists(st.tuples(shares, shares), min_size=1, max_size=8), st.booleans())
def test_points_stay_inside_their_figure(points, log: bool) -> None:
    svg = points_figure([Point("p", x, y, y, y) for x, y in points], x_label="x", y_label="y", log=log)
    for x, y in re.findall(r'cx="([^"]+)" cy="([^"]+)"', svg):
        assert 0 <= float(x) <= 640
        assert 0 <= float(y) <= 320


def test_thirty_lines_look_thirty_ways() -> None:
    lines = [Line(f"run {number}", (1, 10), (0.1, 0.9)) for number in range(30)]
    drawn = re.findall(r"<polyline[^>]* (stroke=[^>]*)/>", lines_figure(lines, x_label="k", y_label="recall"))
    assert len(set(drawn)) == len(drawn) == 30
