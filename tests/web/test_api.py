"""The API: records, streams, errors, what is kept, and what a client may read of it."""

from __future__ import annotations

import csv
import io
from urllib.parse import quote, urlencode

import pyarrow.parquet as pq
import pytest
from tests.web.conftest import CANDLES, NOTES, Quoting, places, reads_candles

import almanaq
from almanaq.encode import response_record, result_record
from almanaq.testing import FunctionModel

ADDED = {"id", "conversation", "link", "question", "keys", "lead", "truncated", "rows_total", "cells_cut", "suql"}
QUESTION = "How many places are there?"


def without_time(record):
    trace = {name: value for name, value in record["trace"].items() if name != "seconds"}
    return record | {"trace": trace}


def connection(**options):
    return almanaq.connect(places(), model=FunctionModel(reads_candles), embedder="lexical", cache=False, **options)


def test_a_reply_is_the_record_of_ask(client):
    with connection() as con:
        own = response_record(con.ask(QUESTION))
    record = client.ask(QUESTION)
    assert set(record) - set(own) == ADDED - {"suql"}
    named = record | {"columns": [column["name"] for column in record["columns"]]}
    assert without_time({name: named[name] for name in own}) == without_time(own)
    assert record["columns"] == [{"name": "count", "type": "bigint", "kind": "structured"}]
    assert record["link"] == f"/a/{record['id']}"
    assert not record["truncated"]


def test_a_result_is_the_record_of_sql(client):
    with connection() as con:
        own = result_record(con.sql(CANDLES))
    record = client.post("sql", {"suql": CANDLES}).json()
    assert set(record) - set(own) == {"id", "link", "suql", "truncated", "rows_total", "cells_cut"}
    named = record | {"columns": [column["name"] for column in record["columns"]]}
    own["evidence"] = named["evidence"]  # its offsets count otherwise: below
    assert without_time({name: named[name] for name in own}) == without_time(own)
    assert record["rows"] == [[1, "Alba"], [3, "Coda"]]


def test_the_events_end_with_the_response(client):
    events = client.stream("ask", {"question": QUESTION})
    names = [name for name, _ in events]
    assert names[0] == "start"
    assert names[-1] == "response"
    assert set(names) <= {"start", "tables", "progress", "query", "estimate", "rows", "text", "response"}
    assert [name for name in names if name in ("response", "error")] == ["response"]
    last = events[-1][1]
    assert "".join(data["text"] for name, data in events if name == "text") == last["answer"]
    assert events[0][1] == {name: last[name] for name in ("id", "conversation", "link")}


def test_a_conversation_remembers_and_can_be_forgotten(client):
    first = client.ask("Which places are in Paris?")
    again = client.ask("How many of them are there?", conversation=first["conversation"])
    assert again["conversation"] == first["conversation"]
    assert again["rows"] == [[2]]
    kept = client.get(f"conversations/{first['conversation']}").json()
    assert [turn["id"] for turn in kept["turns"]] == [first["id"], again["id"]]
    assert client("DELETE", f"/api/v1/conversations/{first['conversation']}").status == 204
    for path in (f"conversations/{first['conversation']}", f"answers/{first['id']}", f"answers/{again['id']}/rows"):
        assert client.get(path).status == 404
    reply = client.post("ask", {"question": "How many?", "conversation": first["conversation"]})
    assert (reply.status, reply.json()["type"]) == (404, "urn:almanaq:error:NotFound")


def test_whole_numbers_beyond_those_of_javascript_are_text(client):
    rows = client.post("sql", {"suql": "SELECT visits FROM places ORDER BY id"}).json()["rows"]
    assert rows == [[str(2**53)], [2**53 - 1], [str(-(2**60))], [None]]


def test_a_quote_is_where_javascript_finds_it(serve):
    client = serve(model=Quoting(reads_candles))
    record = client.post("sql", {"suql": CANDLES}).json()
    for row, evidence in zip(record["rows"], record["evidence"], strict=True):
        text = NOTES[row[1]]
        units = text.encode("utf-16-le")
        [one] = evidence
        assert units[2 * one["start"] : 2 * (one["start"] + len(one["quote"]))].decode("utf-16-le") == one["quote"]
        where = urlencode({name: one[name] for name in ("relation", "key", "column", "passage")})
        cell = client.get(f"cells?{where}&answer={record['id']}").json()
        assert cell == {"text": text, "spans": [{"start": one["start"], "end": one["start"] + len("andles")}]}
    assert record["evidence"][1][0]["start"] > NOTES["Coda"].find("andles")
    assert client.get("cells?relation=places&key=1&column=notes").status == 404


