"""Jobs: what a client drops ends, who waits is told, budgets hold, and the server ends in time."""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time

import pytest
from tests.web.conftest import CANDLES

from almanaq.errors import ModelCallError
from almanaq.models.protocols import Completion, Usage
from almanaq.testing import FunctionModel, ScriptedModel
from almanaq.web.service import Limits

COUNTED = {"reasoning": "", "suql": "SELECT count(*) FROM places", "needs_data": True, "clarify": None}
AGAIN = "nothing is kept. Run it again to go on"
NO_CALL = f"the number of places whose notes say yes to “is it nice?”; {AGAIN}"


def source(rows=300):
    texts = [f"A place of many words, and this is the one with number {i}." for i in range(rows)]
    return {"places": {"id": list(range(rows)), "notes": texts}}


def all_of(question="is it nice?"):
    return f"SELECT count(*) FROM places WHERE answer(notes, '{question}') = 'Yes'"


def until(told, seconds=30.0):
    end = time.monotonic() + seconds
    while not told():
        assert time.monotonic() < end
        time.sleep(0.01)


def steady(model, seconds=1.0):
    """How many more calls are made after a second."""
    before = model.calls
    time.sleep(seconds)
    return model.calls - before


@pytest.fixture
def slow():
    return FunctionModel(lambda *_: "Yes", latency=0.2)


def test_a_dropped_stream_stops_the_model(serve, slow):
    client = serve(source(), slow, concurrency=4)
    with client.open_stream("sql", {"suql": all_of()}) as events:
        next(events)
        until(lambda: slow.calls > 4)
    time.sleep(1)
    assert steady(slow) == 0
    assert slow.calls < 200


def test_a_stopped_query_keeps_the_rows_that_are_sure(serve, slow):
    client = serve(source(), slow, concurrency=4)
    suql = "SELECT id FROM places WHERE answer(notes, 'is it nice?') = 'Yes'"
    with client.open_stream("sql", {"suql": suql}) as events:
        id = next(events)[1]["id"]
        until(lambda: slow.calls > 12)
        assert client.post(f"answers/{id}/stop", {}).status == 204
        name, record = list(events)[-1]
    assert (name, record["stopped"], record["truncated"], record["trace"]["partial"]) == ("response", True, True, True)
    assert 0 < len(record["rows"]) < 200
    kept = client.get(f"answers/{id}").json()
    assert (kept["rows"], kept["stopped"]) == (record["rows"], True)
    assert b"Stopped: not all of the result." in client("GET", record["link"]).body
    assert steady(slow) == 0
    assert client.post(f"answers/{id}/stop", {}).status == 404
    with client.open_stream("sql", {"suql": all_of()}) as events:  # a count of some rows is not sure
        id = next(events)[1]["id"]
        until(lambda: client.post(f"answers/{id}/stop", {}).status == 204)
        assert list(events)[-1][1]["detail"] == f"stopped before any text call was answered: {NO_CALL}"
    for suql, known in (
        (all_of(), r"stopped after \d+ of 300 rows were read: the count is at least \d+; "),
        (f"{all_of()} GROUP BY id % 2", r"stopped after \d+ of 300 rows were read: \d+ passed; "),
    ):
        with client.open_stream("sql", {"suql": suql.replace("nice", f"nice {len(suql)}")}) as events:
            id = next(events)[1]["id"]
            next(data for name, data in events if name == "progress" and data.get("done", 0) > 4)
            assert client.post(f"answers/{id}/stop", {}).status == 204
            assert re.fullmatch(known + re.escape(AGAIN), list(events)[-1][1]["detail"])


