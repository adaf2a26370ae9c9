"""Boards: what is pinned, run again and exported; private columns and hostile cells; the page by pointer and keys."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.web.conftest import CANDLES, places
from tests.web.live import live
from tests.web.seen import fits, opened, violations

import almanaq
from almanaq.testing import FunctionModel
from almanaq.web.service import open_service
from almanaq.web.store import AnswerStore

BY_CITY = "SELECT city, count(*) AS places FROM places GROUP BY city ORDER BY places DESC, city"
EVIL = "<img src=x onerror=\"document.title='gone'\"><script>document.title='gone'</script>"


def pin(client, name, *queries, text="Where to eat", title="Food"):
    ids = [client.post("sql", {"suql": suql}).json()["id"] for suql in queries]
    items = [{"text": text}, *({"answer": id} for id in ids)]
    reply = client("PUT", f"/api/v1/boards/{name}", {"title": title, "items": items})
    assert reply.status == 200, reply.body
    return reply.json()


def test_a_board_is_kept_run_again_and_deleted(serve):
    client = serve()
    before = pin(client, "food", BY_CITY, CANDLES)
    assert [item.get("text") or item["record"]["rows"] for item in before["items"]] == [
        "Where to eat",
        [["Lyon", 2], ["Paris", 2]],
        [[1, "Alba"], [3, "Coda"]],
    ]
    after = client.post("boards/food/run", {}).json()
    assert after["failed"] == {}
    for old, new in zip(before["items"][1:], after["items"][1:], strict=True):
        assert new["made"] > old["made"]
        assert (new["answer"] != old["answer"], new["record"]["rows"]) == (True, old["record"]["rows"])
    assert client.get("boards").json()["boards"] == [{"name": "food", "title": "Food", "items": 3}]
    assert client("DELETE", "/api/v1/boards/food").status == 204
    assert client.get("boards/food").status == 404
    assert client.get(f"answers/{after['items'][1]['answer']}").status == 200


def test_a_board_keeps_the_chart_that_was_chosen(browser, serve):
    client = serve()
    board = pin(client, "drawn", BY_CITY)
    with opened(browser, client, "/boards/drawn") as page:
        page.get_by_text("Change or save the chart").click()
        page.get_by_label("Kind").select_option("point")
        page.locator(".chart .mark-symbol path").nth(1).wait_for(state="attached")
        with page.expect_navigation():
            page.get_by_role("button", name="Run again").click()
        page.locator(".chart .mark-symbol path").nth(1).wait_for(state="attached")
    item = client.get("boards/drawn").json()["items"][1]
    assert item["chart"] == {"kind": "point", "x": "city", "y": "places", "colour": ""}
    assert item["answer"] != board["items"][1]["answer"]
    assert b"<circle" in client("GET", "/boards/drawn/export").body


def test_a_query_that_fails_keeps_its_rows(serve):
    client = serve()
    before = pin(client, "spent", BY_CITY, CANDLES)
    after = client.post("boards/spent/run", {"options": {"max_calls": 0}}).json()
    assert [*after["failed"]] == ["2"]
    assert after["failed"]["2"]["type"].endswith("BudgetExceeded")
    assert after["items"][2]["made"] == before["items"][2]["made"]
    assert after["items"][1]["made"] > before["items"][1]["made"]


@pytest.mark.parametrize("body", [{"items": [{"answer": "none"}]}, {"items": [{"text": "a", "answer": "b"}]}])
def test_what_cannot_be_pinned_is_refused(client, body):
    assert client("PUT", "/api/v1/boards/none", body).status in (404, 422)


def test_a_board_of_private_columns_is_not_there_for_others(tmp_path):
    folder = tmp_path / "staff"
    folder.mkdir()
    folder.joinpath("people.csv").write_text("id,name,ssn\n1,Ada,4711-0815\n2,Bob,4711-0816\n")
    tmp_path.joinpath("staff.almanaq.toml").write_text("[people.columns.ssn]\nprivate = true\n")
    file = tmp_path / "answers.sqlite"
    with almanaq.connect(folder, model=FunctionModel(lambda *_: "Yes"), embedder="lexical", cache=False) as whole:
        for connection, status, sees in ((whole, 200, True), (whole.public(), 404, False)):
            service = open_service(connection, "staff", store_mb=None)
            store = service.store.sees
            service.store.close()
            service.store = AnswerStore(file, "staff", sees=store)
            with live(service) as client:
                if sees:
                    pinned = pin(client, "hr", "SELECT name, ssn FROM people")["items"][1]["answer"]
                    edited = {"suql": "SELECT 1 AS one", "of": {"answer": pinned, "title": "4711"}}
                    id = client.post("sql", edited).json()["id"]
                assert client.get(f"answers/{id}").status == status
                assert client.get("boards/hr").status == status
                bodies = [client("GET", path).body for path in ("/boards", "/boards/hr", "/boards/hr/export")]
                assert any(b"4711" in body for body in bodies) is sees
            service.store.close()


def test_pinned_answers_give_way_last(tmp_path):
    table = pa.table({"n": pa.array(range(4_000)), "t": [f"{n * 7919 % 10007:x}" * 3 for n in range(4_000)]})
    with almanaq.connect({"t": table}, cache=False) as connection:
        service = open_service(connection, "t", store_mb=None)
        service.store = AnswerStore(None, "t", most_bytes=200_000)
        with live(service) as client:
            board = pin(client, "kept", "SELECT * FROM t LIMIT 9")
            others = [
                client.post("sql", {"suql": f"SELECT * FROM t OFFSET {n}", "max_rows": 1_800}).json()["id"]
                for n in range(8)
            ]
            assert client.get(f"answers/{others[0]}").status == 404
            assert client.get("boards/kept").json()["items"] == board["items"]
        service.store.close()


def test_the_page_the_export_and_hostile_cells(browser, serve):
    source = places()["places"].set_column(1, "name", pa.array([EVIL, "b", "c", "d"]))
    client = serve({"places": source})
    pin(client, "R&D", BY_CITY)
    assert client("GET", "/boards/R%26D").status == 200
    pin(client, "evil", "SELECT name, id FROM places ORDER BY id", BY_CITY, text=EVIL, title=EVIL)
    with opened(browser, client, "/boards/evil") as page:
        page.locator(".board-items .card").nth(1).wait_for()
        assert violations(page) == []
        assert fits(page)
        assert page.locator("main img, main script").count() == 0
        assert EVIL in page.inner_text("h1")
        with page.expect_navigation():
            page.get_by_role("button", name="Run again").click()
        page.get_by_role("button", name="Move text down").focus()
        page.keyboard.press("Enter")
        page.locator("[data-item='1'] > .answer").wait_for()
        assert EVIL in page.inner_text("[data-item='1'] > .answer")
    file = client("GET", "/boards/evil/export")
    assert file.headers["content-disposition"].startswith("attachment")
    context = browser.new_context(offline=True, color_scheme="dark", forced_colors="active")
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.set_content(file.body.decode())
    assert page.locator("img, script").count() == 0
    assert EVIL in page.inner_text("table >> nth=0")
    assert page.locator("svg.picture rect").count() == 2
    words = "text => getComputedStyle(text).fill === getComputedStyle(document.body).color"
    assert page.locator("svg.picture text").first.evaluate(words), "words keep the contrast of the page"
    assert page.title() != "gone"
    assert asked == []
    context.close()


def test_a_chart_is_seen_without_scripts_and_its_names_are_text(browser, serve):
    tag = "<img src=x onerror=alert(1)>"
    client = serve({"dogs": {"breed": [tag, "Pug"], f"count {tag}": [1, 2]}})
    link = client.post("sql", {"suql": "SELECT * FROM dogs"}).json()["link"]
    context = browser.new_context(java_script_enabled=False, viewport={"width": 320, "height": 700})
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{client.port}{link}")
    assert page.locator("svg.picture rect").count() == 2
    assert page.locator("main img, main script").count() == 0
    assert page.locator("svg.picture text", has_text=tag).count() == 2
    assert page.locator("svg.picture").bounding_box()["width"] <= 320
    context.close()


def test_an_answer_is_pinned_from_the_page(browser, serve):
    client = serve()
    with opened(browser, client, "/sql") as page:
        page.get_by_label("SUQL query").fill(BY_CITY)
        page.keyboard.press("Control+Enter")
        page.get_by_role("button", name="Pin …").click()
        page.get_by_label("Board").fill("cities")
        assert violations(page) == []
        page.keyboard.press("Enter")
        page.locator("#status", has_text="Pinned on the board").wait_for(state="attached")
    assert client.get("boards/cities").json()["items"][0]["title"] == BY_CITY
