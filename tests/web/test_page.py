"""The page in Chromium: the whole journey, by mouse and by keyboard, for eyes and for screen readers."""

from __future__ import annotations

import gzip
import hashlib
import re
from contextlib import contextmanager
from importlib.resources import files

import pytest
from tests.web.conftest import CANDLES, Quoting
from tests.web.live import live
from tests.web.seen import fits, opened, violations

import almanaq
from almanaq.testing import ScriptedModel
from almanaq.web.service import open_service
from almanaq.web.site import assets

playwright = pytest.importorskip("playwright.sync_api")

DINNER = "Where can I have a romantic Italian dinner in Palo Alto?"
HOSTILE = {
    "markup": '<img src=x onerror="document.title=1"> candles <b>bold</b>',
    "direction": "\u202ethgir ot tfel\u202c and candles, \u2066isolated",
    "emoji": "\U0001f355\U0001f469\u200d\U0001f373 before the candles",
    "long": "many words " * 55_000 + "candles " + "and more " * 45_000,
}


@pytest.fixture(scope="module")
def sample():
    with almanaq.connect("sample:restaurants", cache=False) as connection:
        service = open_service(connection, "sample:restaurants", store_mb=None)
        with live(service) as client:
            yield client
        service.store.close()


def ask(page, question):
    before = page.locator(".turn").count()
    page.fill("#question", question)
    page.press("#question", "Enter")
    page.locator(".turn").nth(before).locator(".card .buttons").first.wait_for()


def test_the_assets_are_small():
    own = {name: asset for name, asset in assets().items() if not name.startswith("vendor/")}
    assert sum(len(gzip.compress(asset)) for asset in own.values()) <= 50_000
    assert not any(b"innerHTML" in asset or b"eval(" in asset for asset in own.values())


def test_vendored_files_are_those_that_are_listed():
    listed = (files("almanaq.web") / "static" / "vendor" / "README.md").read_text()
    vendored = {name.removeprefix("vendor/"): asset for name, asset in assets().items() if name.startswith("vendor/")}
    rows = dict(re.findall(r"^\| `([^`]+)` .*`([0-9a-f]{64})` \|$", listed, re.MULTILINE))
    assert rows == {name: hashlib.sha256(asset).hexdigest() for name, asset in vendored.items()}


def test_the_first_paint_is_quick(browser, sample):
    """Of several: what else the machine does is no part of the page."""
    with opened(browser, sample) as page:
        paints = []
        for _ in range(3):
            page.goto(f"http://127.0.0.1:{sample.port}/")
            page.locator("#question").focus()
            page.screenshot(clip={"x": 0, "y": 0, "width": 8, "height": 8})  # a frame has been painted
            paints.append(page.evaluate("performance.getEntriesByName('first-paint')[0].startTime"))
        assert min(paints) <= 200, paints


