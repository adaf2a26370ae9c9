"""Private columns: nothing of them leaves, in whatever place of a query they are asked for."""

from __future__ import annotations

import pytest
from tests.web.live import live

import almanaq
from almanaq.testing import FunctionModel
from almanaq.web.service import open_service

SECRET, OTHER = "4711-0815", "4711-0816"
SCHEMA = """
[people.columns.ssn]
kind = "structured"
private = true
"""
QUERIES = [
    "SELECT ssn FROM people",
    "SELECT name FROM people WHERE ssn LIKE '47%'",
    "SELECT name FROM people ORDER BY ssn",
    "SELECT count(*) FROM people GROUP BY ssn",
    "SELECT max(ssn) FROM people",
    "SELECT name FROM people p WHERE EXISTS (SELECT 1 FROM people q WHERE q.ssn = p.ssn)",
    "SELECT answer(ssn, 'which number?') FROM people",
]
WHOLE = [
    "SELECT * FROM people",
    "SELECT people FROM people",
    "SELECT p::text FROM people p",
    "SELECT to_json(p) FROM people p",
    "SELECT * FROM people a NATURAL JOIN people b",
    "DESCRIBE people",
]


@pytest.fixture(scope="module")
def exposed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("private") / "staff"
    folder.mkdir()
    folder.joinpath("people.csv").write_text(f"id,name,ssn\n1,Ada,{SECRET}\n2,Bob,{OTHER}\n")
    folder.parent.joinpath("staff.almanaq.toml").write_text(SCHEMA)
    with almanaq.connect(folder, model=FunctionModel(lambda *_: "Yes"), embedder="lexical", cache=False) as whole:
        service = open_service(whole.public(), "staff", store_mb=None)
        with live(service, token="correct-horse", names=("localhost",)) as client:
            client.headers["authorization"] = "Bearer correct-horse"
            yield client
        service.store.close()


@pytest.mark.parametrize("suql", QUERIES)
@pytest.mark.parametrize("path", ["sql", "explain"])
def test_a_query_that_looks_at_one_is_refused(exposed, path, suql):
    reply = exposed.post(path, {"suql": suql})
    assert (reply.status, reply.json()["type"]) == (403, "urn:almanaq:error:PrivateColumnError")


@pytest.mark.parametrize("suql", WHOLE)
def test_a_row_taken_whole_has_none(exposed, suql):
    body = exposed.post("sql", {"suql": suql}).body.decode()
    # The whole numbers and the half that both begin with: "4711" alone could be digits of a time.
    assert [part for part in (SECRET, OTHER, "4711-") if part in body] == []


def test_nothing_that_leaves_holds_one(exposed):
    asked = (f"Who has the ssn {SECRET}?", "Which people are there?", "What is the ssn of Bob?", "show all people")
    bodies = [exposed.post("ask", {"question": question}).body for question in asked]
    bodies += [exposed.get(path).body for path in ("about", "tables", "tables/people", "verdicts")]
    bodies.append(exposed.post("why-not", {"suql": QUERIES[1], "key": {"ssn": SECRET}}).body)
    plain = {"suql": "SELECT name FROM people WHERE ssn <> 'x'", "key": {"name": "Bob"}}
    bodies.append(exposed.post("why-not", plain).body)
    assert b"ssn <> 'x'" in bodies[-1]
    # What the asker said may be repeated; the number of the other person was never said.
    assert [body for body in bodies if OTHER.encode() in body] == []