def test_a_stopped_question_keeps_the_rows_that_are_sure(serve):
    parsed = {**COUNTED, "suql": "SELECT id FROM places WHERE answer(notes, 'is it nice?') = 'Yes'"}
    model = ScriptedModel(lambda prompt: parsed if prompt.name == "parse" else {"value": "Yes"}, latency=0.2)
    client = serve(source(), model, concurrency=4)

    def stop(question, calls):
        with client.open_stream("ask", {"question": question}) as events:
            id = next(events)[1]["id"]
            until(lambda: model.calls > calls and client.post(f"answers/{id}/stop", {}).status == 204)
            return list(events)[-1]

    name, record = stop("Which places are nice?", 12)
    assert (name, record["status"], record["stopped"], record["truncated"]) == ("response", "answered", True, True)
    assert 0 < len(record["rows"]) < 200
    assert "stopped early; rows may be missing" in record["answer"]
    assert steady(model) == 0  # no model words the reply
    turn = client.get(f"conversations/{record['conversation']}").json()["turns"][0]
    assert (turn["rows"], turn["stopped"]) == (record["rows"], True)
    before = model.calls
    name, problem = stop("Which are quiet?", before)  # while the query is written
    assert (name, problem["status"], problem["detail"]) == (
        "error",
        409,
        f"stopped before a query was written: {AGAIN}",
    )
    assert model.calls == before + 1


def test_a_dropped_request_stops_the_model(serve, slow):
    import http.client

    client = serve(source(), slow, concurrency=4)
    connection = http.client.HTTPConnection("127.0.0.1", client.port)
    client.send(connection, "POST", "/api/v1/sql", {"suql": all_of()})
    until(lambda: slow.calls > 4)
    connection.close()
    time.sleep(1)
    assert steady(slow) == 0


def test_a_dropped_question_stops_the_model_that_writes_the_query(serve):
    done = []

    class Slow(ScriptedModel):
        async def complete(self, prompt):
            import asyncio

            self.prompts.append(prompt)
            await asyncio.sleep(20)
            done.append(1)
            return Completion("{}", Usage(calls=1))

    model = Slow({})
    client = serve(model=model)
    with client.open_stream("ask", {"question": "How many places are there?"}) as events:
        next(events)
        until(lambda: model.prompts)
    # Its place is free again: the next one is not kept waiting.
    started = time.monotonic()
    client.post("explain", {"suql": CANDLES})
    assert time.monotonic() - started < 10
    assert not done


def test_what_takes_too_long_is_stopped(serve, slow):
    client = serve(source(), slow, concurrency=4)
    reply = client.post("sql", {"suql": all_of(), "options": {"deadline": 0.5}})
    assert (reply.status, reply.json()["type"]) == (504, "urn:almanaq:error:DeadlineExceeded")
    time.sleep(0.5)
    assert steady(slow) == 0


def test_progress_is_told(serve):
    model = FunctionModel(lambda *_: "Yes", latency=0.15)
    client = serve(source(60), model, concurrency=4)
    told = [data for name, data in client.stream("sql", {"suql": all_of()}) if name == "progress"]
    assert len(told) >= 2
    assert all(data["message"] == "reading texts" for data in told)
    assert [data["done"] for data in told] == sorted(data["done"] for data in told)


def test_who_waits_is_told_and_too_many_are_sent_away(serve, slow):
    client = serve(source(), slow, limits=Limits(at_once=1, waiting=1), concurrency=4)
    with client.open_stream("sql", {"suql": all_of()}) as first:
        next(first)
        with client.open_stream("sql", {"suql": all_of("is it?")}) as second:
            name, data = next(second)
            assert (name, data) == ("progress", {"message": "waiting: yours is next", "waiting": 0})
            reply = client.post("sql", {"suql": "SELECT 1"})
            assert (reply.status, reply.headers["retry-after"]) == (429, "5")
        # Who gave up waiting is out of the line.
    until(lambda: client.post("sql", {"suql": "SELECT 1 AS x"}).status == 200)