def test_a_question_its_quotes_and_what_follows(browser, sample):
    with opened(browser, sample) as page:
        assert violations(page) == []
        page.locator(".sample").first.wait_for()
        ask(page, DINNER)
        assert page.inner_text("#status") == "1 row. Answer ready."
        assert page.evaluate("document.activeElement.id") == "question"
        assert violations(page) == []
        quotes = page.locator(".quote li button.plain:first-child")
        quotes.first.click()
        page.locator("#reader mark").wait_for()
        assert f"“{page.inner_text('#reader mark')}”" == quotes.first.inner_text()
        page.get_by_role("button", name="Next quote").click()
        page.get_by_text("Quote 2 of").wait_for()
        assert f"“{page.inner_text('#reader mark')}”" == quotes.nth(1).inner_text()
        assert violations(page) == []
        page.keyboard.press("Escape")
        assert page.locator("#reader").is_hidden()

        page.get_by_text("How this was found").click()
        page.locator(".live", has_text="Would read about 4 texts").wait_for()
        editor = page.get_by_label("SUQL query")
        editor.fill("SELECT name, ratin FROM restaurants LIMIT 2")
        page.get_by_role("button", name="Run", exact=True).click()
        page.locator("[role=alert]", has_text="did you mean 'rating'").wait_for()
        assert page.inner_text(".editor .fault") == "ratin"
        assert page.evaluate("getSelection().toString()") == "ratin"
        editor.fill("SELECT name, rating FROM restaurants LIMIT 2")
        page.get_by_role("button", name="Run", exact=True).click()
        page.locator(".again table").wait_for()
        assert page.locator(".again tbody").count() == 2
        assert violations(page) == []

        page.get_by_role("button", name="Why isn’t").first.click()
        page.get_by_label("Its value").fill("Nonna Ines")
        page.get_by_role("button", name="Tell me why").click()
        page.get_by_text("The conditions are shown for that row.").wait_for(state="attached")
        assert violations(page) == []

        mark = page.get_by_role("button", name="Mark as wrong: row 1")
        mark.click()
        page.locator("#measured", has_text="0 % of 1 judged").wait_for()
        mark.click()
        page.locator("#measured", has_text="none judged yet").wait_for()
        page.get_by_role("button", name="Right", exact=True).click()
        page.locator("#measured", has_text="100 % of 1 judged").wait_for()
        ask(page, "How many of them are there?")
        assert page.locator(".turn h2").count() == 2
        page.reload()
        page.locator(".turn").nth(1).wait_for()
        assert page.locator(".turn").first.locator(".again h3").inner_text() == "The edited query"
        assert page.locator(".again tbody").count() == 2
        assert page.locator(".judging[aria-pressed=true]").all_inner_texts() == ["Right"]
        edited = sample.get(f"conversations/{page.evaluate('location.hash.slice(1)')}").json()["edits"][0]
        pinned = {"items": [{"answer": edited["id"]}]}
        title = sample("PUT", "/api/v1/boards/edits", pinned).json()["items"][0]["title"]
        assert title == f"The edited query: {DINNER}"
        page.locator("#question").press("ArrowUp")
        page.locator("#question").press("ArrowUp")
        assert page.input_value("#question") == DINNER
        page.get_by_role("button", name="New conversation").click()
        assert page.locator(".turn").count() == 0
        page.go_back()
        page.locator(".turn").nth(1).wait_for()
        page.go_forward()
        page.locator("#start").wait_for()
        page.get_by_text("Earlier conversations").click()
        page.get_by_role("button", name=DINNER, exact=True).click()
        page.locator(".turn").nth(1).wait_for()
        assert violations(page) == []
        page.goto(f"http://127.0.0.1:{sample.port}{edited['link']}")
        assert page.inner_text("h1") == "The edited query"
        assert f"of the answer to “{DINNER}”" in page.inner_text("main > .note")
        assert violations(page) == []


def test_words_are_underlined_explained_and_completed_while_typed(browser, sample):
    with opened(browser, sample, viewport={"width": 320, "height": 640}) as page:
        page.keyboard.type("Cafes in San Francisco with a rating")
        page.locator("#words button", has_text="rating").wait_for()
        assert page.locator("#underlines u").all_inner_texts() == ["Cafes", "San Francisco", "rating"]
        boxes = [page.locator(place).bounding_box() for place in ("#underlines", "#question")]
        assert boxes[0] == boxes[1]
        assert violations(page) == []
        assert fits(page)
        page.locator("#words button", has_text="San Francisco").press("Enter")
        assert violations(page) == []
        page.get_by_role("button", name="value · restaurants.location").press("Enter")
        assert page.input_value("#question") == "Cafes in location San Francisco with a rating"
        page.fill("#question", "")
        assert page.locator("#words").is_hidden()
        page.keyboard.type("cafes in palo al")
        page.get_by_role("option", name="Palo Alto").wait_for()
        assert violations(page) == []
        page.keyboard.press("Tab")
        assert page.input_value("#question") == "cafes in Palo Alto"
        page.keyboard.press("Enter")
        page.locator(".turn .card .buttons").wait_for()