def test_rows_are_capped_and_the_whole_is_kept(client):
    record = client.post("sql", {"suql": "SELECT id FROM places ORDER BY id", "max_rows": 2}).json()
    assert record["rows"] == [[1], [2]]
    assert record["truncated"]
    wide = client.post("sql", {"suql": "SELECT repeat('x', 300000) AS t, id FROM places ORDER BY id"}).json()
    assert wide["truncated"]
    assert wide["cells_cut"] == len(wide["rows"])
    assert all(len(row[0]) == 16_000 for row in wide["rows"])
    kept = client.get(f"answers/{wide['id']}/rows").json()
    assert [len(row[0]) for row in kept["rows"]] == [300_000] * 4


def test_rows_come_as_files(client):
    record = client.post("sql", {"suql": "SELECT id, name, '=1+1' AS f FROM places ORDER BY id"}).json()
    path = f"answers/{record['id']}/rows?format="
    assert client.get(path + "json").json()["rows"][0] == [1, "Alba", "=1+1"]
    lines = list(csv.reader(io.StringIO(client.get(path + "csv").body.decode())))
    assert lines[:2] == [["id", "name", "f"], ["1", "Alba", "'=1+1"]]
    assert pq.read_table(io.BytesIO(client.get(path + "parquet").body)).column("id").to_pylist() == [1, 2, 3, 4]
    assert client.get(path + "xlsx").status == 422


def test_an_interval_survives_being_kept(client):
    record = client.post("sql", {"suql": "SELECT interval '1 month 2 days' AS i"}).json()
    assert client.get(f"answers/{record['id']}/rows").json()["rows"] == record["rows"] == [["P1M2D"]]


def test_a_kept_answer_costs_nothing(serve):
    model = FunctionModel(reads_candles)
    client = serve(model=model)
    record = client.post("sql", {"suql": CANDLES}).json()
    calls = model.calls
    assert calls
    for path in (f"/api/v1/answers/{record['id']}", f"/a/{record['id']}", f"/api/v1/answers/{record['id']}/rows"):
        assert client("GET", path).status == 200
    kept = client.get(f"answers/{record['id']}").json()
    assert {name: kept[name] for name in record} == record
    assert model.calls == calls


def test_get_never_asks(client):
    for path in ("ask", "sql", "explain", "why-not"):
        reply = client.get(path)
        assert (reply.status, reply.headers["content-type"]) == (405, "application/problem+json")


@pytest.mark.parametrize(
    ("suql", "kind", "near", "marked"),
    [
        ("SELECT nam FROM places", "UnknownNameError", ["name", "notes"], "nam"),
        ("SELECT name FROM plces", "UnknownNameError", ["places"], "plces"),
        ("SELECT '\U0001f355' AS x, nam FROM places", "UnknownNameError", ["name", "notes"], "nam"),
        ("SELECT name FROM places WHERE", "QuerySyntaxError", None, None),
        ("DELETE FROM places", "RefusedQueryError", None, None),
        ("SELECT 1; SELECT 2", "RefusedQueryError", None, None),
    ],
)
@pytest.mark.parametrize("path", ["sql", "explain", "why-not"])
def test_a_faulty_query_is_told_with_its_place(client, path, suql, kind, near, marked):
    body = {"suql": suql} | ({"key": {"id": 1}} if path == "why-not" else {})
    reply = client.post(path, body)
    problem = reply.json()
    assert (reply.status, reply.headers["content-type"]) == (400, "application/problem+json")
    assert (problem["type"], problem["status"]) == (f"urn:almanaq:error:{kind}", 400)
    assert problem.get("near") == near
    if marked is not None:
        units = suql.encode("utf-16-le")
        place = problem["position"]
        assert units[2 * place["start"] : 2 * place["end"]].decode("utf-16-le") == marked
    streamed = client.stream(path, body)
    assert [name for name, _ in streamed][-1] == "error"
    assert streamed[-1][1] == problem


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"suql": 1},
        {"suql": "SELECT 1", "source": "/etc/passwd"},
        {"suql": "SELECT 1", "options": {"model": "openai:other"}},
        {"suql": "SELECT 1", "max_rows": 0},
        {"suql": "SELECT 1", "options": {"max_calls": -1}},
        {"suql": "SELECT 1", "options": {"deadline": 0}},
    ],
)
def test_unknown_keys_and_values_are_errors(client, body):
    reply = client.post("sql", body)
    assert (reply.status, reply.json()["type"]) == (422, "urn:almanaq:error:RequestError")
    assert reply.json()["errors"]


