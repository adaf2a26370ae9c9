"""One store, servers of several kinds over it: what is kept is given to whoever could ask for it, and to no other."""

from __future__ import annotations

import itertools
import json
import urllib.parse
from contextlib import ExitStack, contextmanager

import pytest
from tests.web.live import live

import almanaq
from almanaq.errors import PrivateColumnError
from almanaq.testing import FunctionModel
from almanaq.web.service import open_service

NAMES = ("Ines", "Joao", "Kofi", "Lena")
PAY, DIARY = "pay-90210", "diary-90210"
ROWS = "".join(
    f'{n},{name},{PAY}-{n},"{DIARY} of day {n}: it rained on the hills, and nobody came"\n'
    for n, name in enumerate(NAMES)
)
MARKS = {
    "nothing": "",
    "pay": "[staff.columns.pay]\nprivate = true\n",
    "diary": '[staff.columns.diary]\nprivate = true\nkind = "free_text"\n',
    "both": '[staff.columns.pay]\nprivate = true\n[staff.columns.diary]\nprivate = true\nkind = "free_text"\n',
}
QUERIES = [
    "SELECT name FROM staff ORDER BY id LIMIT 2",
    "SELECT pay FROM staff ORDER BY id LIMIT 2",
    "SELECT s.name, upper(s.PAY) AS p FROM staff AS s ORDER BY s.id LIMIT 2",
    "SELECT q.a FROM (SELECT pay AS a, id AS b FROM staff) AS q ORDER BY q.b LIMIT 2",
    "WITH w AS (SELECT pay AS x FROM staff) SELECT max(x) AS m FROM w",
    "SELECT name FROM staff WHERE pay LIKE '%-1'",
    "SELECT name FROM staff ORDER BY pay LIMIT 2",
    "SELECT name FROM staff WHERE answer(diary, 'did it rain?') = 'Yes' ORDER BY id LIMIT 2",
    "SELECT 'x' AS c UNION ALL SELECT pay FROM staff WHERE id = 1",
    "SELECT name FROM staff WHERE EXISTS (SELECT 1 FROM staff AS t WHERE t.pay = staff.pay) ORDER BY id LIMIT 2",
]
QUESTIONS = ["How many staff are there?", "What is the pay of Ines?", "Who keeps a diary?", "Qwx zrt?"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ALMANAQ_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "staff.csv").write_text(f"id,name,pay,diary\n{ROWS}")
    return tmp_path


@contextmanager
def serving(folder, marks, *, public):
    """A client of a server over the staff, with a store on disk; `connection` is what it answers from."""
    schema = folder / f"{marks}.toml"
    schema.write_text(MARKS[marks])
    with ExitStack() as stack:
        source = folder / "staff.csv"
        model = FunctionModel(lambda *_: "Yes")
        whole = stack.enter_context(
            almanaq.connect(source, model=model, embedder="lexical", schema=schema, cache=False)
        )
        connection = whole.public() if public else whole
        service = open_service(connection, str(source))
        stack.callback(service.store.close)
        client = stack.enter_context(live(service))
        client.connection = connection
        yield client


def keep_answers(client):
    """Ask all queries and questions; give the records that have a link, and judge each."""
    records = [client.post("sql", {"suql": suql}).json() for suql in QUERIES]
    records += [client.post("ask", {"question": question}).json() for question in QUESTIONS]
    first = records[-len(QUESTIONS)]
    records.append(client.post("ask", {"question": "And their names?", "conversation": first["conversation"]}).json())
    why = {"suql": QUERIES[5], "key": {"name": "Ines"}}
    records.append(client.post("why-not", why).json())
    kept = [record for record in records if record.get("link")]
    for record in kept:
        reply = client("PUT", f"/api/v1/answers/{record['id']}/verdict", {"verdict": "right", "note": f"{PAY}-7 it is"})
        assert reply.status == 200
    return kept


def read_everything(client, kept):
    """Every path on which something that is kept is read; by path, what it gives."""
    paths = ["/accuracy", "/", "/api/v1/about", "/api/v1/verdicts"]
    paths += [f"/api/v1/verdicts/export?format={format}" for format in ("examples", "tests")]
    for record in kept:
        paths += [
            f"/a/{record['id']}",
            f"/api/v1/answers/{record['id']}",
            f"/api/v1/answers/{record['id']}/rows?format=csv",
        ]
        paths += [f"/api/v1/conversations/{record['conversation']}"] if record.get("conversation") else []
        for quote in (each for row in record.get("evidence", ()) for each in row):
            place = {name: quote[name] for name in ("relation", "key", "column", "passage")}
            paths.append("/api/v1/cells?" + urllib.parse.urlencode(place))
            paths.append("/api/v1/cells?" + urllib.parse.urlencode(place | {"answer": record["id"]}))
    return {path: client("GET", path) for path in paths}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("marks", ["pay", "diary", "both"])
def test_what_is_private_leaves_the_shared_store_on_no_path(folder, marks):
    with serving(folder, marks, public=False) as own:
        kept = keep_answers(own)
        assert PAY in str(kept)
        assert all(reply.status in (200, 404) for reply in read_everything(own, kept).values())
    hidden = {"pay": [PAY], "diary": [DIARY], "both": [PAY, DIARY]}[marks]
    with serving(folder, marks, public=True) as others:
        for path, reply in read_everything(others, kept).items():
            assert [word for word in hidden if word.encode() in reply.body] == [], path
        for record in kept:
            verdict = others("PUT", f"/api/v1/answers/{record['id']}/verdict", {"verdict": "wrong"})
            assert verdict.status == others.get(f"answers/{record['id']}").status
        gone = [
            record
            for record in kept
            if others.get(f"answers/{record['id']}").status == 404 and record.get("conversation")
        ]
        for record in gone:
            conversation = {"conversation": record["conversation"]}
            assert others.post("ask", {"question": "And who?", **conversation}).status == 404
            assert others("DELETE", f"/api/v1/conversations/{record['conversation']}").status == 404
    with serving(folder, marks, public=False) as own:
        assert all(own.get(f"answers/{record['id']}").status == 200 for record in kept)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("before", "after"), list(itertools.product(("nothing", "pay"), ("nothing", "pay", "both"))))
def test_an_answer_is_given_to_whoever_could_ask_for_it_now(folder, before, after):
    """Whatever was marked when it was kept, and by whom: what counts is what may be read when it is read."""
    with serving(folder, before, public=before == "nothing") as client:
        kept = [client.post("sql", {"suql": suql}).json() for suql in QUERIES]
    with serving(folder, after, public=True) as others:
        for record in kept:
            try:
                others.connection.sql(record["suql"])
                status = 200
            except PrivateColumnError:
                status = 404
            assert others.get(f"answers/{record['id']}").status == status, record["suql"]
            assert others("GET", record["link"]).status == status


def test_a_server_for_others_shows_what_it_kept_itself(folder):
    with serving(folder, "both", public=True) as client:
        kept = keep_answers(client)
        found = read_everything(client, kept)
        assert {path: reply.status for path, reply in found.items() if path.startswith("/a/")}.keys()
        assert all(reply.status == 200 for path, reply in found.items() if not path.endswith("/rows?format=csv"))
        assert len(json.loads(found["/api/v1/verdicts"].body)["verdicts"]) == len(kept)