def test_by_keyboard_alone(browser, sample):
    with opened(browser, sample) as page:
        page.keyboard.type("What is the best rated Lebanese restaurant?")
        page.keyboard.press("Shift+Enter")
        assert page.input_value("#question").endswith("\n")
        page.keyboard.press("Enter")
        page.locator(".card .buttons").wait_for()
        assert page.evaluate("document.activeElement.id") == "question"
        for _ in range(4):
            page.keyboard.press("Shift+Tab")
            if page.evaluate("document.activeElement.textContent") == "Wrong…":
                break
        while page.evaluate("document.activeElement.textContent") != "Wrong…":
            page.keyboard.press("Shift+Tab")
        page.keyboard.press("Enter")
        page.locator("dialog[open]").wait_for()
        assert violations(page) == []
        page.keyboard.type("Not that one.")
        page.keyboard.press("Escape")
        assert page.evaluate("document.activeElement.textContent") == "Wrong…"


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "options",
    [
        {"color_scheme": "dark"},
        {"forced_colors": "active"},
        {"viewport": {"width": 320, "height": 640}, "reduced_motion": "reduce"},
    ],
    ids=["dark", "forced", "narrow"],
)
def test_other_eyes(browser, sample, options):
    with opened(browser, sample, **options) as page:
        assert fits(page)
        assert violations(page) == []
        ask(page, DINNER)
        assert fits(page)
        page.locator(".quote li button.plain").first.click()
        page.locator("mark").wait_for()
        if options.get("viewport"):
            page.locator("dialog[open] mark").wait_for()
        assert fits(page)
        assert violations(page) == []


def test_a_link_shows_what_was_answered(browser, sample):
    record = sample.ask(DINNER)
    with opened(browser, sample, record["link"]) as page:
        page.locator(".card .buttons").wait_for()
        assert violations(page) == []
        assert page.inner_text("h1") == DINNER
        page.locator(".quote li button.plain").first.click()
        page.locator("#reader mark").wait_for()
    with opened(browser, sample, record["link"], java_script_enabled=False) as page:
        assert page.locator("q").first.inner_text().strip('“”"') == record["evidence"][0][0]["quote"]
    with opened(browser, sample, "/accuracy") as page:
        assert violations(page) == []
        for said in ("Noted as right", "Verdict withdrawn", "Noted as right"):
            page.locator("[data-verdict=right]").first.click()
            page.locator("#status", has_text=said).wait_for(state="attached")
        page.reload()
        assert "1" in page.locator("tbody tr").first.inner_text()


def test_hostile_cells_are_text(browser, serve):
    source = {"cells": {"name": list(HOSTILE), "notes": list(HOSTILE.values())}}
    client = serve(source, Quoting(lambda text, _: "Yes"))
    suql = "SELECT name, notes FROM cells WHERE answer(notes, 'are there candles?') = 'Yes'"
    record = client.post("sql", {"suql": suql}).json()
    assert len(record["rows"]) == 4
    with opened(browser, client, record["link"]) as page:
        page.locator(".card .buttons").wait_for()
        for number in range(4):
            page.locator(".quote li").nth(number).locator("button.plain").first.click()
            page.locator("#reader .hint", has_text=f"Quote {number + 1} of 4").wait_for()
            assert page.inner_text("#reader mark") == "andles"
            name = record["rows"][number][0]
            assert page.evaluate("document.querySelector('.passage').textContent") == HOSTILE[name]
        assert page.locator("main img, #reader img").count() == 0
        assert page.title() != "1"


