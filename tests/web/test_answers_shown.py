"""Tables and charts of answers in Chromium: wide, long, hostile, of one row and of none."""

from __future__ import annotations

import datetime
import re

import pytest
from tests.web.conftest import Quoting
from tests.web.seen import fits, opened, violations

playwright = pytest.importorskip("playwright.sync_api")

EVIL = '<img src=x onerror="document.title=1"> =1+1 ${datum.x} javascript:alert(1)'
PROSE = (
    "A sentence about nothing much at all. " * 8
    + "In the evening there are candles on the tables. "
    + "And more. " * 40
)
NUMBERS = {f"measure_{n}": [1234567.891 + n + row / 7 for row in range(300)] for n in range(25)}
WIDE = {
    "name": [f"Internationalisation {row}" for row in range(300)],
    **NUMBERS,
    "city": ["Paris" if row % 3 else "Lyon" for row in range(300)],
    "opened": [datetime.date(2020, 1, 1) + datetime.timedelta(days=row) for row in range(300)],
    "notes": [PROSE] * 300,
}
MANY = 12_000
BIG = {"id": range(MANY), "name": [f"Name {row % 100}" for row in range(MANY)], "notes": [PROSE[:400]] * MANY}
DOGS = {"breed": ["Pug", "Boxer", "Collie", EVIL], "age": [7, 3, 2, 5]}


@pytest.fixture(scope="module")
def shown(serve):
    return serve({"wide": WIDE, "dogs": DOGS, "big": BIG}, Quoting(lambda text, _: "Yes"))


def link(client, suql, **more):
    reply = client.post("sql", {"suql": suql, **more})
    assert reply.status == 200, reply.body
    return reply.json()["link"]


def names(page, place="tbody tr:first-child td:first-child"):
    return page.locator(place).all_inner_texts()


@pytest.mark.parametrize("width", [320, 1200])
def test_a_wide_table_scrolls_and_breaks_no_word(browser, shown, width):
    suql = "SELECT * FROM wide WHERE answer(notes, 'are there candles?') = 'Yes' ORDER BY name LIMIT 10"
    view = {"width": width, "height": 700}
    with opened(browser, shown, link(shown, suql), viewport=view, color_scheme="dark") as page:
        scroll = page.locator(".scroll")
        scroll.wait_for()
        assert fits(page)
        assert page.locator("thead th").count() == 29
        lines = "cell => Math.round(cell.offsetHeight / parseFloat(getComputedStyle(cell).lineHeight))"
        assert page.locator("td.number").first.inner_text() == "1,234,567.89"
        assert page.locator("td.prose .clamp").first.evaluate(lines) == 3
        assert page.locator("td.prose mark").first.inner_text() == "andles"
        assert page.locator("thead th").nth(1).evaluate("cell => cell.scrollWidth <= cell.clientWidth")
        before = page.locator("tbody td").first.bounding_box()
        scroll.evaluate("place => { place.scrollLeft = 2000 }")
        assert page.locator("tbody td").first.bounding_box()["x"] == before["x"]
        assert violations(page) == []


def test_rows_are_sorted_filtered_copied_and_asked_again(browser, shown):
    suql = "SELECT name, measure_1, city FROM wide ORDER BY name"
    with opened(browser, shown, link(shown, suql, max_rows=1000)) as page:
        page.get_by_role("button", name="measure_1", exact=True).press("Enter")
        assert page.evaluate("document.activeElement.textContent") == "measure_1"
        assert page.locator("th[aria-sort=ascending]").inner_text().startswith("measure_1")
        assert names(page)[0] == "Internationalisation 0"
        page.get_by_role("button", name="measure_1", exact=True).click()
        assert names(page)[0] == "Internationalisation 299"
        page.get_by_role("button", name="Filter").press("Enter")
        assert violations(page) == []
        page.keyboard.type("tion 29")
        page.get_by_label("Filter measure_1").fill(">1,234,567".replace(",", ""))
        page.locator("caption", has_text="11 of 300 rows").wait_for()
        assert page.evaluate("document.activeElement.ariaLabel") == "Filter measure_1"

        page.get_by_role("button", name="Copy, download …").press("Enter")
        for key, item in (("ArrowDown", "Copy as Markdown"), ("End", "Download Parquet"), ("ArrowDown", "Copy as TSV")):
            page.keyboard.press(key)
            assert page.evaluate("document.activeElement.textContent") == item
        with page.expect_download() as download:
            page.get_by_role("button", name="Download CSV").press("Enter")
        assert re.fullmatch(r"SELECT-name-measure-1-city-FROM-wide.*-20\d\d-.*\.csv", download.value.suggested_filename)
        lines = download.value.path().read_text().splitlines()
        assert [line.split(",")[0] for line in lines[:2]] == ["name", "Internationalisation 299"]
        assert len(lines) == 12
        assert page.locator("#status:not(.quiet)").inner_text() == "Rows downloaded as CSV."
        assert violations(page) == []

        copied = page.evaluate(
            """() => { const data = new DataTransfer(), cells = document.querySelectorAll("tbody td");
            getSelection().setBaseAndExtent(cells[0], 0, cells[1], 1);
            const given = { clipboardData: data, bubbles: true, cancelable: true };
            cells[0].dispatchEvent(new ClipboardEvent("copy", given));
            return data.getData("text/plain") }"""
        )
        assert copied == f"Internationalisation 299\t{NUMBERS['measure_1'][299]!r}"

        page.get_by_label("Menu of city").click()
        assert violations(page) == []
        page.get_by_role("button", name="Group by this").click()
        page.locator(".again table").wait_for()
        assert page.locator(".again tbody tr").all_inner_texts() == ["Paris\t200", "Lyon\t100"]
        page.get_by_label("Menu of city").first.click()
        page.get_by_label("Search values of city").fill("ly")
        assert page.locator(".values").inner_text() == "Lyon"
        assert violations(page) == []
        page.keyboard.press("Enter")
        page.locator(".again caption", has_text="100 rows").wait_for()
        page.get_by_label("Menu of city").first.press("Enter")
        page.get_by_role("button", name="Hide").press("Enter")
        assert page.locator("thead").first.locator("th").count() == 2
        assert page.evaluate("document.activeElement.textContent") == "Show 1 hidden column"
        page.keyboard.press("Enter")
        assert page.locator("thead").first.locator("th").count() == 3
        page.goto(f"http://127.0.0.1:{shown.port}{link(shown, 'SELECT breed FROM dogs LIMIT 2')}")
        page.get_by_role("button", name="Show all").click()
        page.locator(".again caption", has_text="4 rows").wait_for()


