"""Browsing: rows, profiles and completions over HTTP, which no model is asked for and no private cell comes from."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from tests.web.conftest import CANDLES, places
from tests.web.live import live
from tests.web.seen import fits, opened, violations

import almanaq
from almanaq.testing import FunctionModel
from almanaq.web.service import open_service

SECRETS = ["secret-one", "secret-two"]
SCHEMA = "[people.columns.ssn]\nprivate = true\n[people.columns.about]\nkind = 'free_text'\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("browse") / "staff"
    made.mkdir()
    lines = [
        f"{n},{'Ann' if n % 3 else 'Bob'} {n},{n / 4},{SECRETS[n % 2]},"
        f"{'n/a' if n % 3 else '2024-05-01'},long text {n}\n"
        for n in range(60)
    ]
    made.joinpath("people.csv").write_text("id,name,pay,ssn,since,about\n" + "".join(lines))
    made.parent.joinpath("staff.almanaq.toml").write_text(SCHEMA)
    return made


@pytest.fixture(scope="module", params=["own", "public"])
def staff(request, folder):
    def read(*_):
        raise AssertionError("no model is asked")

    with almanaq.connect(folder, model=FunctionModel(read), embedder="lexical", cache=False) as whole:
        service = open_service(whole if request.param == "own" else whole.public(), "staff", store_mb=None)
        with live(service) as client:
            yield client
        service.store.close()


def rows_of(client, *filters, **given):
    return client.get(f"tables/people/rows?{urlencode([*given.items(), *(('filter', each) for each in filters)])}")


@pytest.mark.parametrize(
    ("filters", "sort", "ids", "total"),
    [
        ((), "-pay", [59, 58, 57], 60),
        (("name~BOB", "pay>=10"), None, [42, 45, 48], 6),
        (("pay=0.5",), None, [2], 1),
        (("since=", "id!=0", "id<3"), "-id", [2, 1], 2),
    ],
)
def test_rows_are_sorted_filtered_and_counted_by_the_server(staff, filters, sort, ids, total):
    given = {"limit": 3} | ({"sort": sort} if sort else {})
    reply = rows_of(staff, *filters, **given)
    assert reply.status == 200, reply.body
    record = reply.json()
    assert [row[0] for row in record["rows"]] == ids
    assert record["rows_total"] == total
    assert "ssn" not in [column["name"] for column in record["columns"]]


def test_cursors_lead_through_every_row_once(staff):
    seen, cursor = [], None
    while cursor is not None or not seen:
        page = rows_of(staff, limit=25, **({"cursor": cursor} if cursor else {})).json()
        seen += [row[0] for row in page["rows"]]
        cursor = page["next"]
    assert seen == list(range(60))


@pytest.mark.parametrize(
    ("filters", "sort", "status"),
    [
        (("ssn=secret-one",), None, 403),
        ((), "ssn", 403),
        (("pay=abc",), None, 422),
        (("since>=soon",), None, 422),
        (("nothing",), None, 422),
        (("wages=1",), None, 400),
        (("about~long",), None, 422),
        (("name=' OR true --",), None, 200),
    ],
)
def test_what_cannot_be_is_refused(staff, filters, sort, status):
    reply = rows_of(staff, *filters, **({"sort": sort} if sort else {}))
    assert reply.status == status
    if status == 200:
        assert reply.json()["rows"] == []
    takes = {"pay=abc": "filter: pay takes a number, as 4.5, not 'abc'", "since>=soon": "filter: since takes a day, as"}
    assert reply.json().get("detail", "").startswith(takes.get("".join(filters), ""))


@pytest.mark.parametrize(
    "path", ["tables/people/rows?fitler=id=1", "tables?limit=5&serach=x", "verdicts?x", "about?a="]
)
def test_a_parameter_that_is_misspelt_is_refused_not_ignored(staff, path):
    assert staff.get(path).status == 422


KEPT = """SELECT id, name, pay, since, id % 2 = 0 AS "a>b", id AS "a", 100000000000000000 + id AS big, [id, 1] AS list
FROM people ORDER BY id"""


@pytest.fixture(scope="module")
def kept(folder):
    with almanaq.connect(folder, model="local", cache=False) as whole:
        service = open_service(whole, "staff", store_mb=None)
        with live(service) as client:
            record = client.post("sql", {"suql": KEPT, "max_rows": 100}).json()
            client.path = f"answers/{record['id']}/page"
            yield client
        service.store.close()


@pytest.mark.parametrize(
    ("filters", "sort", "places", "total"),
    [
        ((), None, [0, 1, 2], 60),
        ((), "-pay", [59, 58, 57], 60),
        (("name~BOB", "pay>=10"), None, [42, 45, 48], 6),
        (("since=", "a>b=true", "a<9"), "-a", [8, 4, 2], 3),
        (("list~5,",), None, [5, 15, 25], 6),
        (("name=' OR true --",), None, [], 0),
        (("a>b~TRU",), "a>b", [0, 2, 4], 30),
        ((), "big", [0, 1, 2], 60),
    ],
)
def test_kept_rows_are_sorted_and_filtered_by_the_server(kept, filters, sort, places, total):
    given = [("limit", 3), *([("sort", sort)] if sort else []), *(("filter", each) for each in filters)]
    reply = kept.get(f"{kept.path}?{urlencode(given)}")
    assert reply.status == 200, reply.body
    record = reply.json()
    assert (record["places"], record["rows_total"]) == (places, total)
    assert [(row[0], row[6], row[7]) for row in record["rows"]] == [(n, str(10**17 + n), [n, 1]) for n in places]
    whole = kept.get(f"{kept.path.removesuffix('page')}rows?{urlencode(given[1:])}").json()["rows"]
    assert ([row[0] for row in whole][:3], len(whole)) == (places, total)


@pytest.mark.parametrize(
    "given",
    ["sort=wages", "filter=wages=1", "filter=pay=abc", "filter=since=may", "filter=pay", "limit=0", "start=-1"],
)
def test_what_kept_rows_have_not_is_refused(kept, given):
    assert kept.get(f"{kept.path}?{given}").status == 422


def test_kept_rows_go_on_from_any_place(kept):
    record = kept.get(f"{kept.path}?start=58&sort=-id").json()
    assert [row[0] for row in record["rows"]] == [1, 0]
    assert kept.get(f"{kept.path}?start=60").json()["rows"] == []


def test_a_profile_says_what_columns_hold(staff):
    found = {column["name"]: column for column in staff.get("tables/people/profile").json()["columns"]}
    assert (found["pay"]["distinct"], found["pay"]["least"], found["pay"]["most"]) == (60, 0, 14.75)
    assert sum(bar["rows"] for bar in found["pay"]["histogram"]) == 60
    assert found["since"]["nulls"] == 40
    assert found["name"]["top"][0]["rows"] == 1
    assert "top" not in found["about"]
    assert found["about"]["sample"] == ["long text 0", "long text 1"]
    assert set(found.get("ssn", {"private": True})) <= {"name", "type", "kind", "private"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT na| FROM people", ["name"]),
        ("SELECT * FROM pe|", ["people"]),
        ("SELECT p.pa| FROM people AS p", ["pay"]),
        ("SELECT '\U0001f355', na| FROM people", ["name"]),
        ("SELECT * FROM people WHERE name = 'bob 4|", ["Bob 42", "Bob 45", "Bob 48"]),
        ("SELECT * FROM people WHERE ssn = 's|", []),
        ("SELECT answer(about, 'is na|", []),
        ("SELECT * FROM people WHERE name = 'Bob 42'|", []),
        ('SELECT "name"|', []),
        ("SELECT count(*)|", []),
        ("SELECT * FROM people WHERE pay > 1.5|", []),
    ],
)
def test_completions(staff, text, found):
    before, after = text.split("|")
    at = len(before.encode("utf-16-le")) // 2
    record = staff.get(f"complete?{urlencode({'text': before + after, 'at': at})}").json()
    assert [item["text"] for item in record["items"]] == found
    units = before.encode("utf-16-le")[2 * record["start"] :].decode("utf-16-le").lower()
    assert all(item["text"].lower().startswith(units) for item in record["items"])


def test_no_secret_leaves(staff):
    paths = ["tables/people", "tables/people/rows", "tables/people/profile", "complete?text=s&at=1"]
    assert not [path for path in paths if b"secret-" in staff.get(path).body]
    assert "n/a" in " ".join(staff.get("tables/people").json()["notes"])


@pytest.mark.parametrize("options", [{}, {"color_scheme": "dark", "viewport": {"width": 320, "height": 640}}])
def test_a_table_is_browsed(browser, serve, options):
    evil = "<img src=x onerror=\"document.title='gone'\">"
    wide = {f"column_{n}": [evil, "b", "b", None] for n in range(20)}
    client = serve({"places": places()["places"], "wide": wide})
    with opened(browser, client, "/tables", **options) as page:
        assert violations(page) == []
        page.get_by_role("link", name="wide").click()
        page.locator("#rows tbody tr").nth(3).wait_for()
        page.get_by_role("button", name="b (2)").first.wait_for()
        assert violations(page) == []
        assert fits(page)
        assert page.locator("main img").count() == 0
        page.get_by_role("button", name="b (2)").first.click()
        page.locator(".more", has_text="2 rows shown").wait_for()
        page.get_by_role("button", name="Remove filter").press("Enter")
        page.locator(".more", has_text="4 rows shown").wait_for()
        page.goto(f"http://127.0.0.1:{client.port}/tables/places")
        page.get_by_role("button", name="visits").click()
        page.locator("th[aria-sort=ascending]").wait_for()
        assert page.locator("#rows tbody tr").first.locator("td").nth(1).inner_text() == "Coda"
        page.get_by_label("Value", exact=True).fill("Alba")
        page.locator("#filter-column").select_option("name")
        page.wait_for_load_state("networkidle")  # what loads late moves the page, and a click scrolls to its button
        page.get_by_role("button", name="Filter", exact=True).scroll_into_view_if_needed()
        before = page.evaluate("scrollY")
        page.get_by_role("button", name="Filter", exact=True).click()
        page.locator(".more", has_text="1 row shown").wait_for()
        lowest = page.evaluate("document.documentElement.scrollHeight - innerHeight")  # fewer rows, a shorter page
        assert page.evaluate("scrollY") == min(before, lowest)
        page.evaluate("navigator.clipboard.writeText = async text => { window.copied = text }")
        page.get_by_role("button", name="Copy, download").click()
        page.get_by_role("button", name="Copy as TSV").click()
        assert page.evaluate("copied").splitlines()[1].split("\t")[:2] == ["1", "Alba"]
        page.get_by_role("button", name="Copy, download").click()
        with page.expect_download() as download:
            page.get_by_role("button", name="Download CSV").click()
        assert [line.split(b",")[1] for line in download.value.path().read_bytes().splitlines()] == [b"name", b"Alba"]
        page.get_by_role("link", name="Write a query").click()
        written = "SELECT * FROM places WHERE name = 'Alba' ORDER BY visits ASC LIMIT 100"
        assert page.get_by_label("SUQL query").input_value().split() == written.split()
        page.go_back()
        page.locator("th[aria-sort=ascending]").wait_for()
        assert page.get_by_role("button", name="Remove filter").count() == 1


def test_the_editor_completes_estimates_and_remembers(browser, serve):
    client = serve()
    with opened(browser, client, "/sql") as page:
        assert violations(page) == []
        page.get_by_label("SUQL query").focus()
        page.keyboard.type("SELECT na FROM places WHERE city = 'p")
        page.get_by_role("option", name="Paris").wait_for()
        assert violations(page) == []
        page.keyboard.press("Enter")
        assert page.get_by_label("SUQL query").input_value().endswith("city = 'Paris'")
        for key in ("Backspace", "'"):
            page.keyboard.press(key)
            page.wait_for_timeout(300)  # the list would open in less
            assert page.get_by_role("option").count() == 0
        page.locator(".live", has_text="did you mean 'name'").wait_for()
        assert page.inner_text(".editor .fault") == "na"
        page.get_by_label("SUQL query").fill(CANDLES)
        page.locator(".live", has_text="Would read about 4 texts in 4 requests").wait_for()
        page.keyboard.press("Control+Enter")
        page.locator("#log .card tbody").nth(1).wait_for()
        page.reload()
        assert page.get_by_label("SUQL query").input_value() == CANDLES
        page.get_by_text("Earlier queries").click()
        assert page.locator("#earlier li").count() == 1


@pytest.mark.parametrize(
    ("question", "known", "items"),
    [
        ("\U0001f355 pay of Bob 42?|", {"pay": "pay", "Bob 42": "Bob 42"}, []),
        ("people with secret-one|", {"people": "people"}, []),
        ("the pay of bob 4|", {"pay": "pay"}, ["Bob 42", "Bob 45", "Bob 48"]),
        ("all secret|", {}, []),
        ("which peo|", {}, ["people"]),
        ("|", {}, []),
    ],
)
def test_words_of_a_question_are_recognized_and_completed(staff, question, known, items):
    before, after = question.split("|")
    reply = staff.post("links", {"question": before + after, "at": len(before.encode("utf-16-le")) // 2})
    assert reply.status == 200, reply.body
    record = reply.json()
    units = (before + after).encode("utf-16-le")

    def words(start, end):
        return units[2 * start : 2 * end].decode("utf-16-le")

    found = {words(span["start"], span["end"]): span["meanings"][0]["write"] for span in record["spans"]}
    assert found == known
    assert [item["text"] for item in record["items"]] == items
    assert b"secret-" not in reply.body