def test_it_asks_before_it_spends_stops_and_tells_of_a_server_that_goes(browser):
    suql = "SELECT id FROM places WHERE answer(notes, 'is it quiet?') = 'Yes'"
    parsed = {"reasoning": "", "suql": suql, "needs_data": True, "clarify": None}
    model = ScriptedModel(lambda prompt: parsed if prompt.name == "parse" else {"value": "Yes"}, latency=0.25)
    texts = [f"A place of many words, and this is the one with number {i}." for i in range(300)]
    source = {"places": {"id": list(range(300)), "notes": texts}}
    with almanaq.connect(source, model=model, embedder="lexical", cache=False, concurrency=8) as connection:
        service = open_service(connection, "places", store_mb=None)
        with live(service) as client, unwatched(browser, client) as page:
            page.fill("#question", "Where is it quiet?")
            page.press("#question", "Enter")
            page.locator(".note", has_text="About 300 calls").wait_for()
            assert model.calls == 1
            page.get_by_role("button", name="Run it").click()
            page.locator("[data-line=progress]", has_text="reading texts").wait_for()
            page.keyboard.press("Escape")
            page.locator(".card .note", has_text="Stopped: not all of the result.").wait_for(timeout=3000)
            assert page.locator(".turn tbody").count() > 0
            page.wait_for_timeout(500)
            before = model.calls
            page.wait_for_timeout(500)
            assert 1 < model.calls == before < 200

            page.fill("#question", "Where is one quiet?")
            parsed["suql"] = "SELECT id FROM places WHERE id < 2"
            page.press("#question", "Enter")
            page.locator(".turn").last.get_by_text("How this was found").click()
            page.get_by_label("SUQL query").fill(suql)
            page.get_by_role("button", name="Run", exact=True).click()
            page.locator(".told .note", has_text="About 300 calls").wait_for()
            assert model.calls <= before + 2  # the question's own: nothing was read
            page.get_by_role("button", name="Run it").last.click()
            page.locator(".told .working", has_text="reading texts").wait_for()
            page.get_by_role("button", name="Stop").last.click()
            page.locator(".again .note", has_text="Stopped: not all of the result.").wait_for(timeout=3000)
            page.wait_for_timeout(500)
            before = model.calls
            page.wait_for_timeout(500)
            assert model.calls == before < 290
            page.fill("#question", "How many places are there?")
            page.evaluate("() => { window.fetch = () => Promise.reject(new TypeError('gone')) }")
            page.press("#question", "Enter")
            page.locator("[role=alert]", has_text="The connection to the server was lost.").wait_for()
            page.get_by_role("button", name="Ask again").last.wait_for()
        service.store.close()


def test_an_earlier_option_runs_itself_and_deleting_asks_first(browser, serve):
    table = {"shop": ["North", "South", "North", "South"], "sales": [9, 4, 2, 8]}
    with opened(browser, serve({"receipts": table}, "local")) as page:
        ask(page, "which shop has the highest sales?")
        option = page.locator(".readings button").nth(1)
        suql = option.get_attribute("title")
        ask(page, "How many receipts are there?")
        option.click()
        page.locator(".turn").first.locator(".again .card").wait_for()
        assert page.locator(".turn").count() == 2
        assert page.get_by_label("SUQL query").input_value() == suql
        assert violations(page) == []

        page.get_by_text("Earlier conversations").click()
        for answer, left in (("dismiss", 1), ("accept", 0)):
            page.once("dialog", lambda dialog, answer=answer: getattr(dialog, answer)())
            page.get_by_role("button", name="Delete which shop").click()
            page.locator("#history li").nth(0).wait_for(state="attached" if left else "detached")
        page.locator("#status:not(.quiet)", has_text="Conversation deleted.").wait_for()


@contextmanager
def unwatched(browser, client):
    """A page that may lose its server."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{client.port}/")
    yield page
    context.close()


def test_a_name_that_is_bound_anew_reaches_nothing(browser, client):
    context = browser.new_context()
    page = context.new_page()
    reply = page.goto(f"http://rebound.example:{client.port}/")
    assert reply.status == 421
    context.close()


def test_another_site_cannot_ask(browser, client, tmp_path):
    context = browser.new_context()
    page = context.new_page()
    page.route(
        "http://other.example/*",
        lambda route: route.fulfill(content_type="text/html", body="<form method=post enctype=text/plain></form>"),
    )
    page.goto("http://other.example/")
    target = f"http://127.0.0.1:{client.port}/api/v1/sql"
    sent = page.evaluate(
        "async ([target, body]) => { try { const reply = await fetch(target, {method: 'POST', mode: 'no-cors', body});"
        " return reply.type } catch (error) { return 'refused' } }",
        [target, f'{{"suql": "{CANDLES}"}}'],
    )
    assert sent in ("opaque", "refused")
    with page.expect_navigation() as moved:
        page.evaluate(f"() => {{ const form = document.forms[0]; form.action = '{target}'; form.submit() }}")
    assert moved.value.status == 403
    context.close()


def test_files_of_the_page_are_sent_once(client):
    first = client("GET", "/static/vendor/vega-6.4.0.min.js")
    assert first.headers["cache-control"] == "private, no-cache"
    again = client("GET", "/static/vendor/vega-6.4.0.min.js", if_none_match=first.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    assert client("GET", "/").headers["cache-control"] == "no-store"