def test_of_many_rows_those_in_view_are_drawn_sorted_and_filtered_by_the_server(browser, shown):
    suql = "SELECT id, name, notes FROM big ORDER BY id"
    with opened(browser, shown, link(shown, suql, max_rows=MANY)) as page:
        rows = page.locator("tbody tr")
        page.locator(f"table[aria-rowcount='{MANY + 1}']").wait_for()
        assert page.locator(".note").count() == 0
        for top, first in (("place.scrollHeight", MANY - 1), ("place.scrollHeight / 2", MANY // 2), ("0", 0)):
            page.locator(".scroll").evaluate(f"place => {{ place.scrollTop = {top} }}")
            shown_row = page.locator(f"tbody tr[aria-rowindex='{first + 2}']")
            shown_row.wait_for()
            assert shown_row.locator("td").first.inner_text() == str(first)
            assert rows.count() < 120
        page.locator(".scroll").press("PageDown")
        assert violations(page) == []
        page.get_by_role("button", name="id", exact=True).click()
        page.get_by_role("button", name="id", exact=True).click()
        page.locator("tbody tr[aria-rowindex='2'] td", has_text=str(MANY - 1)).wait_for()
        page.get_by_role("button", name="Filter").click()
        page.get_by_label("Filter id").fill("100..5100")
        page.get_by_label("Filter name").fill("=Name 7")
        page.locator("caption", has_text="50 of 12,000 rows").wait_for()
        assert names(page, "tbody td:first-child")[:2] == ["5007", "4907"]


def test_a_chart_is_drawn_changed_and_saved(browser, shown):
    with opened(browser, shown, link(shown, "SELECT breed, age FROM dogs")) as page:
        page.locator(".chart svg").wait_for()
        assert page.locator(".chart .mark-rect path").count() == 4
        assert EVIL[:20] in page.locator(".chart svg").text_content()
        assert page.locator(".chart [role=img]").get_attribute("aria-label").startswith("Bars of age by breed: from 2")
        page.locator(".chart .mark-rect path").nth(1).hover()
        assert EVIL in page.inner_text(".tip")
        page.get_by_text("Change or save the chart").click()
        page.get_by_label("Kind").select_option("point")
        page.locator(".chart .mark-symbol path").nth(3).wait_for(state="attached")
        page.locator("#status", has_text="Points of age by breed").wait_for()
        page.get_by_label("Up").select_option("age")
        page.evaluate("navigator.clipboard.writeText = async text => { window.copied = text }")
        page.get_by_role("button", name="Copy link").click()
        shared = page.evaluate("copied")
        for kind, start in (("SVG", b"<svg"), ("PNG", b"\x89PNG")):
            with page.expect_download() as download:
                page.get_by_role("button", name=f"as {kind}").click()
            assert re.fullmatch(rf"age-by-breed-20.*\.{kind.lower()}", download.value.suggested_filename)
            content = download.value.path().read_bytes()
            assert content.startswith(start)
            assert b"<img" not in content
        assert violations(page) == []
        assert page.title() != "1"
        assert page.locator(".card img, .chart script").count() == 0
        page.goto(shared)
        page.locator(".chart .mark-symbol path").nth(3).wait_for(state="attached")
        page.get_by_text("Change or save the chart").click()
        assert page.get_by_label("Kind").input_value() == "point"
    path = shared.removeprefix(f"http://127.0.0.1:{shown.port}")
    with opened(browser, shown, path, java_script_enabled=False) as page:
        assert page.locator("svg.picture circle").count() == 4
        assert page.locator("svg.picture text", has_text=re.compile("^0$")).count() == 1


def test_kinds_that_cannot_be_drawn_are_not_offered_and_a_refused_chart_leaves_the_one_before(browser, shown):
    page = browser.new_page()
    page.goto(f"http://127.0.0.1:{shown.port}{link(shown, 'SELECT breed, age, 1 AS one FROM dogs')}")
    page.get_by_text("Change or save the chart").click()
    page.locator("option[value=line]:disabled").wait_for(state="attached")
    assert page.locator(".chart option:disabled").all_inner_texts() == ["Line", "Bars in parts"]
    page.get_by_label("Across").select_option("one")
    page.locator(".chart .problem", has_text="several rows have the same one").wait_for()
    assert page.get_by_label("Across").input_value() == "breed"
    page.close()


def test_headers_charts_and_sentences_name_no_function(browser, shown):
    suql = "SELECT city, count(*), round(avg(measure_1), 1) FROM wide GROUP BY city"
    address = link(shown, suql)
    for options in ({}, {"java_script_enabled": False}):
        with opened(browser, shown, address, **options) as page:
            page.locator("th", has_text="average measure_1").wait_for()
            page.locator("th", has_text="number of rows").wait_for()
            page.locator(".chart svg, svg.picture").first.wait_for()
            assert not re.search(r"count_star|avg", page.inner_text("table") + page.locator("svg").last.text_content())


def test_the_time_left_is_said_late_and_does_not_jump(browser, shown):
    """The first rows are slow, as a model starts: their pace would foretell an hour."""
    done = [(0, 0), (3, 1), (6, 2), (9, 12), (12, 40), (15, 70), (18, 71), (20, 130), (24, 160), (28, 195)]
    with opened(browser, shown) as page:
        said = page.evaluate(
            """async (done) => { const { timeLeft } = await import("/static/editor.js"), left = timeLeft();
            return done.map(([seconds, rows]) => left({ done: rows, total: 200 }, 1000 * seconds)) }""",
            done,
        )
    assert said[:3] == ["", "", ""]
    assert said[3:] == [f" about {left} left" for left in ("2 min", "50 s", "30 s", "30 s", "10 s", "5 s", "5 s")]


SHIFTS = """new PerformanceObserver(list => list.getEntries().forEach(each => {
  if (!each.hadRecentInput) window.shifted = (window.shifted ?? 0) + each.value }))
  .observe({ type: "layout-shift", buffered: true })"""


def test_a_chart_follows_forced_colours_stays_in_place_and_asks_no_other_host(browser, shown):
    asked = []
    with opened(browser, shown, "/sql", color_scheme="dark") as page:
        page.add_init_script(SHIFTS)
        page.on("request", lambda request: asked.append(request.url))
        page.reload()
        page.get_by_label("SUQL query").fill("SELECT breed, age FROM dogs")
        page.keyboard.press("Control+Enter")
        words = page.locator(".chart svg .role-axis-label text").first
        words.wait_for()
        assert page.evaluate("window.shifted ?? 0") <= 0.1
        page.emulate_media(forced_colors="active", color_scheme="light")
        page.wait_for_function(
            """() => { const word = document.querySelector(".chart svg .role-axis-label text");
            return word && getComputedStyle(word).fill === getComputedStyle(document.body).color }"""
        )
        assert violations(page) == []
    assert {url.split("/")[2] for url in asked} == {f"127.0.0.1:{shown.port}"}


@pytest.mark.parametrize(
    ("suql", "seen"),
    [
        ("SELECT count(*) AS n FROM wide", ".figure strong >> text=300"),
        ("SELECT breed, age FROM dogs WHERE age > 100", "caption >> text=0 rows"),
        ("SELECT breed, age FROM dogs WHERE age = 2", "td >> text=Collie"),
    ],
    ids=["number", "none", "row"],
)
def test_small_results_load_no_chart(browser, shown, suql, seen):
    asked = []
    with opened(browser, shown) as page:
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"http://127.0.0.1:{shown.port}{link(shown, suql)}")
        page.locator(seen).wait_for()
        page.locator(".card .buttons").wait_for()
        assert not any("vendor" in url for url in asked)
        assert fits(page)


@pytest.mark.parametrize(
    ("chosen", "status"),
    [
        ("kind=bar&x=breed&y=age", 200),
        ("kind=line&x=age&y=age", 200),
        ("kind=bar&x=breed&y=breed", 422),
        ("kind=bar&x=nothing&y=age", 422),
        ("kind=pie&x=breed&y=age", 422),
    ],
)
def test_another_chart_of_kept_rows(shown, chosen, status):
    address = link(shown, "SELECT breed, age FROM dogs").replace("/a/", "answers/")
    reply = shown.get(f"{address}/chart?{chosen}")
    assert reply.status == status
    assert status != 200 or reply.json()["chart"]["data"]["values"]