def test_one_conversation_goes_one_turn_at_a_time(serve):
    under_way, most = [], []

    def parse(_):
        return COUNTED

    class Model(ScriptedModel):
        async def complete(self, prompt):
            under_way.append(1)
            most.append(len(under_way))
            try:
                return await super().complete(prompt)
            finally:
                under_way.pop()

    client = serve(model=Model({"parse": parse, "respond": "Four."}, latency=0.05))
    first = client.ask("How many places are there?")["conversation"]
    replies = []
    threads = [
        threading.Thread(target=lambda: replies.append(client.ask("How many?", conversation=first))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) == 1
    assert len(replies) == 4
    assert len(client.get(f"conversations/{first}").json()["turns"]) == 5


@pytest.mark.parametrize("limit", ["conversation_calls", "server_calls"])
def test_budgets_of_a_conversation_and_of_the_server(serve, limit):
    model = ScriptedModel({"parse": lambda _: COUNTED, "respond": "Four."})
    client = serve(model=model, limits=Limits(**{limit: 1}))
    first = client.ask("How many places are there?")
    reply = client.post("ask", {"question": "And how many then?", "conversation": first["conversation"]})
    problem = reply.json()
    assert (reply.status, problem["type"]) == (422, "urn:almanaq:error:BudgetExceeded")
    assert limit.replace("_", "-") in problem["detail"]
    assert model.calls == 1  # a single number is worded by a template
    other = client.post("ask", {"question": "How many places have we?"})
    assert other.status == (200 if limit == "conversation_calls" else 422)


def test_rows_that_are_sure_come_with_the_error(serve):
    def dear(text, _):
        raise_now = "number 7." in text
        if raise_now:
            raise ModelCallError("no")
        return "Yes"

    client = serve(source(20), FunctionModel(dear), strict=True)
    reply = client.post("sql", {"suql": "SELECT id FROM places WHERE answer(notes, 'nice?') = 'Yes'"})
    assert (reply.status, reply.json()["type"]) == (502, "urn:almanaq:error:ModelCallError")


def test_a_fault_of_ours_says_nothing_of_itself(serve):
    def broken(text, _):
        raise RuntimeError("secret words of a row")

    client = serve(source(5), FunctionModel(broken))
    reply = client.post("sql", {"suql": all_of()})
    assert reply.status == 500
    assert "secret" not in json.dumps(reply.json())


def test_many_conversations_at_once_are_not_crossed(serve):
    cities = ("Paris", "Lyon")

    def parse(prompt):
        asked = prompt.messages[-1].content
        number = int(asked.rpartition("number ")[2].split("?")[0].split()[0].strip('"'))
        return COUNTED | {
            "suql": f"SELECT {number} AS number, count(*) FROM places WHERE city = '{cities[number % 2]}'"
        }

    client = serve(model=ScriptedModel({"parse": parse, "respond": lambda p: "Said."}, latency=0.02))
    found = {}

    def converse(number):
        reply = client.ask(f"What of number {number}?")
        again = client.ask(f"And what of number {number}?", conversation=reply["conversation"])
        found[number] = (reply, again)

    threads = [threading.Thread(target=converse, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(16))
    for number, replies in found.items():
        assert all(reply["rows"] == [[number, 2]] for reply in replies)
    assert len({reply["conversation"] for reply, _ in found.values()}) == 16


def test_a_turn_leaves_no_event_loop_behind(serve):
    import asyncio
    import gc

    def loops():
        gc.collect()
        return sum(type(each) is made for each in gc.get_objects())

    with contextlib.closing(asyncio.new_event_loop()) as loop:
        made = type(loop)
    client = serve(model=ScriptedModel({"parse": lambda _: COUNTED, "respond": "Four."}))
    client.ask("How many places are there at first?")
    before = loops()
    for number in range(6):
        client.ask(f"How many places are there, {number}?")
    assert loops() <= before + 2


def test_threads_that_no_engine_gives_back_are_told_by_healthz(serve, monkeypatch):
    """A job that heeds nothing keeps its thread after its time; once all threads are kept, the server is not well."""
    monkeypatch.setattr("almanaq.jobs.SECONDS_TO_HEED", 0.1)
    held = threading.Event()

    def deaf(_, __):
        held.wait()
        return "Yes"

    client = serve(source(2), FunctionModel(deaf), limits=Limits(at_once=2))
    replies = []
    body = {"suql": all_of(), "options": {"deadline": 3}}
    asking = [threading.Thread(target=lambda: replies.append(client.post("sql", body).status)) for _ in range(2)]
    try:
        assert client("GET", "/healthz").status == 200
        for each in asking:
            each.start()
        for each in asking:
            each.join()
        assert replies == [504, 504]
        until(lambda: client("GET", "/healthz").status == 503)
    finally:
        held.set()
    until(lambda: client("GET", "/healthz").status == 200)


def test_work_without_memory_is_told_as_that(serve):
    def large(_, __):
        raise MemoryError

    client = serve(source(2), FunctionModel(large))
    reply = client.post("sql", {"suql": all_of()})
    assert reply.status in (502, 503)
    assert "defect" not in reply.json()["detail"]
    assert client.post("sql", {"suql": "SELECT 1 AS one"}).status == 200
