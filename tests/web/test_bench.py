"""Benchmark pages: the report of runs, whose figures lead to the records that they were computed from."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.benchmark.small_datasets import no_embedder, write_dataset
from tests.web.conftest import places
from tests.web.live import live
from tests.web.seen import fits, opened, violations

import almanaq
from almanaq.testing import FunctionModel
from almanaq.web.service import open_service
from almanaq_bench.config import RunRequest
from almanaq_bench.records import read_records
from almanaq_bench.report.page import read_bench
from almanaq_bench.runner import run

QUESTIONS = 110


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    write_dataset(folder / "data" / "small", QUESTIONS)
    request = RunRequest("table-retrieval", "small", folder / "data", "test", "bm25", folder, no_embedder)
    made = []
    for name, changes in {
        "bm25": {},
        "random": {"retriever": "random"},
        "answers": {"task": "question-answering"},
        "oracle": {"task": "question-answering", "retriever": "oracle"},
    }.items():
        made.append(folder / name)
        run(replace(request, cutoffs=(1, 5, 10), out=made[-1], **changes))
    return made


@pytest.fixture(scope="module")
def bench(folders):
    model = FunctionModel(lambda *_: "Yes")
    with almanaq.connect(places(), model=model, embedder="lexical", cache=False) as connection:
        service = open_service(connection, "places", store_mb=None)
        with live(service, bench=read_bench(folders)) as client:
            client.model = model
            yield client
        service.store.close()


def test_every_figure_leads_to_its_record(browser, bench):
    with opened(browser, bench, "/bench") as page:
        assert fits(page)
        figures = page.eval_on_selector_all(
            "main td",
            """cells => cells.filter(cell => /^[0-9.,]+$/.test(cell.firstChild?.textContent.trim() ?? ""))
                .map(cell => cell.querySelector("a")?.getAttribute("href") ?? cell.parentElement.textContent)""",
        )
        assert len(figures) > 40
        assert [each for each in figures if not each.startswith("/bench/")] == []
        names = page.eval_on_selector_all("svg", "all => all.map(svg => svg.querySelector('title').textContent)")
        assert "database recall over k" in names
        assert page.locator("svg > desc").count() == len(names) == page.locator("figure table").count()
    for address in {each.partition("#")[0] for each in figures}:
        with opened(browser, bench, address) as page:
            wanted = {each.partition("#")[2] for each in figures if each.startswith(f"{address}#")}
            assert [each for each in wanted if page.evaluate("id => !document.getElementById(id)", each)] == []


def test_a_record_has_all_questions_of_its_run(bench, folders):
    seen = []
    for number in (1, 2):
        page = bench("GET", f"/bench/1?page={number}").body.decode()
        seen += [each for each in read_records(folders[0] / "records.jsonl") if f">{each.query_id}<" in page]
    assert [each.query_id for each in seen] == [each.query_id for each in read_records(folders[0] / "records.jsonl")]
    assert bench.model.calls == 0


@pytest.mark.parametrize("path", ["/bench/0", "/bench/9", "/bench/1?page=0", "/bench/1?page=3"])
def test_there_is_no_other_record(bench, path):
    assert bench("GET", path).status == 404


@pytest.mark.nightly
def test_a_narrow_dark_screen(browser, bench):
    options = {"viewport": {"width": 320, "height": 700}, "color_scheme": "dark"}
    for path in ("/bench", "/bench/3"):
        with opened(browser, bench, path, **options) as page:
            assert fits(page)
            assert violations(page) == []


def test_without_runs_there_is_no_page(serve):
    client = serve()
    assert client("GET", "/bench").status == 404
    assert b"/bench" not in client("GET", "/").body