def test_parameters_stand_for_question_marks(client):
    reply = client.post("sql", {"suql": "SELECT name FROM places WHERE id = ? AND city = ?", "params": [3, "Paris"]})
    assert reply.json()["rows"] == [["Coda"]]
    assert client.post("sql", {"suql": "SELECT ?", "params": []}).json()["type"].endswith("ParameterError")


def test_a_plan_is_run_as_it_was_shown(client):
    plan = client.post("explain", {"suql": CANDLES}).json()
    assert plan["predicted"]["calls"] == 4
    assert plan["stages"]
    assert client.post("sql", {"suql": CANDLES, "plan": plan["plan"]}).status == 200
    other = CANDLES.replace("candles", "dogs")
    assert client.post("sql", {"suql": other, "plan": plan["plan"]}).status == 409


def test_a_client_lowers_the_budget_and_never_raises_it(serve):
    model = FunctionModel(reads_candles)
    client = serve(model=model, max_calls=2)
    for wanted in (100, 1):
        reply = client.post("sql", {"suql": CANDLES, "options": {"max_calls": wanted}})
        assert (reply.status, reply.json()["type"]) == (422, "urn:almanaq:error:BudgetExceeded")
    assert model.calls == 0
    one = CANDLES.replace("ORDER", "AND id = 1 ORDER")
    assert client.post("sql", {"suql": one, "options": {"max_calls": 100}}).json()["rows"] == [[1, "Alba"]]


def test_why_a_row_is_not_there(client):
    record = client.post("why-not", {"suql": CANDLES, "key": {"id": 2}}).json()
    assert record["found"]
    assert [condition["truth"] for condition in record["conditions"]] == [False]
    assert not client.post("why-not", {"suql": CANDLES, "key": {"id": 99}}).json()["found"]
    plain = {"suql": "SELECT name FROM places WHERE visits > 50 AND name <> 'x'", "key": {"id": 2}}
    conditions = client.post("why-not", plain).json()["conditions"]
    visits = client.post("sql", {"suql": "SELECT visits FROM places WHERE id = 2"}).json()["rows"][0][0]
    assert conditions[0]["text"] == f"visits > 50 (visits is {visits})"
    assert [condition["truth"] for condition in conditions] == [visits > 50, True]
    grouped = {"suql": "SELECT count(*) FROM places WHERE id > 1 GROUP BY name", "key": {"id": 2}}
    assert "does not group" in client.post("why-not", grouped).json()["detail"]
    unknown = client.post("why-not", {"suql": CANDLES, "key": {"idd": 2}})
    assert (unknown.status, unknown.json()["near"]) == (400, ["id"])


def test_the_catalog_comes_in_pages(serve):
    tables = {f"t{i:02}": {"number": [i]} for i in range(7)} | {"odd name/x": {"a": [1]}}
    client = serve(source=tables)
    names, cursor = [], None
    while True:
        page = client.get("tables?limit=3" + (f"&cursor={cursor}" if cursor else "")).json()
        names += [table["name"] for table in page["tables"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert sorted(names) == sorted(tables)
    assert page["total"] == 8
    found = client.get("tables?search=T0").json()["tables"]
    assert len(found) == 7
    assert client.get("tables?cursor=xyz").status == 422
    assert client.get("tables/t03").json()["columns"][0]["name"] == "number"
    assert client.get(f"tables/{quote('odd name')}").status == 404
    assert client.get("tables/t3").json()["near"]


def test_nothing_is_crossed_between_sources(serve, client):
    other = serve(source={"u": {"a": [1]}})
    record = client.post("sql", {"suql": "SELECT 1 AS x"}).json()
    assert other.get(f"answers/{record['id']}").status == 404


def test_what_it_says_of_itself(client):
    about = client.get("about").json()
    assert (about["source"], about["model"], about["leaves"]) == ("places", "function", [])
    assert about["accuracy"] == {"judged": 0, "right": 0, "share": None, "low": None, "high": None}


def test_a_reading_is_run_by_its_number(serve):
    client = serve()
    offered = client.ask("Which places are zorgy?")
    talk = {"conversation": offered["conversation"]}
    assert [each["suql"] for each in offered["readings"]]
    ran = client.post("ask", {"reading": 1, **talk}).json()
    assert (ran["status"], ran["suql"]) == ("answered", offered["readings"][0]["suql"])
    for wrong in ({"reading": 1}, {"reading": 4, **talk}, {"reading": 1, "question": "1", **talk}, talk):
        assert client.post("ask", wrong).status == 422, wrong
